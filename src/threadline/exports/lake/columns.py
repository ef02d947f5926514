"""Typed columns: one for each declared property and type; what does not fit stays in the JSON beside it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from threadline.exports.lake.lake import Column
from threadline.exports.lake.schema import pa
from threadline.kernel.limits import LAKE_COLUMNS_MAX
from threadline.kernel.requirement import Requirement

_TYPES = {"string": "string", "integer": "int64", "number": "double", "boolean": "bool"}
_INT64 = range(-(1 << 63), 1 << 63)
_NAME_LENGTH_MAX = 60
_properties = msgspec.json.Decoder(dict[str, Any])


def with_declared(columns: Sequence[Column], requirements: Mapping[str, Requirement]) -> list[Column]:
    """The columns, and after them those of properties that are declared now and have none.

    The first type of a property has the name ``p_<property>``. Another one, of another event or of a later definition,
    has a column of its own: a column never changes its type. Names differ in more than case, as engines ask for it.
    """
    result = list(columns)
    names = {column.name for column in result}
    known = {(column.property, column.type) for column in result}
    for declared in sorted({pair for name in sorted(requirements) for pair in _declared(requirements[name])}):
        if declared not in known and len(result) < LAKE_COLUMNS_MAX:
            name = _free_name(*declared, names)
            names.add(name)
            result.append(Column(name, *declared))
    return result


def with_columns(table: Any, columns: Sequence[Column], requirements: Mapping[str, Requirement]) -> Any:
    """Events with the typed columns that the definitions declare for their types, and no others."""
    wanted = {
        type: [column for column in columns if (column.property, column.type) in _declared(requirements[type])]
        for type in pa.compute.unique(table["type"]).to_pylist()
        if type in requirements
    }
    needed = [column for column in columns if any(column in declared for declared in wanted.values())]
    if not needed:
        return table
    types = table["type"].to_pylist()
    texts = table["properties"].to_pylist()
    values: dict[str, list[Any]] = {column.name: [None] * len(types) for column in needed}
    for at, (type, text) in enumerate(zip(types, texts, strict=True)):
        if chosen := wanted.get(type):
            properties = _properties.decode(text)
            for column in chosen:
                values[column.name][at] = _FITTING[column.type](properties.get(column.property))
    for column in needed:
        array = pa.array(values[column.name], pa.type_for_alias(column.type))
        table = table.append_column(pa.field(column.name, array.type), array)
    return table


def _declared(requirement: Requirement) -> set[tuple[str, str]]:
    """Properties of one type of events that have one plain type in its schema, and that type."""
    properties = requirement.schema.get("properties")
    pairs = set()
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        named = schema.get("type") if isinstance(schema, Mapping) else None
        types = [kind for kind in ([named] if isinstance(named, str) else named or ()) if kind != "null"]
        if len(types) == 1 and types[0] in _TYPES:
            pairs.add((name, _TYPES[types[0]]))
    return pairs


def _free_name(property: str, type: str, taken: Iterable[str]) -> str:
    plain = f"p_{re.sub('[^a-z0-9_]+', '_', property.lower())[:_NAME_LENGTH_MAX]}"
    digest = hashlib.sha256(f"{property}\0{type}".encode()).hexdigest()[:8]
    return next(name for name in (plain, f"{plain}_{type}", f"{plain}_{type}_{digest}") if name not in taken)


def _int64(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value in _INT64 else None


def _double(value: Any) -> float | None:
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return None
    return value if type(value) is float else None


_FITTING: Mapping[str, Callable[[Any], Any]] = {
    "string": lambda value: value if type(value) is str else None,
    "int64": _int64,
    "double": _double,
    "bool": lambda value: value if type(value) is bool else None,
}
