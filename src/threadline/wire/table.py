"""Rows of a table (CSV, JSON Lines, Parquet) as events of history, by a declared mapping."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any

import msgspec

from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.event_limits import check_type, too_deep
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import EVENT_BYTES_MAX, EVENT_KEY_LENGTH_MAX, JSON_DEPTH_MAX
from threadline.kernel.time import EARLIEST, LATEST, format_time, from_datetime, parse_time, to_datetime
from threadline.wire.message import check_identifiers, place_in_time, read_json
from threadline.wire.rejection import Rejection, rejection
from threadline.wire.table_mapping import (
    EXCEL,
    TIME_FORMATS,
    PropertyRule,
    TableMapping,
    TimeRule,
    TypeRule,
    check_columns,
    parse_mapping,
)

__all__ = ["RowDecoder", "TableMapping", "check_columns", "parse_mapping"]

Row = Mapping[str, Any]
"""Column -> cell. Cells are text (CSV), JSON values, or what Parquet holds: decimals, dates, lists."""

_encode_json = msgspec.json.Encoder(enc_hook=str).encode
_pack = msgspec.msgpack.Encoder(enc_hook=str).encode
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WITH_COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:([.' \u00a0\u202f\u2019])\d{3})(?:\1\d{3})*)(?:,\d*)?", re.ASCII)
_BETWEEN_GROUPS = re.compile("[.' \u00a0\u202f\u2019]")
_WITH_OFFSET = re.compile(r".*\d[Tt ].*(?:[Zz]|[+-]\d\d(?::?\d\d)?)\s*", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_COLUMN: Any = None
"""In place of a column's name, where none is named; "" may be the name of one."""
_DIGITS_MAX = 40
NUMBERS = frozenset({"number", "decimal_comma"})
"""Readings of which a value that is no text must be a number already."""
_TYPES_REMEMBERED = 1_000
_EXACT_DIGITS = 18
"""Digits of a whole number that `Decimal` multiplies by a unit of time without rounding."""
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class RowDecoder:
    """Reads the rows of one file by a mapping.

    The same row always has the same key: its key columns, or the file's name and the row's number where none are
    declared. So an import can be broken off and repeated. In a ``sparse`` row, such as an object of JSON, a column that
    is not there is an empty cell; elsewhere it means that the row was cut off. There ``a.b`` is also the field ``b`` of
    the object ``a``, where no field has that very name.
    """

    def __init__(self, mapping: TableMapping, *, file: str, source: str, workspace: str, sparse: bool = False) -> None:
        self._mapping = mapping
        self._file = file
        self._source = source
        self._workspace = workspace
        named = dict.fromkeys((*mapping.named_columns, *mapping.key))
        self._empty = named if sparse else None
        self._nested = {column: column.split(".") for column in named if "." in column} if sparse else {}
        self.lacking = set(named) if sparse else set[str]()
        """Columns of the mapping that no row so far has had: misspelt ones are silently empty in all rows."""
        self._types: dict[str, str] = {}
        """Cells of the column with the type, as far as they have been read, and the types."""
        self._properties = [
            (name, rule, rule.column or _NO_COLUMN, _TEXT_READERS[rule.reading])
            for name, rule in mapping.properties.items()
        ]

    def decode(self, row: Row, number: int, received_at: int) -> Event | Rejection:
        """The event of one row, or why it is none; the rejection's index is ``number``."""
        mapping, given, key = self._mapping, row, ""
        try:
            if self._empty is not None:
                nested = {column: value for column, value in self._values_inside(row) if value is not None}
                if self.lacking:
                    self.lacking.difference_update(row, nested)
                row = {**self._empty, **nested, **row}
            if None in row:
                # So Python's CSV reader says it. A row that is out of step with its header cannot be trusted at all.
                raise EventRejected("invalid_value", "the row has more cells than the header has columns")
            key = _key(row, mapping.key, self._file, number)
            sent_time = _time(row, mapping.time)
            at, marks = place_in_time(sent_time, None, received_at)
            return Event(
                type=self._type_of(row),
                identifiers=_identifiers(row, mapping.identifiers),
                occurred_at=at,
                key=key,
                source=self._source,
                source_type="external",
                workspace=self._workspace,
                properties=self._properties_of(row),
                context=_context(row, mapping.timezone),
                received_at=received_at,
                sent_time=sent_time,
                marks=marks,
                historical=True,
            )
        except EventRejected as refusal:
            return rejection(number, _raw(given), refusal, key)

    def _values_inside(self, row: Row) -> Iterator[tuple[str, Any]]:
        for column, steps in self._nested.items():
            value: Any = row
            for step in steps:
                value = value.get(step) if type(value) is dict else None
            yield column, value

    def _type_of(self, row: Row) -> str:
        cell = row.get(self._mapping.type.column)
        known = self._types.get(cell) if type(cell) is str else None
        if known is None:
            known = _type(row, self._mapping.type)
            if type(cell) is str and len(self._types) < _TYPES_REMEMBERED:
                self._types[cell] = known
        return known

    def _properties_of(self, row: Row) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        if self._mapping.all_columns:
            named = self._mapping.named_columns
            properties = {column: _plain(_cell(row, column), column) for column in row if column not in named}
        for name, rule, column, read_text in self._properties:
            value = row.get(column)
            if type(value) is not str:
                value = _property(row, rule)
            elif not value or value.isspace():
                value = None
            elif read_text is not None:
                value = read_text(value, rule.column)
            if value is not None or name in properties:
                properties[name] = value
        if self._mapping.all_columns:
            # An empty cell says nothing; it is not a property with the value null.
            properties = {name: value for name, value in properties.items() if value is not None}
        _check_properties(properties)
        return properties


