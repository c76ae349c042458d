"""Every limit in one table; docs/reference/guarantees.md prints it, tests/test_limits.py probes each at -1, 0, +1."""

from __future__ import annotations

from typing import Final

MAX_INDEX: Final = 2**31 - 1  # rows, labels, features: indices are int32
MAX_K: Final = 10_000  # labels returned for one document
MAX_BEAM: Final = 10_000  # tree nodes kept at each level of a search
MAX_VALUE: Final = 10**15  # absolute value of a matrix entry or relevance: squares and sums stay within float32
MAX_THREADS: Final = 1024  # asked for by one call
MAX_LEVELS: Final = 64  # depth of a label tree
MAX_CHILDREN: Final = 2**22  # children of one tree node, all labels of a flat tree: they are scored together
MAX_TREES: Final = 256  # members of one ensemble
MAX_MANIFEST_BYTES: Final = 64 * 2**20  # labelwood.json of a model folder
MAX_CONFIG_BYTES: Final = 2**20  # one TOML config
MAX_LABEL_BYTES: Final = 4096  # one label name, UTF-8
MAX_LINE_BYTES: Final = 2**30  # one line of an input file, decompressed
MAX_ROW_LABELS: Final = 2**17  # labels of one document, where they are listed
MAX_ROW_VALUES: Final = 2**19  # cells or lines of one record of a table, JSON values of one line above 1 MB
MAX_TEXT_BYTES: Final = 2**32 - 1  # one document, UTF-8: counts are u32
MAX_TEXT_FIELDS: Final = 64  # fields of a record that are read as text
MAX_FIELD_WEIGHT: Final = 100  # times that a word of a field counts
MAX_WORD_GRAM: Final = 8  # words of one n-gram
MAX_CHAR_GRAM: Final = 16  # characters of one n-gram
MAX_TERM_BYTES: Final = 4096  # one tf-idf term, UTF-8
MAX_SEED: Final = 2**63 - 1
DIGEST_BLOCK: Final = 2**16  # a model file is hashed in blocks of this size, twice it if they are too many, and so on
DIGESTS: Final = 2**15  # blocks of one file
VERIFIED_AT_ONCE: Final = 256 * 2**20  # bytes of a model that are verified whole at load; of a larger one, on first use
MAX_HEADER_BYTES: Final = 4 * 2**20  # of one safetensors file
MAX_DIMENSIONS: Final = 16  # of one stored array
MAX_NESTING: Final = 32  # tables within tables in a manifest
MAX_JSON_ITEMS: Final = 2**19  # values in a manifest: 16 files with all their digests
MAX_TOKENISER_BYTES: Final = 64 * 2**20  # tokenizer.json of an encoder
MAX_TOKENISER_ITEMS: Final = 2**22  # values in it: a million pieces
