"""The neural rooms: tokens, encoders, heads, the trainer, and XR-Transformer's fine-tuning on a tiny encoder."""

from __future__ import annotations

import dataclasses
import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

import labelwood as lw
import tiny
from labelwood.data import from_lists
from labelwood.neural import encoder as encoders
from labelwood.neural import events, lean, pace, pretrained
from labelwood.neural.config import EncoderConfig
from labelwood.neural.encoder import Reading, packed
from labelwood.neural.head import Candidates, Head, batch_loss, loss_of
from labelwood.neural.tokens import Tokeniser, Tokens, by_length
from labelwood.neural.trainer import Schedule, Trainer
from labelwood.recipes import resolve
from labelwood.run import Run
from labelwood.sparse import as_csr
from labelwood.train import identity_of, timed, train, train_into
from labelwood.tree import level_sizes
from toy import contract_set, noisy_set

TEXTS, LISTS = contract_set()
READ = EncoderConfig(model="minilm")


def source() -> pretrained.Source:
    return pretrained.find("minilm")


def tokeniser(most: int = 128) -> Tokeniser:
    return Tokeniser(source().tokeniser(), most)


# --- tokens --------------------------------------------------------------------------------------


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


# --- encoders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_the_lean_bert_gives_the_numbers_of_transformers(pooling):
    tokens = tokeniser()(["word1 word2", "common", "a b c d e f g h", "", "word3 " * 30])
    ours, theirs = (encoders.load(source(), dataclasses.replace(READ, engine=e)) for e in ("lean", "transformers"))
    for layer in range(3):
        reading = Reading((layer,), pooling)
        a, b = ours.embed(tokens, reading), theirs.embed(tokens, reading)
        assert np.abs(a - b).max() < 2e-6
        assert np.abs(a).max() > 0.1


def test_packing_documents_changes_nothing():
    """A document's vector does not depend on its neighbours."""
    net = encoders.load(source(), READ)
    tokens = tokeniser()(["word1 word2", "a b c d e f g h", "common", "word5 word5"])
    reading = net.reading(READ)
    together = net.embed(tokens, reading)
    alone = np.concatenate([net.embed(tokens.take(np.array([i])), reading) for i in range(4)])
    assert np.abs(together - alone).max() < 1e-6


def test_gradients_of_the_lean_bert_are_those_of_transformers():
    tokens = tokeniser()(["word1 word2", "a b c d e f g h", "common"])
    grads = []
    for engine in ("lean", "transformers"):
        net = encoders.load(source(), dataclasses.replace(READ, engine=engine)).eval()
        vector = net(packed(tokens, np.arange(3)), [Reading((1, 2), "mean")])[0]
        vector.square().sum().backward()
        named = dict(net.net.named_parameters())
        key = "words.weight" if engine == "lean" else "embeddings.word_embeddings.weight"
        grads.append(named[key].grad.numpy())
    assert np.abs(grads[0] - grads[1]).max() < 1e-4 * np.abs(grads[1]).max()


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("roberta", {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2}),
        ("distilbert", {"dim": 16, "hidden_dim": 32, "n_heads": 2, "n_layers": 2}),
        ("xlnet", {"d_model": 16, "d_inner": 32, "n_head": 2, "n_layer": 2}),
        ("mpnet", {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2}),
        ("electra", {"hidden_size": 16, "embedding_size": 16, "intermediate_size": 32, "num_attention_heads": 2,
                     "num_hidden_layers": 2}),
        ("modernbert", {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2,
                        "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2,
                        "sep_token_id": 3}),
    ],
)  # fmt: skip
def test_other_encoders_are_read_trained_and_kept(kind, sizes, tmp_path):
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=200, **sizes)).save_pretrained(tmp_path / "e")
    (tmp_path / "e" / "tokenizer.json").write_text(tiny.tokenizer(), encoding="utf-8")
    for pooling in ("mean", "pooler"):
        settings = {"encoder.model": str(tmp_path / "e"), "encoder.pooling": pooling, "finetune.steps": 1}
        model = lw.train(TEXTS, LISTS, method="xr-transformer", settings=settings)
        model.save(tmp_path / "m")
        again = lw.load(tmp_path / "m")
        assert np.array_equal(again.predict_arrays(TEXTS)[1], model.predict_arrays(TEXTS)[1])


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda f: f.joinpath("config.json").unlink(), "no config.json"),
        (lambda f: f.joinpath("config.json").write_text("{"), "cannot be read"),
        (lambda f: f.joinpath("config.json").write_text("{}"), "names no model_type"),
        (lambda f: f.joinpath("config.json").write_text('{"model_type": "gpt2"}'), "not an encoder"),
        (lambda f: f.joinpath("model.safetensors").rename(f / "pytorch_model.bin"), "could run code"),
        (lambda f: f.joinpath("tokenizer.json").write_text("{}"), "tokenizer.json cannot be read"),
        (lambda f: f.joinpath("model.safetensors").write_bytes(b"junk"), "is not the BERT"),
    ],
)
def test_a_broken_encoder_folder_is_told(harm, message, tmp_path):
    harm(tiny.write(tmp_path / "e"))
    with pytest.raises(lw.LabelwoodError, match=message):
        lw.train(TEXTS, LISTS, method="xr-transformer", settings={"encoder.model": str(tmp_path / "e")})


