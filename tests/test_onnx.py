"""The encoder as an ONNX graph: the same numbers, no torch."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

import labelwood as lw
from labelwood.neural.encoders import encoder as encoders
from labelwood.neural.encoders import onnx, pretrained
from labelwood.neural.encoders.description import Description
from labelwood.neural.encoders.graph import Graph, Shape
from labelwood.neural.encoders.tokens import Tokeniser
from labelwood.recipes.encoder_settings import EncoderConfig, Reading
from toy import contract_set

TEXTS, LISTS = contract_set()
READ = EncoderConfig(model="minilm")


def session(what: Description, weights, runtime: str) -> onnx.Session:
    """The graph of an encoder at work."""
    made = Graph.of(what, runtime)
    return onnx.Session(lambda: made.spell(made.fill(weights)), what.columns)


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
@pytest.mark.parametrize("layer", [1, 2])
def test_the_graph_gives_the_numbers_of_torch(pooling, layer):
    source = pretrained.find("minilm")
    tokens = Tokeniser(source.tokeniser(), 128)(["word1 word2", "", "a b c d e f g h", "word3 " * 30])
    net = encoders.load(source, READ)
    expected = net.read([Reading((layer,), pooling)]).embed(tokens)
    what = encoders.describe(net)
    found = session(what, net.state(), "onnx").embed(tokens, 2)
    assert np.abs(found - expected).max() < 5e-6
    small = session(what, net.state(), "onnx-int8").embed(tokens, 2)
    cosine = (small * expected).sum(1) / np.linalg.norm(small, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosine.min() > 0.9  # random weights; a real encoder stays above 0.99
    assert np.abs(small - expected).max() > 1e-4  # or nothing was quantised


@pytest.mark.parametrize("runtime", ["onnx", "onnx-int8"])
@pytest.mark.parametrize("tuned", [True, False])
def test_a_model_with_a_graph_predicts_without_torch(runtime, tuned, tmp_path):
    settings = {"encoder.runtime": runtime, "finetune.on": tuned}
    model = lw.train(TEXTS, LISTS, method="xr-transformer", settings=settings)
    model.save(tmp_path / "m")
    code = (
        "import sys, labelwood as lw\n"
        f"model = lw.load({str(tmp_path / 'm')!r})\n"
        "print(model.predict(['word7 common'], k=1)[0][0][0])\n"
        "assert not {'torch', 'transformers', 'onnx'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env={**os.environ})
    assert done.stdout.strip() == "label7"
    again = lw.load(tmp_path / "m")
    assert np.array_equal(again.predict_arrays(TEXTS)[0], model.predict_arrays(TEXTS)[0])


def test_only_a_bert_has_a_graph():
    what = Description({"model_type": "xlnet"}, "transformers", pooler=False, readings=(Reading((2,), "mean"),))
    with pytest.raises(lw.ConfigError, match="is for BERT"):
        Shape.of(what)


def test_the_exact_and_the_tanh_form_of_gelu():
    source = pretrained.find("minilm")
    tokens = Tokeniser(source.tokeniser(), 128)(["word1 word2", "a b c"])
    config = {**source.config, "hidden_act": "gelu_new"}
    net = encoders.load(dataclasses.replace(source, config=config), READ)
    what = encoders.describe(net)
    found = session(what, net.state(), "onnx").embed(tokens, 1)
    assert np.abs(found - net.embed(tokens)).max() < 5e-6
