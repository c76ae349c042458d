"""Encoders: the lean BERT beside transformers, folders that are broken, what is imported."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import labelwood as lw
import tiny
from labelwood.arrays.texts import Texts
from labelwood.base.progress import QUIET
from labelwood.data import from_records
from labelwood.neural.encoders import bert, pretrained
from labelwood.neural.encoders import encoder as encoders
from labelwood.neural.encoders.encoder import Reading, packed
from small import LISTS, READ, TEXTS, fit, source, tokeniser


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_the_lean_bert_gives_the_numbers_of_transformers(pooling):
    tokens = tokeniser()(["word1 word2", "common", "a b c d e f g h", "", "word3 " * 30])
    ours, theirs = (encoders.load(source(), dataclasses.replace(READ, engine=e)) for e in ("lean", "transformers"))
    for layer in range(3):
        a, b = (net.read([Reading((layer,), pooling)]).embed(tokens) for net in (ours, theirs))
        assert np.abs(a - b).max() < 2e-6
        assert np.abs(a).max() > 0.1


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "camembert", "distilbert"])
@pytest.mark.parametrize("pooling", ["mean", "pooler"])
def test_relatives_of_bert_are_lean_too(kind, pooling, tmp_path):
    """And their graphs run in ONNX Runtime."""
    sizes = {"dim": 16, "hidden_dim": 32, "n_heads": 2, "n_layers": 2} if kind == "distilbert" else BERT_LIKE
    found = pretrained.read(written(tmp_path / "e", kind, pad_token_id=1, **sizes))
    tokens = tokeniser()(["word1 word2", "common", "a b c d e f g h", "", "word3 " * 30])
    ours, theirs = (encoders.load(found, dataclasses.replace(READ, engine=e)) for e in ("auto", "transformers"))
    assert (ours.engine, theirs.engine) == ("lean", "transformers")
    for layer in range(3):
        a, b = (net.read([Reading((layer,), pooling)]).embed(tokens) for net in (ours, theirs))
        assert np.abs(a - b).max() < 2e-6
        assert np.abs(a).max() > 0.01
    settings = {"encoder.model": str(tmp_path / "e"), "finetune.steps": 1, "encoder.pooling": pooling}
    torch_, onnx = (
        lw.train(TEXTS, LISTS, method="xr-transformer", settings={**settings, "encoder.runtime": runtime})
        for runtime in ("torch", "onnx")
    )
    assert np.abs(torch_.predict_arrays(TEXTS)[1] - onnx.predict_arrays(TEXTS)[1]).max() < 0.02


def test_packing_documents_changes_nothing():
    """A document's vector does not depend on its neighbours."""
    net = encoders.load(source(), READ)
    tokens = tokeniser()(["word1 word2", "a b c d e f g h", "common", "word5 word5"])
    together = net.embed(tokens)
    alone = np.concatenate([net.embed(tokens.take(np.array([i]))) for i in range(4)])
    assert np.abs(together - alone).max() < 1e-6


def test_gradients_of_the_lean_bert_are_those_of_transformers():
    tokens = tokeniser()(["word1 word2", "a b c d e f g h", "common"])
    grads = []
    for engine in ("lean", "transformers"):
        net = encoders.load(source(), dataclasses.replace(READ, engine=engine)).eval()
        vector = net.read([Reading((1, 2), "mean")])(packed(tokens, np.arange(3)))[0]
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


def written(folder: Path, kind: str, **sizes) -> Path:
    """Another encoder with random weights."""
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=200, **sizes)).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(tiny.tokenizer(), encoding="utf-8")
    return folder


BERT_LIKE = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2}


