"""What `labelwood analyse` reports, by hand: recall, attention, similarity."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import labelwood as lw
from cases import acting
from frozen import FOLDER
from labelwood.arrays.sparse import Csr
from labelwood.base.progress import QUIET
from labelwood.base.run import Run
from labelwood.cli import main
from labelwood.data import from_lists
from labelwood.evaluation.network_analysis import analyse, pwcca, shortlists
from labelwood.neural import inside
from labelwood.neural.encoders import encoder as encoders
from labelwood.neural.encoders import pretrained
from labelwood.pipeline.train import train
from labelwood.recipes.resolve import resolve
from small import LISTS, READ, TEXTS, fit, tokeniser

QUICK = {"finetune.epochs": 1, "coarse.levels": (4,), "finetune.parents": (1, 2)}


def cascade(**settings):
    recipe = resolve("cascadexml", settings=acting(QUICK, "cascadexml", settings))
    return train(from_lists(TEXTS, LISTS), recipe, Run(1))


def test_vectors_that_are_maps_of_each_other_are_alike():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 6))
    assert pwcca(x, x) == pytest.approx(1)
    assert pwcca(x, x @ rng.normal(size=(6, 6)) + 3) == pytest.approx(1)
    assert pwcca(x, rng.normal(size=(500, 6))) < 0.3
    assert pwcca(x[:, :1], x) == pytest.approx(1)  # all that x has is in the other
    assert pwcca(np.ones((500, 3)), x) == 0  # nothing varies


def test_directions_weigh_by_what_they_carry():
    """One shared direction of two; it carries nine tenths of x, and then one tenth."""
    rng = np.random.default_rng(1)
    q = np.linalg.qr(rng.normal(size=(4000, 3)) - 0)[0]
    q -= q.mean(axis=0)
    a, b, c = (column / np.linalg.norm(column) for column in np.linalg.qr(q)[0].T)
    y = np.stack([a, c], axis=1)
    assert pwcca(np.stack([9 * a, b], axis=1), y) == pytest.approx(0.9, abs=0.01)
    assert pwcca(np.stack([a, 9 * b], axis=1), y) == pytest.approx(0.1, abs=0.01)


def test_recall_counts_clusters_and_whole_paths():
    """Against plain sets: the share of a document's true clusters among those kept."""
    (member, *_) = cascade(ranker="none").members
    x = member.features(lw.data.Texts.from_strings(TEXTS), None, 1, QUIET)
    truth = from_lists(TEXTS, LISTS).labels
    (kept,), paths = shortlists(member, x, truth, 1)
    nodes = member.reach(x, 1, 1).nodes
    above = member.tree.labels_to_nodes(0, len(member.labels))
    shares, alive = [], []
    for row, found in enumerate(nodes):
        labels = truth.indices[truth.indptr[row] : truth.indptr[row + 1]]
        true = {int(above[label]) for label in labels}
        shares.append(len(true & set(found.tolist())) / len(true))
        alive += [int(above[label]) in found for label in labels]
    assert (kept.clusters, kept.kept) == (4, 2)
    assert kept.recall == pytest.approx(100 * np.mean(shares))
    assert paths == pytest.approx(100 * np.mean(alive))
    assert 0 < paths < 100


def test_labels_that_training_never_saw_do_not_count():
    (member, *_) = cascade(ranker="none").members
    x = member.features(lw.data.Texts.from_strings(TEXTS[:2]), None, 1, QUIET)
    wide = len(member.labels) + 1
    only = Csr(np.array([0, 1, 2]), np.array([0, wide - 1], np.int32), np.ones(2, np.float32), wide)
    first = Csr(np.array([0, 1]), np.array([0], np.int32), np.ones(1, np.float32), wide - 1)
    assert shortlists(member, x, only, 1) == shortlists(member, x.take(np.array([0])), first, 1)


