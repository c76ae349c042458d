"""Readers: the files users already have → Dataset."""

from __future__ import annotations

from ..arrays.texts import Texts
from .dataset import Dataset, LabelTable, ReadReport, align_labels
from .given_labels import ColumnNames, Labels, Relevance
from .in_memory import from_documents, from_lists, from_matrix, from_records, given_features
from .label_files.label_texts import read_label_texts, read_names, with_label_texts
from .label_files.taxonomy import Parents, read_taxonomy, with_taxonomy
from .options import ReadOptions
from .read import read, stream
from .sniff import sniff

__all__ = [
    "ColumnNames",
    "Dataset",
    "LabelTable",
    "Labels",
    "Parents",
    "ReadOptions",
    "ReadReport",
    "Relevance",
    "Texts",
    "align_labels",
    "from_documents",
    "from_lists",
    "from_matrix",
    "from_records",
    "given_features",
    "read",
    "read_label_texts",
    "read_names",
    "read_taxonomy",
    "sniff",
    "stream",
    "with_label_texts",
    "with_taxonomy",
]
