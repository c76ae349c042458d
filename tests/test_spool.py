"""Spools: files without a name that training fills piece by piece."""

from __future__ import annotations

import numpy as np
import pytest

import labelwood as lw
from faults.everystep import FaultyIo, installed
from labelwood.parts.linear_level import Pile
from labelwood.storage import atomic_files
from test_workspace import content
from toy import contract_set


def test_what_is_written_is_read_and_no_name_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "SPOOL_BYTES", 10)
    spool = atomic_files.Spool(tmp_path)
    for piece in (b"abc", b"", b"defghijklmnop", b"q"):
        spool.write(piece)
    assert list(tmp_path.iterdir()) == []
    found = spool.map()
    assert bytes(found) == b"abcdefghijklmnopq"
    assert found.readonly


def test_an_empty_spool(tmp_path):
    assert bytes(atomic_files.Spool(tmp_path).map()) == b""


def test_piles_in_memory_and_on_disk_are_the_same(tmp_path):
    piles = Pile(3), Pile(3, atomic_files.Spool(tmp_path))
    for pile in piles:
        for parent, size in ((2, 8), (0, 16), (1, 24)):
            pile.write(parent, np.full(size, parent, np.uint8))
    assert [p.places.tolist() for p in piles] == [[[8, 16], [24, 24], [0, 8]]] * 2
    assert piles[0].records().tobytes() == piles[1].records().tobytes() == b"\2" * 8 + b"\0" * 16 + b"\1" * 24


@pytest.mark.parametrize("threads", [1, 2])
def test_a_workspace_changes_no_byte(tmp_path, threads):
    settings = {"tree.levels": (2, 6)}
    lw.train(*contract_set(), settings=settings, run=lw.Run(1)).save(tmp_path / "held")
    lw.train(*contract_set(), settings=settings, run=lw.Run(threads, work=tmp_path / "work")).save(tmp_path / "spooled")
    assert content(tmp_path / "held") == content(tmp_path / "spooled")


def test_a_full_disk_while_spooling_can_be_resumed(tmp_path, monkeypatch):
    """The spool of the last level is refused: StorageError, nothing left open, the other stages are kept."""
    settings = {"tree.levels": (2, 6)}
    lw.train(*contract_set(), settings=settings).save(tmp_path / "wanted")
    write, spools = atomic_files.Spool._flush, []

    def flush(self):
        spools.append(self)
        if len(spools) == 3:
            with installed(FaultyIo("full", 1, lasting=True)):
                write(self)
        write(self)

    monkeypatch.setattr(atomic_files.Spool, "_flush", flush)
    with pytest.raises(lw.StorageError, match="space"):
        lw.train(*contract_set(), settings=settings, run=lw.Run(work=tmp_path / "work"))
    monkeypatch.undo()
    kept = sorted(path.name.rsplit("-", 1)[0] for path in (tmp_path / "work").iterdir())
    assert kept == ["features", "level-1", "level-2", "lock", "run.json", "tree"]
    assert spools[-1]._fd == -1
    model = lw.train(*contract_set(), settings=settings, run=lw.Run(work=tmp_path / "work", resume=True))
    model.save(tmp_path / "resumed")
    assert content(tmp_path / "wanted") == content(tmp_path / "resumed")
