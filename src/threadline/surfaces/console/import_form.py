"""The columns of a file as a form, and the mapping that it says: the one that `threadline import --map` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.kernel.errors import InvalidValue
from threadline.surfaces.importing.guessing import Column, property_name
from threadline.wire.table_mapping import READINGS

USES = {
    "": "leave out",
    "property": "property",
    "time": "time",
    "user_id": "user id",
    "email": "e-mail",
    "phone": "phone",
    "anonymous_id": "anonymous id",
    "identifier": "other identifier",
    "type": "event type",
    "timezone": "time zone",
}
"""What a column can be, and what the form calls it."""
READ_AS = {
    "plain": "text",
    "number": "number, 1234.56",
    "decimal_comma": "number, 1.234,56",
    "boolean": "yes or no",
    "json": "JSON",
}
FORMATS = {
    "iso": "2026-12-31 or 2026-12-31T09:00Z",
    "excel": "days as in Excel, 46387.5",
    "unix": "seconds since 1970",
    "unix_ms": "milliseconds since 1970",
    "unix_us": "microseconds since 1970",
    "%d.%m.%Y": "31.12.2026",
    "%d.%m.%Y %H:%M": "31.12.2026 09:00",
    "%d/%m/%Y": "31/12/2026, day first",
    "%m/%d/%Y": "12/31/2026, month first",
    "%Y%m%d": "20261231",
}
"""How times are written, and what the form calls it; others are patterns of their own."""
_ALONE = frozenset({"time", "type", "timezone", "user_id", "email", "phone", "anonymous_id"})
"""What one column at most can be."""


def begun(columns: Sequence[Column], now: str) -> dict[str, str]:
    """The form with what the columns are likely to mean."""
    fields = {"zone": "UTC", "at": now}
    if not any(column.use == "type" for column in columns):
        # Rows with a number of their own are things that happened; others are people.
        fields["type"] = "" if any(column.is_key for column in columns) else IDENTIFY
    for number, column in enumerate(columns):
        fields[f"c.{number}.use"] = column.use
        fields[f"c.{number}.name"] = property_name(column.name)
        fields[f"c.{number}.read"] = column.reading
        if column.is_key:
            fields[f"c.{number}.key"] = "1"
        if column.use == "time":
            fields["format"] = column.time_format
    return fields


def declared_of(fields: Mapping[str, str], columns: Sequence[Column]) -> dict[str, Any]:
    """The mapping that a form says. Raises `InvalidValue` for what is missing or there twice."""
    declared: dict[str, Any] = {}
    keys: list[str] = []
    for number, column in enumerate(columns):
        use, name = fields.get(f"c.{number}.use", ""), fields.get(f"c.{number}.name", "").strip()
        if fields.get(f"c.{number}.key"):
            keys.append(column.name)
        if use in _ALONE and use in declared:
            raise InvalidValue(f"two columns are the {USES[use]}; leave one out", param=f"c.{number}.use")
        if use == "property":
            _add(declared, "properties", name or property_name(column.name), _rule(fields, number, column), number)
        elif use == "identifier":
            _add(declared, "identifiers", name, column.name, number)
        elif use == "time":
            declared["time"] = _time(fields, column)
        elif use == "type":
            declared["type"] = {"column": column.name}
        elif use in USES and use:
            declared[use] = column.name
    if "type" not in declared:
        if not fields.get("type", "").strip():
            raise InvalidValue("say what the rows are: an event type, or a column that has it", param="type")
        declared["type"] = fields["type"].strip()
    if "time" not in declared:
        if not fields.get("at", "").strip():
            raise InvalidValue("choose a column with the time, or one time for all rows", param="at")
        declared["time"] = {"value": fields["at"].strip()}
    if keys:
        declared["key"] = keys
    return declared


def _add(declared: dict[str, Any], part: str, name: str, value: Any, number: int) -> None:
    param = f"c.{number}.name"
    if not name:
        raise InvalidValue("give the identifier a name, such as loyalty_card", param=param)
    if name in declared.setdefault(part, {}):
        raise InvalidValue(f"two columns are called {name[:64]!r}; rename one", param=param)
    declared[part][name] = value


def _rule(fields: Mapping[str, str], number: int, column: Column) -> Any:
    reading = fields.get(f"c.{number}.read", "")
    return {"column": column.name, reading: True} if reading in READINGS else {"column": column.name}


def _time(fields: Mapping[str, str], column: Column) -> Any:
    rule = {"column": column.name}
    if (format := fields.get("format", "").strip()) and format != "iso":
        rule["format"] = format
    if (zone := fields.get("zone", "").strip()) and zone != "UTC":
        rule["zone"] = zone
    return rule
