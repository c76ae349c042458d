"""The data set that ships with the library: Debian package descriptions and their tags, for the first five minutes.

2,885 documents to train on, 751 to test, 323 labels, about six a document. NOTICE beside the files says whose it is.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ..errors import ConfigError, StorageError


def quickstart_path(part: str) -> Path:
    """The file of a part, "train" or "test": JSON lines with "id", "text" and "labels", xz-compressed."""
    if part not in {"train", "test"}:
        raise ConfigError(f'there is no part {part!r} of the quickstart data; allowed are "train" and "test".')
    path = Path(str(files(__name__) / f"{part}.jsonl.xz"))
    if not path.is_file():
        raise StorageError(f"{path} is missing; reinstall labelwood.")
    return path
