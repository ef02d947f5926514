"""Schemas of events by their type, read from the section ``event_schemas``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import yaml

from threadline.capabilities.definitions import Definitions, Document, Place, Plain
from threadline.capabilities.schemas.checking import Checker
from threadline.capabilities.schemas.keywords import OUTERMOST, definition
from threadline.capabilities.schemas.validating import Problem, Unfit, compile_schema, installed
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import Event
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import EVENT_SCHEMAS_MAX, EVENT_TYPE_LENGTH_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX
from threadline.kernel.requirement import Requirement
from threadline.kernel.section import Section
from threadline.kernel.suggestion import suggestion

VIOLATION = "schema_violation"
"""The code of an event that does not fit."""

SHIPPED = "shipped"
"""Stands in the place of a schema for the one that ships."""

_PART = "event_schema_part"
_FORM = f"it has 1 to {EVENT_TYPE_LENGTH_MAX} characters and does not begin with {SYSTEM_PREFIX}"

SECTION = Section(
    name="event_schemas",
    schema={
        "type": "object",
        "description": "JSON Schema (2020-12) of the properties of events, by their type.",
        "propertyNames": {
            "minLength": 1, "maxLength": EVENT_TYPE_LENGTH_MAX, "not": {"pattern": f"^{re.escape(SYSTEM_PREFIX)}"},
        },
        "maxProperties": EVENT_SCHEMAS_MAX,
        "additionalProperties": {"anyOf": [{"const": SHIPPED}, definition(f"#/$defs/{_PART}", outermost=True)]},
    },
    defs={_PART: definition(f"#/$defs/{_PART}", outermost=False)},
)  # fmt: skip


def read_schemas(definitions: Definitions) -> list[Requirement]:
    """What is asked of events, one requirement for each type. Problems are noted in the documents."""
    found: dict[str, Requirement] = {}
    places: dict[str, str] = {}
    for document, section, value in definitions.section(SECTION.name):
        types = document.mapping(value, f"`{SECTION.name}`")
        if types and not installed():
            text = f"`{SECTION.name}` needs jsonschema-rs; install the extra: pip install 'threadline[schemas]'"
            document.fail(section, text)
            continue
        for type_, (key, node) in types.items():
            if type_.startswith(SYSTEM_PREFIX) or not 0 < len(type_) <= EVENT_TYPE_LENGTH_MAX:
                document.fail(key, f"{type_[:80]!r} cannot be the type of an event; {_FORM}")
            elif document.once(key, f"the schema of {type_!r}", places):
                if document.literal(node) == SHIPPED:
                    requirement = _shipped(document, type_, node)
                else:
                    requirement = _Reader(document, type_, node).requirement()
                if requirement is not None:
                    found[type_] = requirement
    if len(found) > EVENT_SCHEMAS_MAX:
        definitions.problems.append(
            f"{len(found)} event schemas are declared, at most {EVENT_SCHEMAS_MAX} are allowed; remove some"
        )
    return [found[name] for name in sorted(found)]


@lru_cache(maxsize=1)
def shipped_schemas() -> dict[str, Requirement]:
    """The schemas that ship, by type; none of them is asked until a file of definitions says so."""
    ours = Definitions.shipped("threadline.capabilities.schemas")
    found = {each.name: each for each in read_schemas(ours)}
    ours.refuse()
    return found


def _shipped(document: Document, type_: str, node: yaml.Node) -> Requirement | None:
    found = shipped_schemas().get(type_)
    if found is None:
        known = suggestion(type_, shipped_schemas())
        document.fail(node, f"event schema {type_!r}: no schema ships for it; {known}")
    return found


class _Reader:
    """One schema; each mistake is noted where it stands."""

    def __init__(self, document: Document, type_: str, node: yaml.Node) -> None:
        self._document = document
        self._type = type_
        self._node = node
        self._plain = Plain(document, "schema of events", nodes_max=SCHEMA_NODES_MAX, depth_max=SCHEMA_DEPTH_MAX)

    def requirement(self) -> Requirement | None:
        """The requirement; None if something is wrong with the schema."""
        if not isinstance(self._node, yaml.MappingNode):
            self._fail((), "a schema must be a mapping, such as `{required: [total]}`")
            return None
        before = len(self._document.problems)
        schema = self._plain.value(self._node)
        if len(self._document.problems) == before:
            checker = Checker(schema, self._fail)
            checker.check()
            if len(self._document.problems) == before:
                return self._compiled(schema, branches=checker.branches)
        return None

    def _compiled(self, schema: dict[str, Any], *, branches: bool) -> Requirement | None:
        # Without the name that it has elsewhere: its references are to its own parts, whatever it is called.
        nameless = {name: value for name, value in schema.items() if name not in OUTERMOST}
        try:
            canonical_json(schema)
            problem = compile_schema(nameless, branches=branches)
        except InvalidValue as error:
            self._fail((), str(error))
            return None
        except Unfit as error:
            self._fail(error.at, _cure(error))
            return None
        return Requirement(self._type, _check(problem), schema)

    def _fail(self, at: Place, text: str) -> None:
        self._document.fail(self._at(at), f"event schema {self._type!r}: {text}")

    def _at(self, at: Place) -> yaml.Node:
        """The key at a place, which may stand some lines above what it leads to, or the node around it."""
        around = self._plain.nearest(at[:-1]) if at else self._node
        pairs = around.value if at and isinstance(around, yaml.MappingNode) else ()
        return next((key for key, _ in pairs if key.value == at[-1]), self._plain.nearest(at) if at else around)


def _cure(error: Unfit) -> str:
    text = f"`{error.at[-1]}`: {error}" if error.at else str(error)
    if error.at[-1:] == ("pattern",) or error.at[-2:-1] == ("patternProperties",):
        text += "; look-around and back-references are not taken, nor what compiles to more than a megabyte"
    return text


def _check(problem: Problem) -> Callable[[Event], None]:
    def check(event: Event) -> None:
        if told := problem(event.properties):
            raise EventRejected(VIOLATION, told)

    return check
