"""The closed set of errors a public call may raise. Anything else that escapes is a bug of ours.

Every message says what is wrong, the value seen, what is allowed, and the way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from os import PathLike


class LabelwoodError(Exception):
    """Base of every error that labelwood raises on purpose."""


class ConfigError(LabelwoodError):
    """A setting, option or argument is unknown, of the wrong type, or out of range."""

    lines: tuple[str, ...] = ()  # where several things are wrong at once, each by itself

    @staticmethod
    def of(lines: Iterable[str]) -> ConfigError:
        """An error of several things, each told once."""
        told = tuple(dict.fromkeys(lines))
        error = ConfigError("\n".join(told))
        error.lines = told
        return error


class DataError(LabelwoodError):
    """The user's data is not what was expected; the message names the place."""

    def __init__(
        self,
        message: str,
        *,
        file: str | PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
        row: int | None = None,
        field: str | None = None,
    ) -> None:
        self.message = message
        self.file = None if file is None else str(file)
        self.line, self.column, self.row, self.field = line, column, row, field
        place = [self.file] if self.file is not None else []
        places = (("line", line), ("column", column), ("row", row), ("field", field))
        place += [f"{word} {value}" for word, value in places if value is not None]
        super().__init__(f"{', '.join(place)}: {message}" if place else message)

    def at(
        self,
        *,
        file: str | PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
        row: int | None = None,
        field: str | None = None,
    ) -> DataError:
        """The same error with what was still unknown of its place, from a caller who knows it."""
        return DataError(
            self.message,
            file=file if self.file is None else self.file,
            line=line if self.line is None else self.line,
            column=column if self.column is None else self.column,
            row=row if self.row is None else self.row,
            field=field if self.field is None else self.field,
        )


class ModelFileError(LabelwoodError):
    """A model folder is damaged, incomplete, foreign, or of a version this release cannot read."""


class StorageError(LabelwoodError):
    """The disk refused: full, read-only, no permission, or the folder vanished. Earlier files are intact."""


class BudgetError(LabelwoodError):
    """The run would need, or came to need, more memory than it was given. Finished stages are intact."""


class TrainingError(LabelwoodError):
    """A training went wrong in a way that other settings can mend."""


class MissingExtraError(LabelwoodError):
    """An optional dependency is needed and not installed; the message gives the pip command."""


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Turn imports that fail inside into a MissingExtraError, which says what needs them and how they are installed."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {error.name or 'a package'}, which is not installed: pip install 'labelwood[{extra}]'."
        ) from error


def nearest(word: str, allowed: Iterable[str]) -> str:
    """The tail of a message about an unknown word: the closest allowed one, then all of them."""
    names = sorted(allowed)
    close = get_close_matches(word, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Allowed: {', '.join(names)}."


def counted(count: int, thing: str) -> str:
    """A number and what it counts: 1 bad line, 1,200 bad lines."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
