"""Reads the rows of a file one by one, in flat memory: CSV, JSON Lines, gzipped or not, and Parquet."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

import msgspec

from threadline.kernel.errors import InvalidValue
from threadline.wire.arrow import arrow
from threadline.wire.table import Row

LINE_BYTES_MAX = 1_048_576
"""A longer line is no row: it is passed over and rejected, so that no file can fill the memory. Of CSV, characters."""
RAW_LENGTH_MAX = 65_536
"""What is kept of a row that is none, in characters."""
_UNCLOSED = "unexpected end of data"
_LARGE_CELL = "field larger than field limit"
_PARQUET_ROWS = 1_000

DELIMITERS = {
    ";": "`;`? try --delimiter ';'",
    ",": "`,`? try --delimiter ','",
    "|": "`|`? try --delimiter '|'",
    "\t": "a tab? try --delimiter $'\\t'",
}
"""What separates cells, and how a shell says it."""

CSV_ENDINGS = (".csv", ".tsv", ".txt")
JSON_ENDINGS = (".jsonl", ".ndjson")


class BadRow(NamedTuple):
    """A row that cannot even be read."""

    code: str
    message: str
    raw: str


class RowFile(Protocol):
    """A file of rows. ``size`` and ``done`` are in one unit: bytes of the file, or rows where the file tells them."""

    size: int

    def columns(self) -> Sequence[str] | None:
        """The columns that every row has; None where each row brings its own, and what it lacks is empty."""
        ...

    def rows(self, skip: int = 0) -> Iterator[Row | BadRow]:
        """Every row after the first ``skip``, in order. Raises `InvalidValue` if the file turns out to be damaged."""
        ...

    def done(self) -> int:
        """How much has been read."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


def open_rows(path: Path, delimiter: str = "") -> RowFile:
    """The rows of a file, by the ending of its name. ``delimiter`` is for CSV; by default a comma, for .tsv a tab.

    Raises `InvalidValue` for a file of no known form.
    """
    zipped = path.suffix.lower() == ".gz"
    ending = (path.with_suffix("") if zipped else path).suffix.lower()
    if ending in CSV_ENDINGS:
        return CsvFile(path, zipped, delimiter or ("\t" if ending == ".tsv" else ","))
    if ending in JSON_ENDINGS:
        return JsonLinesFile(path, zipped)
    if ending == ".parquet" and not zipped:
        return ParquetFile(path)
    known = ", ".join((*CSV_ENDINGS, *JSON_ENDINGS))
    raise InvalidValue(f"{path.name}: the name must end in {known}, each with .gz or without, or in .parquet")


def forgotten_delimiter(columns: Sequence[str]) -> str:
    """What to ask if a file that was read as one column has the names of several in it; empty: it has not."""
    signs = (sign for sign in DELIMITERS if len(columns) == 1 and sign in columns[0])
    return next((f"is the delimiter {DELIMITERS[sign]}" for sign in signs), "")


class _BytesFile:
    """What the forms made of text share: bytes in, perhaps through gzip, and how far they have been read."""

    def __init__(self, path: Path, zipped: bool) -> None:
        self.name = path.name
        self.size = path.stat().st_size
        self._raw = path.open("rb")
        self._bytes = cast(IO[bytes], gzip.GzipFile(fileobj=self._raw) if zipped else self._raw)

    def done(self) -> int:
        """Bytes of the file, as it lies on the disk, that have been read."""
        return self._raw.tell()

    def close(self) -> None:
        """Release the file."""
        self._bytes.close()
        self._raw.close()

    def _whole(self, rows: Iterator[Row | BadRow]) -> Iterator[Row | BadRow]:
        with self._damage_reported():
            yield from rows

    @contextmanager
    def _damage_reported(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError, zlib.error) as error:
            raise InvalidValue(f"{self.name} is damaged from this point on: {error}") from None


class _LongLine(csv.Error):
    """A line that is too long to be held in memory."""


