"""Description of an encoder: all that a model folder needs to build it again, beside its weights."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import ModelFileError
from ...recipes.encoder_settings import WIDTHS, Reading
from .layout import check_config

ENGINES = ("lean", "transformers", "bilstm")
KEYS = ("architecture", "engine", "pooler", "readings", "raw")
ORIGIN = ("auto_map", "_name_or_path", "transformers_version")  # of where a checkpoint came from, not of what it is


@dataclasses.dataclass(frozen=True, eq=False)
class Description:
    """An encoder without its weights."""

    architecture: Mapping[str, Any]  # the checkpoint's own config: its sizes, and whatever else its kind has
    engine: str
    pooler: bool  # has it a pretrained pooler?
    readings: tuple[Reading, ...]  # what is read of it, side by side
    raw: bool = False  # do levels of the model's own read the readings as they are?

    @staticmethod
    def of_checkpoint(
        config: Mapping[str, Any], engine: str, *, pooler: bool, readings: Sequence[Reading]
    ) -> Description:
        """Make one of a checkpoint's config as it came."""
        plain = json.loads(json.dumps(config, default=str))
        architecture = {name: value for name, value in plain.items() if name not in ORIGIN}
        return Description(architecture, engine, pooler, tuple(readings))

    @property
    def width(self) -> int:
        """Width of a layer."""
        return int(next(self.architecture[name] for name in WIDTHS if isinstance(self.architecture.get(name), int)))

    @property
    def columns(self) -> int:
        """Columns of all readings, side by side."""
        return sum(reading.width(self.width) for reading in self.readings)

    @property
    def places(self) -> int | None:
        """Tokens of a text that our own BERT tells the places of; None: any number, or its engine knows."""
        return int(self.architecture["max_position_embeddings"]) if self.engine == "lean" else None

    @property
    def vocabulary(self) -> int | None:
        """Tokens that it knows, where its config says so."""
        found = self.architecture.get("vocab_size")
        return found if isinstance(found, int) else None

    def reading(self, readings: Sequence[Reading], *, raw: bool) -> Description:
        """The same network, read in another way."""
        return Description(self.architecture, self.engine, self.pooler, tuple(readings), raw)

    def plain(self) -> dict[str, Any]:
        """Table of the manifest."""
        return {
            "architecture": dict(self.architecture), "engine": self.engine, "pooler": self.pooler,
            "readings": [reading.plain() for reading in self.readings], "raw": self.raw,
        }  # fmt: skip

    @staticmethod
    def from_plain(table: object) -> Description:
        """The checked inverse of `plain`; weights are checked against the network when it is built."""
        if not isinstance(table, dict) or set(table) != set(KEYS) or not isinstance(table["architecture"], dict):
            raise ModelFileError(f"the manifest's 'encoder' must have exactly {', '.join(sorted(KEYS))}.")
        if not isinstance(table["readings"], list) or not table["readings"]:
            raise ModelFileError("the manifest's 'encoder' must list what is read of it.")
        readings = tuple(Reading.of(plain) for plain in table["readings"])
        flags = isinstance(table["pooler"], bool) and isinstance(table["raw"], bool)
        if not isinstance(table["engine"], str) or table["engine"] not in ENGINES or not flags:
            raise ModelFileError("the manifest's 'encoder' names an engine that this release does not know.")
        check_config(table["engine"], table["architecture"], readings)
        return Description(table["architecture"], table["engine"], table["pooler"], readings, table["raw"])
