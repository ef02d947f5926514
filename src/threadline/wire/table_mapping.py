"""How the columns of a table are declared to become events: the mapping of an import, checked once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Literal

from threadline.kernel.calendar import zone_names, zone_of
from threadline.kernel.errors import EventRejected, InvalidDefinition, InvalidValue
from threadline.kernel.event_limits import check_type
from threadline.kernel.identity import KIND_FORM, is_kind
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import parse_time
from threadline.wire.message import json_type

Reading = Literal["plain", "number", "decimal_comma", "boolean", "json"]
"""How a cell becomes a property: as it is, or read out of text as a number, a number with a decimal comma such as
``1.234,56``, a boolean or JSON."""

READINGS: tuple[Reading, ...] = ("number", "decimal_comma", "boolean", "json")
_PERSON_FIELDS = ("user_id", "anonymous_id", "email", "phone")
_FIELDS = ("type", "time", "timezone", *_PERSON_FIELDS, "identifiers", "properties", "key")
EXCEL = "excel"
TIME_FORMATS = {"iso": 0, EXCEL: 0, "unix": 1_000_000, "unix_ms": 1_000, "unix_us": 1}
"""Named forms of a time: ISO 8601 text, the day of a spreadsheet, or a number and how many microseconds one unit of it
is."""


@dataclass(frozen=True, slots=True)
class TypeRule:
    """Where the event's type stands: a constant, or a column whose values may be renamed."""

    constant: str = ""
    column: str = ""
    names: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TimeRule:
    """Where the time stands and how it is written; ``zone`` holds for times that do not say their own."""

    column: str
    """Empty: every row has the instant `at`."""
    format: str = "iso"
    """One of `TIME_FORMATS`, or a pattern of `datetime.strptime`."""
    zone: tzinfo | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class PropertyRule:
    """Where a property's value stands: a column and how to read it, or a constant if there is no column."""

    column: str = ""
    reading: Reading = "plain"
    constant: Any = None


@dataclass(frozen=True, slots=True)
class TableMapping:
    """A checked mapping. `parse_mapping` makes one."""

    type: TypeRule
    time: TimeRule
    timezone: PropertyRule | None
    """Where the person's time zone stands."""
    identifiers: tuple[tuple[str, str], ...]
    """(kind, column), in the order in which they are declared."""
    properties: Mapping[str, PropertyRule]
    all_columns: bool
    """Whether each column that the mapping does not name becomes a property of its own name."""
    key: tuple[str, ...]
    """The columns that together name a row for ever; none: the file's name and the row's number do."""

    named_columns: frozenset[str]
    """The columns that have a place of their own; ``all_columns`` means the others."""


def parse_mapping(declared: Any) -> TableMapping:
    """The mapping that a definition declares. Raises `InvalidDefinition` with what to write instead.

    A small one: ``{"type": "purchase_completed", "time": "date", "user_id": "customer", "key": ["order_id"],
    "properties": {"total": {"column": "dollars", "number": True}, "currency": {"value": "USD"}}}``.
    """
    fields = _object(declared, "the mapping", _FIELDS)
    for field in ("type", "time"):
        if field not in fields:
            raise InvalidDefinition(f"the mapping needs `{field}`")
    kinds = {kind: _column(fields[kind], kind) for kind in _PERSON_FIELDS if kind in fields}
    for kind, column in _object(fields.get("identifiers", {}), "`identifiers`").items():
        if not is_kind(kind):
            raise InvalidDefinition(f"`identifiers`: {kind!r} is not an identifier kind; write {KIND_FORM}")
        kinds[kind] = _column(column, f"identifiers.{kind}")
    if not kinds:
        raise InvalidDefinition("the mapping must say whose event a row is: `user_id: <column>` or another identifier")
    rules, all_columns = _properties(fields.get("properties", {}))
    type_, time = _type(fields["type"]), _time(fields["time"])
    timezone = _timezone(fields["timezone"]) if "timezone" in fields else None
    columns = [type_.column, time.column, *kinds.values(), *(rule.column for rule in rules.values())]
    if timezone is not None:
        columns.append(timezone.column)
    return TableMapping(
        type=type_,
        time=time,
        timezone=timezone,
        identifiers=tuple(kinds.items()),
        properties=rules,
        all_columns=all_columns,
        key=_key(fields.get("key", [])),
        named_columns=frozenset(column for column in columns if column),
    )


def check_columns(mapping: TableMapping, columns: Sequence[str], file: str, hint: str = "") -> None:
    """Raise `InvalidDefinition` for a column that the mapping names and the file has not. ``hint``: what to do then."""
    for column in sorted((mapping.named_columns | set(mapping.key)) - {"", *columns}):
        hint = hint or suggestion(column, columns, f"it has {', '.join(columns)[:200]}")
        raise InvalidDefinition(f"{file} has no column {column!r}; {hint}")