def test_an_encoder_that_is_nowhere_is_told(tmp_path):
    for name in (str(tmp_path / "none"), "nobody/nothing"):
        with pytest.raises(lw.ConfigError, match=r"not a folder|cannot be fetched|no folder here"):
            pretrained.find(name)


def test_an_encoder_without_pooler_reads_the_first_token(tmp_path):
    net = encoders.load(pretrained.read(tiny.write(tmp_path / "e", pooler=False)), READ)
    tokens = tokeniser()(["word1", "word2 word3"])
    a, b = (net.embed(tokens, Reading((2,), pooling)) for pooling in ("pooler", "cls"))
    assert np.array_equal(a, b)


# --- heads ---------------------------------------------------------------------------------------


def test_candidates_are_the_children_of_the_shortlist():
    """Parents 0, 1, 2 with children 0-1, 2-4, 5; documents under {0, 2} and {1}."""
    m = as_csr(np.array([[1, 0, 1], [0, 1, 0]], np.float32))
    found = Candidates.below(m, np.array([0, 2, 5, 6]))
    assert found.nodes.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.mask.astype(int).tolist() == [[1, 1, 0, 0, 0, 1], [0, 0, 1, 1, 1, 0]]
    y = as_csr(np.array([[0, 2, 0, 3, 0, 0], [0, 0, 0, 0, 5, 0]], np.float32))
    true, value = found.targets(y)
    assert true.astype(int).tolist() == [[0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]]  # 3 is true but no candidate
    assert value[true].tolist() == [2, 5]


def test_losses_by_hand():
    logits, true = torch.tensor([[2.0, 0.5, -3.0]]), torch.tensor([[True, True, False]])
    assert loss_of("hinge", logits, true).tolist() == [[0, 0.5, 0]]
    assert loss_of("squared-hinge", logits, true).tolist() == [[0, 0.25, 0]]
    assert np.allclose(loss_of("bce", logits, true), [np.log1p(np.exp([-2, -0.5, -3]))])
    mask, weight = torch.tensor([[True, True, False]]), torch.tensor([[1.0, 3.0, 1.0]])
    assert batch_loss("hinge", logits, (mask, true, weight)).item() == pytest.approx(0.75)  # 1.5 over two candidates


def test_a_head_steps_as_adam_on_the_rows_it_touches():
    torch.manual_seed(0)
    head = Head.random(5, 3, torch.Generator().manual_seed(0))
    twin = torch.nn.Parameter(head.table[[1, 3], :3].clone()), torch.nn.Parameter(head.table[[1, 3], 3].clone())
    adam, before = torch.optim.Adam(twin, lr=0.1), head.table.clone()
    x = torch.randn(4, 3)
    for _ in range(3):
        rows = head.gather(np.array([1, 3]))
        rows(x).square().sum().backward()
        head.update(rows, 0.1, 0.0, None)
        adam.zero_grad()
        torch.nn.functional.linear(x, *twin).square().sum().backward()
        adam.step()
    assert torch.allclose(head.table[[1, 3], :3], twin[0].detach(), atol=1e-6)
    assert torch.allclose(head.table[[1, 3], 3], twin[1].detach(), atol=1e-6)
    assert torch.equal(head.table[[0, 2, 4]], before[[0, 2, 4]])
    assert head.moments.steps.ravel().tolist() == [3, 3]  # the others have no state at all


