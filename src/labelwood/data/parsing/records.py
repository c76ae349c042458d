"""Records of CSV and TSV: split by Python's csv module; what is wrong with one is said with its line and column.

The bytes are handed over as Latin-1, whose 256 characters are the 256 bytes: the structure of CSV is ASCII, and each
cell comes back as the UTF-8 it was.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice

from ... import limits
from ...errors import DataError
from .rows import Log
from .source import Source
from .spanning import lines_as_records


class Records:
    """Iterates over the cells of every record that is not blank. Bad ones go to the log, a bad header is an error."""

    def __init__(self, source: Source, delimiter: str, log: Log) -> None:
        # The csv module refuses fields above 128 KB unless told otherwise, for the whole process; documents are longer.
        csv.field_size_limit(max(csv.field_size_limit(), limits.MAX_LINE_BYTES))
        self.line = 1  # the first one of the record
        self._source, self._delimiter, self._log = source, delimiter, log
        self._lines: list[str] = []  # of the record, for the place of a fault
        self._bad_bytes: DataError | None = None
        self._width = 0  # cells of the first record
        self._rejected = False

    def __iter__(self) -> Iterator[list[str]]:
        parser = csv.reader(iter(self._next, ""), delimiter=self._delimiter, strict=True)
        while True:
            self._lines, self._bad_bytes, self.line, self._rejected = [], None, self._source.line + 1, False
            try:
                cells = next(parser, None)
            except csv.Error as error:
                self._reject(self._bad_bytes or self._broken(str(error)))
                continue
            except DataError as error:
                self._reject(error)
                continue
            if cells is None:
                return
            if self._bad_bytes is not None:
                self._reject(self._bad_bytes)
            elif not cells or (len(cells) == 1 and cells[0].isspace()):
                self._log.blank += len(self._lines)
            elif len(self._lines) == 1 or self._is_one(cells):
                yield from self._counted(cells)
            del cells

    def bad(self, error: DataError, cell: int) -> None:
        """The record is wrong at that cell (counted from 0; the number of cells stands for the record's end)."""
        starts = _starts("".join(self._lines), self._delimiter)
        self._reject(self._placed(error, next(islice(starts, cell, None))))

    def _next(self) -> str:
        raw = self._source.readline()
        try:
            line = self._log.utf8(raw).decode("latin-1")
        except DataError as error:  # told when the record is complete: its other lines are no records of their own
            self._bad_bytes = self._bad_bytes or error.at(line=self._source.line)
            line = raw.decode("latin-1")
        self._lines.append(line)
        self._check_size(line)
        return line

    def _check_size(self, line: str) -> None:
        """Refuse records of more lines or cells than any has: the lists of them take many times their bytes."""
        most = limits.MAX_ROW_VALUES
        if len(self._lines) > most:
            *_, at = _starts(self._lines[0], self._delimiter)
            raise self._placed(DataError(f"the record has more than {most:,} lines; is its quote never closed?"), at)
        if len(line) > most and line.count(self._delimiter) >= most:
            start = next(islice(_starts(line, self._delimiter), most + 1, None), None)
            if start is not None:
                raise DataError(f"the record has more than {most:,} cells.").at(line=self._source.line)

    def _counted(self, cells: list[str]) -> Iterator[list[str]]:
        """The record; its lines are those of the header, or all but the first are lines within a record."""
        if not self._width:
            self._width = len(cells)
            self._log.header += len(self._lines)
            yield cells
        else:
            yield cells
            self._log.inner += 0 if self._rejected else len(self._lines) - 1

    def _is_one(self, cells: list[str]) -> bool:
        """Is a record over several lines not several? In TSV one that looks so is bad, in CSV it is noted."""
        rows = lines_as_records(self._lines, self._delimiter, self._width or len(cells))
        if rows is not None and self._delimiter == "\t":
            last = self.line + len(rows) - 1
            why = f"each line from here to line {last} is a record by itself, but the quote here makes one cell of them"
            way = 'if the quote belongs to the text, quote the cell and write "" for it.'
            self.bad(DataError(f"{why}; {way}"), next(i for i, cell in enumerate(cells) if "\n" in cell))
            return False
        if self._log.spanning is not None:
            self._log.spanning.add(self.line, rows)
        return True

    def _reject(self, error: DataError) -> None:
        error = error.at(file=self._source.name)
        self._rejected = True
        if not self._width:
            raise error
        self._log.bad(error, lines=self._source.line - self.line + 1)

    def _broken(self, message: str) -> DataError:
        """Error for what the csv module refused, in words of ours: it knows neither the place nor the cause."""
        text = "".join(self._lines)
        *_, start, at = _starts(text, self._delimiter)
        if message.startswith("field larger"):
            why = f"a cell has more than {limits.MAX_LINE_BYTES} bytes; is its quote never closed?"
        elif text[at : at + 1] == '"':
            why = 'the quote here never closes; close it, or, if it is part of the text, quote the cell and write "".'
        elif text[at : at + 1] == "\r":
            why = "a carriage return stands in a cell without quotes; put the cell in quotes."
        else:
            line = self.line + text.count("\n", 0, start)
            why = (
                f'text follows the closing quote of a cell that began at line {line}; a quote in a cell is written "".'
            )
        return self._placed(DataError(f"not valid CSV: {why}"), at)

    def _placed(self, error: DataError, at: int) -> DataError:
        """Offset in the record → line of the file and column in characters."""
        before = "".join(self._lines)[:at]
        part = before[before.rfind("\n") + 1 :].encode("latin-1").decode("utf-8", errors="replace")
        return error.at(line=self.line + before.count("\n"), column=len(part) + 1)


def _starts(record: str, delimiter: str) -> Iterator[int]:
    """Places where cells start; at last, where the record ends or stops being CSV."""
    cell = re.compile(rf'"(?:[^"]++|"")*+"|[^"{delimiter}\r\n][^{delimiter}\r\n]*+|')
    at = 0
    while (found := cell.match(record, at)) is not None:
        yield at
        at = found.end()
        if record[at : at + 1] != delimiter:
            break
        at += 1
    yield at
