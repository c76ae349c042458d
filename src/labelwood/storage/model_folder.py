"""The model folder: a manifest and one tensor file per part. It knows nothing of what the parts mean.

    labelwood.json                      the manifest: format, schema, meta, every file with its digests, its own digest
    <part>-<16 hex digits>.safetensors  named by content

Saving writes the data files first and replaces the manifest last, by one atomic rename: a reader sees the old model or
the new one, never a mix. Loading verifies every byte it hands out, at once or, in a large model, each block before its
first use. Nothing depends on time, host, path or threads.
docs/reference/model-format.md is the specification.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .. import limits
from ..base import canonical_json
from ..base.digests import Chunk, digest_blocks
from ..errors import ConfigError, ModelFileError, StorageError, nearest
from . import atomic_files, safetensors_file
from .migrations import MIGRATIONS

FORMAT = "labelwood"
SCHEMA = 2
MANIFEST = "labelwood.json"

PART = re.compile(r"[a-z][a-z0-9_-]{0,63}")
DATA_FILE = re.compile(rf"{PART.pattern}-[0-9a-f]{{16}}\.safetensors")
HEX = re.compile(r"[0-9a-f]*")
REPAIR = "the model is damaged; copy it again, or restore it from a backup"

Tensors = Mapping[str, NDArray[Any]]
AnyPath = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True)
class FileEntry:
    """One data file in the manifest."""

    name: str
    bytes: int
    block: int  # bytes hashed together
    sha256: tuple[str, ...]  # of each block

    def digest(self) -> str:
        """Digest of the whole file: its first 16 digits are in the name."""
        return hashlib.sha256("".join(self.sha256).encode("ascii")).hexdigest()


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A checked manifest."""

    schema: int
    meta: dict[str, Any]
    files: dict[str, FileEntry]  # by part
    digest: str

    @property
    def bytes(self) -> int:
        """Bytes of all data files."""
        return sum(entry.bytes for entry in self.files.values())


@dataclasses.dataclass(frozen=True, eq=False)
class Stored:
    """A loaded folder: read-only arrays that are views of the mapped, verified files."""

    manifest: Manifest
    parts: dict[str, dict[str, Any]]  # arrays; OnDemand for what `load` was asked to verify later

    @property
    def meta(self) -> dict[str, Any]:
        return self.manifest.meta

    def part(self, name: str) -> dict[str, Any]:
        """A part that must be there."""
        if name not in self.parts:
            raise ModelFileError(f"the model has no part {name!r}; {nearest(name, self.parts)}")
        return self.parts[name]


def save(folder: AnyPath, meta: Mapping[str, Any], parts: Mapping[str, Tensors], *, overwrite: bool = True) -> None:
    """Write a model folder, or replace the model in it. StorageError: the disk refused, the old model is intact."""
    folder = atomic_files.as_path(folder)
    chunks, files = _encoded(parts)
    manifest = _spell_manifest(meta, files)
    atomic_files.make_folder(folder)
    busy = f"another process is saving a model to {folder}; wait for it, or choose another folder."
    with atomic_files.locked(folder, os.O_RDONLY | os.O_DIRECTORY, busy):
        before = atomic_files.names(folder)
        _check_target(folder, before, overwrite)
        _publish_data(folder, before, files, chunks)
        atomic_files.publish(folder / MANIFEST, [manifest])
        _sweep(folder, keep={MANIFEST, *(entry.name for entry in files.values())})


def load(folder: AnyPath, *, later: Collection[str] = ()) -> Stored:
    """Read a model folder and verify every byte of it; ModelFileError names the file and what is wrong.

    In a model of more than limits.VERIFIED_AT_ONCE bytes the tensors named in `later` are handed out as OnDemand.
    """
    folder = atomic_files.as_path(folder)
    before = b""
    while True:
        raw = _read_manifest(folder)
        manifest = _parse_manifest(raw, str(folder / MANIFEST))
        wait = later if manifest.bytes > limits.VERIFIED_AT_ONCE else ()
        try:
            return Stored(manifest, {part: _read_data(folder, entry, wait) for part, entry in manifest.files.items()})
        except FileNotFoundError as error:
            if raw == before:
                raise ModelFileError(f"{error.filename} is missing; {REPAIR}.") from error
            before = raw  # a save may have replaced the model between manifest and file: look again