@pytest.mark.parametrize("kind", ["full", "row"])
def test_the_state_of_a_head_grows_with_the_rows_it_meets(kind):
    """Touched one after the other or all at once, a row's steps are its own."""
    torch.manual_seed(0)
    weight, x = torch.randn(50, 3), torch.randn(4, 3)
    one, all_ = Head(weight, torch.zeros(50), kind), Head(weight, torch.zeros(50), kind)
    for nodes in (np.array([7]), np.array([3, 9, 20]), np.arange(10, 19), np.array([7, 40])):
        rows = one.gather(nodes)
        rows(x).square().sum().backward()
        one.update(rows, 0.1, 0.0, None)
    for nodes in (np.array([3, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 40]), np.array([7])):
        rows = all_.gather(nodes)
        rows(x).square().sum().backward()
        all_.update(rows, 0.1, 0.0, None)
    assert torch.allclose(one.table, all_.table, atol=1e-6)
    assert one.moments.used == 14
    again = Head(weight, torch.zeros(50), kind)
    again.load(one.tensors())
    for head in (one, again):
        rows = head.gather(np.array([7, 45]))
        rows(x).square().sum().backward()
        head.update(rows, 0.1, 0.0, None)
    assert torch.equal(one.table, again.table)


def test_the_schedule_rises_and_falls():
    schedule = Schedule(10, 32, 100, 1.0, 0.2, 0.0, 0.0, None, 0.0, 3)
    assert [round(schedule.rate(s), 3) for s in range(10)] == [0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]
    assert [s for s in range(1, 11) if schedule.is_check(s)] == [3, 7, 10]


# --- fine-tuning ---------------------------------------------------------------------------------

SMALL: dict[str, object] = {"finetune.epochs": 2, "coarse.levels": (4,), "tree.leaf": 4, "tree.branch": 2}


def fit(settings: dict[str, object] | None = None, data=None, **run) -> lw.Predictor:
    recipe = resolve("xr-transformer", settings={**SMALL, **(settings or {})})
    return train(from_lists(TEXTS, LISTS) if data is None else data, recipe, Run(1, **run))


def test_fine_tuning_lowers_the_loss_and_moves_the_encoder():
    told = []
    model = fit({"finetune.epochs": 20, "finetune.lr": 1e-3, "finetune.head_lr": 1e-2}, tell=told.append)
    first = [e.loss for e in told if "level 1" in e.stage]
    assert np.mean(first[-5:]) < 0.3 * np.mean(first[:5])
    state, pretrained_state = model.embedder.state, encoders.load(source(), READ).state()
    assert np.abs(state["layers.0.up.weight"] - pretrained_state["layers.0.up.weight"]).max() > 1e-3
    assert {e.stage for e in told} == {"fine-tuning level 1 of 2", "fine-tuning level 2 of 2"}


@pytest.mark.parametrize(
    "changes",
    [
        {"finetune.bootstrap": "linear"}, {"finetune.bootstrap": "inherit"}, {"finetune.bootstrap": "none"},
        {"finetune.source": "teacher"}, {"finetune.source": "predicted"}, {"finetune.source": "union,teacher"},
        {"finetune.matcher": "transformer"}, {"finetune.matcher": "average"},
        {"finetune.loss": "bce"}, {"finetune.loss": "hinge"},
        {"finetune.relevance": "counts"}, {"finetune.relevance": "off"},
        {"finetune.refine": False}, {"finetune.on": False}, {"finetune.levels": 1},
        {"encoder.features": "embedding", "finetune.epochs": 30, "finetune.lr": 1e-3},
        {"encoder.pooling": "cls"}, {"encoder.pooling": "pooler"}, {"encoder.layer": 1}, {"encoder.max_tokens": 4},
        {"finetune.frozen_layers": 1}, {"finetune.frozen_layers": 2}, {"finetune.valid": 0}, {"finetune.valid": 9},
        {"finetune.attention_dropout": 0.1}, {"finetune.shard_tokens": 40}, {"finetune.clip": None},
        {"finetune.head_decay": 0.01}, {"finetune.steps": 0}, {"finetune.max_clusters": 4}, {"coarse.kind": "flat"},
        {"linear.relevance": "off"}, {"finetune.head_moments": "row"},
    ],
)  # fmt: skip
def test_every_switch_trains_a_sound_model(changes):
    model = fit(changes)
    quick = lw.MetricsConfig(bootstrap=0)
    assert model.evaluate(TEXTS, LISTS, metrics=quick)["P@1"] > 90


