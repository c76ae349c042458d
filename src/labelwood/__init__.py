"""labelwood: extreme multi-label text classification. Raw text in, label names out."""

from __future__ import annotations

from .errors import ConfigError, DataError, LabelwoodError, MissingExtraError, ModelFileError, StorageError

__version__ = "0.1.0"
__all__ = [
    "ConfigError",
    "DataError",
    "LabelwoodError",
    "MissingExtraError",
    "ModelFileError",
    "StorageError",
    "__version__",
]
