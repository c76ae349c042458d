"""From texts to [words ; embedding], stage by stage: tokens, the coarse tree, fine-tuning, embeddings."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features, stacked
from ..base.config import to_dict
from ..base.digests import digest_plain
from ..data.dataset import align_labels
from ..errors import ConfigError, DataError, needs
from ..neural.embedder import Embedder, unit
from ..neural.encoders import pretrained
from ..neural.encoders import word_vectors as sources
from ..neural.encoders.onnx import check_exportable
from ..neural.encoders.tokens import Tokeniser, Tokens
from ..neural.finetune.base import Tuned, Tuning
from ..neural.finetune.joint import Cascade, Network
from ..neural.finetune.label_attention import Stepwise
from ..neural.finetune.levelwise import Recursion
from ..parts.tree import Tree

if TYPE_CHECKING:
    from ..data import Dataset, Texts
    from ..parts.tfidf import Tfidf
    from ..recipes.recipe import Recipe
    from ..storage.stage_cache import Workspace
    from .run_options import Run
    from .training_set import Problem


Some = TypeVar("Some", bound=Tuning)


@dataclasses.dataclass(frozen=True, eq=False)
class Encoded:
    """What the classifiers read, and what makes it from a text."""

    x: Features  # [words ; the last reading]
    key: str
    embedder: Embedder
    network: Network | None = None  # levels of the encoder's own, where it was trained with all of them at once
    raw: NDArray[Any] | None = None  # what those levels read
    held: tuple[Features, Csr] | None = None  # the user's own held-out documents as members read them, and their labels


@dataclasses.dataclass(frozen=True, eq=False)
class Held:
    """Held-out documents as the network meets them: it never learns from them, it is measured by them."""

    texts: Texts
    y: Csr  # (m, L); labels that training has not seen are left out
    words: Csr | None

    @staticmethod
    def of(valid: Dataset, problem: Problem, tfidf: Tfidf | None, threads: int) -> Held:
        assert valid.texts is not None
        labels = len(problem.names)
        y = align_labels(valid, {name: i for i, name in enumerate(problem.names)})
        known = y.keep(y.indices < labels)
        if not known.nnz:
            raise DataError(
                f"no label of the {len(valid)} held-out documents was seen in training, so nothing can be chosen by "
                "them; are they of the same data?"
            )
        words = None if tfidf is None else tfidf.transform(valid.texts, threads=threads)
        return Held(valid.texts, Csr(known.indptr, known.indices, known.data, labels), words)


@dataclasses.dataclass(frozen=True, eq=False)
class Encoding:
    """The neural stages of one run."""

    recipe: Recipe
    run: Run
    space: Workspace
    texts: Texts
    y: Csr
    data_key: str
    words: Features | None
    coarse: Callable[[], tuple[Tree, str]]  # the tree for fine-tuning with its key, made when it is needed
    held: Held | None = None

    def run_stages(self) -> Encoded:
        embedder, tokens, key = self.start()
        config, network, tuned = self.recipe.finetune, None, None
        if self.recipe.has_network:
            kind: type[Stepwise | Cascade] = Stepwise if self.recipe.encoder.attends else Cascade
            network = self.tuning(kind, embedder, tokens, key).train()
            tuned, embedder = network.tuned, embedder.of_levels(network.readings, network.tuned.weights)
        elif config.on:
            tuned = self.recursive(embedder, tokens, key)
            embedder = embedder if tuned is None else dataclasses.replace(embedder, state=tuned.weights)
        key = key if tuned is None else tuned.key
        if tuned is not None and self.recipe.encoder.runtime == "torch" and not embedder.attends:
            embedding = tuned.embedding
        elif embedder.attends and self.recipe.ranker == "none":  # nobody learns from it, one row tells its columns
            embedding = embedder.embed(tokens.first(1), self.run.workers)
            return Encoded(Features(None, embedder.last(embedding)), key, embedder, network, embedding)
        else:
            embedding, embedder, key = self.embedding(embedder, tokens, key)
        reads, rows = self.recipe.encoder.features, len(self.texts)
        words = self.words.sparse if self.words is not None and reads != "embedding" else None
        held = None
        if self.held is not None and network is not None:
            held = Features(None if words is None else self.held.words, embedder.dense(embedding[rows:])), self.held.y
        embedding = embedding[:rows]
        last = None if reads == "words" else embedder.last(embedding)
        key = digest_plain(["encoded", key, to_dict(self.recipe.encoder)])
        return Encoded(Features(words, last), key, embedder, network, embedding, held)

    def start(self) -> tuple[Embedder, Tokens, str]:
        """The pretrained encoder, and the tokens of all texts."""
        with needs(self.recipe.method, "neural"):
            from ..neural.encoders import encoder as encoders
        encoders.check_device(self.run.device)
        config, progress = self.recipe.encoder, self.run.progress
        with progress.stage("loading the encoder"):
            source = sources.find(config, self.texts, self.recipe.seed)
            tokeniser = Tokeniser(source.tokeniser(), config.max_tokens)
            network = encoders.load(source, config, self.recipe.seed)
            embedder = Embedder(config, encoders.describe(network), network.state(), tokeniser)
        if config.runtime != "torch":
            check_exportable(embedder.about)

        def make() -> dict[str, NDArray[Any]]:
            with progress.stage("reading tokens", len(self.texts), "docs") as tick:
                tokens = tokeniser(self.texts, tick)
            if self.held is not None:
                tokens = tokens.followed_by(tokeniser(self.held.texts))
            return {"ids": tokens.ids, "offsets": tokens.offsets}

        inputs = {"data": self.data_key, "encoder": source.digest, "max_tokens": config.max_tokens}
        stage = self.space.stage("tokens", inputs, make)
        tokens = Tokens(stage.tensors["ids"], stage.tensors["offsets"], sum(map(len, tokeniser.frame)))
        words = embedder.about["config"].get("vocab_size")
        if isinstance(words, int) and int(tokens.ids.max(initial=0)) >= words:
            raise ConfigError(
                f"the tokenizer of {config.model} gives the token {int(tokens.ids.max())}, but its network knows only "
                f"{words}; the two do not belong together."
            )
        if int(tokens.lengths.max(initial=0)) <= tokens.frame:
            raise ConfigError(f"none of the {len(tokens)} texts holds anything that the encoder reads; are they empty?")
        return embedder, tokens, stage.key

    def recursive(self, embedder: Embedder, tokens: Tokens, key: str) -> Tuned | None:
        """The encoder after its fine-tuning, with the embeddings of all documents; None if no level can be tuned."""
        tuning = self.tuning(Recursion, embedder, tokens, key)
        found = tuning.train()
        if found is None:
            sizes = "-".join(map(str, tuning.tree.sizes))
            warnings.warn(f"no level of the tree {sizes} can be fine-tuned; the encoder stays as it was.", stacklevel=2)
        return found

    def tuning(self, kind: type[Some], embedder: Embedder, tokens: Tokens, key: str) -> Some:
        """A fine-tuning on all documents; the user's own held-out ones come last."""
        tree, tree_key = self.coarse()
        keys = {"data": self.data_key, "tokens": key, "tree": tree_key}
        words, y, held = self.words, self.y, self.held
        if held is not None:
            y = stacked([y, held.y], y.cols)
            if words is not None and words.sparse is not None and held.words is not None:
                words = Features(stacked([words.sparse, held.words], words.sparse.cols))
        given = 0 if held is None else len(held.texts)
        return kind(self.recipe, self.run, self.space, embedder, tokens, words, y, tree, keys, given)

    def embedding(self, embedder: Embedder, tokens: Tokens, key: str) -> tuple[NDArray[Any], Embedder, str]:
        """(n, d) of all documents by what will read them at prediction; classifiers learn from what they will meet."""
        graph = self.recipe.encoder.runtime != "torch"

        def make() -> dict[str, NDArray[Any]]:
            made = embedder.exported() if graph else embedder
            with self.run.progress.stage("embedding", len(tokens), "docs") as tick:
                found = {"embedding": made.embed(tokens, self.run.workers, tick)}
            return found | ({"graph": made.state["graph"]} if graph else {})

        stage = self.space.stage("embedding", {"encoder": key, "config": to_dict(self.recipe.encoder)}, make)
        if graph:
            embedder = dataclasses.replace(embedder, state={"graph": stage.tensors["graph"]})
        return stage.tensors["embedding"], embedder, stage.key


def embed_texts(
    recipe: Recipe, run: Run, space: Workspace, texts: list[str]
) -> tuple[NDArray[np.float32], str]:  # fmt: skip
    """(n, d) of length 1: the mean of the pretrained encoder's last states over each text, and the key of the stage."""
    with needs(recipe.method, "neural"):
        from ..neural.encoders import encoder as encoders
    config = dataclasses.replace(recipe.encoder, pooling="mean", layer=-1)
    source = pretrained.find(config.model)

    def make() -> dict[str, NDArray[Any]]:
        network = encoders.load(source, config)
        embedder = Embedder(
            dataclasses.replace(config, runtime="torch"), encoders.describe(network), network.state(),
            Tokeniser(source.tokeniser(), config.max_tokens),
        )  # fmt: skip
        with run.progress.stage("embedding label texts", len(texts), "labels") as tick:
            return {"embedding": embedder.embed(embedder.tokens(texts), run.workers, tick)}

    inputs = {"texts": digest_plain(texts), "encoder": source.digest, "config": to_dict(config)}
    stage = space.stage("label-texts", inputs, make)
    return unit(stage.tensors["embedding"]), stage.key
