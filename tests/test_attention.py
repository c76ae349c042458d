"""AttentionXML on tiny networks: label attention and the search against slow twins, word vectors, kills, switches."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from transformers import AutoModel

import labelwood as lw
from cases import acting
from labelwood.arrays.sparse import pointers
from labelwood.base.progress import QUIET
from labelwood.base.run import Keeping, Run
from labelwood.data import from_lists
from labelwood.evaluation.network_analysis import analyse
from labelwood.neural.attention_level import AttentionLevel
from labelwood.neural.encoders import bilstm, pretrained, word_vectors
from labelwood.neural.encoders.bert import Packed
from labelwood.neural.encoders.label_attention import LabelAttention
from labelwood.neural.encoders.tokens import Tokeniser
from labelwood.neural.training.candidates import Candidates
from labelwood.parts.tree import level_sizes
from labelwood.pipeline.train import train, train_into
from labelwood.recipes.encoder_settings import EncoderConfig
from labelwood.recipes.methods import METHODS
from labelwood.recipes.resolve import resolve
from small import LISTS, TEXTS, Stop
from toy import noisy_set

SMALL: dict[str, object] = {"encoder.hidden": 16, "finetune.epochs": 2, "finetune.checks": 2}
DEEP: dict[str, object] = {"coarse.levels": (4,), "finetune.parents": 2}
# What lets a network of random weights learn the toy set by heart.
LEARN: dict[str, object] = {
    "finetune.epochs": 40, "optimiser.lr": 1e-2, "optimiser.head_lr": 2e-2, "finetune.dropout": 0.0,
    "finetune.head_dropout": 0.0, "finetune.valid": 0, "optimiser.average_from": None, "ranker": "none",
}  # fmt: skip


def fit(settings=None, data=None, keeping=Keeping(), **run) -> lw.Predictor:
    recipe = resolve("attentionxml", settings=acting(SMALL, "attentionxml", settings))
    return train(from_lists(TEXTS, LISTS) if data is None else data, recipe, Run(1, **run), keeping=keeping)


def batch(lengths: list[int], vocab: int = 9, seed: int = 0) -> Packed:
    ids = torch.from_numpy(np.random.default_rng(seed).integers(vocab, size=sum(lengths)))
    return Packed.of(ids, torch.tensor(lengths))


def twin(mlp: LabelAttention, states: np.ndarray, row: np.ndarray) -> float:
    """One label on one document (T, d), in float64."""
    scores = states @ row[:-1]
    alpha = np.exp(scores - scores.max())
    x = (alpha / alpha.sum()) @ states
    for i, layer in enumerate(mlp.layers):
        x = layer.weight.detach().numpy().astype(float) @ x + layer.bias.detach().numpy()
        x = np.maximum(x, 0) if i + 1 < len(mlp.layers) else x
    return float(x[0]) + row[-1]


# --- label attention -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("grad", [True, False])
def test_label_attention_is_its_slow_twin(seed, grad, monkeypatch):
    """Random candidates, unequal lengths; in pieces where no gradient is wanted."""
    monkeypatch.setattr("labelwood.neural.encoders.label_attention.AT_ONCE", 40)
    rng = np.random.default_rng(seed)
    lengths, d, u = [int(x) for x in rng.integers(1, 9, size=4)], 6, 7
    packed, table = batch(lengths), rng.normal(size=(u, d + 1)).astype(np.float32)
    states = rng.normal(size=(sum(lengths), d)).astype(np.float32)
    mask = rng.random((4, u)) < (1.0 if seed == 0 else 0.5)
    candidates = Candidates(pointers(mask.sum(1)), np.nonzero(mask)[1])
    mlp = LabelAttention(d, torch.Generator().manual_seed(seed))
    with torch.set_grad_enabled(grad):
        rows = torch.from_numpy(table[candidates.union])
        found = mlp(torch.from_numpy(states), packed, rows, candidates).detach().numpy()
    ends = np.cumsum(lengths)
    for i, (end, length) in enumerate(zip(ends, lengths, strict=True)):
        here = states[end - length : end].astype(float)
        for p in range(candidates.ptr[i], candidates.ptr[i + 1]):
            expected = twin(mlp, here, table[candidates.nodes[p]].astype(float))
            assert found[p] == pytest.approx(expected, abs=1e-5)


def test_nobody_has_a_candidate():
    mlp = LabelAttention(4, torch.Generator())
    none = Candidates(np.zeros(3, np.int64), np.zeros(0, np.int64))
    assert mlp(torch.ones(3, 4), batch([1, 2]), torch.ones(0, 5), none).shape == (0,)


@pytest.mark.parametrize(("width", "layers"), [(1024, [512, 256, 1]), (512, [256, 1]), (32, [16, 1]), (1, [1, 1])])
def test_the_mlp_is_the_papers(width, layers):
    """[512, 256] above states of 1024, [256] above 512."""
    assert [layer.out_features for layer in LabelAttention(width, torch.Generator()).layers] == layers


def test_the_lstm_reads_each_document_alone():
    """Unsorted, packed: the states of a document are those that torch gives it by itself."""
    table = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    net, config = bilstm.made(table, 3, seed=1)
    net.layers[0].first.data.normal_(generator=torch.Generator().manual_seed(2))
    lengths = [3, 7, 1, 7]
    whole = batch(lengths)
    found = net(whole, {1})[1]
    assert (found.shape, config["hidden_size"]) == ((18, 6), 6)
    first, cell = net.layers[0].first
    for part, ids in zip(found.split(lengths), whole.ids.split(lengths), strict=True):
        alone, _ = net.layers[0].lstm(net.words(ids)[:, None], (first.contiguous(), cell.contiguous()))
        assert torch.allclose(part, alone[:, 0], atol=1e-6)


# --- training and prediction ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", [{}, DEEP, {"coarse.levels": (2, 6), "finetune.parents": (1, 2, 3)}])
def test_a_network_alone_learns_the_toy_set(shape):
    (member,) = fit({**LEARN, **shape}).members
    assert all(isinstance(level, AttentionLevel) for level in member.levels)
    assert len(member.embedder.networks) == member.tree.depth
    assert member.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(bootstrap=0))["P@1"] > 95


def test_a_labels_score_is_the_product_down_its_path():
    """Against a slow twin: each level's own network, the best clusters opened, sigmoids multiplied."""
    (member,) = fit({"ranker": "none", **DEEP, "optimiser.lr": 1e-2, "optimiser.head_lr": 1e-2}).members
    texts, tree = [*TEXTS[:9], "", "word3"], member.tree
    ids, scores = member.predict_arrays(texts, k=5)
    ptr = tree.child_ptrs[1]
    for i, text in enumerate(texts):
        tokens, p = member.embedder.tokens([text]), []
        for network, level in zip(member.embedder.networks, member.levels, strict=True):
            whole = Packed.of(torch.from_numpy(tokens.ids.astype(np.int64)), torch.from_numpy(tokens.lengths))
            states = network.net(whole, {1})[1].detach().numpy().astype(float)
            table = np.concatenate([level.rows.astype(float), level.bias[:, None]], 1)
            p.append([1 / (1 + np.exp(-twin(network.maps["0"], states, row))) for row in table])
        opened = np.argsort(-np.array(p[0]), kind="stable")[:2]
        expected = {int(tree.leaves[j]): p[0][c] * p[1][j] for c in opened for j in range(ptr[c], ptr[c + 1])}
        best = sorted(expected.values(), reverse=True)[:5]
        assert scores[i] == pytest.approx(best, rel=1e-4)
        assert [expected[int(label)] for label in ids[i]] == pytest.approx(best, rel=1e-4)


