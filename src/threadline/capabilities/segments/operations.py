"""Segments as callers read them: of one person and why, their members, who is about to leave, and looking again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.conditions import Step
from threadline.capabilities.events.forms import Cursor, Identifiers, Instant, PersonRef, instant
from threadline.capabilities.events.instants import person_as_of
from threadline.capabilities.events.parameters import AsOf, Next, Page
from threadline.capabilities.segments.definition import Segment
from threadline.capabilities.segments.membership import Memberships, leaves_at
from threadline.capabilities.segments.projection import SEGMENTS, SHARDS, TABLE, partition
from threadline.capabilities.segments.refresh import Needs, refresh
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.operation import Context, Group, Operation
from threadline.kernel.ports import Person, WithReader, WithStore
from threadline.kernel.store import beyond
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import YEAR, parse_duration

SEGMENTS_GROUP = Group("segments", "Who belongs to which segment, and why.")

LOOKED_AT_MAX = 1_000
"""People looked at in one call, where not all of them may be meant."""
STEPS_MAX = 500
"""Instants looked at ahead to tell when a member leaves."""

Name = Annotated[str, Meta(description="A segment's name.", min_length=1, max_length=64)]
Segments = tuple[Segment, ...]


def _found(segments: Segments, name: str) -> Segment:
    for segment in segments:
        if segment.name == name:
            return segment
    known = [segment.name for segment in segments]
    hint = suggestion(name, known) if known else "none is declared"
    raise NotFound(f"there is no segment {name[:64]!r}; {hint}")


# --- one person -------------------------------------------------------------------------------


class MemberView(msgspec.Struct, kw_only=True):
    """One segment and one person at an instant."""

    segment: str
    member: Annotated[
        bool, Meta(description="Whether its conditions are true at that instant, computed for this answer.")
    ]
    since: Annotated[
        Instant | None, Meta(description="When the person entered, as the events tell; null if they tell of no entry.")
    ]
    until: Annotated[
        Instant | None,
        Meta(
            description="When the member leaves if nothing happens; null: by time alone not, not foreseeably, or "
            "in an answer for an earlier instant."
        ),
    ]


class SegmentsParams(AsOf, kw_only=True, forbid_unknown_fields=True):
    """Whose segments, and at which instant."""

    id: PersonRef


class SegmentsResult(msgspec.Struct, kw_only=True):
    """Every declared segment, by name."""

    person: str
    position: Annotated[int, Meta(description="How many events the person has today.")]
    as_of: Instant
    segments: list[MemberView]


def _segments(segments: Segments, context: Context[WithReader], params: SegmentsParams) -> SegmentsResult:
    person, memberships = _looked_at(context, params)
    told = memberships.person.view(SEGMENTS.name) or {}
    return SegmentsResult(
        person=person.id, position=person.position, as_of=instant(memberships.at),
        segments=[_member(segment, memberships, told, ahead=params.as_of is None) for segment in segments],
    )  # fmt: skip


def _looked_at(context: Context[WithReader], params: SegmentsParams | SegmentParams) -> tuple[Person, Memberships]:
    """Whose segments are asked for, and this person at the instant that was asked for."""
    asked = person_as_of(context, params.id, params.as_of)
    return asked.person, Memberships(asked.view, asked.at)


def _now(context: Context[WithReader], person: Person) -> Memberships:
    return Memberships(context.engine.reader.as_of(person, context.now), context.now)


def _member(segment: Segment, memberships: Memberships, told: dict[str, Any], *, ahead: bool) -> MemberView:
    member = memberships.belongs(segment)
    until = leaves_at(segment, memberships, memberships.at + 10 * YEAR, STEPS_MAX) if member and ahead else None
    return MemberView(
        segment=segment.name, member=member, since=told.get(segment.name, {}).get("since"),
        until=None if until is None else instant(until),
    )  # fmt: skip


class SegmentParams(AsOf, kw_only=True, forbid_unknown_fields=True):
    """Which segment and whom."""

    id: PersonRef
    segment: Name


class SegmentResult(msgspec.Struct, kw_only=True):
    """Why somebody belongs, or does not."""

    person: str
    as_of: Instant
    segment: str
    member: bool
    since: Annotated[Instant | None, Meta(description="As the events tell.")]
    until: Annotated[Instant | None, Meta(description="When the member leaves if nothing happens.")]
    steps: Annotated[list[Step], Meta(description="Every condition in order: expected, found, matched or skipped.")]


def _segment(segments: Segments, context: Context[WithReader], params: SegmentParams) -> SegmentResult:
    segment = _found(segments, params.segment)
    person, memberships = _looked_at(context, params)
    told = memberships.person.view(SEGMENTS.name) or {}
    shown = _member(segment, memberships, told, ahead=params.as_of is None)
    return SegmentResult(
        person=person.id, as_of=instant(memberships.at), segment=segment.name, member=shown.member, since=shown.since,
        until=shown.until, steps=segment.conditions.trace(memberships.subject).steps,
    )  # fmt: skip


# --- many people ------------------------------------------------------------------------------


class MembersNeeds(WithReader, WithStore, Protocol):
    """What listing members needs of the engine."""


class MembersParams(Page, kw_only=True, forbid_unknown_fields=True):
    """Of which segment, and which page."""

    name: Name


class Member(msgspec.Struct, kw_only=True):
    """A member, as the events tell."""

    person: str
    identifiers: Identifiers
    since: Instant


class MembersResult(msgspec.Struct, kw_only=True):
    """Members by id, found in an index."""

    name: str
    members: list[Member]
    next: Next = ""


def _members(segments: Segments, context: Context[MembersNeeds], params: MembersParams) -> MembersResult:
    segment = _found(segments, params.name)
    # The row at `after` was on the page before; one more than asked for tells whether there is a further page.
    start, wanted = beyond(params.cursor), params.limit + 1
    rows: list[Any] = []
    for shard in SHARDS[SHARDS.find(params.cursor[:1]) if params.cursor else 0 :]:
        if len(rows) < wanted:
            where, limit = partition(context.workspace, segment.name, shard), min(wanted - len(rows), PAGE_ITEMS_MAX)
            rows += context.engine.store.query(TABLE, where, start=start, limit=limit)
    names = context.engine.reader.identifiers_of(context.workspace, [row.key.sort for row in rows[: params.limit]])
    shown = [
        Member(person=row.key.sort, identifiers=names.get(row.key.sort, []), since=instant(int(row.value)))
        for row in rows[: params.limit]
    ]
    return MembersResult(name=segment.name, members=shown, next=shown[-1].person if len(rows) > params.limit else "")


class LeavingParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Of which segment, and how soon."""

    name: Name
    within: Annotated[str, Meta(description="How far ahead to look, such as 1d; at most a year.", max_length=32)] = "1d"
    cursor: Cursor = ""