@pytest.mark.parametrize("engine", ["lean", "transformers"])
def test_attention_is_that_of_the_pretrained_model(engine):
    """Both engines, against eager transformers with plain loops."""
    from transformers import AutoModel

    source = pretrained.find("minilm")
    tokens = tokeniser()(["word1 word2", "a b c d e f g h", "common"])
    found, vectors = inside.inside(encoders.load(source, dataclasses.replace(READ, engine=engine)), tokens, 1)
    model = AutoModel.from_pretrained(source.folder, attn_implementation="eager").eval()
    import torch

    mean, most, entropy = np.zeros((3, 2))
    for i in range(3):
        ids = torch.from_numpy(tokens.take(np.array([i])).ids.astype(np.int64))[None]
        out = model(input_ids=ids, output_attentions=True, output_hidden_states=True)
        for t, maps in enumerate(out.attentions):
            first = maps[0, :, 0].detach().numpy()
            mean[t] += first[:, 0].mean() / 3
            most[t] += first[:, 0].max() / 3
            entropy[t] += -(first * np.log(first)).sum(axis=1).mean() / 3
            assert np.allclose(vectors[t, i], out.hidden_states[t + 1][0, 0].detach().numpy(), atol=1e-5)
    for ours, theirs in ((found.self_mean, mean), (found.self_max, most), (found.entropy, entropy)):
        assert np.allclose(ours, theirs, atol=1e-5)


def test_the_command_writes_json_and_figures(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    (tmp_path / "test.jsonl").write_text(
        "".join(json.dumps({"text": t, "labels": y}) + "\n" for t, y in zip(TEXTS, LISTS, strict=True)),
        encoding="utf-8",
    )
    cascade().save(tmp_path / "m")
    code = main(["analyse", str(tmp_path / "m"), str(tmp_path / "test.jsonl"), "--out", str(tmp_path / "out")])
    assert code == 0
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"analysis.json", "attention.svg", "similarity.svg"}
    found = json.loads((tmp_path / "out" / "analysis.json").read_text(encoding="utf-8"))
    assert found["shortlists"][0]["clusters"] == 4
    assert found["layers"] == [[1], [2]]
    assert found["pretrained_attention"] != found["attention"]
    assert found["pooling"] == "mean"
    assert "recall" in capsys.readouterr().out
    fit().save(tmp_path / "n")
    two = [str(tmp_path / name) for name in ("m", "test.jsonl")]
    assert main(["analyse", *two, "--beside", str(tmp_path / "n"), "--out", str(tmp_path / "two")]) == 0
    beside = json.loads((tmp_path / "two" / "beside.json").read_text(encoding="utf-8"))
    assert (beside["method"], beside["layers"]) == ("xr-transformer", [[2]])
    assert "PWCCA, xr-transformer (mean)" in (tmp_path / "two" / "similarity.svg").read_text(encoding="utf-8")


def test_any_neural_recipe_can_be_analysed():
    found = analyse(fit(), from_lists(TEXTS, LISTS), threads=1)
    assert found.layers == [[2]]
    assert np.shape(found.similarity) == (2, 2)
    assert "few for vectors" in found.remark


@pytest.mark.parametrize(("method", "settings", "message"), [
    ("xr-linear", {}, "no encoder"),
    ("attentionxml", {}, "no first token"),
])  # fmt: skip
def test_what_cannot_be_looked_into_says_so(method, settings, message):
    model = lw.train(TEXTS, LISTS, method=method, settings=settings)
    with pytest.raises(lw.ConfigError, match=message):
        analyse(model, from_lists(TEXTS, LISTS))


def test_a_model_that_onnx_serves_can_be_analysed():
    model = lw.train(
        TEXTS, LISTS, method="xr-transformer", settings={"encoder.runtime": "onnx-int8", "finetune.on": False}
    )
    assert analyse(model, from_lists(TEXTS, LISTS), threads=1).layers == [[2]]


def test_a_model_of_schema_1_that_holds_a_graph_says_what_it_cannot():
    model = lw.load(FOLDER / "onnx")
    with pytest.raises(
        lw.ConfigError, match=r"an analysis needs the encoder's weights, but this model .* holds a graph"
    ):
        analyse(model, from_lists(TEXTS, LISTS))


def test_the_verb_takes_a_folder_and_texts(tmp_path):
    """The same as the function within takes, from what a user has at hand."""
    model = cascade()
    model.save(tmp_path / "m")
    found = lw.analyse(tmp_path / "m", TEXTS, LISTS, threads=1, most=50)
    assert isinstance(found, lw.Analysis)
    assert found.documents == 50
    assert found == analyse(model, from_lists(TEXTS, LISTS), threads=1, most=50)
