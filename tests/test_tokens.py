"""Texts to tokens, and batches of like length."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

import labelwood as lw
from labelwood.arrays.texts import Texts
from labelwood.arrays.tokens import Tokens
from labelwood.neural.encoders.tokens import Tokeniser, by_length
from labelwood.reports.pieces import Pieces, pieces_of
from small import tokeniser


def test_tokens_are_framed_and_cut():
    found = tokeniser(6)(["word1 word2", "", "a b c d e f g"])
    assert found.lengths.tolist() == [4, 2, 6]
    assert found.ids[found.offsets[:-1]].tolist() == [2, 2, 2]  # [CLS]
    assert found.ids[found.offsets[1:] - 1].tolist() == [3, 3, 3]  # [SEP]


def test_cutting_the_text_first_changes_no_token():
    """Words of any length, blanks and long tails: as if the whole text had been read."""
    rng = np.random.default_rng(0)
    texts = [" ".join("x" * int(n) for n in rng.integers(1, 40, size=60)) for _ in range(30)]
    texts += [" " * 500 + "word1 word2 word3", "y" * 3000, "common " * 300]
    found = tokeniser(16)(texts)
    whole = tokeniser(16)
    whole._native.no_truncation()
    for i, text in enumerate(texts):
        ids = whole._native.encode(text, add_special_tokens=False).ids[:14]
        assert found.ids[found.offsets[i] : found.offsets[i + 1]].tolist() == [2, *ids, 3]


def test_batches_by_length_hold_every_document_once():
    lengths = np.random.default_rng(1).integers(1, 50, size=101)
    tokens = Tokens(np.zeros(lengths.sum(), np.int32), np.concatenate([[0], np.cumsum(lengths)]))
    batches = list(by_length(tokens, 120))
    assert sorted(np.concatenate(batches).tolist()) == list(range(101))
    assert all(lengths[rows].sum() <= 120 for rows in batches)
    assert [int(lengths[rows].max()) for rows in batches] == sorted(
        (int(lengths[r].max()) for r in batches), reverse=True
    )


def test_too_few_tokens_for_the_frame():
    with pytest.raises(lw.ConfigError, match="2 special tokens"):
        _ = dataclasses.replace(tokeniser(), max_tokens=2).frame


def test_pieces_of_a_word_are_those_of_the_default_encoder():
    texts = Texts.from_strings(["alpha beta gamma", "", "alpha beta"])
    tokeniser = Tokeniser((Path(os.environ["LABELWOOD_ENCODER"]) / "tokenizer.json").read_bytes(), 512)
    tokens = tokeniser(texts)
    found = pieces_of(texts, {"de": 1.0})
    assert found == Pieces(round(float((tokens.lengths - tokens.frame).sum()) / 5, 4), measured=True)
