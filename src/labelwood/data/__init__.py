"""Readers: the files users already have → Dataset."""

from __future__ import annotations

from .dataset import Dataset, LabelTable, ReadReport, Texts

__all__ = ["Dataset", "LabelTable", "ReadReport", "Texts"]
