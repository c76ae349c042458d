"""How a run is given: one `Run`, the old keywords with a warning, and what callbacks receive."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import warnings
from pathlib import Path

import pytest

import labelwood as lw
from labelwood.base.old_keywords import old_keywords
from toy import keyword_set

OLD_TRAIN = {"threads", "device", "memory", "progress", "work", "resume", "overwrite", "tell"}


def test_run_has_its_public_fields_and_no_others():
    names = [field.name for field in dataclasses.fields(lw.Run)]
    assert names == ["threads", "device", "memory", "progress", "work", "resume", "overwrite", "on_event"]
    assert all(f"\n    {name} " in (lw.Run.__doc__ or "") for name in names)  # each is explained
    with pytest.raises(dataclasses.FrozenInstanceError):
        lw.Run().threads = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threads": -1}, "threads must be"),
        ({"device": "gpu"}, "device must be cpu, cuda or mps, but is 'gpu'"),
        ({"device": 3}, "device must be cpu, cuda or mps, but is 3"),
        ({"memory": "much"}, "no amount of memory"),
        ({"resume": True}, "goes with work=FOLDER"),
        ({"work": "w", "resume": True, "overwrite": True}, "one of the two"),
    ],
)
def test_a_run_that_makes_no_sense_is_refused_where_it_is_written(wrong, message):
    with pytest.raises(lw.ConfigError, match=message):
        lw.Run(**wrong)


def test_a_run_takes_what_people_write(tmp_path):
    run = lw.Run(memory="2GB", work=str(tmp_path))
    assert (run.budget, run.folder) == (2 * 10**9, tmp_path)
    assert lw.Run(memory=2 * 10**9).budget == run.budget
    with pytest.raises(lw.ConfigError, match="run must be a Run, such as Run"):
        lw.train(*keyword_set(), run={"threads": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", [lw.train, lw.plan])
def test_the_signature_is_the_new_one(verb):
    parameters = inspect.signature(verb).parameters
    assert "run" in parameters
    assert not parameters.keys() & OLD_TRAIN
    assert not any(p.kind in {p.VAR_KEYWORD, p.VAR_POSITIONAL} for p in parameters.values())
    assert inspect.signature(verb.__wrapped__) == inspect.signature(verb)
    assert len(parameters) <= 16


def test_the_new_spelling_does_not_warn(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.train(*keyword_set(), run=lw.Run(1, work=tmp_path / "work"))
        lw.plan(*keyword_set(), run=lw.Run(1, work=tmp_path / "work"))


def test_old_keywords_of_train_are_taken_with_a_warning(tmp_path):
    progress = lw.Silent()
    old = {"threads": 1, "progress": progress, "work": tmp_path / "old", "memory": "4GB", "device": "cpu"}
    with pytest.warns(DeprecationWarning, match="old spelling") as told:
        model = lw.train(*keyword_set(), **old)  # type: ignore[call-arg]
    (warning,) = [w for w in told if issubclass(w.category, DeprecationWarning)]
    assert str(warning.message) == (
        "train(threads=…, device=…, memory=…, progress=…, work=…) is the old spelling; "
        "write run=Run(threads=…, device=…, memory=…, progress=…, work=…)."
    )
    assert Path(warning.filename).name == Path(__file__).name  # whoever wrote it is shown his own line
    assert (tmp_path / "old").is_dir()
    assert "label tree" in progress.timings
    with pytest.warns(DeprecationWarning, match="resume"):
        again = lw.train(*keyword_set(), work=tmp_path / "old", resume=True)  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="overwrite"):
        over = lw.train(*keyword_set(), work=tmp_path / "old", overwrite=True)  # type: ignore[call-arg]
    assert again.predict(["word1"]) == over.predict(["word1"]) == model.predict(["word1"])


def test_old_keywords_of_plan_are_taken_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"plan\(threads=…, work=…\) is the old spelling; write run=Run\("):
        old = lw.plan(*keyword_set(), threads=1, work=True)  # type: ignore[call-arg]
    new = lw.plan(*keyword_set(), run=lw.Run(1, work="."))
    assert [part.name for part in old.parts] == [part.name for part in new.parts]
    assert old.threads == 1


def test_what_was_none_before_is_the_default():
    with pytest.warns(DeprecationWarning, match="old spelling"):
        lw.train(*keyword_set(), progress=None, memory=None, work=None, tell=None)  # type: ignore[call-arg]


def test_both_spellings_at_once_are_refused():
    with pytest.raises(lw.ConfigError, match=r"threads= beside run= says the same twice; write run=Run\(threads=…\)"):
        lw.train(*keyword_set(), threads=1, run=lw.Run())  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="thread"):
        lw.train(*keyword_set(), thread=1)  # type: ignore[call-arg]


def test_a_renamed_field_is_named_by_its_new_name():
    @dataclasses.dataclass(frozen=True)
    class Made:
        on_event: object = None

    @old_keywords("made", Made, {"tell": "on_event"})
    def function(*, made: Made = Made()) -> object:
        """Says what it was given."""
        return made.on_event

    with pytest.warns(DeprecationWarning, match=r"function\(tell=…\) .*; write made=Made\(on_event=…\)"):
        assert function(tell=print) is print  # type: ignore[call-arg]
    assert function(made=Made(3)) == 3
    assert function.__doc__ == "Says what it was given."


def test_what_callbacks_receive_is_public():
    """And comes from no room that needs torch."""
    for name in ("Event", "Progress", "Run", "Silent", "Terminal"):
        assert name in lw.__all__
        assert not getattr(lw, name).__module__.startswith("labelwood.neural")


def test_no_public_name_is_also_a_module():
    """`import labelwood.plan` must not give a function."""
    for name in lw.__all__:
        if not name.startswith("_"):
            assert importlib.util.find_spec(f"labelwood.{name}") is None, name
