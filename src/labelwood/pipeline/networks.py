"""Stages from texts to [words ; embedding]: tokens, fine-tuning on the coarse tree, embeddings of all documents."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features, stacked
from ..arrays.tokens import Tokens
from ..base.config import at, to_dict
from ..data.dataset import align_labels
from ..errors import ConfigError, DataError, ModelFileError, needs
from ..neural.embedder import Embedder, unit
from ..neural.encoders import pretrained
from ..neural.encoders import word_vectors as sources
from ..neural.encoders.graph import VERSION
from ..neural.encoders.onnx import check_exportable
from ..neural.encoders.tokens import Tokeniser
from ..neural.finetune.base import Tuned, TuningData
from ..neural.finetune.joint import Cascade, Network
from ..neural.finetune.label_attention import Stepwise
from ..neural.finetune.levelwise import Recursion
from ..recipes.encoder_settings import EncoderConfig
from ..storage.keyed import Keyed
from .costs import Cost, Sizes
from .job import Documents, Job, Reader

if TYPE_CHECKING:
    from ..arrays.texts import Texts
    from ..neural.training.pace import Pace
    from ..parts.tree import Tree
    from ..recipes.recipe import Recipe


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOut:
    """The user's own held-out documents: a network never learns from them, it is measured by them."""

    texts: Texts
    y: Csr  # (m, L); labels that training has not seen are left out
    words: Csr | None


@dataclasses.dataclass(frozen=True, eq=False)
class FineTuned:
    """An encoder as it came out of its training, or as it was given; and the tokens that it reads."""

    embedder: Embedder
    tokens: Keyed[Tokens]
    tuned: Tuned | None = None
    network: Network | None = None  # the encoder's own levels, where it was trained with all of them


@dataclasses.dataclass(frozen=True, eq=False)
class Encoded:
    """Documents as an encoder reads them, for the classifiers and for the network's own levels."""

    documents: Documents  # X = [words ; the last reading]
    network: Network | None
    raw: NDArray[Any]  # all readings, which those levels read
    tokens: Tokens  # or these
    held_out: tuple[Features, Csr] | None = None  # the user's held-out documents as models read them, and their labels

    def features(self, rows: NDArray[np.int64]) -> Features:
        """X of some documents as the models of this run read it."""
        words, embedder = self.documents.x.sparse, self.documents.reader.embedder
        assert embedder is not None
        return embedder.features(None if words is None else words.take(rows), self.tokens.take(rows), self.raw[rows])

    def network_features(self, rows: NDArray[np.int64] | None) -> Features:
        """X of some documents (None: all) as the network's own levels read it."""
        embedder = self.documents.reader.embedder
        assert embedder is not None
        if embedder.attends:
            return Features(tokens=self.tokens if rows is None else self.tokens.take(rows))
        return Features(dense=(self.raw if rows is None else self.raw[rows]).astype(np.float32))

    @property
    def classifiers_begin(self) -> int:
        """The first dense column that classifiers read, where the network's own levels read others before it."""
        embedder = self.documents.reader.embedder
        assert embedder is not None
        return 0 if embedder.attends else self.raw.shape[1]


def held_out(job: Job, words: Keyed[Documents]) -> HeldOut | None:
    """The held-out documents, where the user gave some."""
    problem, tfidf = job.problem, words.value.reader.tfidf
    valid = problem.valid
    if valid is None:
        return None
    assert valid.texts is not None
    labels = len(problem.names)
    y = align_labels(valid, {name: i for i, name in enumerate(problem.names)})
    known = y.keep(y.indices < labels)
    if not known.nnz:
        raise DataError(
            f"no label of the {len(valid)} held-out documents was seen in training, so nothing can be chosen by "
            "them; are they of the same data?"
        )
    there = None if tfidf is None else tfidf.transform(valid.texts, threads=job.run.workers)
    return HeldOut(valid.texts, Csr(known.indptr, known.indices, known.data, labels), there)


def fine_tune(
    job: Job, words: Keyed[Documents], coarse: Keyed[Tree] | None, held: HeldOut | None = None
) -> Keyed[FineTuned]:
    """The encoder, fine-tuned on the coarse tree where there is one."""
    recipe = job.recipe
    embedder, tokens = _start(job, held)
    if coarse is None:
        return Keyed(FineTuned(embedder, tokens), tokens.key)
    data = _tuning_data(job, words, tokens, coarse, held)
    if recipe.has_network:
        kind: type[Stepwise | Cascade] = Stepwise if recipe.encoder.attends else Cascade
        network = kind(recipe, job.run, job.space, embedder, data).train()
        embedder = embedder.of_levels(network.readings, network.tuned.weights)
        return Keyed(FineTuned(embedder, tokens, network.tuned, network), network.tuned.key)
    tuned = Recursion(recipe, job.run, job.space, embedder, data).train()
    if tuned is None:
        sizes = "-".join(map(str, coarse.value.sizes))
        warnings.warn(f"no level of the tree {sizes} can be fine-tuned; the encoder stays as it was.", stacklevel=2)
        return Keyed(FineTuned(embedder, tokens), tokens.key)
    return Keyed(FineTuned(embedder.with_weights(tuned.weights), tokens, tuned), tuned.key)