CHANGES = [
    {}, DEEP, {"ranker": "none"}, {**DEEP, "ranker": "none"}, {**DEEP, "ranker": "tree"},
    {"coarse.levels": (4,), "finetune.levels": 1, "search.score": "label"}, {"ensemble.runs": 2, **DEEP},
    {"encoder.model": "none"}, {"finetune.frozen_layers": 0}, {**DEEP, "levelwise.source": "teacher"},
    {"encoder.engine": "auto", **DEEP},  # labels attend to the tokens of a BERT
    {"encoder.pooling": "mean", "finetune.order": "joint"},  # a BiLSTM as cascadexml's encoder
]  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_every_way_ends_in_a_sound_model(changes, tmp_path):
    model = fit(changes)
    model.save(tmp_path / "m")
    loaded = lw.load(tmp_path / "m")
    loaded.verify()
    a, b = (m.predict_arrays(TEXTS, k=4) for m in (model, loaded))
    assert all(np.array_equal(one, other) for one, other in zip(a, b, strict=True))
    assert (a[0] >= 0).any(axis=1).all()
    if changes == DEEP:
        assert loaded._common == 1  # network and classifiers go down to the clusters once


def test_network_and_classifiers_share_what_is_above_the_labels():
    network, ranker = fit(DEEP).members
    assert network.levels[0] is ranker.levels[0]
    assert (network.gives_margins, ranker.gives_margins) == (False, True)
    assert (network.levels[0].reads, ranker.levels[1].reads[1:]) == ((0, 0, 0), (0, 32))
    x = network.features(lw.data.Texts.from_strings(TEXTS[:3]), None, 1, QUIET)
    assert x.dense_cols == 32
    assert len(x.tokens) == 3
    assert np.linalg.norm(x.dense, axis=1) == pytest.approx(1)