def pack(meta: Mapping[str, Any], parts: Mapping[str, Tensors]) -> dict[str, bytes]:
    """The files of a model folder by name, in memory: what a pickle of a model carries."""
    chunks, files = _encoded(parts)
    manifest = _spell_manifest(meta, files)
    return {MANIFEST: manifest} | {entry.name: b"".join(chunks[part]) for part, entry in files.items()}


def unpack(files: Mapping[str, bytes]) -> Stored:
    """Verify every byte of what `pack` gave and hand it out, as `load` does with a folder."""
    if not isinstance(files, Mapping) or not all(isinstance(content, bytes) for content in files.values()):
        raise ModelFileError("a packed model must be files by name, as bytes.")
    if MANIFEST not in files:
        raise ModelFileError(f"the packed model holds no {MANIFEST}.")
    manifest = _parse_manifest(files[MANIFEST], MANIFEST)
    parts = {}
    for part, entry in manifest.files.items():
        if entry.name not in files:
            raise ModelFileError(f"{entry.name} is missing in the packed model.")
        blocks = _Blocks(Path(entry.name), entry, memoryview(files[entry.name]))
        blocks.check(0, entry.bytes)
        parts[part] = safetensors_file.decode(blocks.data, entry.name)
    return Stored(manifest, parts)


def describe(folder: AnyPath) -> Manifest:
    """The checked manifest; the data files are not opened."""
    folder = atomic_files.as_path(folder)
    return _parse_manifest(_read_manifest(folder), str(folder / MANIFEST))


def verify(folder: AnyPath) -> Manifest:
    """Check every byte of a model folder and hand back its manifest."""
    return load(folder).manifest


def exists(folder: AnyPath) -> bool:
    """Is there a model, sound or not?"""
    return os.path.lexists(atomic_files.as_path(folder) / MANIFEST)


def check_target(folder: AnyPath, *, overwrite: bool) -> None:
    """Would a save there be refused? Asked before hours of training; nothing is written."""
    folder = atomic_files.as_path(folder)
    _check_target(folder, atomic_files.names(folder), overwrite)
    there = Path(os.path.abspath(folder))  # noqa: PTH100 — resolve() would leave a linked folder
    while not os.path.lexists(there):
        there = there.parent
    if not os.access(there, os.W_OK | os.X_OK):
        raise atomic_files.refused(folder, PermissionError(errno.EACCES, f"{there} cannot be written to"))


def tidy(folder: AnyPath) -> None:
    """Remove what a save that was killed after its last rename left: our files that the manifest does not name."""
    folder = atomic_files.as_path(folder)
    with atomic_files.locked(folder, os.O_RDONLY | os.O_DIRECTORY, f"another process is saving a model to {folder}."):
        _sweep(folder, keep={MANIFEST, *(entry.name for entry in describe(folder).files.values())})


def erase(folder: Path) -> None:
    """Remove the model: the manifest first, then our files, then the folder if nothing else is in it."""
    with atomic_files.refusing(folder):
        with suppress(FileNotFoundError):
            atomic_files.system.unlink(folder / MANIFEST)
        _sweep(folder, keep=set())
        if not atomic_files.names(folder):
            with suppress(FileNotFoundError):
                atomic_files.system.rmdir(folder)


def _encoded(parts: Mapping[str, Tensors]) -> tuple[dict[str, Sequence[Chunk]], dict[str, FileEntry]]:
    """The bytes of each part's file, and its entry in the manifest."""
    chunks: dict[str, Sequence[Chunk]] = {}
    for part, tensors in parts.items():
        chunks[_checked_part(part)] = safetensors_file.encode(tensors)
    return chunks, {part: _entry(part, chunks[part]) for part in sorted(chunks)}


def _checked_part(part: str) -> str:
    if not PART.fullmatch(part):
        raise ConfigError(f"{part!r} cannot name a part; allowed are a-z, then up to 63 of a-z 0-9 _ -.")
    return part


def _entry(part: str, chunks: Sequence[Chunk]) -> FileEntry:
    size, block = sum(len(chunk) for chunk in chunks), limits.DIGEST_BLOCK
    while size > block * limits.DIGESTS:
        block *= 2
    entry = FileEntry("", size, block, digest_blocks(chunks, block))
    return dataclasses.replace(entry, name=_file_name(part, entry))


