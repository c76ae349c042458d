"""The workspace of a run: every finished stage is a folder named by what it was made from.

A stage is a pure function of its inputs (plain data, digests of arrays, keys of earlier stages). Its key is the digest
of those, so resuming means: the folder is there. A stage folder is a model folder (model_folder.py), hence written at
once, verified when read, and made again, with a warning, if it is damaged.

    DIR.work/
      run.json                 what this run is: recipe, data digests
      lock                     held by the process that works here
      <stage>-<16 hex digits>/ one per finished stage
"""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..base import canonical_json
from ..base.digests import digest_arrays, digest_plain
from ..errors import ConfigError, ModelFileError, StorageError
from . import atomic_files, model_folder, safetensors_file
from .keyed import plain
from .run_folder import LOCK, RUN, check_same_run, clear, is_ours, leftover

__all__ = ["Stage", "Workspace", "digest_arrays", "digest_plain"]

STAGE_SCHEMA = 3  # to be raised when stages of the same release line change their bits or their layout
ASIDE_BYTES = 256 * 2**20  # a copy of so much is put on disk
ALIGN = 64  # bytes: where arrays begin there

Tensors = Mapping[str, NDArray[Any]]
Make = Callable[[], Tensors | tuple[Tensors, Mapping[str, Any]]]


@dataclasses.dataclass(frozen=True, eq=False)
class Stage:
    """A finished stage. `key` names its content: give it to the stages that build on this one."""

    key: str
    tensors: dict[str, NDArray[Any]]  # read-only
    meta: dict[str, Any]
    reused: bool
    seconds: float = 0.0  # that it had taken, where it is reused