def test_a_pooler_that_a_checkpoint_lacks_is_not_made_up(tmp_path):
    """Transformers would fill it with random numbers. Any other weight that is missing is told."""
    from safetensors.numpy import load_file, save_file

    file = written(tmp_path / "e", "mpnet", **BERT_LIKE) / "model.safetensors"
    weights = load_file(file)
    save_file({name: w for name, w in weights.items() if "pooler" not in name}, file, {"format": "pt"})
    net = encoders.load(pretrained.read(tmp_path / "e"), READ)
    assert not net.has_pooler
    tokens = tokeniser()(["word1", "word2 word3"])
    a, b = (net.read([Reading((2,), pooling)]).embed(tokens) for pooling in ("pooler", "cls"))
    assert np.array_equal(a, b)
    save_file({name: w for name, w in weights.items() if "layer.1" not in name}, file, {"format": "pt"})
    with pytest.raises(lw.ConfigError, match=r"is not the mpnet its config says: it lacks 'encoder\.layer\.1"):
        encoders.load(pretrained.read(tmp_path / "e"), READ)


def test_a_pooler_of_another_make_is_left_out(tmp_path):
    net = encoders.load(pretrained.read(written(tmp_path / "e", "albert", **BERT_LIKE, embedding_size=8)), READ)
    assert not net.has_pooler
    assert net.read([Reading((2,), "pooler")]).embed(tokeniser()(["word1"])).shape == (1, 16)


@pytest.mark.parametrize(
    ("kind", "sizes", "message"),
    [
        ("gemma2", {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2,
                    "num_hidden_layers": 1, "head_dim": 8}, "writes text"),
        ("vit", {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1},
         "does not read text"),
    ],
)  # fmt: skip
def test_what_is_no_encoder_of_text_is_refused(kind, sizes, message, tmp_path):
    with pytest.raises(lw.ConfigError, match=message):
        encoders.load(pretrained.read(written(tmp_path / "e", kind, **sizes)), READ)


@pytest.mark.parametrize(
    ("kind", "attention", "hidden"),
    [
        ("mpnet", "encoder.layer.0.attention.attn.dropout", "encoder.layer.0.attention.dropout"),
        ("electra", "encoder.layer.0.attention.self.dropout", "encoder.layer.0.attention.output.dropout"),
    ],
)
def test_dropouts_of_transformers_are_told_apart(kind, attention, hidden, tmp_path):
    net = encoders.load(pretrained.read(written(tmp_path / "e", kind, **BERT_LIKE)), READ)
    net.drop(0.3, 0.05)
    named = dict(net.net.named_modules())
    assert (named[attention].p, named[hidden].p) == (0.05, 0.3)


def test_a_graph_that_cannot_be_made_is_told_before_training(tmp_path):
    told = []
    settings = {"encoder.model": str(written(tmp_path / "e", "mpnet", **BERT_LIKE)), "encoder.runtime": "onnx"}
    with pytest.raises(lw.ConfigError, match="onnx' is for BERT and its like"):
        lw.train(TEXTS, LISTS, method="xr-transformer", settings=settings, run=lw.Run(on_event=told.append))
    assert not told


def test_an_empty_text_without_special_tokens_is_read(tmp_path):
    folder = tiny.write(tmp_path / "e")
    spec = json.loads((folder / "tokenizer.json").read_text())
    spec["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    settings = {"encoder.model": str(folder), "finetune.steps": 1}
    model = lw.train([*TEXTS, ""], [*LISTS, LISTS[0]], method="xr-transformer", settings=settings)
    assert np.isfinite(model.predict_arrays(["", "word1"])[1]).all()


def foreign_tokeniser(folder):
    """One that knows more words than the network."""
    spec = json.loads((folder / "tokenizer.json").read_text())
    spec["model"]["vocab"]["common"] = 5000
    (folder / "tokenizer.json").write_text(json.dumps(spec))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda f: f.joinpath("config.json").unlink(), "no config.json"),
        (lambda f: f.joinpath("config.json").write_text("{"), "cannot be read"),
        (lambda f: f.joinpath("config.json").write_text("{}"), "names no model_type"),
        (lambda f: f.joinpath("config.json").write_text('{"model_type": "gpt2"}'), "not an encoder"),
        (lambda f: f.joinpath("model.safetensors").rename(f / "pytorch_model.bin"), "could run code"),
        (lambda f: f.joinpath("tokenizer.json").write_text("{}"), "tokenizer.json, the file: it must have"),
        (lambda f: f.joinpath("model.safetensors").write_bytes(b"junk"), "is not the BERT"),
        (foreign_tokeniser, "cannot be used: .* the id of 'common' is 5000, but the encoder knows 0 to 125"),
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
    a, b = (net.read([Reading((2,), pooling)]).embed(tokens) for pooling in ("pooler", "cls"))
    assert np.array_equal(a, b)


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
    assert "auto_map" not in manifest["meta"]["encoder"]["architecture"]
    assert bert.supports(manifest["meta"]["encoder"]["architecture"])


