"""Options of reading a file: the format, which fields hold what, and what to do with bad lines."""

from __future__ import annotations

import dataclasses

from ..base.config import setting
from ..errors import ConfigError, nearest
from .formats.registry import FORMATS, in_order

FORMAT_NAMES = ("auto", *(known.name for known in in_order()))
ON_BAD = ("error", "skip", "replace")
SPLITS = ("train", "test")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Field names matter to JSON lines, CSV/TSV and Parquet; `split` to formats that are folders. Text is UTF-8."""

    format: str = setting("auto", "format of the input; auto looks at the content", choices=FORMAT_NAMES)
    text: tuple[str, ...] | None = setting(
        None,
        "field of the text, with its weight after a colon (title:2); several are read in their order. None means the "
        "usual ones: title, text, abstract, content, description, body …",
    )
    labels: str | None = setting("labels", "field of the labels; none reads no labels")
    id: str | None = setting(None, "field of the document's id; none means 'id' or 'uid' where there is one")
    relevance: str | None = setting(None, "field with one positive number per label; none means 1 for each")
    separator: str = setting("|", "what stands between the labels in one CSV or TSV cell")
    on_bad: str = setting("error", "bad lines: stop, leave them out, or replace bad bytes by U+FFFD", choices=ON_BAD)
    split: str = setting("train", "which part of a folder to read", choices=SPLITS)

    def __post_init__(self) -> None:
        if isinstance(self.text, str | list):  # text="title" is meant as ("title",), not as five fields
            object.__setattr__(self, "text", (self.text,) if isinstance(self.text, str) else tuple(self.text))
        if self.text is not None and not isinstance(self.text, tuple):
            raise ConfigError(f"text must be the name of a field, or several, but is {self.text!r}.")
        for name, allowed in (("format", ("auto", *FORMATS)), ("on_bad", ON_BAD), ("split", SPLITS)):
            value = getattr(self, name)
            if value not in allowed:
                raise ConfigError(f"there is no {name} {value!r}; {nearest(str(value), allowed)}")
        if not isinstance(self.separator, str) or not self.separator:
            raise ConfigError(f"separator must be at least one character, but is {self.separator!r}.")
        for field in (*(self.text or ()), self.labels, self.id, self.relevance):
            if field is not None and not isinstance(field, str):
                raise ConfigError(f"a field's name must be text, but is {field!r}.")
