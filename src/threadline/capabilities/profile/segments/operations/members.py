"""The members of a segment, and those who are about to leave it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Cursor, Duration, Identifiers, Instant, instant
from threadline.capabilities.foundation.events.parameters import Next, Page, page_of
from threadline.capabilities.foundation.jobs.filling import BeingFilled, being_filled
from threadline.capabilities.profile.segments.membership import leaves_at
from threadline.capabilities.profile.segments.operations import SEGMENTS_GROUP
from threadline.capabilities.profile.segments.operations.definitions import Name, Segments, segment_named
from threadline.capabilities.profile.segments.operations.person import STEPS_MAX, memberships_now
from threadline.capabilities.profile.segments.projection import SEGMENTS, member_rows
from threadline.kernel.applied import IndexPart
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import InvalidValue
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Operation, Params, shaped_operation
from threadline.kernel.time import YEAR, parse_duration

LOOKED_AT_MAX = 1_000
"""People looked at in one call, where not all of them may be meant."""


class MembersParams(Page, kw_only=True):
    """Of which segment, and which page."""

    name: Name


@key_fields("identifiers", "since")
class Member(msgspec.Struct, kw_only=True):
    """A member, as the events tell."""

    person: str
    identifiers: Identifiers
    since: Instant


@not_personal
class MembersResult(msgspec.Struct, kw_only=True):
    """Members by id, found in an index."""

    name: str
    members: list[Member]
    being_filled: BeingFilled = ""
    next: Next = ""


def _read(params: MembersParams | LeavingParams) -> tuple[IndexPart, ...]:
    return (IndexPart(SEGMENTS.name, params.name),)


@shaped_operation(
    "GET /v1/segments/{name}/members",
    SEGMENTS_GROUP,
    relies_on=("segments",),
    relied_on=_read,
    example=MembersParams(name="big_spenders"),
)
def members(segments: Segments, context: Context, params: MembersParams) -> MembersResult:
    """List the members of a segment."""
    segment = segment_named(segments, params.name)
    filling = being_filled(context.engine, _read(params))
    rows = member_rows(context.engine.store, context.workspace, segment.name, params.cursor, params.limit + 1)
    page, following = page_of(rows, params.limit, lambda row: row.key.sort)
    names = context.engine.reader.identifiers_of(context.workspace, [row.key.sort for row in page])
    shown = [
        Member(person=row.key.sort, identifiers=names.get(row.key.sort, []), since=instant(int(row.value)))
        for row in page
    ]
    return MembersResult(name=segment.name, members=shown, being_filled=filling, next=following)


class LeavingParams(Params, kw_only=True):
    """Of which segment, and how soon."""

    name: Name
    within: Annotated[Duration, Meta(description="How far ahead to look, such as 1d; at most a year.")] = "1d"
    cursor: Cursor = ""


@key_fields("identifiers", "until")
class Leaving(msgspec.Struct, kw_only=True):
    """A member and when they leave if nothing happens."""

    person: str
    identifiers: Identifiers
    until: Instant


@not_personal
class LeavingResult(msgspec.Struct, kw_only=True):
    """Members who leave by time alone, of one page by when they leave."""

    name: str
    as_of: Instant
    leaving: list[Leaving]
    next: Annotated[str, Meta(description="Where to go on; empty at the end.")] = ""


@shaped_operation(
    "GET /v1/segments/{name}/leaving",
    SEGMENTS_GROUP,
    relies_on=("segments",),
    relied_on=_read,
    example=LeavingParams(name="big_spenders", within="1d"),
)
def leaving(segments: Segments, context: Context, params: LeavingParams) -> LeavingResult:
    """List the members who will soon leave a segment if nothing happens."""
    segment = segment_named(segments, params.name)
    within = parse_duration(params.within)
    if within > YEAR:
        raise InvalidValue("`within` is at most a year", param="within")
    until = context.now + within
    leaving: list[tuple[int, Any]] = []
    cursor = ""
    # A timer never comes later than what it waits for, so that whoever leaves by then has one that is due by then.
    upcoming = context.engine.reader.upcoming(context.workspace, SEGMENTS.name, until + 1, params.cursor)
    for looked_at, (here, person) in enumerate(upcoming, 1):
        memberships = memberships_now(context, person)
        at = leaves_at(segment, memberships, until, STEPS_MAX) if memberships.belongs(segment) else None
        if at is not None:
            leaving.append((at, person))
        if looked_at == LOOKED_AT_MAX:
            cursor = here
            break
    names = context.engine.reader.identifiers_of(context.workspace, [person.id for _, person in leaving])
    shown = [
        Leaving(person=person.id, identifiers=names.get(person.id, []), until=instant(at))
        for at, person in sorted(leaving, key=lambda pair: (pair[0], pair[1].id))
    ]
    return LeavingResult(name=segment.name, as_of=instant(context.now), leaving=shown, next=cursor)


def operations(segments: Segments) -> list[Operation]:
    """The operations on members."""
    return [members(segments), leaving(segments)]