def encode(
    job: Job, words: Keyed[Documents], tuned: Keyed[FineTuned], held: HeldOut | None = None
) -> Keyed[Encoded]:  # fmt: skip
    """Words and embedding of all documents side by side, as far as the recipe reads them."""
    recipe, rows = job.recipe, job.problem.y.rows
    embedding, embedder = embeddings(job, tuned)
    read = words if recipe.encoder.features != "embedding" and recipe.ranker != "none" else None
    sparse = None if read is None else read.value.x.sparse
    network, given = tuned.value.network, None
    if held is not None and network is not None:
        there = None if sparse is None else held.words
        last_rows = np.arange(rows, len(tuned.value.tokens.value))
        given = embedder.features(there, tuned.value.tokens.value.take(last_rows), embedding.value[rows:]), held.y
    raw, tokens = embedding.value[:rows], tuned.value.tokens.value.first(rows)
    last = None if recipe.encoder.features == "words" or not embedder.embeds else embedder.last(raw)
    reader = Reader(None if sparse is None else words.value.reader.tfidf, embedder)
    x = Features(sparse, last, tokens if embedder.attends else None)
    found = Encoded(Documents(x, job.problem.y, reader), network, raw, tokens, given)
    return Keyed.made_of(found, what="encoded", embedding=embedding, encoder=to_dict(recipe.encoder), words=read)


def embeddings(job: Job, tuned: Keyed[FineTuned]) -> tuple[Keyed[NDArray[Any]], Embedder]:
    """(n, d) of all documents by what will read them at prediction; classifiers learn from what they will meet."""
    embedder, tokens, config = tuned.value.embedder.as_stored(), tuned.value.tokens, job.recipe.encoder
    graph = config.runtime != "torch"
    if tuned.value.tuned is not None and not graph and not embedder.attends:
        return Keyed(tuned.value.tuned.embedding, tuned.key), embedder
    if not embedder.embeds:
        return Keyed(embedder.embed(tokens.value, job.run.workers), tuned.key), embedder

    def make() -> dict[str, NDArray[Any]]:
        with job.run.progress.stage("embedding", len(tokens.value), "docs") as tick:
            return {"embedding": embedder.embed(tokens.value, job.run.workers, tick)}

    inputs: dict[str, Any] = {"tuned": tuned, "tokens": tokens, "config": to_dict(config)}
    if graph:
        inputs["graph"] = VERSION
    stage = job.space.stage("embedding", inputs, make)
    return Keyed(stage.tensors["embedding"], stage.key), embedder


def by_embedding(job: Job, tuned: Keyed[FineTuned]) -> Keyed[Documents]:
    """The documents by their embeddings alone, for clustering labels by what a first network made of them."""
    embedding, embedder = embeddings(job, tuned)
    x = Features(None, embedder.last(embedding.value[: job.problem.y.rows]))
    return Keyed.made_of(Documents(x, job.problem.y, Reader()), what="embedding", embedding=embedding)


def _start(job: Job, held: HeldOut | None) -> tuple[Embedder, Keyed[Tokens]]:
    """The pretrained encoder, and the tokens of all texts; the user's own held-out ones come last."""
    recipe, progress, texts = job.recipe, job.run.progress, job.data.texts
    if texts is None or job.data.features is not None:
        raise ConfigError(
            f"{recipe.method} reads text (encoder.model is {recipe.encoder.model!r}), but the data holds "
            "features; give texts, or set encoder.model = none."
        )
    with needs(recipe.method, "neural"):
        from ..neural.encoders import encoder as encoders
    encoders.check_device(job.run.device)
    config = recipe.encoder
    with progress.stage("loading the encoder"):
        source = sources.find(config, texts, recipe.seed)
        network = encoders.load(source, config, recipe.seed)
        description = encoders.describe(network)
        tokeniser = _sound_tokeniser(config, source.tokeniser(), description.vocabulary)
        embedder = Embedder(config, description, network.state(), tokeniser)
    if config.runtime != "torch":
        check_exportable(embedder.description)

    def make() -> dict[str, NDArray[Any]]:
        with progress.stage("reading tokens", len(texts), "docs") as tick:
            tokens = tokeniser(texts, tick)
        if held is not None:
            tokens = tokens.followed_by(tokeniser(held.texts))
        return {"ids": tokens.ids, "offsets": tokens.offsets}

    inputs = {"data": job.problem.data_key, "encoder": source.digest, "max_tokens": config.max_tokens}
    stage = job.space.stage("tokens", inputs, make)
    tokens = Tokens(stage.tensors["ids"], stage.tensors["offsets"], sum(map(len, tokeniser.frame)))
    _check_tokens(tokens, embedder)
    return embedder, Keyed(tokens, stage.key)