class Workspace:
    """Makes each stage once and keeps it: on disk, or in memory where there is no folder.

    `spent` has the seconds of each stage that was made here, by its name; a stretch inside one that is `measured` by
    itself counts there alone.
    """

    def __init__(
        self, folder: Path | None, *, shared: bool = False, reused: Callable[[float], None] | None = None,
        clock: Callable[[], float] = time.monotonic, every: float = 180.0,
    ) -> None:  # fmt: skip
        """`shared`: several runs, one after another, find each other's stages here; none clears or removes them.

        `reused` is given the seconds that a stage had taken which is found done, or is continued. `every` so many
        seconds the state of a fine-tuning is kept.
        """
        self.shared, self.reused = shared, reused
        self.every, self.clock = every, clock
        self.spent: dict[str, float] = {}
        self._in_memory: dict[str, Stage] = {}
        self.folder = None if folder is None else atomic_files.as_path(folder)
        self._held = ExitStack()
        self._begun = False
        self._precious = False  # it holds what took long: an earlier run's stages, or a training

    def begin(self, run: Mapping[str, Any], *, resume: bool, overwrite: bool) -> None:
        """Lock the workspace and make sure that what is in it belongs to this run.

        Resuming another run is a ConfigError that names the field; so is a leftover workspace when neither resuming
        nor overwriting was asked for. Resuming where nothing is left simply starts.
        """
        run = {
            "schema": STAGE_SCHEMA,
            "release": _release(),
            "run": {} if self.shared else canonical_json.normal(run, "run"),
        }
        if self.folder is None:
            return
        self._lock(self.folder)
        try:
            self._settle(self.folder, run, resume, overwrite)
        except BaseException:
            self.close()
            raise
        self._begun = True

    def stage(
        self, name: str, inputs: Mapping[str, Any], make: Make, *, number: int | None = None,
        keeper: Keeper | None = None,
    ) -> Stage:  # fmt: skip
        """The stage's result: read back if it was made before, else made now and kept.

        `inputs` are plain data and `Keyed` values, which stand for their keys; `number` tells stages of one kind apart.
        """
        kind, name = name, name if number is None else f"{name}-{number}"
        if not model_folder.PART.fullmatch(name):
            raise ConfigError(f"{name!r} cannot name a stage; allowed are a-z, then up to 63 of a-z 0-9 _ -.")
        key = _key(name, inputs)
        if self.folder is None:
            if key not in self._in_memory:
                with self.measured(kind):
                    self._in_memory[key] = _made(key, make)
            return self._in_memory[key]
        if not self._begun:
            raise ConfigError("begin() must come before the first stage of a workspace on disk.")
        folder = self.folder / f"{name}-{key[:16]}"
        found = _reused(folder, key) if model_folder.exists(folder) else None
        if found is None:
            start = time.monotonic()
            with self.measured(kind):
                found = _made(key, make)
            spent = time.monotonic() - start + (0.0 if keeper is None else keeper.earlier)
            model_folder.save(folder, {"key": key, "meta": found.meta, "seconds": spent}, {"tensors": found.tensors})
            found = _mapped(folder, found)
        elif self.reused is not None:
            self.reused(found.seconds)
        return found

    def training(
        self, name: str, inputs: Mapping[str, Any], make: Callable[[Keeper], Tensors], *, number: int | None = None
    ) -> Stage:
        """A stage that takes long: `make` is given a keeper of its unfinished state, which is gone once it is done."""
        keeper = self.keeper(name if number is None else f"{name}-{number}", inputs)
        found = self.stage(name, inputs, lambda: make(keeper), number=number, keeper=keeper)
        keeper.discard()
        return found

    @contextmanager
    def measured(self, kind: str) -> Iterator[None]:
        """Count the time of a stretch of work, less what is measured inside it."""
        start, inside = self.clock(), sum(self.spent.values())
        try:
            yield
        finally:
            inside = sum(self.spent.values()) - inside
            self.spent[kind] = self.spent.get(kind, 0.0) + self.clock() - start - inside

    def keeper(self, name: str, inputs: Mapping[str, Any]) -> Keeper:
        """Keeps the state of a stage in the making, beside where its result will be."""
        if self.folder is None:
            return Keeper(None, "")
        self._precious = True
        key = _key(f"{name}-state", inputs)
        return Keeper(self.folder / f"{name}-state-{key[:16]}", key, self.reused)

    def spool(self, least: int = 0) -> atomic_files.Spool | None:
        """A file without a name for what a stage makes piece by piece; None if there is no folder to put it in, or if
        it will be smaller than `least` bytes make worth while."""
        return None if self.folder is None or 0 < least < ASIDE_BYTES else atomic_files.Spool(self.folder)

    def abandon(self) -> None:
        """The run was refused: remove what it wrote, unless it was continued or had begun a training."""
        if self._precious:
            self.close()
        else:
            self.remove()

    def remove(self) -> None:
        """The run succeeded: remove what we wrote, and the folder if nothing else is in it."""
        if self.folder is not None and self._begun and not self.shared:
            try:
                clear(self.folder)
                atomic_files.discard(self.folder / LOCK)
                with suppress(OSError):  # somebody's own file is in it
                    atomic_files.system.rmdir(self.folder)
            except StorageError as error:  # the model is safe, only space is lost
                warnings.warn(f"the workspace could not be removed: {error}", stacklevel=2)
        self.close()

    def close(self) -> None:
        """Let go of the lock and of what is in memory; stages on disk stay for a later resume."""
        self._begun = False
        self._in_memory.clear()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self, folder: Path) -> None:
        if self._begun:
            raise ConfigError(f"the workspace {folder} has begun already; one run at a time.")
        path, flags = folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        busy = f"another run is at work in {folder}; wait for it to end, or choose another model folder."
        while True:
            atomic_files.make_folder(folder)
            fd = self._held.enter_context(atomic_files.locked(path, flags, busy))
            with atomic_files.refusing(path), suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), path.lstat()):
                    return
            self._held.close()  # the run before us removed the file between our opening and locking it

    def _settle(self, folder: Path, run: dict[str, Any], resume: bool, overwrite: bool) -> None:
        left = [name for name in atomic_files.names(folder) if name != LOCK]
        foreign = [name for name in left if not is_ours(name)]
        if foreign:
            raise ConfigError(
                f"the workspace {folder} holds {foreign[0]!r}, which is not ours; "
                "move it away, or choose another model folder."
            )
        started = any(not atomic_files.TEMPORARY.fullmatch(name) for name in left)
        self._precious = started and resume
        if started and (resume or self.shared):
            check_same_run(folder / RUN, run)
        elif started and not overwrite:
            raise leftover(folder)
        else:
            clear(folder)
        atomic_files.publish(folder / RUN, [canonical_json.dump(run)])