def test_shards_add_up_to_the_batch():
    """Cut into shards or not, a step is the same to rounding."""
    ends = []
    for tokens in (16384, 40):
        model = fit({"finetune.shard_tokens": tokens, "finetune.dropout": 0.0, "finetune.head_dropout": 0.0})
        ends.append(model.embedder.state["layers.1.up.weight"])
    start = encoders.load(source(), READ).state()["layers.1.up.weight"]
    assert np.abs(ends[0] - ends[1]).mean() < 0.02 * np.abs(ends[0] - start).mean()


def test_frozen_layers_do_not_move():
    before = encoders.load(source(), READ).state()
    after = fit({"finetune.frozen_layers": 1}).embedder.state
    moved = {name for name in before if not np.array_equal(before[name], after[name])}
    assert moved
    assert all(name.startswith("layers.1.") for name in moved)


def test_held_back_documents_teach_nothing():
    """Documents that are held back swap their labels, and the encoder that comes out is the same."""
    data = from_lists(*noisy_set(3, docs=80))
    settings = {**SMALL, "finetune.valid": 10, "finetune.checks": 1, "coarse.kind": "flat", "finetune.levels": 1}
    recipe = resolve("xr-transformer", settings=settings)
    held = np.sort(np.random.Generator(np.random.Philox(key=[0, 7])).permutation(80)[:10])
    rows = np.arange(80)
    rows[held] = np.roll(held, 1)
    assert data.labels is not None
    swapped = dataclasses.replace(data, labels=data.labels.take(rows))
    a, b, other = (train(d, recipe, Run(2)).embedder.state for d in (data, swapped, data.take(rows[::-1])))
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not all(np.array_equal(a[name], other[name]) for name in a)


def test_a_set_of_one_label_is_not_fine_tuned():
    with pytest.warns(UserWarning, match="no level of the tree"):
        model = lw.train(["word1 common", "word1 common", "word2"], [["a"], ["a"], ["a"]], method="xr-transformer")
    assert model.predict(["word1"])[0][0][0] == "a"


def test_empty_texts_are_refused():
    with pytest.raises(lw.LabelwoodError, match="empty"):
        lw.train(["", " ", "\n"], [["a"], ["b"], ["a"]], method="xr-transformer")


def test_lists_of_the_wrong_length_are_refused_before_training():
    with pytest.raises(lw.ConfigError, match=r"finetune\.lr gives 3 values"):
        fit({"finetune.lr": (1e-4, 1e-4, 1e-4)})


# --- to be continued -----------------------------------------------------------------------------


class Stop(Exception):
    """A kill."""


def test_a_run_that_is_killed_at_any_step_ends_in_the_same_bytes(tmp_path):
    data = from_lists(*noisy_set(5, docs=64))
    settings = {**SMALL, "finetune.steps": 6, "finetune.batch": 16, "finetune.checks": 3, "finetune.valid": 8}
    recipe = resolve("xr-transformer", settings=settings)
    whole = tmp_path / "whole"
    train_into(whole, data, recipe, Run(2, work=tmp_path / "whole.work"))
    for kill in (1, 3, 6, 7, 9, 12):
        seen = 0

        def tell(event, kill=kill):
            nonlocal seen
            seen += 1
            if seen == kill:
                raise Stop

        work, folder = tmp_path / f"{kill}.work", tmp_path / f"{kill}"
        with pytest.raises(Stop):
            train_into(folder, data, recipe, Run(2, work=work, tell=tell, keep_every=0.0))
        train_into(folder, data, recipe, Run(2, work=work, resume=True, keep_every=0.0))
        assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in whole.iterdir())
        assert (folder / "labelwood.json").read_bytes() == (whole / "labelwood.json").read_bytes()
        assert not work.exists()


