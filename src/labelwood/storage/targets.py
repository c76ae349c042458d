"""Places that output may go to: never over an input, never into a model. Asked before any work; nothing is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import ConfigError
from . import model_folder

Place = str | os.PathLike[str]
Open = int  # number of a file that is open already, such as standard input


def check_file(target: Place | Open, inputs: Iterable[Place | Open]) -> None:
    """Refuse a file that is an input, by whatever name or link, that stands in a folder of inputs, or in a model."""
    where = _told(target)
    for given in inputs:
        if _same_file(target, given):
            raise ConfigError(f"{where} is the input {_told(given)}, which would be lost; write to another file.")
        if _stands_in(target, given):
            raise ConfigError(
                f"{where} is a file of the input folder {_told(given)}; write to another file, or remove it first."
            )
    if not isinstance(target, Open):
        _refuse_inside_model(Path(target))


def check_folder(folder: Place, inputs: Sequence[Place | Open], names: Iterable[str]) -> None:
    """Refuse a folder for files of these names that is a model, stands in one, or holds an input of such a name."""
    if model_folder.exists(folder):
        raise ConfigError(f"{folder} is the folder of a model; choose another folder.")
    _refuse_inside_model(Path(folder))
    for name in names:
        check_file(Path(folder) / name, [given for given in inputs if not _is_folder(given)])


def check_model(folder: Place, others: Iterable[Place]) -> None:
    """Refuse a folder for a model that stands in another model, or that holds an input or other output."""
    _refuse_inside_model(Path(folder))
    place = Path(folder).resolve()
    for given in others:
        if Path(given).resolve().is_relative_to(place):
            raise ConfigError(f"{given} stands in {folder}, which the model is to take; choose another folder.")


def _refuse_inside_model(path: Path) -> None:
    around = path.resolve().parent
    if model_folder.exists(around):
        raise ConfigError(f"{path} stands in the folder of a model, {around}; choose another place.")


def _same_file(one: Place | Open, other: Place | Open) -> bool:
    first, second = _status(one), _status(other)
    if first is None or second is None or not stat.S_ISREG(first.st_mode):
        return False
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def _stands_in(target: Place | Open, folder: Place | Open) -> bool:
    """Is it there already, in a folder that is read?"""
    if isinstance(target, Open) or isinstance(folder, Open) or not os.path.lexists(target):
        return False
    return _is_folder(folder) and Path(target).resolve().parent == Path(folder).resolve()


def _is_folder(place: Place | Open) -> bool:
    found = _status(place)
    return found is not None and stat.S_ISDIR(found.st_mode)


def _status(place: Place | Open) -> os.stat_result | None:
    """None: it cannot be seen; what is wrong with it is said when it is opened."""
    with suppress(OSError, ValueError):
        return os.fstat(place) if isinstance(place, Open) else Path(place).stat()
    return None


def _told(place: Place | Open) -> str:
    """Name of a place, for people."""
    names = {0: "standard input", 1: "standard output"}
    return names.get(place, f"file number {place}") if isinstance(place, Open) else str(place)
