"""Schemas of events by their type, read from the section ``event_schemas``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from threadline.capabilities.foundation.definitions import Definitions, Noted, Part
from threadline.capabilities.foundation.definitions.declaring import Form, Named
from threadline.capabilities.foundation.schemas.checking import Checker
from threadline.capabilities.foundation.schemas.keywords import OUTERMOST, definition
from threadline.capabilities.foundation.schemas.validating import Problem, Unfit, compile_schema
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import Event
from threadline.kernel.extra import missing
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import EVENT_SCHEMAS_MAX, EVENT_TYPE_LENGTH_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX
from threadline.kernel.requirement import Requirement
from threadline.kernel.suggestion import suggestion

VIOLATION = "schema_violation"
"""The code of an event that does not fit."""

SHIPPED = "shipped"
"""Stands in the place of a schema for the one that ships."""

_PART = "event_schema_part"
_SCHEMA = {"anyOf": [{"const": SHIPPED}, definition(f"#/$defs/{_PART}", outermost=True)]}
_DEFS = {_PART: definition(f"#/$defs/{_PART}", outermost=False)}


def _requirement(part: Part) -> Requirement:
    """What is asked of events of a type."""
    if needed := missing("jsonschema_rs", "jsonschema-rs", "schemas"):
        raise InvalidValue(needed)
    if isinstance(part.value, str):
        return _shipped(part)
    note = part.noting()
    checker = Checker(part.value, note)
    checker.check()
    if note.noted:
        raise Noted
    # Without the name that it has elsewhere: its references are to its own parts, whatever it is called.
    nameless = {name: value for name, value in part.value.items() if name not in OUTERMOST}
    try:
        canonical_json(part.value)
        problem = compile_schema(nameless, branches=checker.branches)
    except InvalidValue as error:
        part.fail(str(error))
    except Unfit as error:
        part.fail(_cure(error), *error.at)
    else:
        return Requirement(part.name, _check(problem), part.value)
    raise Noted


def _shipped(part: Part) -> Requirement:
    if part.value != SHIPPED:
        raise InvalidValue(f"must be {_FORM.wanted}")
    requirement = shipped_schemas().get(part.name)
    if requirement is None:
        part.fail(f"no schema ships for it; {suggestion(part.name, shipped_schemas())}")
        raise Noted
    return requirement


_FORM = Form((str, dict), "a mapping, such as `{required: [total]}`", _requirement, _SCHEMA, _DEFS)
EVENT_SCHEMAS = Named(
    "event_schemas",
    "event schema",
    _FORM,
    "JSON Schema (2020-12) of the properties of events, by their type.",
    "purchase_completed",
    most=EVENT_SCHEMAS_MAX,
    names=re.compile(rf"(?!{re.escape(SYSTEM_PREFIX)})[\s\S]{{1,{EVENT_TYPE_LENGTH_MAX}}}"),
    named=f"a type of events has 1 to {EVENT_TYPE_LENGTH_MAX} characters and does not begin with {SYSTEM_PREFIX}",
    nodes_max=SCHEMA_NODES_MAX,
    depth_max=SCHEMA_DEPTH_MAX,
)
SECTION = EVENT_SCHEMAS.declared


def read_schemas(definitions: Definitions) -> list[Requirement]:
    """What is asked of events, one requirement for each type. Problems are noted in the documents."""
    return list(EVENT_SCHEMAS.read(definitions).values.values())


@lru_cache(maxsize=1)
def shipped_schemas() -> dict[str, Requirement]:
    """The schemas that ship, by type; none of them is asked until a file of definitions says so."""
    ours = Definitions.shipped("threadline.capabilities.foundation.schemas")
    schemas = {schema.name: schema for schema in read_schemas(ours)}
    ours.refuse()
    return schemas


def _cure(error: Unfit) -> str:
    text = f"`{error.at[-1]}`: {error}" if error.at else str(error)
    if error.at[-1:] == ("pattern",) or error.at[-2:-1] == ("patternProperties",):
        text += "; look-around and back-references are not taken, nor what compiles to more than a megabyte"
    return text


def _check(problem: Problem) -> Callable[[Event], None]:
    def check(event: Event) -> None:
        if violation := problem(event.properties):
            raise EventRejected(VIOLATION, violation)

    return check


def declare(definitions: Definitions) -> list[Requirement]:
    """A requirement for each type of events that has a schema."""
    return read_schemas(definitions)