def test_a_state_is_used_and_not_made_again(tmp_path):
    data = from_lists(*noisy_set(5, docs=64))
    recipe = resolve("xr-transformer", settings={**SMALL, "finetune.steps": 6, "finetune.batch": 16})
    steps: list[int] = []

    def tell(event):
        steps.append(event.step)
        if len(steps) == 4:
            raise Stop

    run = Run(2, work=tmp_path / "work", tell=tell, keep_every=0.0)
    with pytest.raises(Stop):
        train(data, recipe, run)
    steps.clear()
    train(data, recipe, dataclasses.replace(run, resume=True, tell=lambda e: steps.append(e.step)))
    assert steps == [4, 5, 6, 1, 2, 3, 4, 5, 6]  # the state of step 3 was kept before step 4 was told


# --- what is imported ----------------------------------------------------------------------------


def test_linear_models_import_no_torch(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys, labelwood as lw\n"
        "lw.train(['a b', 'c d'] * 4, [['x'], ['y']] * 4, settings={'tfidf.min_chars': 1}).predict(['a'])\n"
        "assert not {'torch', 'transformers', 'tokenizers', 'onnxruntime'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ}, cwd=tmp_path)


def test_a_model_folder_holds_no_code(tmp_path):
    folder = Path(tmp_path / "m")
    fit().save(folder)
    assert {p.suffix for p in folder.iterdir()} == {".json", ".safetensors"}
    manifest = json.loads((folder / "labelwood.json").read_text())
    assert "auto_map" not in manifest["meta"]["encoder"]["config"]
    assert lean.supports(manifest["meta"]["encoder"]["config"])


# --- time, plans, events -------------------------------------------------------------------------


def test_a_time_becomes_steps_that_a_continued_run_keeps(tmp_path, monkeypatch):
    """85 % of 3 s, less two embeddings of 108 documents and four of 5.4, at 10 ms a step, over two levels."""
    monkeypatch.setattr(pace, "measure", lambda *_: pace.Pace(0.01, 0.001, 9.0, 1000, 32, 2))
    data = from_lists(TEXTS, LISTS)
    recipe = resolve("xr-transformer", settings=SMALL)
    run = Run(2, work=tmp_path / "m.work")
    planned = timed(recipe, "3s", data, run)
    assert planned.finetune.steps == (115, 115)
    with pytest.raises(Stop):
        train_into(tmp_path / "m", data, planned, dataclasses.replace(run, tell=stop_at_once))
    again = dataclasses.replace(run, resume=True)
    assert timed(recipe, "1h", data, again) == planned
    train_into(tmp_path / "m", data, planned, again)
    assert timed(recipe, "1h", data, again, tmp_path / "m") == planned  # the model remembers, too


def stop_at_once(event):
    raise Stop


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("2d", 172800), ("45", 45), (" 3 M", 180)]
)
def test_times(text, seconds):
    assert pace.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-3m", "0", "ten", "1e400", "nan"])
def test_what_is_no_time(text):
    with pytest.raises(lw.ConfigError, match="a time must be like"):
        pace.seconds(text)


def test_a_time_that_is_too_short_says_what_is_needed():
    with pytest.raises(lw.ConfigError, match="take about"):
        lw.train(TEXTS, LISTS, method="xr-transformer", time="0.001s")
    with pytest.raises(lw.ConfigError, match="leave out one"):
        lw.train(TEXTS, LISTS, method="xr-transformer", time="9s", settings={"finetune.steps": 3})
    with pytest.raises(lw.ConfigError, match="does not"):
        lw.train(TEXTS, LISTS, time="9s")


def test_a_plan_knows_the_encoder():
    found = lw.plan(TEXTS, LISTS, method="xr-transformer", settings=SMALL)
    names = [part.name for part in found.parts]
    assert "fine-tuning level 1" in names
    assert "embedding after level 2" in names
    net = encoders.load(source(), READ)
    assert found.parameters == sum(p.numel() for p in net.parameters())
    assert found.model > 4 * found.parameters
    alone = lw.plan(TEXTS, LISTS, method="xr-linear")
    assert alone.parameters == 0
    assert not any("fine-tuning" in part.name for part in alone.parts)


