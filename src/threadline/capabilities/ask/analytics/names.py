"""Names in questions: a property that no event has is refused with the nearest, for the answer would be 0 of 0."""

# Names and texts in queries are quoted; the rest is our own.
# ruff: noqa: S608

from __future__ import annotations

from typing import Any

import msgspec

from threadline.capabilities.ask.analytics.conditions_sql import kind_sql, pointer, read_conditions
from threadline.capabilities.foundation.conditions.fields import EVENT
from threadline.capabilities.foundation.conditions.tree import Path, tests_of
from threadline.kernel.analytics import literal
from threadline.kernel.errors import InvalidValue
from threadline.kernel.names import PROPERTY, Names, hint
from threadline.kernel.ports import Ports

_NAMES_MAX = 10_000


def path_of(by: str) -> Path:
    """The field of the event that a property's name leads to; one that ``event``, ``context`` or ``properties`` begins
    is a path already."""
    first, *steps = by.split(".")
    if first == EVENT and len(steps) == 1:
        return (EVENT, first, *steps)
    if first in ("context", "properties") and steps:
        return (EVENT, first, *steps)
    return (EVENT, "properties", first, *steps)


def lacking_property(engine: Ports, workspace: str, by: str) -> str:
    """What to say of a property that no event has; empty if one has it, or if that is not known yet."""
    first, *steps = by.split(".")
    names: Names = engine.catalogue.names
    if first == "features" and len(steps) == 1:
        return names.unknown("feature", steps[0])
    if not all((first, *steps)) or (first == EVENT and len(steps) == 1):
        return ""  # its operation says what is wrong with it
    return _lacking(engine, workspace, path_of(by))


def lacking_in_conditions(engine: Ports, workspace: str, text: str) -> str:
    """The same of the conditions of a parameter."""
    try:
        tree = read_conditions(text)
    except InvalidValue:
        return ""  # its operation says what is wrong with it
    paths = dict.fromkeys(test.path for test in tests_of(tree)) if tree is not None else ()
    problems = (_lacking(engine, workspace, path) for path in paths if path[1] in ("properties", "context"))
    return next(filter(None, problems), "")


def lacking_in_step(engine: Ports, workspace: str, text: str) -> str:
    """The same of a step, which has conditions where it is JSON."""
    try:
        step: Any = msgspec.json.decode(text) if text.startswith("{") else {}
    except msgspec.MsgspecError:
        return ""
    where = step.get("where") if isinstance(step, dict) else None
    return lacking_in_conditions(engine, workspace, msgspec.json.encode(where).decode()) if where else ""


def _lacking(engine: Ports, workspace: str, path: Path) -> str:
    _, first, *steps = path
    declared = {name for type in engine.catalogue.event_types.known for name in type.property_schemas}
    declared |= {*engine.catalogue.names.made.get(PROPERTY, ())}
    if first == "properties" and steps[0] in declared:
        return ""
    match = engine.analytics.query(workspace, f"SELECT 1 FROM events WHERE {kind_sql(path)} IS NOT NULL LIMIT 1", {})
    if match.rows or match.lacking:
        return ""
    for count in range(len(steps)):
        keys = (
            f"SELECT DISTINCT unnest(json_keys({first}, {literal(pointer(tuple(steps[:count])))})) AS name FROM events"
        )
        rows = engine.analytics.query(workspace, f"{keys} ORDER BY name LIMIT {_NAMES_MAX}", {}).rows
        known = {str(name) for (name,) in rows} | (declared if first == "properties" and not count else set())
        if steps[count] not in known:
            # Where nothing was sent yet, nothing is misspelt.
            within = "".join(f"{step}." for step in ((first,) if first == "context" else ()) + tuple(steps[:count]))
            return f"no event has the property {within + steps[count]!r}; {hint(steps[count], known)}" if rows else ""
    return ""
