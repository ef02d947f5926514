"""A person as callers read them: everything at one position, pages of people, and tags put on and taken off."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import (
    EventView,
    Instant,
    PersonRef,
    event_view,
    instant,
    write_cursor,
)
from threadline.capabilities.events.instants import AsOf, then
from threadline.capabilities.events.wishes import RequestKey, place_and_key, wish
from threadline.capabilities.features.operations import FeatureView, feature_views
from threadline.capabilities.people.events import TAG_ADDED, TAG_REMOVED
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.event import Event, Receipt, thread_id
from threadline.kernel.limits import FUTURE_MAX_SECONDS, IDENTIFIER_LENGTH_MAX
from threadline.kernel.operation import Context, Operation
from threadline.kernel.ports import Person, WithCatalogue, WithLog, WithReader, WithRecorder, WithStore
from threadline.kernel.time import SECOND

_PAGES_MAX = 50
"""Pages of the store that one page of people may take, where others' people lie in between."""

# --- one person -------------------------------------------------------------------------------


class PersonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whom to show, and at which instant."""

    id: PersonRef
    as_of: AsOf = None
    timeline: Annotated[int, Meta(description="How many of the newest events to show.", ge=0, le=100)] = 20


class IdentifierUse(msgspec.Struct, kw_only=True):
    """An identifier and when it was in use."""

    kind: str
    value: str
    linked: Annotated[
        bool, Meta(description="False: it came with events but does not name this person, e.g. one set aside.")
    ]
    first_used_at: Instant | None = None
    last_used_at: Instant | None = None


class TimerView(msgspec.Struct, kw_only=True):
    """Something that will happen by time alone."""

    policy: str
    key: str
    due_at: Instant


class Timeline(msgspec.Struct, kw_only=True):
    """The newest events, newest first; ``next`` is a cursor for the operation `events`."""

    events: list[EventView]
    next: str = ""


class PersonView(msgspec.Struct, kw_only=True):
    """Everything known of a person, all of it at one position."""

    id: str
    workspace: str
    position: Annotated[
        int, Meta(description="How many events the person has today. Everything here is true at this position.")
    ]
    as_of: Annotated[
        Instant | None,
        Meta(description="The instant that was asked for; null for the present."),
    ] = None
    created_at: Instant
    lead_id: Annotated[
        str,
        Meta(description="The same in every workspace, from identifiers of kinds declared shared; empty without one."),
    ] = ""
    identifiers: list[IdentifierUse]
    traits: dict[str, Any]
    tags: list[str]
    groups: Annotated[dict[str, Any], Meta(description="Group id -> the group's traits.")]
    activity: dict[str, Any]
    features: dict[str, FeatureView]
    timers: list[TimerView]
    timeline: Timeline
    views: Annotated[dict[str, Any], Meta(description="What further projections say, by their names.")]


_SHOWN_APART = frozenset({"profile", "identifiers", "activity", "features"})


class Reads(WithReader, WithCatalogue, Protocol):
    """What reading people needs of the engine."""


class Needs(Reads, WithLog, WithRecorder, WithStore, Protocol):
    """What listing and tagging people needs of the engine."""


def _person(context: Context[Reads], params: PersonParams) -> PersonView:
    engine = context.engine
    # One item holds the states, the heads and the timers, and the timeline ends at those heads: one position.
    asked = then(context, params.id, params.as_of)
    person, as_of, views = asked.person, asked.as_of, asked.views()
    newest = _newest(engine, person, params.timeline, as_of) if params.timeline else []
    profile = views.get("profile", {"traits": {}, "tags": [], "groups": {}})
    uses = views.get("identifiers", {})
    own = list(person.identifiers.values())
    if asked.past is not None and as_of is not None and any(str(each) not in uses for each in own):
        # What was linked later was nobody's then.
        own = asked.past.linked(person, as_of)
    return PersonView(
        id=person.id,
        workspace=person.workspace,
        position=person.position,
        as_of=None if as_of is None else asked.shown_at,
        created_at=instant(person.created_at),
        lead_id=lead_id(engine.catalogue.rules, own),
        identifiers=_uses(engine.catalogue.rules, own, uses),
        traits=profile["traits"],
        tags=profile["tags"],
        groups=profile["groups"],
        activity=views.get("activity", {}),
        features=feature_views(views.get("features", {})),
        timers=_timers(person.timers) if as_of is None else [],
        timeline=Timeline(
            events=[event_view(each) for each in newest],
            next=write_cursor(newest[-1]) if len(newest) == params.timeline and newest else "",
        ),
        views={name: view for name, view in views.items() if name not in _SHOWN_APART},
    )


def _newest(engine: WithReader, person: Person, limit: int, as_of: int | None) -> list[Any]:
    """The newest events, or those that were the newest of what was known at an instant.

    Both hold what lies ahead and has been told, which is in no view yet.
    """
    stop = None if as_of is None else as_of + FUTURE_MAX_SECONDS * SECOND + 1
    told = engine.reader.all_events(person, stop=stop, reverse=True, size=limit)
    return list(islice((each for each in told if as_of is None or each.known_at <= as_of), limit))


def lead_id(rules: Any, identifiers: Iterable[Any]) -> str:
    """What names this human across workspaces: the hash of the strongest identifier of a shared kind, or ""."""
    shared = [i for i in identifiers if rules.kind(i.kind).shared]
    if not shared:
        return ""
    return thread_id("", min(shared, key=rules.rank))


def _uses(rules: Any, linked_ones: Iterable[Any], uses: dict[str, Any]) -> list[IdentifierUse]:
    own = sorted(linked_ones, key=rules.rank)
    found = [IdentifierUse(kind=i.kind, value=i.value, linked=True, **uses.get(str(i), {})) for i in own]
    linked = {str(i) for i in own}
    for name, use in uses.items():
        if name not in linked:
            kind, _, value = name.partition(":")
            found.append(IdentifierUse(kind=kind, value=value, linked=False, **use))
    return found


def _timers(timers: dict[str, int]) -> list[TimerView]:
    found = []
    for name, due_at in sorted(timers.items(), key=lambda each: (each[1], each[0])):
        _, policy, key = name.split("/", 2)
        found.append(TimerView(policy=policy, key=key, due_at=instant(due_at)))
    return found


PERSON = Operation(
    name="person",
    summary="Show everything known about a person, at one position.",
    params=PersonParams,
    result=PersonView,
    run=_person,
    method="GET",
    path="/v1/people/{id}",
    example=PersonParams(id="user_id:42"),
)

# --- many people ------------------------------------------------------------------------------


class PeopleParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which people to list: all, or those of one identifier, tag or group."""

    identifier: Annotated[str, Meta(description="kind:value; nobody or one person.", max_length=1_024)] = ""
    tag: Annotated[str, Meta(max_length=IDENTIFIER_LENGTH_MAX)] = ""
    group: Annotated[str, Meta(description="A group's id.", max_length=IDENTIFIER_LENGTH_MAX)] = ""
    after: Annotated[str, Meta(description="The `next` of the previous page.", max_length=64)] = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class PersonSummary(msgspec.Struct, kw_only=True):
    """A person in a list."""

    id: str
    identifiers: Annotated[list[str], Meta(description="kind:value, strongest first.")]
    events: int
    created_at: Instant
    last_seen_at: Instant | None


