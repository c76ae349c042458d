"""Time budgets, plans and events of a fine-tuning."""

from __future__ import annotations

import dataclasses
import json
import struct

import pytest
import torch

import labelwood as lw
from cases import acting
from labelwood.base.run import Run
from labelwood.cli import main
from labelwood.data import from_lists
from labelwood.neural.encoders import encoder as encoders
from labelwood.neural.training import tensorboard
from labelwood.neural.training.pace import Pace
from labelwood.pipeline.train import train_into
from labelwood.planning import timing
from labelwood.recipes.methods import METHODS
from labelwood.recipes.resolve import resolve
from small import LISTS, READ, SMALL, TEXTS, Stop, fit, source, stop_at_once


def test_a_time_becomes_steps_that_a_continued_run_keeps(tmp_path, monkeypatch):
    """85 % of 3 s, less two embeddings of 108 documents and four of 5.4, at 10 ms a step, over two levels."""
    monkeypatch.setattr(timing, "measure", lambda *_: Pace(0.01, 0.001, 9.0, 1000, 32, 2))
    data = from_lists(TEXTS, LISTS)
    recipe = resolve("xr-transformer", settings=SMALL)
    run = Run(2, work=tmp_path / "m.work")
    planned = timing.timed(recipe, "3s", data, run)
    assert planned.finetune.steps == (115, 115)
    with pytest.raises(Stop):
        train_into(tmp_path / "m", data, planned, dataclasses.replace(run, on_event=stop_at_once))
    again = dataclasses.replace(run, resume=True)
    assert timing.timed(recipe, "1h", data, again) == planned
    train_into(tmp_path / "m", data, planned, again)
    assert timing.timed(recipe, "1h", data, again, tmp_path / "m") == planned  # the model remembers, too


def test_steps_of_a_preset_tell_how_a_time_is_shared(monkeypatch):
    """231 steps fit (as above): one part to three. A tree whose depth is not known before has one number for all."""
    monkeypatch.setattr(timing, "measure", lambda *_: Pace(0.01, 0.001, 9.0, 1000, 32, 2))
    data = from_lists(TEXTS, LISTS)
    recipe = resolve("xr-transformer", settings=acting(SMALL, "xr-transformer", {"finetune.steps": (10, 30)}))
    assert timing.timed(recipe, "3s", data, Run(2)).finetune.steps == (57, 173)
    loose = resolve("xr-transformer", settings={"coarse.kind": "unbalanced"})
    assert isinstance(timing.timed(loose, "3s", data, Run(2)).finetune.steps, int)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("2d", 172800), ("45", 45), (" 3 M", 180)]
)
def test_times(text, seconds):
    assert timing.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-3m", "0", "ten", "1e400", "nan"])
def test_what_is_no_time(text):
    with pytest.raises(lw.ConfigError, match="a time must be like"):
        timing.seconds(text)


def test_a_time_that_is_too_short_says_what_is_needed():
    with pytest.raises(lw.ConfigError, match="take about"):
        lw.train(TEXTS, LISTS, method="xr-transformer", time="0.001s")
    with pytest.raises(lw.ConfigError, match="does not"):
        lw.train(TEXTS, LISTS, time="9s")


def test_a_timed_run_that_is_finished_is_found_finished(tmp_path, capsys):
    """Its steps stand in place of a preset's epochs, which the saved model does not keep."""
    (tmp_path / "t.jsonl").write_text(
        "".join(json.dumps({"text": t, "labels": row}) + "\n" for t, row in zip(TEXTS, LISTS, strict=True))
    )
    model = str(tmp_path / "m")
    command = ["train", str(tmp_path / "t.jsonl"), "--model", model, "--method", "xr-transformer", "--preset", "fast"]
    command += ["--time", "9s", "--keep-work", "--set", "encoder.runtime=torch"]
    assert main(command) == 0
    assert main([*command, "--resume"]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_a_plan_knows_the_encoder():
    found = lw.plan(TEXTS, LISTS, method="xr-transformer", settings=SMALL)
    names = [part.name for part in found.parts]
    assert "fine-tuning level 1" in names
    assert "embedding after level 2" in names
    net = encoders.load(source(), READ)
    assert found.parameters == sum(p.numel() for p in net.parameters())
    assert found.model > 4 * found.parameters
    assert found.network["gradients"] == found.network["encoder"] == 4 * found.parameters
    assert found.network["heads"] == 4 * 12 * (32 + 1)  # a row and a bias for each of 12 labels
    assert found.network["optimiser"] == 2 * (found.network["encoder"] + found.network["heads"])
    three = lw.plan(TEXTS, LISTS, method="xr-transformer", settings={**SMALL, "ensemble.runs": 3})
    assert three.model > found.model + 8 * found.parameters
    alone = lw.plan(TEXTS, LISTS, method="xr-linear")
    assert alone.parameters == 0
    assert not any("fine-tuning" in part.name for part in alone.parts)


@pytest.mark.parametrize("method", [name for name in lw.methods() if METHODS[name].recipe.encoder.on])
def test_every_network_has_a_plan_and_a_budget(method):
    found = lw.plan(TEXTS, LISTS, method=method)
    assert any("fine-tuning" in part.name for part in found.parts)
    with pytest.raises(lw.LabelwoodError, match="needs about"):
        lw.train(TEXTS, LISTS, method=method, run=lw.Run(memory="1MB"))


def test_logs_that_cannot_be_written_say_so(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(lw.StorageError, match="cannot write"):
        tensorboard.EventFile(tmp_path / "file" / "logs")


def test_events_are_records_with_right_checksums(tmp_path):
    """The check value of CRC-32C is 0xE3069283 for "123456789"; records are read back by hand."""
    crc = struct.unpack("<I", tensorboard._checksum(b"123456789"))[0]
    unmasked = (crc - 0xA282EAD8) & 0xFFFFFFFF
    assert ((unmasked >> 17) | (unmasked << 15)) & 0xFFFFFFFF == 0xE3069283
    log = tensorboard.EventFile(tmp_path / "logs")
    fit({"finetune.steps": 2}, on_event=log)
    raw, at, bodies = log.path.read_bytes(), 0, []
    while at < len(raw):
        size = struct.unpack_from("<Q", raw, at)[0]
        assert raw[at + 8 : at + 12] == tensorboard._checksum(raw[at : at + 8])
        bodies.append(raw[at + 12 : at + 12 + size])
        assert raw[at + 12 + size : at + 16 + size] == tensorboard._checksum(bodies[-1])
        at += 16 + size
    assert b"brain.Event:2" in bodies[0]
    assert len(bodies) == 1 + 4
    assert b"fine-tuning level 2 of 2/loss" in bodies[-1]


def test_devices():
    with pytest.raises(lw.ConfigError, match="cpu, cuda or mps"):
        Run(device="gpu")


def test_a_device_that_is_not_there_is_told_before_any_work():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    for device in ("cuda", "cuda:1", "cuda:x"):
        with pytest.raises(lw.ConfigError, match="device"):
            lw.train(TEXTS, LISTS, method="xr-transformer", run=lw.Run(device=device))