def _file_name(part: str, entry: FileEntry) -> str:
    return f"{part}-{entry.digest()[:16]}.safetensors"


def _spell_manifest(meta: Mapping[str, Any], files: Mapping[str, FileEntry]) -> bytes:
    body = {"format": FORMAT, "schema": SCHEMA, "meta": canonical_json.normal(meta, "meta")}
    body["files"] = {part: dataclasses.asdict(entry) for part, entry in files.items()}
    text = canonical_json.dump({**body, "digest": _digest(body)}, "the manifest")
    if len(text) > limits.MAX_MANIFEST_BYTES or text.count(b",") > limits.MAX_JSON_ITEMS:
        raise ConfigError(
            f"the manifest would have {len(text)} bytes and {text.count(b',')} values; at most "
            f"{limits.MAX_MANIFEST_BYTES} and {limits.MAX_JSON_ITEMS} are allowed. Move large data from meta to a part."
        )
    return text


def _digest(body: Mapping[str, Any]) -> str:
    """Digest of a manifest that has none yet."""
    return hashlib.sha256(canonical_json.line(body)).hexdigest()


def _check_target(folder: Path, found: list[str], overwrite: bool) -> None:
    if MANIFEST in found:
        if not overwrite:
            raise ConfigError(f"there is a model in {folder}; choose another folder, or allow overwriting it.")
        return
    foreign = [name for name in found if not _is_ours(name)]
    if foreign:
        raise ConfigError(
            f"{folder} is not a model folder and holds other files ({foreign[0]!r}, {len(foreign)} in all); "
            "choose a new or empty folder."
        )


def _publish_data(
    folder: Path, before: list[str], files: Mapping[str, FileEntry], chunks: Mapping[str, Sequence[Chunk]]
) -> None:
    """Write the data files that are not there yet. Names tell content, so the old model's files are not touched."""
    try:
        for part, entry in files.items():
            if not _holds(folder / entry.name, entry):
                atomic_files.publish(folder / entry.name, chunks[part])
    except BaseException:
        for name in {entry.name for entry in files.values()}.difference(before):
            atomic_files.discard(folder / name)  # a full disk gets its space back
        raise


def _holds(path: Path, entry: FileEntry) -> bool:
    try:
        _verified(path, entry)
    except (FileNotFoundError, ModelFileError, StorageError):
        return False
    return True


def _sweep(folder: Path, keep: set[str]) -> None:
    """Remove our files that no manifest names any more. The model is safe already, so a refusal is no failure."""
    with suppress(StorageError):
        for name in atomic_files.names(folder):
            if _is_ours(name) and name not in keep:
                atomic_files.discard(folder / name)


def _is_ours(name: str) -> bool:
    return bool(DATA_FILE.fullmatch(name) or atomic_files.TEMPORARY.fullmatch(name))


def _read_manifest(folder: Path) -> bytes:
    path = folder / MANIFEST
    try:
        return bytes(atomic_files.read(path, limits.MAX_MANIFEST_BYTES))
    except FileNotFoundError as error:
        what = "there is no such folder" if not folder.exists() else "it is a file"
        if folder.is_dir():
            what = f"it holds no {MANIFEST}"
        raise ModelFileError(f"{folder} is not a model: {what}. Give the folder of a trained model.") from error


def _parse_manifest(raw: bytes, where: str) -> Manifest:
    body = canonical_json.parse(raw, where)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise ModelFileError(f"{where}: this is not the manifest of a labelwood model.")
    _check_schema(body.get("schema"), where)
    if canonical_json.line(body) != raw:
        raise ModelFileError(f"{where}: not spelled as labelwood writes it; {REPAIR}.")
    digest = body.pop("digest", None)
    if digest != _digest(body):
        raise ModelFileError(f"{where}: the manifest does not match its own digest; {REPAIR}.")
    body = _migrated(body, where)
    if set(body) != {"format", "schema", "meta", "files"}:
        raise ModelFileError(f"{where}: the manifest has wrong keys; {REPAIR}.")
    meta, files = body["meta"], body["files"]
    if not isinstance(meta, dict) or not isinstance(files, dict):
        raise ModelFileError(f"{where}: meta and files must be tables.")
    entries = {part: _parse_entry(part, entry, f"{where}, file {part[:80]!r}") for part, entry in files.items()}
    return Manifest(body["schema"], meta, entries, digest)


