"""A value together with the key of all that made it: what a stage of a run takes and gives.

A key is the digest of the keys and settings that a value was made from. A stage that is handed `Keyed` values cannot
use one and leave its key out, so a stage that is found done never stands for something else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from ..base.digests import digest_plain

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, eq=False)
class Keyed(Generic[T]):
    """A value, and the key of what made it."""

    value: T
    key: str

    @staticmethod
    def made_of(value: T, *, what: str, **inputs: Any) -> Keyed[T]:
        """A value that is quickly made from others, so that no stage keeps it; `what` says how."""
        return Keyed(value, digest_plain([what, plain(inputs)]))


def plain(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a stage as plain data: a keyed value is its key."""
    return {name: value.key if isinstance(value, Keyed) else value for name, value in inputs.items()}
