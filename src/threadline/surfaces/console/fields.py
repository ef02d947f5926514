"""The fields of a form that asks an operation: one for each parameter, described as the operation describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, get_type_hints

import msgspec

from threadline.kernel.operation import EVENT_TYPE, Operation
from threadline.kernel.ports import Ports
from threadline.surfaces.console.formats import label
from threadline.surfaces.operation_calls import metas_of, offered_kinds

_NOT_ASKED = frozenset({"cursor", "limit"})


class Field(NamedTuple):
    """One field."""

    name: str
    """As forms send it; `LIST` or `JSON` of `actions` ends it where it is a list or an object."""
    title: str
    help: str
    kind: str
    """``text``, ``number``, ``time``, ``day``, ``switch``, ``choice``, ``lines`` or ``json``."""
    choices: tuple[str, ...] = ()
    """Of ``choice``, and of ``lines`` where each line is one of these: a box for each then."""
    default: str = ""
    """What holds where the field is left empty; of a switch ``true`` where it is on."""
    is_required: bool = False
    is_event_type: bool = False
    names: str = ""
    """The kind of what it is the name of; empty: of nothing that has one."""

    def shown(self, engine: Ports, workspace: str) -> dict[str, Any]:
        """It as templates take it, with the names that it offers."""
        offered = engine.catalogue.names.offered(self.names, engine, workspace) if self.names else []
        return {**self._asdict(), "offered": offered}


@lru_cache(maxsize=200)
def fields_of(params: type) -> tuple[Field, ...]:
    """The fields of an operation's parameters, in their order."""
    schema = msgspec.json.schema(params)
    defs = schema.get("$defs", {})
    described = _resolved(schema, defs)
    required = frozenset(described.get("required", ()))
    properties = described.get("properties", {}).items()
    hints = get_type_hints(params, include_extras=True)
    types = {field.encode_name for field in msgspec.structs.fields(params) if EVENT_TYPE in metas_of(hints[field.name])}
    kinds = offered_kinds(params)
    return tuple(
        _field(name, _resolved(property_schema, defs), name in required)._replace(
            is_event_type=name in types, names=kinds.get(name, "")
        )
        for name, property_schema in properties
        if name not in _NOT_ASKED
    )


def given(operation: Operation, query: Mapping[str, str], queries: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The parameters of an operation that an address gives; a text of several lines is a list."""
    values: dict[str, Any] = {}
    for field in fields_of(operation.params):
        if field.kind == "lines":
            texts = (*queries.get(field.name, ()), *queries.get(f"{field.name}:list", ()))
            several = [line.strip() for text in texts for line in text.splitlines()]
            if any(several):
                values[field.name] = [line for line in several if line]
        elif query.get(field.name, "").strip():
            values[field.name] = query[field.name].strip()
    return values


def _resolved(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        return {**_resolved(defs[schema["$ref"].rpartition("/")[2]], defs), **schema}
    for variant in schema.get("anyOf", ()):
        if variant.get("type") != "null":
            return {**_resolved(variant, defs), **{name: value for name, value in schema.items() if name != "anyOf"}}
    return schema


def _field(name: str, schema: Mapping[str, Any], is_required: bool) -> Field:
    default = schema.get("default")
    kinds = {"boolean": "switch", "integer": "number", "number": "number", "array": "lines", "object": "json"}
    of_each = schema.get("items", {}) if schema.get("type") == "array" else schema
    choices = tuple(str(choice) for choice in of_each.get("enum", ()) if choice is not None)
    kinds_of_text = {"date-time": "time", "date": "day"}
    plain = kinds_of_text.get(schema.get("format", ""), "text")
    kind = "choice" if choices and of_each is schema else kinds.get(schema.get("type", ""), plain)
    shown = default if isinstance(default, (str, int, float)) and not isinstance(default, bool) else ""
    if default is True:
        shown = "true"
    return Field(name, label(name), schema.get("description", ""), kind, choices, str(shown), is_required)
