"""The input schema of a tool, made of the parameters of its operations and kept short: an agent reads all of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from threadline.kernel.operation import Operation
from threadline.surfaces.mcp.bounds import AT, FROM
from threadline.surfaces.mcp.tool import Call, Tool

LEFT_OUT = frozenset({"request", "dry_run"})
"""Parameters that `confirm` sets."""
OF_PAGES = frozenset({"limit", "cursor"})
"""Parameters that any choice may be given; where nothing has pages they say nothing."""
_SENTENCE = re.compile(r"\. (?=[A-Z`])")
_PART = {
    AT: {"type": "string", "description": "JSON Pointer of a part of the answer, from an entry of `more`."},
    FROM: {"type": "integer", "minimum": 0, "description": "The first element of that part, likewise."},
}
OUTPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "notice": {"type": "string"},
        "operation": {"type": "string"},
        "answer": {},
        "more": {"type": "array", "items": {"type": "object"}},
        "error": {"type": "object"},
    },
    # Some clients hold failures against it as well.
    "anyOf": [{"required": ["notice", "operation", "answer"]}, {"required": ["error"]}],
}
"""Of every tool."""


def input_schema(tool: Tool, calls: Mapping[str, Call], operations: Mapping[str, Operation]) -> dict[str, Any]:
    """The arguments of a tool, for a caller who may make these calls."""
    of_values = {value: _parameters(operations[call.operation], call) for value, call in calls.items()}
    choice: dict[str, Any] = {"enum": list(calls)}
    if not tool.must_choose:
        choice["default"] = next(iter(calls))
    properties: dict[str, Any] = {tool.choice: choice}
    for name in dict.fromkeys(name for properties_of in of_values.values() for name in properties_of[0]):
        by_value = {value: of_values[value][0].get(name) for value in calls}
        if name in OF_PAGES:
            by_value = {value: schema for value, schema in by_value.items() if schema is not None}
            by_value = dict.fromkeys(by_value, next(iter(by_value.values())))
        properties[name] = _merged(by_value)
    required = [name for name in properties if all(name in needed for _, needed in of_values.values())]
    return {
        "type": "object",
        "properties": {**properties, **_PART},
        "required": [*([tool.choice] if tool.must_choose else []), *required],
        "additionalProperties": False,
    }


def _parameters(operation: Operation, call: Call) -> tuple[dict[str, dict[str, Any]], frozenset[str]]:
    properties, required = _of_params(operation.params)
    names = {there: here for here, there in call.renamed.items()}
    shown = {
        names.get(name, name): schema for name, schema in properties.items() if name not in LEFT_OUT | call.fixed.keys()
    }
    return shown, frozenset(names.get(name, name) for name in required - LEFT_OUT) | call.needed


@lru_cache(maxsize=1_000)
def _of_params(params: type) -> tuple[dict[str, dict[str, Any]], frozenset[str]]:
    components = msgspec.json.schema_components([params])[1]
    schema = components[params.__name__]
    short = {name: _short(property_schema) for name, property_schema in schema.get("properties", {}).items()}
    return short, frozenset(schema.get("required", ()))


def _short(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without what an agent seldom needs: the operation itself checks every bound."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    inner = kinds[0] if len(kinds) == 1 else {}
    short: dict[str, Any] = {}
    if "$ref" in schema or "$ref" in inner:
        short["type"] = "object"
    for name in ("type", "enum", "format"):
        if name in schema or name in inner:
            short[name] = schema.get(name, inner.get(name))
    items = schema.get("items", inner.get("items"))
    if isinstance(items, dict) and "type" in items:
        short["items"] = {"type": items["type"]}
    if meaning := schema.get("description", inner.get("description", "")):
        short["description"] = _SENTENCE.split(meaning)[0].rstrip(".")
    return short


def _merged(schemas: Mapping[str, dict[str, Any] | None]) -> dict[str, Any]:
    """What the calls that take a parameter allow, by the value of the tool's choice; None: the call takes none.

    Each meaning has the choices for which it holds. One description for all would be wrong for some of them: an agent
    then gives a person where the id of an event belongs.
    """
    taking = {value: schema for value, schema in schemas.items() if schema is not None}
    kinds = [{name: schema[name] for name in schema if name != "description"} for schema in taking.values()]
    distinct = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
    merged = dict(distinct[0]) if len(distinct) == 1 else {"anyOf": distinct} if all(distinct) else {}
    meanings: dict[str, list[str]] = {}
    for value, schema in taking.items():
        meanings.setdefault(schema.get("description", ""), []).append(value)
    described = [f"{meaning}{_of_choices(values, schemas)}".strip() for meaning, values in meanings.items()]
    return {**merged, "description": "; ".join(described)} if any(described) else merged


def _of_choices(values: list[str], all_values: Collection[str]) -> str:
    """The choices in brackets, or those left out if they are fewer; nothing where all are meant."""
    others = [value for value in all_values if value not in values]
    if not others:
        return ""
    return f" [{', '.join(values)}]" if len(values) <= len(others) else f" [all but {', '.join(others)}]"
