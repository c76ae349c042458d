"""Several threads predict at once, each with as many threads of torch as it asks for (F-S9)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from labelwood.neural.encoders import torch_threads as guard
from labelwood.neural.encoders.encoder import Encoder
from labelwood.neural.encoders.torch_threads import torch_threads
from small import TEXTS, fit

WAIT = 60  # seconds until a test that hangs gives up


def in_new_thread(function):
    """What a function gives in a thread that torch has never seen."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(WAIT)


@pytest.fixture(autouse=True)
def three():
    """A number that no test asks for, before and after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    assert torch.get_num_threads() == 3
    assert in_new_thread(torch.get_num_threads) == 3
    torch.set_num_threads(before)


def test_the_number_is_that_of_the_calling_thread_alone():
    with torch_threads(2):
        assert torch.get_num_threads() == 2
        assert in_new_thread(torch.get_num_threads) == 3
        with torch_threads(1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2


def test_calls_that_overlap_leave_nothing_behind():
    """The first to enter is the first to leave: what the second then puts back must not be the first one's number."""
    entered, left = threading.Event(), threading.Event()
    inside: list[int] = []

    def first() -> None:
        with torch_threads(1):
            inside.append(torch.get_num_threads())
            entered.set()
            assert second_in.wait(WAIT)
            inside.append(torch.get_num_threads())
        left.set()

    second_in = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        assert entered.wait(WAIT)

        def second() -> None:
            with torch_threads(2):
                second_in.set()
                assert left.wait(WAIT)
                inside.append(torch.get_num_threads())
            inside.append(torch.get_num_threads())

        pool.submit(second).result(WAIT)
        one.result(WAIT)
    assert inside == [1, 1, 2, 3]


def test_two_threads_that_predict_at_once_give_what_each_gives_alone(monkeypatch):
    model, texts = fit(), TEXTS * 40  # enough tokens that more than one thread is worth waking
    alone = {threads: model.predict_arrays(texts, threads=threads) for threads in (1, 2)}
    embed, met, both = Encoder.embed, [], threading.Barrier(2)

    def at_once(self, *args, **kwargs):
        both.wait(WAIT)
        met.append(torch.get_num_threads())
        found = embed(self, *args, **kwargs)
        met.append(torch.get_num_threads())
        both.wait(WAIT)
        return found

    monkeypatch.setattr(Encoder, "embed", at_once)
    with ThreadPoolExecutor(2) as pool:
        futures = {threads: pool.submit(model.predict_arrays, texts, threads=threads) for threads in (1, 2)}
        for threads, future in futures.items():
            for found, expected in zip(future.result(WAIT), alone[threads], strict=True):
                assert np.array_equal(found, expected)
    assert sorted(met) == [1, 1, 2, 2]


def test_where_no_thread_can_be_started_the_number_is_set_all_the_same(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(guard.threading.Thread, "start", refuse)
        with torch_threads(2):
            assert torch.get_num_threads() == 2