def _check_schema(schema: object, where: str) -> None:
    if type(schema) is not int or schema < 1:
        raise ModelFileError(f"{where}: the schema must be a whole number ≥ 1, but is {repr(schema)[:80]}.")
    if schema > SCHEMA:
        raise ModelFileError(
            f"{where}: the model has schema {schema}, but this release reads schemas up to {SCHEMA}; "
            "install a newer labelwood."
        )


def _migrated(body: dict[str, Any], where: str) -> dict[str, Any]:
    while (schema := body["schema"]) < SCHEMA:
        if schema not in MIGRATIONS:
            raise ModelFileError(f"{where}: no migration from schema {schema} to {SCHEMA}; train the model again.")
        body = MIGRATIONS[schema](body)
    return body


def _parse_entry(part: str, entry: Any, where: str) -> FileEntry:
    if not PART.fullmatch(part):
        raise ModelFileError(f"{where}: this cannot name a part.")
    if not isinstance(entry, dict) or set(entry) != {"name", "bytes", "block", "sha256"}:
        raise ModelFileError(f"{where}: the entry must have exactly name, bytes, block, sha256.")
    size, block, digests = entry["bytes"], entry["block"], entry["sha256"]
    if type(size) is not int or type(block) is not int or size < 8 or not 4096 <= block <= 2**30:
        raise ModelFileError(f"{where}: bytes must be ≥ 8 and block between 4096 and 2^30.")
    if not isinstance(digests, list) or not _are_digests(digests):
        raise ModelFileError(f"{where}: sha256 must be a list of digests of 64 hex digits.")
    if len(digests) != -(-size // block):
        raise ModelFileError(f"{where}: {size} bytes need {-(-size // block)} digests, but {len(digests)} are given.")
    found = FileEntry(str(entry["name"]), size, block, tuple(digests))
    if found.name != _file_name(part, found):  # also keeps the path inside the folder
        raise ModelFileError(f"{where}: the name {found.name[:100]!r} does not match the content.")
    return found


def _are_digests(found: list[Any]) -> bool:
    """All at once: there may be tens of thousands."""
    return set(map(type, found)) <= {str} and set(map(len, found)) <= {64} and bool(HEX.fullmatch("".join(found)))


def _read_data(folder: Path, entry: FileEntry, later: Collection[str]) -> dict[str, Any]:
    path = folder / entry.name
    if not later:
        return safetensors_file.decode(_verified(path, entry), str(path))
    blocks = _Blocks(path, entry, atomic_files.read(path))
    return safetensors_file.decode(blocks.data, str(path), blocks.check, later)


def _verified(path: Path, entry: FileEntry) -> memoryview:
    """The mapped bytes, after their digests were found right: what is verified is what is used."""
    blocks = _Blocks(path, entry, atomic_files.read(path))
    blocks.check(0, entry.bytes)
    return blocks.data


class _Blocks:
    """The bytes of a file, whose blocks are compared with their digests when they are asked for.

    Threads may share it: two that ask for the same block at once both hash it, and both come to the same end.
    """

    def __init__(self, path: Path, entry: FileEntry, data: memoryview) -> None:
        self.path, self.entry, self.data = path, entry, data
        if len(self.data) != entry.bytes:
            raise ModelFileError(f"{path} has {len(self.data)} bytes, but should have {entry.bytes}; {REPAIR}.")
        self._right = bytearray(len(entry.sha256))  # 1: the block was hashed and found right

    def check(self, begin: int, end: int) -> None:
        """Verify the blocks that hold the bytes begin..end, those that were not verified before."""
        block = self.entry.block
        asked = range(begin // block, -(-end // block))
        if self._right.find(0, asked.start, asked.stop) < 0:
            return
        new = [i for i in asked if not self._right[i]]
        found = digest_blocks([self.data[i * block : (i + 1) * block] for i in new], block)
        for i, digest in zip(new, found, strict=True):
            if digest != self.entry.sha256[i]:
                stop = min(self.entry.bytes, (i + 1) * block)
                raise ModelFileError(f"{self.path}: bytes {i * block} to {stop} have changed; {REPAIR}.")
            self._right[i] = 1
