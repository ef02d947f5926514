"""The fields that a condition can name: what is declared and what some people have, each with its type and samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import in_force
from threadline.capabilities.foundation.conditions import Path, Subject, Test
from threadline.capabilities.foundation.conditions.fields import (
    EVENT,
    EVENT_FIELDS,
    PROFILE,
    RELATIVE,
    Read,
    reader,
    wrong_path,
)
from threadline.capabilities.foundation.conditions.operators import decimal_of, instant_of
from threadline.capabilities.foundation.conditions.wording import field_text
from threadline.capabilities.foundation.definitions.schema import DEFINITIONS_GROUP
from threadline.capabilities.profile.segments.definition import SECTION_NAME, read_segments
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Params, operation

EVENTS = 20
"""Of each person, the newest."""
DEPTH_MAX, KEYS_MAX, FIELDS_MAX, SAMPLES_MAX, SAMPLE_MAX = 2, 50, 600, 5, 60
FEW = 10
"""People of whom a field may be one person's own, such as an identifier; of more people it is not listed."""
FIRST = ("traits", "tags", "features", SECTION_NAME, "memory", "streaks", "points", "interests")
"""What is listed before the rest, which is in the order of the alphabet."""


class FieldsParams(Params, kw_only=True):
    """How far to look."""

    people: Annotated[int, Meta(description="How many people are looked at.", ge=0, le=500)] = 50
    events: Annotated[
        bool, Meta(description="Fields of the event as well, as in rules: those of the newest events of these people.")
    ] = False


@key_fields("text", "type", "samples")
class FieldView(msgspec.Struct, kw_only=True):
    """A field."""

    field: Annotated[str | list[str], Meta(description="As a condition names it.")]
    text: Annotated[str, Meta(description="In words.")]
    within: Annotated[str, Meta(description="What it is a part of: `traits`, `features`, another view, or `event`.")]
    type: Annotated[str, Meta(description="`number`, `text`, `time`, `flag` or `list`; empty: nobody has a value.")]
    samples: Annotated[list[Any], Meta(description="Up to five values that people have; of a list its members.")]


class FieldsResult(msgspec.Struct, kw_only=True):
    """Fields that conditions can name. There may be others: any trait, and any property of an event, can be named."""

    fields: list[FieldView]


@operation(
    "GET /v1/definitions/fields",
    DEFINITIONS_GROUP,
    shown_on=frozenset({"http", "python"}),
    relies_on=("people",),
    example=FieldsParams(people=10),
)
def fields(context: Context, params: FieldsParams) -> FieldsResult:
    """List the fields that a condition can name, with their types and samples of their values."""
    catalogue, by_path = context.engine.catalogue, dict[Path, list[Any]]()
    names = [projection.name for projection in catalogue.projections]
    _collect(by_path, Subject({name: catalogue.of_nobody(name, context.now) for name in names}.get, None, 0), names)
    for segment in read_segments(in_force(catalogue)) or ():
        by_path.setdefault((SECTION_NAME, segment.name, "since"), [])
    people, _ = context.engine.reader.people(context.workspace, "", params.people) if params.people else ((), "")
    for person in people:
        views = context.engine.reader.views(person, context.now)
        _collect(by_path, Subject(views.get, None, context.now), names)
        events = context.engine.reader.events(person, limit=EVENTS, reverse=True) if params.events else ()
        for recorded in events:
            _collect(by_path, Subject(views.get, recorded, context.now), [EVENT])
    fields = [
        view
        for path, values in by_path.items()
        if (len(people) <= FEW or len(values) != 1 or path[0] in FIRST) and (type := _type(path, values)) is not None
        for view in _views(path, type, values)
    ]
    return FieldsResult(fields=sorted(fields, key=_order)[:FIELDS_MAX])


def _order(view: FieldView) -> tuple[int, str, str]:
    return FIRST.index(view.within) if view.within in FIRST else len(FIRST), view.within, view.text


def _collect(by_path: dict[Path, list[Any]], subject: Subject, names: list[str]) -> None:
    """Add what a subject has, the values that it has as conditions read them."""
    for name in names:
        for path in _event_paths(subject) if name == EVENT else _paths(name, subject.view(name)):
            if (read := _reader(path)) is not None:
                value = read(subject)
                by_path.setdefault(path, []).extend([] if value in (None, "") else [value])


@lru_cache(maxsize=2 * FIELDS_MAX)
def _reader(path: Path) -> Read | None:
    """How a field is read, which is the same for everybody; None for what no condition can name."""
    return None if wrong_path(path) else reader(path)


def _event_paths(subject: Subject) -> Iterator[Path]:
    assert subject.recorded is not None
    for name in EVENT_FIELDS:
        inner = getattr(subject.recorded.event, name, None)
        yield from _inner((EVENT, name), inner, DEPTH_MAX) if isinstance(inner, dict) else [(EVENT, name)]


def _paths(name: str, view: Any) -> Iterator[Path]:
    if name == SECTION_NAME:  # of a segment only `since` is known to a condition
        yield from ((name, segment, "since") for segment in view or ())
    elif isinstance(view, dict):
        yield from _inner((), view, DEPTH_MAX + 1) if name == PROFILE else _inner((name,), view, DEPTH_MAX)


def _inner(steps: Path, value: Any, depth: int) -> Iterator[Path]:
    if isinstance(value, dict) and steps and "value" in value:
        value, depth = value["value"], max(depth, 1)
    if not isinstance(value, dict):
        yield steps
    elif depth:
        for key in islice(value, KEYS_MAX):
            yield from _inner((*steps, key), value[key], depth - 1)


def _type(path: Path, values: list[Any]) -> str | None:
    """The type of a field, empty where nobody has a value; None for what conditions cannot compare."""
    value = next(iter(values), None)
    if path[0] == SECTION_NAME:
        return "time"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, list):
        fits = not any(isinstance(member, (list, dict)) for items in values for member in items)
        return "list" if fits and (any(values) or len(path) == 1) else None
    if isinstance(value, str):
        return "time" if instant_of(value) is not None else "number" if decimal_of(value) is not None else "text"
    if isinstance(value, dict):
        return None
    return "" if value is None else "number"


def _views(path: Path, type: str, values: list[Any]) -> Iterator[FieldView]:
    members = [member for value in values for member in (value if isinstance(value, list) else [value])]
    fit = (
        member
        for member in members
        if member is not None and not isinstance(member, dict) and len(str(member)) <= SAMPLE_MAX
    )
    yield _view(path, type, list({repr(member): member for member in fit}.values())[:SAMPLES_MAX])
    if type == "time":
        # Nobody will have joined a segment.
        firsts = ("days_since",) if path[0] == SECTION_NAME else [name for name in RELATIVE if name.startswith("days")]
        yield from (_view((first, *path), "number", []) for first in firsts)


def _view(path: Path, type: str, samples: list[Any]) -> FieldView:
    within = next(step for step in path if step not in RELATIVE)
    return FieldView(
        field=Test(path, "exists", True).field, text=field_text(path), within=within, type=type, samples=samples
    )
