"""The folder of a run: where it is, what run it belongs to, and what may be removed from it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import limits
from ..base import canonical_json
from ..errors import ConfigError, ModelFileError, StorageError
from . import atomic_files, model_folder

RUN, LOCK = "run.json", "lock"
STAGE_FOLDER = re.compile(rf"{model_folder.PART.pattern}-[0-9a-f]{{16}}")


def work_folder(model: Path) -> Path:
    """The workspace beside a model folder: DIR.work."""
    model = Path(os.path.abspath(model))  # noqa: PTH100 — resolve() would leave a linked folder
    return model.with_name(f"{model.name}.work")


def started(folder: Path) -> bool:
    """Is there a run that was not finished, or was finished and kept?"""
    return os.path.lexists(atomic_files.as_path(folder) / RUN)


def begun(folder: Path) -> dict[str, Any] | None:
    """Identity of the run that is kept there, as it was given to `begin`; None if there is none that can be read."""
    try:
        found = canonical_json.parse(bytes(atomic_files.read(folder / RUN, limits.MAX_MANIFEST_BYTES)), RUN)["run"]
    except (FileNotFoundError, ModelFileError, StorageError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def has_stages(folder: Path) -> bool:
    """Is there a finished stage to continue from?"""
    return any(
        STAGE_FOLDER.fullmatch(name) and model_folder.exists(folder / name) for name in atomic_files.names(folder)
    )


def leftover(folder: Path) -> ConfigError:
    """Error where neither continuing nor starting over was asked for."""
    return ConfigError(
        f"a run is kept in {folder}; continue or reuse it with resume (--resume), "
        "or start over with overwrite (--overwrite)."
    )


def check_same_run(path: Path, run: dict[str, Any]) -> None:
    try:
        before = canonical_json.parse(bytes(atomic_files.read(path, limits.MAX_MANIFEST_BYTES)), str(path))
    except (FileNotFoundError, ModelFileError) as error:
        # Harmless: every stage carries the digest of its own inputs.
        warnings.warn(f"{path.name} is missing or damaged and is written again: {error}", stacklevel=4)
        return
    for change in differences(before, run):
        raise ConfigError(
            f"cannot resume {path.parent}: {change}; "
            "give what the run was started with, or start over with overwrite (--overwrite)."
        )


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """Differences of two runs: the dotted name of the field and both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            name = f"{where}.{key}".removeprefix(".").removeprefix("run.")
            yield from differences(old.get(key, _ABSENT), new.get(key, _ABSENT), name)
    elif old != new or type(old) is not type(new):
        digests = where == "data" and isinstance(old, str) and isinstance(new, str)  # they tell nothing
        change = f"{where or 'the run'} was {_show(old)} but is {_show(new)} now"
        yield "the training data is not the same" if digests else change


_ABSENT = object()


def _show(value: object) -> str:
    text = "absent" if value is _ABSENT else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def is_ours(name: str) -> bool:
    return name == RUN or bool(STAGE_FOLDER.fullmatch(name) or atomic_files.TEMPORARY.fullmatch(name))


def clear(folder: Path) -> None:
    """Remove run.json and the stages; stages first, so that a kill in between leaves a workspace that says whose."""
    with atomic_files.refusing(folder):
        for name in atomic_files.names(folder):
            if STAGE_FOLDER.fullmatch(name) and (folder / name).is_dir():
                model_folder.erase(folder / name)
            elif atomic_files.TEMPORARY.fullmatch(name):
                atomic_files.discard(folder / name)
        with suppress(FileNotFoundError):
            atomic_files.system.unlink(folder / RUN)