class Leaving(msgspec.Struct, kw_only=True):
    """A member and when they leave if nothing happens."""

    person: str
    identifiers: Identifiers
    until: Instant


class LeavingResult(msgspec.Struct, kw_only=True):
    """Members who leave by time alone, of one page by when they leave."""

    name: str
    as_of: Instant
    leaving: list[Leaving]
    next: Annotated[str, Meta(description="Where to go on; empty at the end.")] = ""


def _leaving(segments: Segments, context: Context[WithReader], params: LeavingParams) -> LeavingResult:
    segment = _found(segments, params.name)
    within = parse_duration(params.within)
    if within > YEAR:
        raise InvalidValue("`within` is at most a year")
    until = context.now + within
    found: list[tuple[int, Any]] = []
    cursor = ""
    # A timer never comes later than what it waits for, so that whoever leaves by then has one that is due by then.
    upcoming = context.engine.reader.upcoming(context.workspace, SEGMENTS.name, until + 1, params.cursor)
    for looked_at, (here, person) in enumerate(upcoming, 1):
        memberships = _now(context, person)
        at = leaves_at(segment, memberships, until, STEPS_MAX) if memberships.belongs(segment) else None
        if at is not None:
            found.append((at, person))
        if looked_at == LOOKED_AT_MAX:
            cursor = here
            break
    names = context.engine.reader.identifiers_of(context.workspace, [person.id for _, person in found])
    shown = [
        Leaving(person=person.id, identifiers=names.get(person.id, []), until=instant(at))
        for at, person in sorted(found, key=lambda each: (each[0], each[1].id))
    ]
    return LeavingResult(name=segment.name, as_of=instant(context.now), leaving=shown, next=cursor)