def _type(declared: Any) -> TypeRule:
    if isinstance(declared, str):
        return TypeRule(constant=_name(declared, "type"))
    fields = _object(declared, "`type`", ("column", "names"))
    names = _object(fields.get("names", {}), "`type.names`")
    renamed = {str(value): _name(name, f"type.names.{value}") for value, name in names.items()}
    return TypeRule(column=_column(fields.get("column"), "type"), names=renamed or None)


def _name(declared: Any, where: str) -> str:
    if not isinstance(declared, str) or not declared:
        raise InvalidDefinition(f"`{where}` must be the name of an event, such as purchase_completed")
    try:
        return check_type(declared)
    except EventRejected as refusal:
        raise InvalidDefinition(f"`{where}`: {refusal}") from None


def _time(declared: Any) -> TimeRule:
    if isinstance(declared, str):
        return TimeRule(_column(declared, "time"))
    fields = _object(declared, "`time`", ("column", "format", "zone", "value"))
    if "value" in fields:
        return _constant_time(fields)
    format, zone = fields.get("format", "iso"), fields.get("zone")
    if not isinstance(format, str) or (format not in TIME_FORMATS and "%" not in format):
        known = ", ".join(TIME_FORMATS)
        raise InvalidDefinition(f"`time.format` must be one of {known}, or a pattern such as %Y%m%d; not {format!r}")
    if format not in TIME_FORMATS:
        _check_pattern(format)
    if zone is not None and (not isinstance(zone, str) or zone not in zone_names()):
        raise InvalidDefinition(f"`time.zone` must be an IANA name such as Europe/Berlin, not {zone!r}")
    return TimeRule(_column(fields.get("column"), "time"), format, None if zone is None else zone_of(zone))


def _constant_time(fields: Mapping[str, Any]) -> TimeRule:
    if len(fields) > 1:
        raise InvalidDefinition("`time` has a constant `value` or a `column`, not both")
    try:
        return TimeRule("", at=parse_time(str(fields["value"])))
    except InvalidValue as error:
        raise InvalidDefinition(f"`time.value`: {error}") from None


def _timezone(declared: Any) -> PropertyRule:
    rule = _property(declared, "timezone")
    if rule.reading != "plain" or (not rule.column and rule.constant not in zone_names()):
        raise InvalidDefinition("`timezone` must name a column, or have a `value` such as Europe/Berlin")
    return rule


def _check_pattern(pattern: str) -> None:
    try:
        # A pattern that can be read at all is only found not to fit this text, which no time looks like.
        datetime.strptime("\0", pattern)  # noqa: DTZ007 — no time is read here
    except (ValueError, re.error) as error:
        if isinstance(error, ValueError) and "does not match format" in str(error):
            return
        raise InvalidDefinition(f"`time.format`: {pattern!r} is not a time pattern: {error}") from None
    raise InvalidDefinition(f"`time.format`: {pattern!r} names no part of a time")


def _properties(declared: Any) -> tuple[dict[str, PropertyRule], bool]:
    if declared == "*":
        return {}, True
    fields = dict(_object(declared, "`properties`"))
    all_columns = fields.pop("*", False)
    if type(all_columns) is not bool:
        raise InvalidDefinition('`properties."*"` must be true or false')
    return {name: _property(rule, f"properties.{name}") for name, rule in fields.items()}, all_columns


def _property(declared: Any, where: str) -> PropertyRule:
    if isinstance(declared, str):
        return PropertyRule(_column(declared, where))
    fields = _object(declared, f"`{where}`", ("column", "value", *READINGS))
    readings = [reading for reading in READINGS if fields.get(reading) is True]
    if any(type(fields.get(reading, False)) is not bool for reading in READINGS) or len(readings) > 1:
        raise InvalidDefinition(f"`{where}` may have one of {', '.join(READINGS)}, with the value true")
    if "value" in fields:
        if "column" in fields or readings:
            raise InvalidDefinition(f"`{where}` has a constant `value` or a `column`, not both")
        return PropertyRule(constant=fields["value"])
    return PropertyRule(_column(fields.get("column"), where), readings[0] if readings else "plain")


def _key(declared: Any) -> tuple[str, ...]:
    columns = [declared] if isinstance(declared, str) else declared
    if not isinstance(columns, list | tuple):
        raise InvalidDefinition("`key` must be a list of columns, such as [order_id]")
    return tuple(_column(column, "key") for column in columns)


def _column(declared: Any, where: str) -> str:
    if isinstance(declared, Mapping):
        declared = _object(declared, f"`{where}`", ("column",)).get("column")
    if not isinstance(declared, str) or not declared:
        raise InvalidDefinition(f"`{where}` must name a column, not {json_type(declared)}")
    return declared


def _object(declared: Any, where: str, known: Iterable[str] = ()) -> Mapping[str, Any]:
    if not isinstance(declared, Mapping) or not all(isinstance(name, str) for name in declared):
        raise InvalidDefinition(f"{where} must be an object with text as names, not {json_type(declared)}")
    known = tuple(known)
    for name in declared:
        if known and name not in known:
            raise InvalidDefinition(f"{where} has an unknown field {name!r}; {suggestion(name, known)}")
    return declared