def test_a_level_starts_from_the_one_above():
    """With no steps at the second level its network is the first one's, but for its rows."""
    (member,) = fit({**DEEP, "ranker": "none", "finetune.steps": (3, 0)}).members
    state = member.embedder.state
    names = [name[2:] for name in state if name.startswith("0.")]
    assert {"words.weight", "layers.0.first", "maps.0.layers.0.weight"} <= set(names)
    assert all(np.array_equal(state[f"0.{name}"], state[f"1.{name}"]) for name in names)
    rows = member.levels[1].rows
    assert np.abs(rows).max() == pytest.approx(np.sqrt(6 / (12 + 32)), rel=0.05)


def test_trees_are_flat_for_few_labels_and_wide_for_many():
    coarse = METHODS["attentionxml"].recipe.coarse
    assert [level_sizes(n, coarse) for n in (12, 8192)] == [(12,), (8192,)]
    assert level_sizes(670_091, coarse) == (2**11, 2**14, 2**17, 670_091)  # the paper's


def test_same_seed_same_bits_and_another_seed_others(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        fit({**DEEP, "seed": seed}).save(tmp_path / name)
    a, b, c = ((tmp_path / name / "labelwood.json").read_bytes() for name in "abc")
    assert a == b != c


def test_a_run_that_is_killed_at_any_step_ends_in_the_same_bytes(tmp_path):
    data = from_lists(*noisy_set(5, docs=64))
    settings = {**SMALL, **DEEP, "finetune.steps": 3, "finetune.batch": 16, "finetune.checks": 3, "finetune.valid": 8}
    recipe = resolve("attentionxml", settings=acting(settings, "attentionxml", {"optimiser.average_from": 0.3}))
    train_into(tmp_path / "whole", data, recipe, Run(2, work=tmp_path / "whole.work"))
    for kill in (1, 3, 5):
        seen = 0

        def tell(event, kill=kill):
            nonlocal seen
            seen += 1
            if seen == kill:
                raise Stop

        work, folder = tmp_path / f"{kill}.work", tmp_path / f"{kill}"
        with pytest.raises(Stop):
            train_into(folder, data, recipe, Run(2, work=work, on_event=tell), keeping=Keeping(every=0.0))
        train_into(folder, data, recipe, Run(2, work=work, resume=True), keeping=Keeping(every=0.0))
        assert (folder / "labelwood.json").read_bytes() == (tmp_path / "whole" / "labelwood.json").read_bytes()


def test_an_ensemble_with_another_recipe(tmp_path):
    both = lw.Ensemble([fit(DEEP), lw.train(TEXTS, LISTS, run=lw.Run(1))])
    both.save(tmp_path / "m")
    found = lw.load(tmp_path / "m")
    assert found.method == "attentionxml + xr-linear"
    assert found.predict(TEXTS, k=2) == both.predict(TEXTS, k=2)
    assert found.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(bootstrap=0))["P@1"] == 100


# --- word vectors --------------------------------------------------------------------------------

GLOVE = "common 1 2 3\nword1 0.5 -0.5 0\n. . . 9 9 9\nword1 7 7 7\nnowhere 4 5 6\n"


def glove(tmp_path, text: str = GLOVE) -> str:
    (tmp_path / "glove.txt").write_text(text, encoding="utf-8")
    return str(tmp_path / "glove.txt")


@pytest.mark.parametrize("header", ["", "5 3\n"])
def test_vectors_of_a_file_and_of_words_that_it_lacks(tmp_path, header):
    config = EncoderConfig(engine="bilstm", vectors=glove(tmp_path, header + GLOVE))
    texts = ["Common word1, word2!", "word2 once", "COMMON"]
    found = word_vectors.find(config, texts, 5)
    tokens = Tokeniser(found.tokeniser(), 8)([*texts, "", "never common?"])
    assert tokens.ids.tolist() == [2, 4, 3, 1, 3, 0, 1, 2, 1, 1, 0, 2, 1]  # [UNK] [SEP] common word2 word1
    assert found.table[[2, 4]].tolist() == [[1, 2, 3], [0.5, -0.5, 0]]
    assert found.table.shape == (5, 3)
    rest = found.table[[0, 1, 3]]
    assert (np.abs(rest) <= 1).all()
    assert np.array_equal(rest, word_vectors.find(config, texts, 5).table[[0, 1, 3]])
    assert not np.array_equal(rest, word_vectors.find(config, texts, 6).table[[0, 1, 3]])


