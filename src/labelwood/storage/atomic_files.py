"""The one way to the disk and back: a file appears whole or not at all, and is read by mapping it once.

Writing is: temporary file in the same folder → write → fsync → rename → fsync folder. Every system call goes through
`system`, so that a test can make call number n fail.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

from ..base.digests import Chunk
from ..errors import ConfigError, ModelFileError, StorageError

P = ParamSpec("P")
T = TypeVar("T")

TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{16}")
WRITE_BYTES = 64 * 2**20  # one write call: short enough that Ctrl-C is noticed between two
SPOOL_BYTES = 4 * 2**20  # what a spool collects before it writes
TRIES = 100  # of a call that a signal interrupts

ADVICE = {
    errno.ENOSPC: "Free some space and run again",
    errno.EDQUOT: "Free some of your quota and run again",
    errno.EFBIG: "Raise the file size limit (ulimit -f) and run again",
    errno.EROFS: "Choose a folder on a disk that can be written to",
    errno.EACCES: "Choose a folder you may write to",
    errno.EPERM: "Choose a folder you may write to",
    errno.EEXIST: "A file stands where a folder is needed; choose another folder",
    errno.ENOTDIR: "A file stands where a folder is needed; choose another folder",
    errno.EISDIR: "A folder stands where a file is needed; name a file",
    errno.EIO: "The device failed; check it, or choose another disk",
}
READ_ADVICE = ADVICE | dict.fromkeys((errno.EACCES, errno.EPERM), "Ask its owner for the right to read it")


class Io:
    """The system calls we use on files, one method each."""

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, 0o666)

    def write(self, fd: int, data: memoryview) -> int:
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        old.replace(new)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def mkdir(self, folder: Path) -> None:
        folder.mkdir()

    def rmdir(self, folder: Path) -> None:
        folder.rmdir()

    def names(self, folder: Path) -> list[str]:
        return sorted(path.name for path in folder.iterdir())

    def lock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def stat(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def map(self, fd: int, size: int) -> memoryview:
        return memoryview(mmap.mmap(fd, size, access=mmap.ACCESS_READ))


system = Io()


def as_path(path: str | os.PathLike[str]) -> Path:
    """A path the system can be asked about."""
    try:
        found = Path(path)
        if b"\0" in os.fsencode(found):
            raise ValueError("it contains a NUL character")
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{path!r} cannot be a path: {error}.") from error
    return found


def publish(path: Path, chunks: Iterable[Chunk]) -> None:
    """Make `path` hold these bytes, at once and durably. StorageError: what was there before is still there.

    Chunks may be made while they are written; if making one fails, `path` stays as it was too.
    """
    temporary = path.with_name(f".tmp-{secrets.token_hex(8)}")
    with refusing(path, needed=sum(len(chunk) for chunk in chunks) if isinstance(chunks, Sequence) else 0):
        try:
            _write(temporary, chunks)
            _patiently(system.rename, temporary, path)
        except BaseException:
            discard(temporary)
            raise
        sync_folder(path.parent)


class Spool:
    """A file without a name: bytes are added at its end, then read back as a map; it is gone when nobody holds it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f".tmp-{secrets.token_hex(8)}"
        with refusing(self._path):
            self._fd = _patiently(system.open, self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
        discard(self._path)  # a killed run leaves nothing behind
        self._waiting = bytearray()
        self._size = 0

    def write(self, data: Chunk) -> None:
        """Add bytes; small ones wait for more. StorageError if the disk refuses."""
        self._waiting += data
        if len(self._waiting) >= SPOOL_BYTES:
            self._flush()

    def map(self) -> memoryview:
        """All bytes, read-only; nothing can be added any more."""
        with refusing(self._path), self:
            self._flush()
            return _patiently(system.map, self._fd, self._size) if self._size else memoryview(b"")

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                system.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _flush(self) -> None:
        with refusing(self._path, needed=len(self._waiting)):
            _write_all(self._fd, self._waiting)
        self._size += len(self._waiting)
        self._waiting = bytearray()


def discard(path: Path) -> None:
    """Remove a file nobody needs; if the disk refuses, the next save sweeps it."""
    with suppress(OSError):
        system.unlink(path)


def make_folder(folder: Path) -> None:
    """Make the folder and its parents, as far as they are missing."""
    with refusing(folder):
        for level in [*reversed(folder.parents), folder]:
            if not level.is_dir():
                try:
                    _patiently(system.mkdir, level)
                except FileExistsError:
                    if not level.is_dir():  # else somebody was faster
                        raise
                sync_folder(level.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as fd:
        try:
            _patiently(system.fsync, fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some network file systems cannot, and say so
                raise


def names(folder: Path) -> list[str]:
    """Names in the folder, sorted; none if there is no folder."""
    with refusing(folder, verb="read"):
        try:
            return _patiently(system.names, folder)
        except FileNotFoundError:
            return []


def read(path: Path, most: int | None = None) -> memoryview:
    """A regular file's bytes as a read-only map. FileNotFoundError if it is not there; links are not followed."""
    try:
        # O_NONBLOCK: opening a pipe must not wait for its other end
        with _opened(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
            status = _patiently(system.stat, fd)
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(f"{path} is not a regular file; put the file itself there.")
            if most is not None and status.st_size > most:
                raise ModelFileError(f"{path} has {status.st_size} bytes; at most {most} are allowed.")
            return _patiently(system.map, fd, status.st_size) if status.st_size else memoryview(b"")
    except NotADirectoryError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ModelFileError(f"{path} is a symbolic link; put the file itself there.") from error
        raise refused(path, error, verb="read") from error


@contextmanager
def locked(path: Path, flags: int, busy: str) -> Iterator[int]:
    """Hold an open file or folder locked, so that nobody else does; the system frees it if this process dies."""
    with refusing(path), _opened(path, flags) as fd:
        try:
            _patiently(system.lock, fd)
        except BlockingIOError as error:
            raise StorageError(busy) from error
        except OSError as error:
            if error.errno not in {errno.ENOLCK, errno.EOPNOTSUPP}:  # a disk without locks: go on without
                raise
        yield fd


@contextmanager
def refusing(path: Path, *, verb: str = "write", needed: int = 0) -> Iterator[None]:
    """Turn the system's errors into StorageError about `path`."""
    try:
        yield
    except OSError as error:
        raise refused(path, error, verb=verb, needed=needed) from error


def refused(path: Path, error: OSError, *, verb: str = "write", needed: int = 0) -> StorageError:
    """Error for what the disk would not do: why, the bytes needed and the way out."""
    space = f"; {needed} bytes are needed{_free(path)}" if needed else ""
    advice = (READ_ADVICE if verb == "read" else ADVICE).get(error.errno or 0, "Check the path and the disk")
    intact = "; earlier files are intact" if verb == "write" else ""
    return StorageError(f"cannot {verb} {path}: {error.strerror or error}{space}. {advice}{intact}.")


def _free(path: Path) -> str:
    with suppress(OSError):
        found = os.statvfs(path.parent)
        return f", {found.f_bavail * found.f_frsize} are free"
    return ""


def _write(path: Path, chunks: Iterable[Chunk]) -> None:
    with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW) as fd:
        for chunk in chunks:
            _write_all(fd, chunk)
        _patiently(system.fsync, fd)


def _write_all(fd: int, data: Chunk | bytearray) -> None:
    rest = memoryview(data)
    while rest:
        done = _patiently(system.write, fd, rest[:WRITE_BYTES])
        if done == 0:
            raise OSError(errno.EIO, "the disk accepted no bytes")
        rest = rest[done:]


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    fd = _patiently(system.open, path, flags)
    try:
        yield fd
    finally:
        with suppress(OSError):  # it is closed all the same, and what was written has been synced before
            system.close(fd)


def _patiently(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Repeat a call that a signal interrupted."""
    for _ in range(TRIES - 1):
        with suppress(InterruptedError):
            return call(*args, **kwargs)
    return call(*args, **kwargs)
