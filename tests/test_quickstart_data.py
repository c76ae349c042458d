"""The shipped data is what its NOTICE says it is."""

from __future__ import annotations

import json
import lzma

import pytest

import labelwood as lw
from labelwood.quickstart import quickstart_path


def rows(part):
    with lzma.open(quickstart_path(part), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_sizes_and_labels():
    train, test = rows("train"), rows("test")
    assert (len(train), len(test)) == (2885, 751)
    seen = {label for row in train for label in row["labels"]}
    assert len(seen) == 323
    assert {label for row in test for label in row["labels"]} <= seen
    assert not {row["id"] for row in train} & {row["id"] for row in test}
    assert all(row["text"] and row["labels"] for row in train + test)


def test_the_notice_stands_beside_the_files():
    notice = quickstart_path("train").with_name("NOTICE").read_text(encoding="utf-8")
    assert "Debian" in notice
    assert "2,885" in notice


def test_unknown_part():
    with pytest.raises(lw.ConfigError, match="'dev'"):
        quickstart_path("dev")