def test_a_model_of_word_vectors_needs_no_file_any_more(tmp_path):
    model = fit({"encoder.vectors": glove(tmp_path), "encoder.model": "none"})
    model.save(tmp_path / "m")
    (tmp_path / "glove.txt").unlink()
    assert lw.load(tmp_path / "m").predict(TEXTS, k=2) == model.predict(TEXTS, k=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("common 1 2\nword1 1 2 3\n", "line 2: 3 numbers follow the word, but 2 should"),
        ("common 1 2\nword1 1\n", "line 2: 1 numbers follow the word"),
        ("common 1 x\n", "line 1: what follows the word must be finite numbers, but is '1 x'"),
        ("common 1 nan\n", "line 1: .*finite"),
        ("common\n", "line 1: 0 numbers"),
        ("", "is empty"),
        ("elsewhere 1 2\n", "knows no word of the training texts"),
        (None, "cannot be read: No such file"),
    ],
)
def test_files_that_hold_no_vectors_are_refused(tmp_path, text, message):
    path = str(tmp_path / "none.txt") if text is None else glove(tmp_path, text)
    with pytest.raises(lw.ConfigError, match=message):
        fit({"encoder.vectors": path})


def test_an_encoders_own_table_is_the_first_one():
    (member,) = fit({"finetune.steps": 0, "ranker": "none"}).members
    source = word_vectors.find(EncoderConfig(model="minilm", engine="bilstm"), [], 0)
    assert np.array_equal(member.embedder.state["0.words.weight"], source.table)
    assert source.table.shape[1] == 32


def test_an_encoders_own_vectors_are_as_long_as_random_ones():
    table = word_vectors.find(EncoderConfig(model="minilm", engine="bilstm"), [], 0).table
    own = AutoModel.from_pretrained(pretrained.find("minilm").folder).get_input_embeddings().weight.detach().numpy()
    assert np.mean(np.square(table, dtype=float)) == pytest.approx(1 / 3, rel=1e-6)
    assert np.allclose(table, own / np.sqrt(3 * np.mean(np.square(own, dtype=float))), rtol=1e-5)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"finetune.on": False, "ranker": "tree"}, "starts from nothing"),
        ({"finetune.order": "joint"}, "needs finetune.order = 'levelwise'"),
        ({"encoder.runtime": "onnx"}, "needs encoder.runtime = 'torch'"),
        ({"encoder.layer": 0}, "only its states are read"),
        ({"ensemble.trees": 2}, "use ensemble.runs"),
        ({"encoder.model": "none", "encoder.engine": "auto"}, r"encoder\.engine = 'auto' cannot act in attentionxml"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises(lw.ConfigError, match=message):
        fit(settings)


def test_there_are_no_attention_maps_to_look_into():
    with pytest.raises(lw.ConfigError, match="no first token"):
        analyse(fit(), from_lists(TEXTS, LISTS))


def test_damaged_models_are_refused(tmp_path):
    (member,) = fit({**DEEP, "ranker": "none"}).members
    level, state = member.levels[1], dict(member.embedder.state)
    bad_rows, bad_words = level.rows.copy(), state["1.words.weight"].copy()
    bad_rows[3, 1], bad_words[0, 0] = np.inf, np.nan
    what = member.embedder.description
    wide = dataclasses.replace(what, architecture={**what.architecture, "hidden_size": 2**40})
    cases = {
        "not finite": {"levels": [member.levels[0], dataclasses.replace(level, rows=bad_rows)]},
        "does not fit its tree": {"levels": [member.levels[0], dataclasses.replace(level, bias=level.bias[1:])]},
        "wrong type": {"levels": [member.levels[0], dataclasses.replace(level, rows=level.rows.astype(np.float32))]},
        "weights of levels that it does not have": {"what": what.reading(what.readings[:1], raw=True)},
        "rows of 5 for states of 32": {
            "levels": [member.levels[0], dataclasses.replace(level, rows=level.rows[:, :5])]
        },
        "weight 'layers.0.first' must be": {"embedder": {**state, "1.layers.0.first": np.zeros((1, 2), np.float32)}},
        "weight 'words.weight' must be": {"embedder": {**state, "1.words.weight": state["1.words.weight"][:3]}},
        "finite": {"embedder": {**state, "1.words.weight": bad_words}},
        "hidden_size must be 1 to 65535": {"what": wide},
        "the encoder knows 0 to": {
            "spec": word_vectors._tokeniser(["[UNK]", "[SEP]", *(f"x{i}" for i in range(999)), "word1"])
        },
    }
    for number, (message, change) in enumerate(cases.items()):
        embedder = dataclasses.replace(
            member.embedder, state=change.get("embedder", state), description=change.get("what", what),
            tokeniser=Tokeniser(change.get("spec", member.embedder.tokeniser.spec), 128),
        )  # fmt: skip
        broken = dataclasses.replace(member, levels=change.get("levels", member.levels), embedder=embedder)
        broken.save(tmp_path / f"{number}")
        with pytest.raises(lw.ModelFileError, match=message):
            lw.load(tmp_path / f"{number}").predict(["word1"])