def _raw(row: Row) -> bytes:
    try:
        return _encode_json(dict(row))
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        return repr(row).encode("utf-8", "backslashreplace")


# --- cells -----------------------------------------------------------------------------------------------------------


def _cell(row: Row, column: str) -> Any:
    """A cell, None for one that holds nothing. Raises `EventRejected` if there is no such column."""
    if column not in row:
        raise EventRejected(
            "missing_column", f"the row has no column {column!r}; it has {', '.join(map(str, row))[:200]}"
        )
    value = row[column]
    if isinstance(value, str):
        return None if not value or value.isspace() else value
    nan = math.isnan(value) if isinstance(value, float) else isinstance(value, Decimal) and value.is_nan()
    return None if nan else value


def _needed(row: Row, column: str) -> Any:
    value = _cell(row, column)
    if value is None:
        raise EventRejected("missing_column", f"the cell of {column!r} is empty")
    return value


def _text(value: Any, column: str) -> str:
    if isinstance(value, str):
        if not value.isascii() and _SURROGATE.search(value):
            raise EventRejected("invalid_value", f"{column!r} holds text that is not UTF-8")
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | date):
        raise EventRejected("invalid_value", f"{column!r} holds {type(value).__name__}, where text or a number belongs")
    # Tools that know no missing integers turn whole columns into fractions; 7.0 is still the customer 7.
    whole = _whole(value)
    return str(value if whole is None else whole)