class PeoplePage(msgspec.Struct, kw_only=True):
    """People in a stable order that has no meaning."""

    people: list[PersonSummary]
    next: Annotated[str, Meta(description="Where the next page begins; empty at the end.")] = ""


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
    if ":" not in identifier:
        raise InvalidValue(f"{identifier!r} is not an identifier; write kind:value, e.g. user_id:42")
    try:
        return [context.engine.reader.person(context.workspace, identifier)]
    except NotFound:
        return []


def _indexed(context: Context[Needs], table: str, value: str, params: PeopleParams) -> tuple[list[Any], str]:
    engine = context.engine
    # The row at `after` was on the page before; it may be gone by now, so one more is read and it is left out if there.
    rows = engine.store.query(
        table, f"{context.workspace}/{value}", start=params.after, limit=min(params.limit + 1, 1_000)
    )
    ids = [row.key.sort for row in rows if row.key.sort != params.after][: params.limit]
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
    after = params.after
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
    name="people",
    summary="List people: all, or those with an identifier, a tag or a group.",
    params=PeopleParams,
    result=PeoplePage,
    run=_people,
    method="GET",
    path="/v1/people",
    example=PeopleParams(tag="vip", limit=20),
)

# --- tags -------------------------------------------------------------------------------------

Tag = Annotated[str, Meta(min_length=1, max_length=IDENTIFIER_LENGTH_MAX)]


class TagParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which tags to put on a person and which to take off."""

    id: PersonRef
    add: Annotated[list[Tag], Meta(max_length=100)] = []
    remove: Annotated[list[Tag], Meta(max_length=100)] = []
    request: RequestKey = ""


class TagResult(msgspec.Struct, kw_only=True):
    """The tags now, and a receipt for each event that this took: none for a tag that stood as wished."""

    person: str
    tags: list[str]
    receipts: list[Receipt]


def _tag(context: Context[Needs], params: TagParams) -> TagResult:
    if both := set(params.add) & set(params.remove):
        raise InvalidValue(f"{min(both)!r} cannot be both added and removed")
    for tag in (*params.add, *params.remove):
        # A longer one could be told but would be kept by no projection.
        if len(tag.encode("utf-8", "surrogatepass")) > IDENTIFIER_LENGTH_MAX:
            raise InvalidValue(f"a tag has at most {IDENTIFIER_LENGTH_MAX} bytes of UTF-8")
    engine = context.engine
    person = engine.reader.person(context.workspace, params.id)
    tags = _tags(context, person)
    # With a request of its own a wish is told as it is, so that its repetition meets the same events. Without one,
    # what stands as wished needs no event, and the position makes a later wish of the same words another one.
    wishes = [(TAG_ADDED, tag) for tag in dict.fromkeys(params.add) if params.request or tag not in tags]
    wishes += [(TAG_REMOVED, tag) for tag in dict.fromkeys(params.remove) if params.request or tag in tags]
    events = [_tag_event(context, person, kind, tag, params.request) for kind, tag in wishes]
    receipts = engine.recorder.record(events, known=True) if events else []
    person = engine.reader.person(context.workspace, person.id)
    return TagResult(person=person.id, tags=_tags(context, person), receipts=receipts)


def _tags(context: Context[Needs], person: Person) -> list[str]:
    views = context.engine.reader.views(person, context.engine.recorder.now(), names=["profile"])
    tags: list[str] = views["profile"]["tags"]
    return tags


def _tag_event(context: Context[Needs], person: Person, kind: str, tag: str, request: str) -> Event:
    parts = (kind, tag, request or f"at {person.position}")
    identifier, key = place_and_key(context, person, *parts, named=request)
    return wish(context, identifier, kind, {"tag": tag}, key)


TAG = Operation(
    name="tag",
    summary="Add tags to a person, and remove tags.",
    params=TagParams,
    result=TagResult,
    run=_tag,
    method="POST",
    path="/v1/people/{id}/tags",
    scope="write",
    example=TagParams(id="user_id:42", add=["vip"]),
    refused=lambda result: bool(result.receipts) and all(each.status == "rejected" for each in result.receipts),
)
