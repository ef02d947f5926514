"""Lists of people: all, or those of one identifier, tag or group."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import Identifiers, Instant, instant
from threadline.capabilities.events.parameters import Next, Page
from threadline.capabilities.people.operations import PEOPLE_GROUP
from threadline.capabilities.people.operations.person import Reads
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX
from threadline.kernel.operation import Context, Operation
from threadline.kernel.ports import Person, WithReader, WithStore

_PAGES_MAX = 50
"""Pages of the store that one page of people may take, where others' people lie in between."""


class PeopleParams(Page, kw_only=True, forbid_unknown_fields=True):
    """Which people to list: all, or those of one identifier, tag or group."""

    identifier: Annotated[
        str, Meta(description="A user id, or kind:value; nobody or one person.", max_length=1_024)
    ] = ""
    tag: Annotated[str, Meta(max_length=IDENTIFIER_LENGTH_MAX)] = ""
    group: Annotated[str, Meta(description="A group's id.", max_length=IDENTIFIER_LENGTH_MAX)] = ""


class PersonSummary(msgspec.Struct, kw_only=True):
    """A person in a list."""

    id: str
    identifiers: Identifiers
    events: int
    created_at: Instant
    last_seen_at: Instant | None


class PeoplePage(msgspec.Struct, kw_only=True):
    """People in a stable order that has no meaning."""

    people: list[PersonSummary]
    next: Next = ""


class Needs(Reads, WithStore, Protocol):
    """What is needed here of the engine."""


def _people(context: Context[Needs], params: PeopleParams) -> PeoplePage:
    if sum(map(bool, (params.identifier, params.tag, params.group))) > 1:
        raise InvalidValue("give one of `identifier`, `tag` and `group`")
    if params.identifier:
        found, following = _named(context, params.identifier), ""
    elif params.tag or params.group:
        found, following = _indexed(context, "tag" if params.tag else "group", params.tag or params.group, params)
    else:
        found, following = _everybody(context, params)
    return PeoplePage(people=[summary(context, each) for each in found], next=following)


def _named(context: Context[WithReader], identifier: str) -> list[Any]:
    try:
        return [context.engine.reader.person(context.workspace, identifier)]
    except NotFound:
        return []


def _indexed(context: Context[Needs], table: str, value: str, params: PeopleParams) -> tuple[list[Any], str]:
    engine = context.engine
    # The row at `after` was on the page before; it may be gone by now, so one more is read and it is left out if there.
    rows = engine.store.query(
        table, f"{context.workspace}/{value}", start=params.cursor, limit=min(params.limit + 1, 1_000)
    )
    ids = [row.key.sort for row in rows if row.key.sort != params.cursor][: params.limit]
    found = []
    for id in ids:
        # A partition is named by workspace and value together: where the name of a workspace holds the mark between
        # them, a row may be of another workspace, and is passed over.
        with contextlib.suppress(NotFound):
            person = engine.reader.person(context.workspace, id)
            if _has_now(context, person, table, value):
                found.append(person)
    return found, ids[-1] if ids and len(rows) == min(params.limit + 1, 1_000) else ""


def _has_now(context: Context[WithReader], person: Person, table: str, value: str) -> bool:
    """Whether somebody has a tag or is in a group whose row is there: the event of it may lie ahead of the clock."""
    if context.engine.reader.as_of(person, context.now).ahead() is None:
        return True
    return value in context.engine.reader.views(person, context.now, names=["profile"])["profile"][f"{table}s"]


def _everybody(context: Context[WithReader], params: PeopleParams) -> tuple[list[Any], str]:
    found: list[Any] = []
    after = params.cursor
    for _ in range(_PAGES_MAX):
        page, after = context.engine.reader.people(context.workspace, after, params.limit - len(found))
        found += page
        if not after or len(found) == params.limit:
            break
    return found, after


def summary(context: Context[Reads], person: Person) -> PersonSummary:
    """A person in a list."""
    rules = context.engine.catalogue.rules
    ordered = sorted(person.identifiers.values(), key=rules.rank)
    activity = context.engine.reader.views(person, context.now, names=["activity"]).get("activity", {})
    return PersonSummary(
        id=person.id, identifiers=[str(i) for i in ordered], events=person.position,
        created_at=instant(person.created_at), last_seen_at=activity.get("last_seen_at"),
    )  # fmt: skip


PEOPLE = Operation(
    name="people_list",
    group=PEOPLE_GROUP,
    summary="List people: all, or those with an identifier, a tag or a group.",
    params=PeopleParams,
    result=PeoplePage,
    run=_people,
    method="GET",
    path="/v1/people",
    example=PeopleParams(tag="vip", limit=20),
)