def _whole(value: Any) -> int | None:
    """The integer that a fraction without a fractional part is, if it has a reasonable size."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _DIGITS_MAX:
        return int(value) if value == value.to_integral_value() else None
    return None


def _key(row: Row, columns: tuple[str, ...], file: str, number: int) -> str:
    if not columns:
        # The name of a file need not be UTF-8; the key must.
        key = f"{file.encode('utf-8', 'backslashreplace').decode()}:{number}"
    elif len(columns) == 1:
        key = _text(_needed(row, columns[0]), columns[0])
    else:
        # As JSON, so that ("a", "b c") and ("a b", "c") stay apart.
        key = _encode_json([_text(_needed(row, column), column) for column in columns]).decode()
    if len(key) <= EVENT_KEY_LENGTH_MAX:
        return key
    return f"row:{short_hash(key)}"


def _type(row: Row, rule: TypeRule) -> str:
    if rule.constant:
        return rule.constant
    name = _text(_needed(row, rule.column), rule.column)
    return check_type((rule.names or {}).get(name, name))


def _identifiers(row: Row, rules: tuple[tuple[str, str], ...]) -> tuple[Identifier, ...]:
    identifiers = []
    for kind, column in rules:
        value = _cell(row, column)
        if value is not None:
            identifiers.append(Identifier(kind, _text(value, column)))
    return check_identifiers(identifiers)


def _context(row: Row, timezone: PropertyRule | None) -> dict[str, Any]:
    """Where the person was. A cell that names no zone that exists is kept, and counts for nothing, as in any event."""
    if timezone is None:
        return {}
    value = _property(row, timezone)
    return {} if value is None else {"timezone": _text(value, timezone.column)}


# --- times -----------------------------------------------------------------------------------------------------------


def _time(row: Row, rule: TimeRule) -> int:
    if not rule.column:
        return rule.at
    value = _needed(row, rule.column)
    try:
        at = _instant(value, rule)
    except (InvalidValue, ValueError, OverflowError) as error:
        raise EventRejected("invalid_time", f"{rule.column!r}: {error}") from None
    if not EARLIEST <= at <= LATEST:
        raise EventRejected("invalid_time", f"{rule.column!r} is not between the years 1 and 9999")
    return at


def _instant(value: Any, rule: TimeRule) -> int:
    if isinstance(value, datetime):
        return _placed(value, rule.zone)
    if isinstance(value, date):
        return _placed(datetime.combine(value, time()), rule.zone)
    unit = TIME_FORMATS.get(rule.format)
    if unit:
        if type(value) is str and len(value) <= _EXACT_DIGITS and value.isascii() and value.isdigit():
            return int(value) * unit
        number = str(value).strip()
        if _NUMBER.fullmatch(number) is None:
            raise InvalidValue(f"{number[:40]!r} is not a number of seconds or parts of them")
        # Decimal, because a double does not hold the microseconds of a present time exactly.
        return int(Decimal(number) * unit)
    if rule.format == EXCEL:
        return _placed(_day_of_spreadsheet(value), rule.zone)
    text = _text(value, rule.column)
    if unit is None:
        try:
            moment = datetime.strptime(text, rule.format)  # noqa: DTZ007 — the zone is declared beside the format
        except ValueError:
            raise InvalidValue(f"{text[:40]!r} is not a time in the form {rule.format}") from None
        return _placed(moment, rule.zone)
    at = parse_time(text)
    if rule.zone is None or _WITH_OFFSET.fullmatch(text):
        return at
    return _placed(to_datetime(at).replace(tzinfo=None), rule.zone)


_DAY_ZERO = datetime(1899, 12, 30)  # noqa: DTZ001 — the zone is declared beside the format
_LEAP_DAY = 60
"""The number by which spreadsheets call 29 February 1900, a day that there was not; before it they are one off."""


def _day_of_spreadsheet(value: Any) -> datetime:
    """The local time that a spreadsheet has as days since the end of 1899 and parts of a day, to the millisecond."""
    number = str(value).strip().replace(",", ".")
    if _NUMBER.fullmatch(number) is None:
        raise InvalidValue(f"{number[:40]!r} is not a day of a spreadsheet such as 45292 or 45292.5")
    days = Decimal(number)
    if not 1 <= days < 2_958_466 or int(days) == _LEAP_DAY:
        raise InvalidValue(f"{number[:40]!r} is not a day between 1900 and 9999 as spreadsheets count them")
    milliseconds = int((days * 86_400_000).to_integral_value())
    return _DAY_ZERO + timedelta(days=days < _LEAP_DAY, milliseconds=milliseconds)


def _placed(moment: datetime, zone: tzinfo | None) -> int:
    """The instant of a datetime. An hour that the clocks showed twice is the first one."""
    return from_datetime(moment if moment.tzinfo is not None else moment.replace(tzinfo=zone or UTC))


# --- properties ------------------------------------------------------------------------------------------------------


def _check_properties(properties: dict[str, Any]) -> None:
    """Raise `EventRejected` for what breaks the limits that hold on every other way in."""
    try:
        text = _encode_json(properties)
    except UnicodeEncodeError:
        raise EventRejected("invalid_value", "a cell holds text that is not UTF-8") from None
    brackets = text.count(b"{") + text.count(b"[")
    if len(text) <= EVENT_BYTES_MAX and brackets <= JSON_DEPTH_MAX and _fits_64_bits(properties):
        return
    read_json(text, EVENT_BYTES_MAX)


def _fits_64_bits(value: Any) -> bool:
    try:
        _pack(value)
    except (OverflowError, TypeError, ValueError):
        return False
    return True


def _property(row: Row, rule: PropertyRule) -> Any:
    if not rule.column:
        return rule.constant
    value = _cell(row, rule.column)
    if value is None:
        return None
    if rule.reading == "plain" or not isinstance(value, str):
        value = _plain(value, rule.column)
        if rule.reading in NUMBERS and type(value) not in (int, float):
            raise EventRejected("invalid_value", f"{rule.column!r} holds {type(value).__name__}, not a number")
        return value
    read_text = _TEXT_READERS[rule.reading]
    return value if read_text is None else read_text(value, rule.column)


def _boolean(text: str, column: str) -> bool:
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise EventRejected("invalid_value", f"{column!r}: {text[:40]!r} is not true or false")
    return value


def _json(text: str, column: str) -> Any:
    try:
        return read_json(text.encode("utf-8", "surrogatepass"))
    except EventRejected as refusal:
        raise EventRejected(refusal.code, f"{column!r}: {refusal}") from None


def _number(text: str, column: str) -> int | float:
    text = text.strip()
    if _NUMBER.fullmatch(text) is None:
        raise EventRejected("invalid_value", f"{column!r}: {text[:40]!r} is not a number such as 1234.56")
    # An integer keeps all its digits; anything else becomes the nearest double, as it would in JSON.
    return int(text) if text.lstrip("+-").isdigit() and len(text) < _DIGITS_MAX else _finite(float(text), column)


def _number_with_comma(text: str, column: str) -> int | float:
    """A number as most of Europe and South America writes it, with or without signs between groups of three digits."""
    text = text.strip()
    if _WITH_COMMA.fullmatch(text) is None:
        raise EventRejected("invalid_value", f"{column!r}: {text[:40]!r} is not a number such as 1.234,56")
    return _number(_BETWEEN_GROUPS.sub("", text).replace(",", "."), column)


_TEXT_READERS: Mapping[str, Callable[[str, str], Any] | None] = {
    "plain": None,
    "number": _number,
    "decimal_comma": _number_with_comma,
    "boolean": _boolean,
    "json": _json,
}
"""How text becomes a value by each reading, for a column that messages name; None leaves the text as it is."""


def _finite(value: float, column: str) -> float:
    if not math.isfinite(value):
        raise EventRejected("number_out_of_range", f"{column!r} is not a number that JSON can hold")
    return value


def _plain(value: Any, column: str, depth: int = 1) -> Any:
    """A cell as a JSON value."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return _finite(value, column)
    if isinstance(value, Decimal):
        whole = _whole(value)
        return _finite(float(value), column) if whole is None else whole
    if isinstance(value, datetime):
        return format_time(from_datetime(value)) if value.tzinfo is not None else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if depth > JSON_DEPTH_MAX:
        raise too_deep()
    if isinstance(value, list | tuple):
        return [_plain(item, column, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item, column, depth + 1) for name, item in value.items()}
    raise EventRejected("invalid_value", f"{column!r} holds {type(value).__name__}, which has no form in JSON")