# --- definitions ------------------------------------------------------------------------------


class SegmentDefinitionsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nothing to choose."""


class SegmentDefinition(msgspec.Struct, kw_only=True):
    """What a segment is made of."""

    name: str
    description: str
    version: Annotated[str, Meta(description="A hash of the conditions.")]
    when: Annotated[dict[str, Any], Meta(description="The tree of conditions.")]


class SegmentDefinitionsResult(msgspec.Struct, kw_only=True):
    """Every declared segment, by name."""

    segments: list[SegmentDefinition]


def _definitions(
    segments: Segments, context: Context[object], params: SegmentDefinitionsParams
) -> SegmentDefinitionsResult:
    shown = [
        SegmentDefinition(name=s.name, description=s.description, version=s.version, when=s.conditions.plain)
        for s in segments
    ]
    return SegmentDefinitionsResult(segments=shown)


# --- looking again ----------------------------------------------------------------------------


class RefreshParams(Page, kw_only=True, forbid_unknown_fields=True):
    """From where to go on."""

    limit: Annotated[int, Meta(description="People to look at in this call.", ge=1, le=LOOKED_AT_MAX)] = LOOKED_AT_MAX


class RefreshResult(msgspec.Struct, kw_only=True):
    """How far it came. Calling again from ``next`` goes on; calling twice changes nothing more."""

    people: Annotated[int, Meta(description="People looked at.")]
    refreshed: Annotated[int, Meta(description="Those for whom something had to be told or a timer set.")]
    next: Annotated[str, Meta(description="Where to go on; empty when everybody has been looked at.")] = ""


def _refresh(segments: Segments, context: Context[Needs], params: RefreshParams) -> RefreshResult:
    page, following = context.engine.reader.people(context.workspace, params.cursor, params.limit)
    return RefreshResult(people=len(page), refreshed=refresh(segments, context.engine, page), next=following)


def operations(segments: Sequence[Segment]) -> list[Operation]:
    """The operations on these segments."""
    declared = tuple(segments)
    return [
        Operation(
            name="segments_of", group=SEGMENTS_GROUP,
            summary="Show which segments a person belongs to, now or at an instant.",
            params=SegmentsParams, result=SegmentsResult, run=partial(_segments, declared), method="GET",
            path="/v1/people/{id}/segments", example=SegmentsParams(id="user_id:42"),
        ),
        Operation(
            name="segments_why", group=SEGMENTS_GROUP,
            summary="Explain why a person belongs to a segment, or why not.",
            params=SegmentParams, result=SegmentResult, run=partial(_segment, declared), method="GET",
            path="/v1/people/{id}/segments/{segment}", example=SegmentParams(id="user_id:42", segment="big_spenders"),
        ),
        Operation(
            name="segments_members", group=SEGMENTS_GROUP, relies_on=("people", "segments"),
            summary="List the members of a segment.",
            params=MembersParams, result=MembersResult, run=partial(_members, declared), method="GET",
            path="/v1/segments/{name}/members", example=MembersParams(name="big_spenders"),
        ),
        Operation(
            name="segments_leaving", group=SEGMENTS_GROUP, relies_on=("people", "segments"),
            summary="List the members who will soon leave a segment if nothing happens.",
            params=LeavingParams, result=LeavingResult, run=partial(_leaving, declared), method="GET",
            path="/v1/segments/{name}/leaving", example=LeavingParams(name="big_spenders", within="1d"),
        ),
        Operation(
            name="segments_list", group=SEGMENTS_GROUP,
            summary="List the segments in force and what each is made of.",
            params=SegmentDefinitionsParams, result=SegmentDefinitionsResult, run=partial(_definitions, declared),
            method="GET", path="/v1/segments", example=SegmentDefinitionsParams(),
        ),
        Operation(
            name="segments_refresh", group=SEGMENTS_GROUP,
            summary="Check everybody's segments again, after definitions have changed.",
            params=RefreshParams, result=RefreshResult, run=partial(_refresh, declared), method="POST",
            path="/v1/segments/refresh", scope="admin", example=RefreshParams(),
        ),
    ]  # fmt: skip