def test_dropout_keeps_the_mean_and_drops_whole_256ths():
    torch.manual_seed(0)
    x = torch.ones(1000, 1000, requires_grad=True)
    y = bert.drop(x, 0.1, True)
    assert (y == 0).float().mean().item() == pytest.approx(26 / 256, abs=2e-3)
    assert y.max().item() == pytest.approx(256 / 230)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert bert.drop(x, 0.1, False) is x
    assert bert.drop(x, 0.0, True) is x


def test_rectangles_hold_neighbours_of_like_length():
    lengths = torch.tensor([10, 10, 10, 8, 7, 5, 5])
    batch = bert.Packed.of(torch.arange(55), lengths)
    assert [(g.count, g.longest, g.mask is None) for g in batch.groups] == [(4, 10, False), (1, 7, True), (2, 5, True)]
    assert batch.places.tolist() == [i for n in lengths.tolist() for i in range(n)]
    first = batch.groups[0]
    assert first.tokens == slice(0, 38)
    assert first.cells.tolist() == [*range(38)]  # full rows, then 8 of the last
    assert batch.mean(torch.arange(55.0)[:, None])[1].item() == 14.5


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
    a, b = (encoders.load(s, READ).embed(tokens) for s in (pretrained.read(folder), source()))
    assert np.array_equal(a, b)


def test_an_encoder_reads_the_fields_of_a_record_in_their_order():
    rows = [{"title": f"word{i % 5}", "text": "common", "labels": [f"l{i % 5}"]} for i in range(20)]
    options = lw.ReadOptions(text=("text", "title:2"))
    model = lw.train(rows, method="xr-transformer", settings={"finetune.steps": 1}, options=options)
    member = model.members[-1]
    texts = member.texts_read(from_records(rows, options=options).texts)
    assert list(texts)[:2] == ["common\nword0", "common\nword1"]
    embedded = member.features(texts, None, 1, QUIET).dense
    joined = [f"{row['text']}\n{row['title']}" for row in rows]
    plain = member.features(Texts.from_strings(joined), None, 1, QUIET).dense
    assert np.abs(embedded).max() > 0.01
    assert (embedded == plain).all()


GERMAN = "Das ist ein kurzer Text, und er ist nicht auf Englisch geschrieben, sondern in der Sprache der Nachbarn."
ENGLISH = "This is a short text, and it is written in the language that the encoder of the tests is said to read."


@pytest.mark.parametrize(("german", "warned"), [(20, True), (11, True), (9, False), (0, False)])
def test_an_english_encoder_on_other_languages_is_warned_about(german, warned):
    texts = [GERMAN] * german + [ENGLISH] * (20 - german)
    labels = [[f"l{i % 3}"] for i in range(20)]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lw.train(texts, labels, method="xr-transformer", settings={"finetune.steps": 1})
        lw.train(texts, labels)
    said = [str(warning.message) for warning in found if "reads English" in str(warning.message)]
    expected = (
        f"the encoder minilm reads English, but {5 * german} % of the texts are in other languages, most of them "
    )
    assert [line.startswith(expected + "in German;") for line in said] == [True] * warned