def test_events_are_records_with_right_checksums(tmp_path):
    """The check value of CRC-32C is 0xE3069283 for "123456789"; records are read back by hand."""
    crc = struct.unpack("<I", events._checksum(b"123456789"))[0]
    unmasked = (crc - 0xA282EAD8) & 0xFFFFFFFF
    assert ((unmasked >> 17) | (unmasked << 15)) & 0xFFFFFFFF == 0xE3069283
    log = events.EventFile(tmp_path / "logs")
    fit({"finetune.steps": 2}, tell=log)
    raw, at, bodies = log.path.read_bytes(), 0, []
    while at < len(raw):
        size = struct.unpack_from("<Q", raw, at)[0]
        assert raw[at + 8 : at + 12] == events._checksum(raw[at : at + 8])
        bodies.append(raw[at + 12 : at + 12 + size])
        assert raw[at + 12 + size : at + 16 + size] == events._checksum(bodies[-1])
        at += 16 + size
    assert b"brain.Event:2" in bodies[0]
    assert len(bodies) == 1 + 4
    assert b"fine-tuning level 2 of 2/loss" in bodies[-1]


def test_devices():
    with pytest.raises(lw.ConfigError, match="cpu, cuda or mps"):
        Run(device="gpu")


# --- ensembles and presets -----------------------------------------------------------------------


def test_runs_of_an_ensemble_differ_in_seed_and_encoder(tmp_path):
    other = str(tiny.write(tmp_path / "other", seed=1))
    settings = {**SMALL, "ensemble.runs": 2, "ensemble.encoders": ("minilm", other), "ensemble.average": "softmax"}
    model = lw.train(TEXTS, LISTS, method="xr-transformer", settings=settings)
    assert len(model.members) == 2
    a, b = (member.embedder.state["words.weight"] for member in model.members)
    assert np.abs(a - b).max() > 0.1
    model.save(tmp_path / "m")
    again = lw.load(tmp_path / "m")
    assert np.array_equal(again.predict_arrays(TEXTS)[1], model.predict_arrays(TEXTS)[1])
    assert identity_of(again) == identity_of(model) != {}
    assert model.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(bootstrap=0))["P@1"] == 100


def test_linear_runs_are_seeds():
    texts, lists = noisy_set(1)
    model = lw.train(texts, lists, settings={"ensemble.runs": 3, "tree.leaf": 3})
    alone = [lw.train(texts, lists, seed=s, settings={"tree.leaf": 3}) for s in range(3)]
    for member, single in zip(model.members, alone, strict=True):
        assert np.array_equal(member.tree.leaves, single.tree.leaves)


def test_encoders_must_fit_the_runs():
    with pytest.raises(lw.ConfigError, match="2 encoders"):
        fit({"ensemble.runs": 3, "ensemble.encoders": ("a", "b")})


@pytest.mark.parametrize(
    ("preset", "labels", "coarse", "refined"),
    [
        ("eurlex-4k", 3956, (16, 256, 3956), (4, 32, 256, 3956)),
        ("wiki10-31k", 30938, (128, 2048, 30938), (8, 128, 2048, 30938)),
        ("amazoncat-13k", 13330, (128, 1024, 13330), (128, 1024, 13330)),
        ("wiki-500k", 501070, (64, 512, 4096, 32768, 501070), (8, 256, 8192, 501070)),
        ("amazon-670k", 670091, (128, 2048, 32768, 670091), (8, 256, 8192, 670091)),
        ("amazon-3m", 2812281, (128, 2048, 32768, 2812281), (32, 1024, 32768, 2812281)),
    ],
)
def test_published_presets_have_the_trees_of_table_7(preset, labels, coarse, refined):
    """But for Amazon-3M's refined tree, whose printed sizes its own rule (32-way, leaves of 100) does not give."""
    recipe = resolve("xr-transformer", preset=preset)
    assert level_sizes(labels, recipe.coarse) == coarse
    assert level_sizes(labels, recipe.tree) == refined
    tuned = pace.tuned_levels(labels, recipe)
    assert len(recipe.finetune.steps) == len(tuned)
    assert tuned == tuple(size for size in coarse if size <= 32768)