class CsvFile(_BytesFile):
    """Cells separated by a delimiter, with the names of the columns in the first line."""

    def __init__(self, path: Path, zipped: bool, delimiter: str) -> None:
        super().__init__(path, zipped)
        if len(delimiter) != 1:
            raise InvalidValue(f"a delimiter is one character, not {delimiter!r}")
        # Bytes that are not UTF-8 become surrogates, which the mapping refuses row by row; the others go on.
        self._text = io.TextIOWrapper(self._bytes, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self._row: list[str] = []
        """The lines of the row that is being read."""
        self._again: deque[str] = deque()
        """Lines that were read and are still to be."""
        self._delimiter = delimiter
        self._reader = self._new_reader()
        self._cells: list[str] = []
        """What the first line says of each cell of a row: the name of its column."""

    def columns(self) -> list[str]:
        """See `RowFile.columns`. Raises `InvalidValue` for a first line that does not name them."""
        if not self._cells:
            with self._damage_reported():
                self._cells = self._header()
        return self._cells if self._cells.count("") < 2 else [name for name in self._cells if name]

    def rows(self, skip: int = 0) -> Iterator[Row | BadRow]:
        """See `RowFile.rows`. Lines without a single cell are no rows and are not counted."""
        return self._whole(self._rows(skip))

    def _rows(self, skip: int) -> Iterator[Row | BadRow]:
        columns = self.columns()
        header = self._cells
        named = _named if len(columns) == len(header) else _named_partly
        number = 0
        while True:
            bad = None
            self._row.clear()
            try:
                cells = next(self._reader, None)
            except csv.Error as error:
                cells, bad = [], self._no_csv(error)
            if cells is None:
                return
            if cells or bad:
                number += 1
                if number > skip:
                    yield bad or named(header, cells)

    def _new_reader(self) -> Iterator[list[str]]:
        # Strict, because a quote that nothing closes would make the rest of the file one cell, without a word.
        return csv.reader(self._lines(), delimiter=self._delimiter, strict=True)

    def _lines(self) -> Iterator[str]:
        again, read = self._again, self._text.readline
        while True:
            was_read = bool(again)
            line = again.popleft() if was_read else read(LINE_BYTES_MAX)
            if not line:
                return
            self._row.append(line)
            if len(line) == LINE_BYTES_MAX and _goes_on(line):
                while not was_read and _goes_on(read(LINE_BYTES_MAX)):
                    pass  # nothing of it is a row
                raise _LongLine(f"a line may have {LINE_BYTES_MAX:,} characters")
            yield line

    def _no_csv(self, error: csv.Error) -> BadRow:
        first, *behind = self._row
        code, message = "invalid_value", f"the row is no CSV: {error}"
        large_cell = _LARGE_CELL in str(error)
        if not behind and (large_cell or isinstance(error, _LongLine)):
            code = "too_large"
            message = f"a cell may have {csv.field_size_limit():,} characters" if large_cell else str(error)
        elif large_cell or isinstance(error, _LongLine) or _UNCLOSED in str(error):
            message = "a quote is opened in this row and closed nowhere"
        # Its quotes are out of step: the lines behind it are rows of their own, as far as anybody can tell.
        self._again.extendleft(reversed(behind))
        self._reader = self._new_reader()
        return BadRow(code, message, "".join(_clean([first]))[:RAW_LENGTH_MAX])

    def _header(self) -> list[str]:
        try:
            header = next((cells for cells in self._reader if cells), [])
        except csv.Error as error:
            raise InvalidValue(f"{self.name}: the first line is not CSV: {error}") from None
        if not header:
            raise InvalidValue(f"{self.name} is empty; the first line must name the columns")
        if any("\0" in name for name in header):
            raise InvalidValue(f"{self.name} is not text in UTF-8", hint="Save it as CSV in UTF-8.")
        # Spreadsheets write columns that were only formatted, or emptied: without a name, and mostly several.
        if sum(not name.strip() for name in header) < 2:
            return _distinct(header, self.name)
        header = [name if name.strip() else "" for name in header]
        _distinct([name for name in header if name], self.name)
        return header


def _distinct(columns: list[str], file: str) -> list[str]:
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise InvalidValue(f"{file}: two columns are named {twice!r}; rename one")
    return columns


def _goes_on(line: str) -> bool:
    """Whether this is only the beginning of a line, as much of it as is read."""
    return len(line) == LINE_BYTES_MAX and not line.endswith(("\n", "\r"))


def _named(header: list[str], cells: list[str]) -> Row | BadRow:
    if len(cells) > len(header) and any(cells[len(header) :]):
        message = f"the row has {len(cells)} cells, but there are {len(header)} columns"
        return BadRow("invalid_value", message, msgspec.json.encode(_clean(cells)).decode())
    return dict(zip(header, cells, strict=False))


def _named_partly(header: list[str], cells: list[str]) -> Row | BadRow:
    """As `_named` where several columns have no name: these are none, and what stands in them is not lost unseen."""
    row = _named(header, cells)
    if isinstance(row, BadRow):
        return row
    for number, (name, cell) in enumerate(zip(header, cells, strict=False), 1):
        if cell and not name:
            message = f"the row has a value in column {number}, which has no name in the first line"
            return BadRow("invalid_value", message, msgspec.json.encode(_clean(cells)).decode())
    return {name: cell for name, cell in row.items() if name}


def _clean(cells: list[str]) -> list[str]:
    return [cell.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for cell in cells]


class JsonLinesFile(_BytesFile):
    """One JSON object a line."""

    def columns(self) -> None:
        """See `RowFile.columns`."""

    def rows(self, skip: int = 0) -> Iterator[Row | BadRow]:
        """See `RowFile.rows`. Empty lines are no rows and are not counted."""
        return self._whole(self._rows(skip))

    def _rows(self, skip: int) -> Iterator[Row | BadRow]:
        decode = msgspec.json.Decoder().decode
        number = 0
        for line in self._lines():
            if isinstance(line, bytes) and not line.strip():
                continue
            number += 1
            if number > skip:
                yield line if isinstance(line, BadRow) else _object(line, decode)

    def _lines(self) -> Iterator[bytes | BadRow]:
        while line := self._bytes.readline(LINE_BYTES_MAX):
            if len(line) < LINE_BYTES_MAX or line.endswith(b"\n"):
                yield line.removeprefix(codecs.BOM_UTF8)
                continue
            raw = line[:1_000].decode("utf-8", "backslashreplace")
            while line and not line.endswith(b"\n"):
                line = self._bytes.readline(LINE_BYTES_MAX)
            yield BadRow("too_large", f"a line may have {LINE_BYTES_MAX:,} bytes", raw)


def _object(line: bytes, decode: Any) -> Row | BadRow:
    raw = line[:RAW_LENGTH_MAX].decode("utf-8", "backslashreplace").strip()
    try:
        value = decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return BadRow("invalid_json", str(error), raw)
    return value if type(value) is dict else BadRow("not_an_object", "a row is a JSON object", raw)


class ParquetFile:
    """Columns by name, in row groups; read a thousand rows at a time."""

    def __init__(self, path: Path) -> None:
        pa = arrow("reading")
        self.name = path.name
        self._damaged: type[Exception] = pa.ArrowException
        try:
            self._file = pa.parquet.ParquetFile(path)
        except (self._damaged, OSError) as error:
            raise InvalidValue(f"{path.name} is not a Parquet file: {error}") from None
        schema = self._file.schema_arrow
        fields = [field.with_type(_coarse(pa, field.type)) for field in schema]
        self._cut = None if fields == list(schema) else pa.schema(fields)
        self.size = int(self._file.metadata.num_rows)
        self._read = 0

    def columns(self) -> list[str]:
        """See `RowFile.columns`."""
        return _distinct(list(self._file.schema_arrow.names), self.name)

    def rows(self, skip: int = 0) -> Iterator[Row | BadRow]:
        """See `RowFile.rows`."""
        try:
            for batch in self._file.iter_batches(_PARQUET_ROWS):
                start = max(0, min(skip - self._read, len(batch)))
                self._read += len(batch)
                rows = batch.slice(start)
                yield from self._values(rows if self._cut is None else rows.cast(self._cut, safe=False))
        except (self._damaged, OSError) as error:
            raise InvalidValue(f"{self.name} is damaged from this point on: {error}") from None

    def _values(self, batch: Any) -> Iterator[Row | BadRow]:
        try:
            yield from batch.to_pylist()
        except (ValueError, OverflowError) as error:
            if len(batch) == 1:
                # A time that Python has no date for, for example.
                yield BadRow("invalid_value", f"the row has a value that cannot be read: {error}", "")
                return
            for number in range(len(batch)):
                yield from self._values(batch.slice(number, 1))

    def done(self) -> int:
        """Rows that have been read."""
        return self._read

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def _coarse(pa: Any, kind: Any) -> Any:
    """A type with microseconds in place of nanoseconds, however deep: data frames write these, Python knows those."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([field.with_type(_coarse(pa, field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_coarse(pa, kind.key_type), _coarse(pa, kind.item_type), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_coarse(pa, kind.value_type)), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        made = pa.large_list if types.is_large_list(kind) else pa.list_
        return made(kind.value_field.with_type(_coarse(pa, kind.value_type)))
    if not types.is_temporal(kind) or getattr(kind, "unit", "") != "ns":
        return kind
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.duration("us") if types.is_duration(kind) else pa.time64("us")
