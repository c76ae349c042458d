"""Several models that predict together, in one folder, and `load`, which opens either kind.

Each member searches its own tree for `candidates` labels, and rank_average.py makes one ranking of what they found.
The members may be trees of one recipe or any trained models: labels are aligned by name, and features are computed once
for all members that read the text the same way.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import limits
from ..arrays.names import Names
from ..arrays.sparse import Features
from ..base.config import at, checked_config, from_dict, to_dict
from ..base.digests import digest_plain, digest_tensors
from ..base.log import LOG
from ..base.progress import Tick
from ..data.dataset import ordered
from ..errors import ConfigError, LabelwoodError, ModelFileError, counted
from ..parts.rank_average import EnsembleConfig, Ranking, merge
from ..parts.search import Ranked
from ..storage import model_folder
from .model import Memo, Model, from_stored
from .predictor import Predictor, Tensors, read_only

UNEVEN = 10  # times the documents of another member: worth a warning
LATER = frozenset({"records"})  # tensors of a large model that are verified on first use


class Ensemble(Predictor):
    """Models that predict together. An ensemble among the members is opened: its members share its weight.

    A label has the counts and the text of the member that knows most of it.
    """

    def __init__(
        self,
        members: Sequence[Predictor],
        config: EnsembleConfig | None = None,
        *,
        average: str | None = None,
        weights: Sequence[float] | None = None,
        candidates: int | None = None,
    ) -> None:
        """`average` is mean, softmax, sigmoid, rank or round-robin; `weights` has one number for each member.

        `candidates` labels are asked of each, if k is not more. Instead of the three, a config may be given.
        """
        given = {"average": average, "weights": weights, "candidates": candidates}
        given = {name: value for name, value in given.items() if value is not None}
        if config is not None and given:
            raise ConfigError(f"{', '.join(given)} and a config say the same twice; give one of the two.")
        config = from_dict(EnsembleConfig, given, "ensemble") if config is None else config
        self._join(members, config)
        if config.weights is None:
            _warn_if_uneven(self)

    def _join(self, members: Sequence[Predictor], config: EnsembleConfig) -> None:
        config = checked_config(EnsembleConfig, config, "ensemble")
        self._members, weights = _opened(members, config.weights)
        if config.members != len(self._members):  # models that were not trained together
            config = config.of(len(self._members), config.weights)
        self.config = dataclasses.replace(config, weights=weights)
        self.config.shares()
        self.recipe = self._members[0].recipe
        keys = [member.data_key for member in self._members]
        self.data_key = keys[0] if len(set(keys)) == 1 else digest_plain(keys)
        self.rows = max(member.rows for member in self._members)
        self.labels, self._ids = _aligned(self._members)
        counts = np.zeros(len(self.labels), np.int64)
        for member, ids in zip(self._members, self._ids, strict=True):
            where = slice(None) if ids is None else ids
            counts[where] = np.maximum(counts[where], member.counts)
        self.counts = read_only(counts)
        self.label_texts = _texts(self._members, self._ids, len(self.labels))

    @property
    def members(self) -> tuple[Model, ...]:
        """The models, in the order of their weights."""
        return self._members

    def __repr__(self) -> str:
        counts = f"{counted(len(self.labels), 'label')}, {counted(self.rows, 'document')}"
        trees = f"{self.config.average} of {counted(len(self.members), 'tree')}"
        return f"<labelwood.Ensemble {self.method}: {counts}, {trees}>"

    def save(self, folder: str | Path, *, overwrite: bool = True) -> None:
        """Write all members into one model folder; what they have in common is stored once."""
        model_folder.save(Path(folder), *self._contents(), overwrite=overwrite)
        LOG.info("saved %r to %s", self, folder)

    def _contents(self) -> tuple[dict[str, Any], dict[str, Tensors]]:
        """Meta and parts of its folder."""
        parts: dict[str, Tensors] = {}
        names: dict[tuple[str, str], str] = {}  # (part, digest) → the name it is stored under
        members = []
        for number, member in enumerate(self.members, 1):
            used = {}
            for part, tensors in member.parts().items():
                new = part if part not in parts else f"{part}_{number}"
                used[part] = names.setdefault((part, digest_tensors(tensors)), new)
                parts[used[part]] = tensors
            members.append({**member.meta(), "parts": used})
        return {"ensemble": to_dict(self.config), "members": members}, parts

    @cached_property
    def _common(self) -> int:
        """Upper levels that all members have in common: they are searched once, as long as each member has its own
        level below them and the beam goes on with what they say."""
        first = self.members[0]
        configs, depth = [member.searching for member in self.members], first.tree.depth
        if any(config.kind == "exact" or config.discount != configs[0].discount for config in configs):
            return 0
        if any(member.tree.depth != depth for member in self.members):
            return 0
        common = 0
        for level in zip(*(member.levels[:-1] for member in self.members), strict=True):
            ways = {(config.at_level(common, depth), at(config.beam, common, depth, "beam")) for config in configs}
            if not _same(level) or len(ways) > 1:
                break
            common += 1
        return common

    def _find(self, x: Sequence[Features], k: int, threads: int, progress: Tick) -> Ranked:
        width, count = max(k, self.config.candidates), len(self.members)
        found = []
        start = self.members[0].reach(x[0], self._common, threads) if self._common and _same(x) else None
        for number, (member, own, ids) in enumerate(zip(self.members, x, self._ids, strict=True)):
            tick = _part_of(progress, number, count)
            here, scores = member.find_below(own, min(width, len(member.labels)), start, threads, tick)
            if ids is not None:
                here = np.where(here >= 0, ids[here], np.int32(-1))
            found.append(Ranking(here, scores, member.gives_margins))
        return merge(found, self.config, k, threads=threads)


def _warn_if_uneven(ensemble: Ensemble) -> None:
    """Say so where one member has learned from far fewer documents than another and weighs as much."""
    rows = sorted(member.rows for member in ensemble.members)
    if rows[-1] > UNEVEN * rows[0]:
        warnings.warn(
            f"the members of this ensemble were trained on {rows[0]:,} to {rows[-1]:,} documents and weigh the same, "
            "so the weakest may spoil the ranking of the others; measure it beside them, or give weights=(…).",
            stacklevel=3,
        )


def _same(things: Sequence[object]) -> bool:
    return all(thing is things[0] for thing in things)


def load(folder: str | Path) -> Predictor:
    """A saved model or ensemble, memory-mapped, every byte verified before it is used.

    Of a model of more than 256 MB, the classifiers are verified on first use; `verify` checks all of them at once.
    """
    stored = model_folder.load(Path(folder), later=LATER)
    LOG.info("opening the model in %s", folder)
    return _read(stored, str(folder))


def unpacked(files: Mapping[str, bytes]) -> Predictor:
    """A model from the files of its folder, in memory: what reads a pickled model. All checks of `load` are made."""
    return _read(model_folder.unpack(files), "what was packed")


def _read(stored: model_folder.Stored, where: str) -> Predictor:
    """A model or an ensemble, all checked."""
    try:
        if "members" in stored.meta:
            return _from_stored(stored.meta, stored.parts)
        return from_stored(stored.meta, stored.parts, {})
    except ModelFileError:
        raise
    except (LabelwoodError, KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise ModelFileError(f"{where} is not a sound model: {error}") from error


def _from_stored(meta: dict[str, Any], parts: Mapping[str, Tensors]) -> Ensemble:
    if set(meta) != {"ensemble", "members"} or not isinstance(meta["members"], list):
        raise ModelFileError("the manifest's meta of an ensemble must have exactly ensemble and members, a list.")
    config = from_dict(EnsembleConfig, meta["ensemble"], "ensemble")
    if len(meta["members"]) != config.members:
        raise ModelFileError(f"the manifest lists {len(meta['members'])} members, but should list {config.members}.")
    memo: Memo = {}
    members = [_member(entry, parts, memo) for entry in meta["members"]]
    unused = set(parts).difference(*(entry["parts"].values() for entry in meta["members"]))
    if unused:
        raise ModelFileError(f"no member uses the part {min(unused)!r}.")
    ensemble = Ensemble.__new__(Ensemble)  # whoever made it was warned then
    ensemble._join(members, config)
    return ensemble


def _member(entry: Any, parts: Mapping[str, Tensors], memo: Memo) -> Model:
    used = entry.get("parts") if isinstance(entry, dict) else None
    if not isinstance(used, dict) or not all(isinstance(name, str) for name in used.values()):
        raise ModelFileError("each member of an ensemble must be a table, with a table 'parts' of names.")
    missing = sorted(set(used.values()) - set(parts))
    if missing:
        raise ModelFileError(f"a member uses the part {missing[0][:80]!r}, which is not there.")
    own = {key: value for key, value in entry.items() if key != "parts"}
    return from_stored(own, {part: parts[name] for part, name in used.items()}, memo)


def _opened(
    members: Sequence[Predictor], weights: tuple[float, ...] | None
) -> tuple[tuple[Model, ...], tuple[float, ...] | None]:
    """The models themselves: the members of an ensemble among them take its place and share its weight."""
    if not isinstance(members, Sequence) or not all(isinstance(member, Predictor) for member in members):
        raise ConfigError("the members of an ensemble must be a list of trained models.")
    models = tuple(model for member in members for model in member.members)
    if not 1 <= len(models) <= limits.MAX_TREES:
        raise ConfigError(f"an ensemble needs from 1 to {limits.MAX_TREES} models, but {len(models)} are given.")
    outer = dataclasses.replace(EnsembleConfig(), trees=len(members), weights=weights)
    shares = zip(members, outer.shares(), strict=True)
    if not any(isinstance(member, Ensemble) for member in members):
        return models, weights
    inner = ((member.config.shares() if isinstance(member, Ensemble) else (1.0,), share) for member, share in shares)
    return models, tuple(share * own for own_shares, share in inner for own in own_shares)


def _aligned(members: Sequence[Model]) -> tuple[Names, list[NDArray[np.int32] | None]]:
    """The names of all labels, and for each member the common ids of its own; None: they are the same."""
    labels = members[0].labels
    if all(member.labels == labels for member in members):
        return labels, [None] * len(members)
    labels = Names.of(ordered({name for member in members for name in member.labels}))
    place = {name: i for i, name in enumerate(labels)}
    return labels, [np.array([place[name] for name in member.labels], np.int32) for member in members]


def _texts(members: Sequence[Model], ids: Sequence[NDArray[np.int32] | None], labels: int) -> Names:
    first = members[0].label_texts
    if all(own is None and member.label_texts is first for member, own in zip(members, ids, strict=True)):
        return first
    texts: dict[int, str] = {}
    for member, own in zip(members, ids, strict=True):
        for i, text in zip(range(labels) if own is None else own.tolist(), member.label_texts, strict=False):
            texts[i] = texts.get(i) or text
    return Names.of(texts.get(i, "") for i in range(labels) if texts)


def _part_of(progress: Tick, number: int, count: int) -> Tick:
    """The progress of one of `count` equal parts as that of the whole."""
    return lambda done, total: progress((number * total + done) // count, total)