def test_the_leaf_readout_is_the_margin_of_the_leaf():
    flat = lw.train(TEXTS, LISTS, settings={"tree.kind": "flat", "search.combiner": "noop"})
    deep = {"tree.leaf": 2, "tree.branch": 2, "search.beam": 100}
    path, leaf = (lw.train(TEXTS, LISTS, settings={**deep, "search.readout": r}) for r in ("path", "leaf"))
    assert leaf.members[0].gives_margins
    assert not path.members[0].gives_margins
    assert flat.members[0].gives_margins
    scores = leaf.predict_arrays(TEXTS, k=12)[1]
    assert scores.min() < 0
    with pytest.raises(lw.ConfigError, match=r"readout is 'leaf'"):
        lw.train(TEXTS, LISTS, settings={"search.kind": "exact", "search.readout": "leaf"})


def test_runs_that_share_a_workspace_share_their_stages(tmp_path):
    """The same fine-tuning under other classifiers is not done again; another one is."""
    data, told = from_lists(TEXTS, LISTS), []
    for changes, expected in (
        ({}, 4), ({"encoder.features": "embedding"}, 0), ({"linear.relevance": "off"}, 0),
        ({"finetune.levels": 1}, 0), ({"finetune.lr": (1e-4, 2e-4)}, 2), ({"finetune.loss": "bce"}, 4),
    ):  # fmt: skip
        told.clear()
        recipe = resolve("xr-transformer", settings={**SMALL, "finetune.steps": 2, "finetune.lr": 1e-4, **changes})
        train(data, recipe, Run(1, work=tmp_path / "work", shared=True, tell=told.append))
        assert len(told) == expected, changes


def test_given_held_out_data_chooses_and_teaches_nothing():
    """Its labels may be swapped: with one check, the encoder is the same; and all training documents are trained on."""
    data, held = from_lists(TEXTS, LISTS), from_lists(TEXTS[:20], LISTS[:20])
    swapped = from_lists(TEXTS[:20], [[*row, "never seen"] for row in LISTS[1:21]])
    recipe = resolve("xr-transformer", settings={**SMALL, "finetune.checks": 1})
    told: list[object] = []
    models = [train(data, recipe, Run(1, tell=told.append), v) for v in (held, swapped, None)]
    a, b, c = (model.embedder.state for model in models)
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not all(np.array_equal(a[name], c[name]) for name in a)
    assert len({model.data_key for model in models}) == 3
    assert all(len(model.labels) == 12 for model in models)
    linear = [train(data, resolve("xr-linear"), Run(1), v).data_key for v in (held, None)]
    assert linear[0] == linear[1]  # a recipe without a network does not look at it


def test_held_out_data_without_labels_is_refused():
    held = dataclasses.replace(from_lists(TEXTS[:3], LISTS[:3]), labels=None)
    with pytest.raises(lw.DataError, match="held-out"):
        train(from_lists(TEXTS, LISTS), resolve("xr-transformer"), Run(1), held)


def test_dropout_keeps_the_mean_and_drops_whole_256ths():
    torch.manual_seed(0)
    x = torch.ones(1000, 1000, requires_grad=True)
    y = lean.drop(x, 0.1, True)
    assert (y == 0).float().mean().item() == pytest.approx(26 / 256, abs=2e-3)
    assert y.max().item() == pytest.approx(256 / 230)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert lean.drop(x, 0.1, False) is x
    assert lean.drop(x, 0.0, True) is x


def test_rectangles_hold_neighbours_of_like_length():
    lengths = torch.tensor([10, 10, 10, 8, 7, 5, 5])
    batch = lean.Packed.of(torch.arange(55), lengths)
    assert [(g.count, g.longest, g.mask is None) for g in batch.groups] == [(4, 10, False), (1, 7, True), (2, 5, True)]
    assert batch.places.tolist() == [i for n in lengths.tolist() for i in range(n)]
    first = batch.groups[0]
    assert first.tokens == slice(0, 38)
    assert first.cells.tolist() == [*range(38)]  # full rows, then 8 of the last
    assert batch.mean(torch.arange(55.0)[:, None])[1].item() == 14.5


