"""The pipeline: values go with the keys of what made them, and no stage is made twice in a run."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from labelwood.base.digests import digest_tensors
from labelwood.base.run import Keeping, Run
from labelwood.data import from_lists
from labelwood.pipeline.train import train
from labelwood.recipes.resolve import resolve
from labelwood.storage import stage_cache
from labelwood.storage.keyed import Keyed, plain
from labelwood.storage.stage_cache import Workspace
from small import LISTS, TEXTS


def levels(model) -> list[str]:
    return [digest_tensors(level.tensors()) for member in model.members for level in member.levels]


@pytest.fixture
def made(monkeypatch) -> Counter:
    """How often each stage was made, by its key."""
    counts: Counter = Counter()
    inner = stage_cache._made

    def counted(key, make):
        counts[key] += 1
        return inner(key, make)

    monkeypatch.setattr(stage_cache, "_made", counted)
    return counts


def test_classifiers_on_words_and_embedding_know_how_the_words_were_made(tmp_path):
    """F-S1: in one workspace, a change of the words alone must make the classifiers anew."""
    data, run = from_lists(TEXTS, LISTS), Run(1, work=tmp_path / "work")
    found = []
    for sublinear in (True, False):
        settings = {"encoder.model": "minilm", "tfidf.sublinear": sublinear}
        recipe = resolve("parabel", settings=settings)
        found.append(levels(train(data, recipe, run, keeping=Keeping(shared=True))))
        assert found[-1] == levels(train(data, recipe, Run(1)))
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("parabel", {}),
        ("xr-linear", {"ensemble.runs": 2, "tree.kind": "flat"}),
        ("xr-transformer", {"finetune.steps": 1, "levelwise.refine": False}),
        ("x-transformer", {"finetune.steps": 1, "ensemble.runs": 2, "ensemble.labels": ("pifa-neural", "pifa-neural")}),
        ("cascadexml", {"finetune.steps": 1}),
        ("attentionxml", {"finetune.steps": 1, "ranker": "network"}),
    ],
)
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_stage_is_made_once_in_a_run(method, settings, on_disk, made, tmp_path):
    """F-S2: with a workspace and without."""
    data = from_lists(TEXTS, LISTS)
    valid = from_lists(TEXTS[:7], LISTS[:7]) if method == "cascadexml" else None
    run = Run(1, work=tmp_path / "work" if on_disk else None)
    train(data, resolve(method, settings=settings), run, valid=valid)
    assert len(made) > 2
    assert set(made.values()) == {1}


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("parabel", {}),
        ("xr-transformer", {"finetune.steps": 1}),
        ("cascadexml", {"finetune.steps": 1}),
        ("cascadexml", {"finetune.steps": 1, "ranker": "tree"}),
        ("x-transformer", {"finetune.steps": 1}),
        ("attentionxml", {"finetune.steps": 1, "ranker": "network"}),
    ],
)
def test_a_run_that_is_done_makes_nothing_when_it_is_repeated(method, settings, made, tmp_path):
    data, recipe = from_lists(TEXTS, LISTS), resolve(method, settings=settings)
    first = train(data, recipe, Run(1, work=tmp_path / "work"))
    made.clear()
    again = train(data, recipe, Run(1, work=tmp_path / "work", resume=True))
    assert not made
    assert [digest_tensors(p) for m in first.members for p in m.parts().values()] == [
        digest_tensors(p) for m in again.members for p in m.parts().values()
    ]


def test_a_key_stands_for_its_value_among_the_inputs_of_a_stage():
    one, other = Keyed(np.zeros(3), "a"), Keyed(np.zeros(3), "b")
    assert plain({"x": one, "seed": 1}) == {"x": "a", "seed": 1}
    with Workspace(None) as space:
        first = space.stage("s", {"x": one}, lambda: {"y": np.zeros(1)})
        again = space.stage("s", {"x": Keyed(np.ones(3), "a")}, lambda: {"y": np.ones(1)})
        third = space.stage("s", {"x": other}, lambda: {"y": np.ones(1)})
    assert again is first
    assert third.key != first.key
    assert Keyed.made_of(1, what="sum", x=one).key == Keyed.made_of(2, what="sum", x=one).key
    assert Keyed.made_of(1, what="sum", x=one).key != Keyed.made_of(1, what="sum", x=other).key
    assert Keyed.made_of(1, what="sum", x=one).key != Keyed.made_of(1, what="mean", x=one).key


def test_stages_of_one_kind_have_numbers_and_times_are_counted_once():
    """The outer stage takes 8 ticks, of which 3 are measured by themselves."""
    ticks = iter([0.0, 2.0, 5.0, 8.0, 10.0, 11.0])
    with Workspace(None, clock=lambda: next(ticks)) as space:

        def make():
            with space.measured("inner"):
                return {"y": np.zeros(1)}

        first = space.stage("level", {}, make, number=1)
        second = space.stage("level", {}, lambda: {"y": np.zeros(1)}, number=2)
    assert first.key != second.key
    assert space.spent == {"inner": 3.0, "level": 6.0}