def _sound_tokeniser(config: EncoderConfig, spec: bytes, vocabulary: int | None) -> Tokeniser:
    """The tokeniser of a pretrained encoder; ConfigError where a model that holds it could not be opened again."""
    tokeniser = Tokeniser(spec, config.max_tokens, vocabulary)
    try:
        _ = tokeniser.frame
    except ModelFileError as error:
        raise ConfigError(f"the tokenizer of {config.model} cannot be used: {error} Take another encoder.") from error
    return tokeniser


def _check_tokens(tokens: Tokens, embedder: Embedder) -> None:
    """ConfigError where the texts hold nothing that the encoder reads, or its tokeniser is of another encoder."""
    words = embedder.description.vocabulary
    if words is not None and int(tokens.ids.max(initial=0)) >= words:
        raise ConfigError(
            f"the tokenizer of {embedder.config.model} gives the token {int(tokens.ids.max())}, but its network knows "
            f"only {words}; the two do not belong together."
        )
    if int(tokens.lengths.max(initial=0)) <= tokens.frame:
        raise ConfigError(f"none of the {len(tokens)} texts holds anything that the encoder reads; are they empty?")


def _tuning_data(
    job: Job, words: Keyed[Documents], tokens: Keyed[Tokens], tree: Keyed[Tree], held: HeldOut | None
) -> TuningData:
    """Data of a fine-tuning: all documents; the user's own held-out ones come last."""
    x, y, count = words.value.x, job.problem.y, 0
    if held is not None:
        y, count = stacked([y, held.y], y.cols), len(held.texts)
        if x.sparse is not None and held.words is not None:
            x = Features(stacked([x.sparse, held.words], x.sparse.cols))
    data_key = job.problem.data_key  # of the held-out documents, too
    read = Keyed.made_of(x, what="words of all documents", words=words, data=data_key)
    return TuningData(tokens, read, Keyed(y, data_key), tree, count)


def embed_label_texts(job: Job) -> Keyed[Features]:
    """(K, d) of length 1: the mean of the pretrained encoder's last states over the text, or name, of each label."""
    recipe, names = job.recipe, job.problem.names
    given = job.data.label_texts or [""] * len(names)
    texts = [given[label] or names[label] for label in job.problem.seen]
    with needs(recipe.method, "neural"):
        from ..neural.encoders import encoder as encoders
    config = recipe.encoder.as_pretrained()
    source = pretrained.find(config.model)

    def make() -> dict[str, NDArray[Any]]:
        network = encoders.load(source, config)
        tokeniser = Tokeniser(source.tokeniser(), config.max_tokens)
        embedder = Embedder(config, encoders.describe(network), network.state(), tokeniser)
        with job.run.progress.stage("embedding label texts", len(texts), "labels") as tick:
            return {"embedding": embedder.embed(embedder.tokens(texts), job.run.workers, tick)}

    inputs = {"texts": list(texts), "encoder": source.digest, "config": to_dict(config)}
    stage = job.space.stage("label-texts", inputs, make)
    return Keyed(Features(None, unit(stage.tensors["embedding"])), stage.key)


def training_memory(pace: Pace, nodes: int, recipe: Recipe) -> dict[str, int]:
    """Bytes that the fine-tuning of a level adds, by what for (docs/reference/planning.md)."""
    config = recipe.finetune
    encoder, head = 4 * pace.parameters, 4 * nodes * (pace.width + 1)
    most = min(config.shard_tokens, config.batch * pace.tokens)
    return {
        "encoder": encoder,
        "gradients": encoder,  # a head's are for the candidates of a batch alone
        "optimiser": 2 * encoder + (2 * head if recipe.optimiser.head_moments == "full" else 0),
        "heads": head,
        "best state": encoder + head,
        "activations": int(4 * most * pace.width * pace.layers * 24),  # what a layer keeps for its backward pass
    }


def costs(s: Sizes, pace: Pace, tuned: tuple[int, ...], recipe: Recipe) -> list[Cost]:
    """The stages of an encoder, at the pace that was measured with all threads; those of several runs together."""
    config, levels, busy = recipe.finetune, len(tuned), s.threads * recipe.ensemble.runs
    spent, held = busy * pace.embed * s.rows, 4 * pace.parameters + 6 * s.rows * pace.width
    if not levels:
        return [Cost("embedding", "embedding", held, seconds=spent)]
    found = []
    for t, nodes in enumerate(tuned):
        steps: float = at(config.epochs, t, levels, "finetune.epochs") * s.rows / config.batch
        if config.steps is not None:
            steps = at(config.steps, t, levels, "finetune.steps")
        training = held + sum(training_memory(pace, nodes, recipe).values())
        found.append(Cost("tune", f"fine-tuning level {t + 1}", training, seconds=busy * pace.step * steps))
        found.append(Cost("embedding", f"embedding after level {t + 1}", held, seconds=spent))
    return found
