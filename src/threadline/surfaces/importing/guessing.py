"""What the columns of a file are likely to mean, by their names and first values: a mapping to begin with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from threadline.kernel.address import normal_address
from threadline.kernel.errors import InvalidValue
from threadline.kernel.time import parse_time
from threadline.surfaces.importing.files import CSV_ENDINGS, DELIMITERS, BadRow, open_rows
from threadline.wire.table import Row
from threadline.wire.table_mapping import EXCEL, Reading

SAMPLE_ROWS = 200
"""Rows that are looked at."""
COLUMNS_MAX = 200
SAMPLES_SHOWN = 3
MOST = 0.6
"""The share of values from which on a column is taken for what they are."""
_PATTERNS = ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M")
"""Forms of a time beside those with a name, the likelier first."""
_TIME = re.compile(
    r"(^|[_\W])(date|day|time|timestamp|created|occurred|signed|ordered|at|on|datum|zeit)([_\W]|$)|date|time"
)
_USER = re.compile(
    r"^(user|customer|client|contact|member|person|account)([_\W]*(id|no|nr|number))?$|^uid$|^distinct_id$"
)
_KEY = re.compile(
    r"^(order|transaction|invoice|event|message|row|receipt)?[_\W]*(id|no|nr|number|key|uuid)$|^insert_id$"
)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_COMMA = re.compile(r"[+-]?\d{1,3}([.' \u00a0\u202f]\d{3})*,\d+|[+-]?\d+,\d+")
_TYPES = ("event", "event_type", "event_name", "type", "kind", "action")
_FLAGS = frozenset({"true", "false", "yes", "no"})


class Column(NamedTuple):
    """A column of a file."""

    name: str
    samples: tuple[str, ...]
    """Its first values that differ."""
    use: str
    """What it is likely to be: ``type``, ``time``, ``user_id``, ``email``, ``phone``, ``timezone``, ``property``, or
    empty: it has no value in the rows that were looked at."""
    reading: Reading
    is_key: bool
    time_format: str
    """Of a column with times how they are written; see `TimeRule`."""


def delimiter_of(path: Path) -> str:
    """What separates the cells of a file of CSV, by its first line; empty for another file, and for the usual one."""
    if not any(ending in CSV_ENDINGS for ending in path.suffixes):
        return ""
    with suppress(InvalidValue), closing(open_rows(path)) as file:
        names = file.columns() or ()
        if len(names) == 1:
            counts = {sign: names[0].count(sign) for sign in DELIMITERS}
            best = max(counts, key=lambda sign: counts[sign])
            return best if counts[best] else ""
    return ""


def columns_of(path: Path, delimiter: str) -> list[Column]:
    """The columns of a file and what each is likely to be. Raises `InvalidValue` for a file that cannot be read."""
    with closing(open_rows(path, delimiter)) as file:
        declared = file.columns()
        rows = [row for row in islice(file.rows(), SAMPLE_ROWS) if not isinstance(row, BadRow)]
    flat = rows if declared is not None else [dict(_flat(row)) for row in rows]
    names = list(dict.fromkeys(declared or (name for row in flat for name in row)))[:COLUMNS_MAX]
    values = {name: [str(row[name]) for row in flat if row.get(name) not in (None, "")] for name in names}
    columns = [_column(name, values[name]) for name in names]
    return [*_settled(columns)]


def _flat(row: Row, before: str = "") -> Iterable[tuple[str, Any]]:
    """The fields of an object, those inside objects by their paths."""
    for name, value in row.items():
        if isinstance(value, Mapping) and value and before.count(".") < 2:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _column(name: str, values: Sequence[str]) -> Column:
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.rpartition(".")[2]).strip().lower()
    samples = tuple(dict.fromkeys(values))[:SAMPLES_SHOWN]
    time_format = _time_format(values) if _TIME.search(plain) else ""
    return Column(
        name, samples, _use(plain, values, time_format), _reading(values), bool(_KEY.match(plain)), time_format
    )


def _use(plain: str, values: Sequence[str], time_format: str) -> str:
    if not values:
        return ""
    if _most(values, normal_address):
        return "email"
    if time_format:
        return "time"
    if plain in _TYPES and all(re.fullmatch(r"[A-Za-z][\w .-]{0,60}", value) for value in values):
        return "type"
    if _USER.match(plain):
        return "user_id"
    if plain in ("phone", "mobile", "telephone"):
        return "phone"
    return "timezone" if plain in ("timezone", "time_zone", "tz") else "property"


def _settled(columns: Sequence[Column]) -> Iterable[Column]:
    """The same, with one column at most of what there can be one of: the first, what comes after is a property."""
    used: set[str] = set()
    has_key = False
    for column in columns:
        is_second = column.use in used and column.use != "property"
        is_key = column.is_key and column.use in ("property", "") and not has_key and bool(column.samples)
        has_key = has_key or is_key
        used.add(column.use or "property")
        yield column._replace(use="property" if is_second else column.use, is_key=is_key)


def _most(values: Sequence[str], fits: Callable[[str], object]) -> bool:
    """Whether so many of these fit that the others are likely mistakes."""
    return bool(values) and sum(bool(fits(value)) for value in values) >= MOST * len(values)


def _time_format(values: Sequence[str]) -> str:
    """How most of these are written as times; empty: they are none."""
    if _most(values, re.compile(r"\d{5}([.,]\d+)?").fullmatch):
        return EXCEL
    for length, name in ((10, "unix"), (13, "unix_ms"), (16, "unix_us")):
        if _most(values, re.compile(rf"\d{{{length}}}(\.\d+)?").fullmatch):
            return name
    if _most(values, _is_iso):
        return "iso"
    return next((pattern for pattern in _PATTERNS if _most(values, partial(_fits, pattern))), "")


def _is_iso(text: str) -> bool:
    try:
        parse_time(text)
    except (InvalidValue, ValueError):
        return False
    return True


def _fits(pattern: str, text: str) -> bool:
    try:
        datetime.strptime(text.strip(), pattern)  # noqa: DTZ007 — only whether it is one
    except ValueError:
        return False
    return True


def _reading(values: Sequence[str]) -> Reading:
    texts = [value.strip() for value in values]
    # What begins with a zero is a name, such as a postal code.
    if not texts or any(re.match(r"[+-]?0\d", text) for text in texts):
        return "plain"
    if _most(texts, _NUMBER.fullmatch):
        return "number"
    if _most(texts, lambda text: _COMMA.fullmatch(text) or text.isdecimal()):
        return "decimal_comma"
    return "boolean" if _most(texts, lambda text: text.lower() in _FLAGS) else "plain"


def guessed(columns: Sequence[Column], type: str) -> dict[str, Any]:
    """The mapping that columns are likely to have, as it is declared. What it lacks, such as a time, is to be added."""
    declared: dict[str, Any] = {"type": type}
    for column in columns:
        if column.use == "time":
            iso = column.time_format == "iso"
            declared["time"] = column.name if iso else {"column": column.name, "format": column.time_format}
        elif column.use == "property":
            rule = column.name if column.reading == "plain" else {"column": column.name, column.reading: True}
            declared.setdefault("properties", {})[property_name(column.name)] = rule
        elif column.use:
            declared[column.use] = {"column": column.name} if column.use == "type" else column.name
        if column.is_key:
            declared["key"] = [column.name]
    return declared


def property_name(column: str) -> str:
    """What a property of a column is called."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.rpartition(".")[2].strip())
    return re.sub(r"\W+", "_", name).strip("_").lower() or "value"