class Keeper:
    """The unfinished state of a stage: saved at once or not at all, and gone when the stage is done."""

    def __init__(self, folder: Path | None, key: str, reused: Callable[[float], None] | None = None) -> None:
        """Keep nothing where the folder is None."""
        self.folder, self.key, self.reused = folder, key, reused
        self.began, self.earlier = time.monotonic(), 0.0  # seconds that an interrupted run had spent on it

    def load(self) -> tuple[dict[str, NDArray[Any]], Mapping[str, Any]] | None:
        """State that was saved last, if anything sound was."""
        if self.folder is None or not model_folder.exists(self.folder):
            return None
        found = _reused(self.folder, self.key)
        if found is None:
            return None
        self.began, self.earlier = time.monotonic(), found.seconds
        if self.reused is not None:
            self.reused(found.seconds)
        return found.tensors, found.meta

    def save(self, state: Tensors, meta: Mapping[str, Any]) -> None:
        if self.folder is not None:
            spent = self.earlier + time.monotonic() - self.began
            model_folder.save(self.folder, {"key": self.key, "meta": meta, "seconds": spent}, {"tensors": state})

    def aside(self, state: Tensors) -> dict[str, NDArray[Any]]:
        """A copy of arrays that may change: of large ones on disk, where there is a folder for it."""
        if self.folder is None or sum(a.nbytes for a in state.values()) < ASIDE_BYTES:
            return {name: np.array(a) for name, a in state.items()}
        atomic_files.make_folder(self.folder.parent)
        return _spooled(self.folder.parent, state)

    def discard(self) -> None:
        if self.folder is not None and self.folder.is_dir():
            model_folder.erase(self.folder)


def _spooled(folder: Path, arrays: Tensors) -> dict[str, NDArray[Any]]:
    """Copies of arrays in a file without a name, read-only."""
    spool, places, at = atomic_files.Spool(folder), {}, 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        for begin in range(0, len(data), atomic_files.SPOOL_BYTES):
            spool.write(data[begin : begin + atomic_files.SPOOL_BYTES])
        places[name], at = at, at + len(data) + -len(data) % ALIGN
        spool.write(bytes(-len(data) % ALIGN))
    whole = spool.map()
    return {
        name: np.frombuffer(whole, array.dtype, array.size, places[name]).reshape(array.shape)
        for name, array in arrays.items()
    }


def _key(name: str, inputs: Mapping[str, Any]) -> str:
    """The key of a stage."""
    return digest_plain({"name": name, "inputs": plain(inputs), "release": _release(), "schema": STAGE_SCHEMA})


def _release() -> str:
    from .. import __version__  # late: the package may still be importing

    return __version__


def _made(key: str, make: Make) -> Stage:
    """Run the stage; its result looks as if it had been read from disk, so that resuming cannot differ."""
    found = make()
    tensors, meta = found if isinstance(found, tuple) else (found, {})
    return Stage(
        key, {n: safetensors_file.normal(a, n) for n, a in tensors.items()}, canonical_json.normal(meta, "meta"), False
    )


def _mapped(folder: Path, made: Stage) -> Stage:
    """The stage as it stands on disk: its memory can go. If it cannot be read now, what was made is as good."""
    try:
        return dataclasses.replace(made, tensors=model_folder.load(folder).part("tensors"))
    except (ModelFileError, StorageError):
        return made


def _reused(folder: Path, key: str) -> Stage | None:
    try:
        found = model_folder.load(folder)
        if found.meta.get("key") != key:
            raise ModelFileError(f"{folder} was made from other inputs")
        return Stage(key, found.part("tensors"), found.meta["meta"], True, float(found.meta["seconds"]))
    except (ModelFileError, StorageError, KeyError) as error:
        warnings.warn(f"a finished stage cannot be reused and is made again: {error}", stacklevel=3)
        return None
