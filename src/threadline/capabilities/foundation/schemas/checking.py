"""What is asked of a schema before it is compiled: known keywords, references to its own parts, an end to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from threadline.capabilities.foundation.definitions import Place
from threadline.capabilities.foundation.schemas.keywords import (
    BRANCHES,
    DIALECT,
    FORMATS,
    INNER,
    OUTERMOST,
    OWN,
    PLAIN,
    TYPES,
)
from threadline.kernel.disclosure import DECLARED_IN_SCHEMA
from threadline.kernel.limits import SCHEMA_DEPTH_MAX, SCHEMA_PARTS_MAX
from threadline.kernel.suggestion import suggestion

Fail = Callable[[Place, str], None]
_KNOWN = INNER.keys() | PLAIN.keys()


class Checker:
    """Looks at the whole of one schema; ``fail`` is told of each mistake and its place.

    A schema that leads back to itself is refused: what it asks of an event could take a time that doubles with each
    level of that event.
    """

    def __init__(self, schema: dict[str, Any], fail: Fail) -> None:
        self._schema = schema
        self._fail = fail
        self._open: list[Place] = []
        """The schemas in which the one that is looked at stands, or from which references led to it."""
        self._parts: dict[Place, int] = {}
        self.branches = False
        """Whether alternatives stand in the schema."""

    def check(self) -> None:
        """Look at the schema."""
        types = self._schema.get("type", "object")
        if "object" not in (types if isinstance(types, list) else [types]):
            self._fail(("type",), "the properties of an event are an object; write `type: object`")
        if self._schema.get("$schema", DIALECT) != DIALECT:
            self._fail(("$schema",), f"a schema is read as JSON Schema 2020-12; write `$schema: {DIALECT}`, or nothing")
        parts = self._count(self._schema, ())
        if parts > SCHEMA_PARTS_MAX:
            self._fail(
                (), f"its references make {parts:,} schemas of it, at most {SCHEMA_PARTS_MAX:,} are allowed; use fewer"
            )

    def _count(self, schema: Any, at: Place) -> int:
        """Of how many schemas this one is made, each reference counted as what it leads to."""
        if isinstance(schema, bool):
            return 1
        if not isinstance(schema, dict):
            self._fail(at, "a schema must be a mapping, such as `{type: number}`")
            return 1
        if at not in self._parts:
            if len(self._open) > SCHEMA_DEPTH_MAX:
                self._fail(at, f"schemas may stand in each other {SCHEMA_DEPTH_MAX} levels deep")
                return 1
            self._open.append(at)
            self._listed(schema, at)
            self._parts[at] = 1 + sum(self._keyword(name, value, (*at, name)) for name, value in schema.items())
            self._open.pop()
        return self._parts[at]

    def _keyword(self, name: str, value: Any, at: Place) -> int:
        if name == DECLARED_IN_SCHEMA and not isinstance(value, bool):
            self._fail(at, f"`{name}` is true or false: whether the property is personal")
        if name.startswith(OWN) or (name in OUTERMOST and len(at) == 1):
            return 0
        if name not in _KNOWN:
            self._fail(at, _unknown(name))
            return 0
        self.branches = self.branches or name in BRANCHES
        match INNER.get(name), value:
            case "schema", _:
                return self._count(value, at)
            case "list", list():
                return sum(self._count(item, (*at, index)) for index, item in enumerate(value))
            case "map", dict():
                return sum(self._count(item, (*at, key)) for key, item in value.items())
        if name == "$ref":
            return self._referred(value, at)
        self._value(name, value, at)
        return 0

    def _listed(self, schema: dict[str, Any], at: Place) -> None:
        """What is listed beside a type must be of it: YAML reads NO as false and 1.0 as a number."""
        types = schema.get("type")
        wanted = [type for type in (types if isinstance(types, list) else [types]) if isinstance(type, str)]
        options = schema.get("enum")
        listed = [("enum", value) for value in options] if isinstance(options, list) else []
        if "const" in schema:
            listed.append(("const", schema["const"]))
        for keyword, value in listed:
            if wanted and not _types_of(value) & set(wanted):
                shown = msgspec.json.encode(value).decode()[:80]
                text = f"`{keyword}`: {shown} is no {' or '.join(wanted)}; what is meant as a text needs quotes here"
                self._fail((*at, keyword), text)

    def _value(self, name: str, value: Any, at: Place) -> None:
        """Mistakes that are made often, in better words than the driver has for them."""
        if name == "type":
            for wrong in [
                type_name for type_name in (value if isinstance(value, list) else [value]) if type_name not in TYPES
            ]:
                self._fail(at, f"{str(wrong)[:80]!r} is not a type; {suggestion(str(wrong), TYPES)}")
        elif name == "format" and value not in FORMATS:
            self._fail(at, f"{str(value)[:80]!r} is not a format that is checked; {suggestion(str(value), FORMATS)}")
        elif name == "required" and not isinstance(value, list):
            self._fail(at, "`required` is a list of names and stands beside `properties`, such as `required: [total]`")

    def _referred(self, reference: Any, at: Place) -> int:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            text = "a schema refers to its own parts only, such as `$ref: '#/$defs/money'`; nothing is fetched"
            self._fail(at, text)
            return 0
        schema: Any = self._schema
        path: Place = ()
        for step in reference.split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            inner = _under(schema, name)
            if inner is None:
                self._fail(at, f"nothing stands at {reference[:200]!r}")
                return 0
            (key, schema) = inner
            path = (*path, key)
        if path in self._open:
            self._fail(at, f"{reference[:200]!r} leads back to where it stands, without end; write out its levels")
            return 0
        return self._count(schema, path)


def _types_of(value: Any) -> set[str]:
    """Every type of JSON Schema that a value is of."""
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case int():
            return {"integer", "number"}
        case float():
            return {"number", "integer"} if value.is_integer() else {"number"}
        case str():
            return {"string"}
        case list():
            return {"array"}
    return {"object"}


def _under(value: Any, name: str) -> tuple[str | int, Any] | None:
    if isinstance(value, dict) and name in value:
        return name, value[name]
    if isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
        return int(name), value[int(name)]
    return None


def _unknown(name: str) -> str:
    if name in OUTERMOST:
        return f"`{name}` stands in the outermost schema only"
    return f"unknown keyword {name[:80]!r}; {suggestion(name, _KNOWN)} (what is your own begins with `{OWN}`)"