# --- what a review found -------------------------------------------------------------------------


def test_settings_that_matter_are_in_the_keys_of_stages(tmp_path):
    """With the first tree kept, other embeddings are other classifiers; more parents are other candidates."""
    data = from_lists(*noisy_set(2, docs=80))
    base = {**SMALL, "finetune.steps": 2, "finetune.refine": False, "finetune.width": 1, "finetune.source": "predicted"}
    ends = []
    for changes in ({}, {"finetune.lr": 1e-2}, {"finetune.width": 4}, {"encoder.scale": 3.0}):
        recipe = resolve("xr-transformer", settings={**base, **changes})
        ends.append(train(data, recipe, Run(1, work=tmp_path / "work", shared=True)))
        alone = train(data, recipe, Run(1))
        assert np.array_equal(alone.predict_arrays(data.texts)[1], ends[-1].predict_arrays(data.texts)[1]), changes


def test_members_that_read_one_encoder_differently_stay_different(tmp_path):
    frozen = {"finetune.on": False, "encoder.features": "embedding"}
    pools = [
        lw.train(TEXTS, LISTS, method="xr-transformer", settings={**frozen, "encoder.pooling": p})
        for p in ("mean", "cls")
    ]
    both = lw.Ensemble(pools)
    both.save(tmp_path / "m")
    again = lw.load(tmp_path / "m")
    assert [m.embedder.config.pooling for m in again.members] == ["mean", "cls"]
    assert np.array_equal(again.predict_arrays(TEXTS)[1], both.predict_arrays(TEXTS)[1])


def test_old_names_of_weights_are_known(tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = tiny.write(tmp_path / "e")
    weights = load_file(folder / "model.safetensors")
    old = {
        "bert." + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in weights.items()
    }
    save_file(old, folder / "model.safetensors")
    tokens = tokeniser()(["word1 word2"])
    a, b = (encoders.load(s, READ).embed(tokens, Reading((2,), "mean")) for s in (pretrained.read(folder), source()))
    assert np.array_equal(a, b)


def test_a_first_level_of_one_cluster_is_refused():
    with pytest.raises(lw.ConfigError, match="one cluster"):
        fit({"coarse.levels": (1, 4)})


def test_few_labelled_documents_are_not_all_held_back():
    texts = [*TEXTS[:10], *["common filler1"] * 200]
    model = lw.train(texts, [*LISTS[:10], *[[]] * 200], method="xr-transformer", settings={"finetune.steps": 1})
    assert len(model.labels) == 2


def test_a_loss_that_is_not_finite_ends_the_run(monkeypatch):
    monkeypatch.setattr(Trainer, "_step", lambda self: (float("nan") if self.step == 2 else 0.5, 9.0))
    with pytest.raises(lw.TrainingError, match=r"nan at step 3; .* Lower finetune\.lr"):
        fit()


def test_ensembles_of_encoders_need_one():
    for method, encoders_ in (("xr-linear", ("minilm", "minilm")), ("xr-transformer", ("minilm", "none"))):
        settings = {"ensemble.runs": 2, "ensemble.encoders": encoders_}
        with pytest.raises(lw.ConfigError, match="encoder"):
            lw.train(TEXTS, LISTS, method=method, settings=settings)


def test_a_device_that_is_not_there_is_told_before_any_work():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    for device in ("cuda", "cuda:1", "cuda:x"):
        with pytest.raises(lw.ConfigError, match="device"):
            lw.train(TEXTS, LISTS, method="xr-transformer", device=device)


def test_the_largest_seed():
    fit({"seed": 2**63 - 1, "finetune.steps": 1})


def test_the_best_of_many():
    from labelwood.neural.recursive import _best

    logits = np.random.default_rng(0).integers(0, 9, size=(20, 50)).astype(np.float32)
    for keep in (1, 7, 50, 60):
        found = np.take_along_axis(logits, _best(logits, keep), 1)[:, :keep]
        assert np.array_equal(found, -np.sort(-logits, axis=1)[:, :keep])
