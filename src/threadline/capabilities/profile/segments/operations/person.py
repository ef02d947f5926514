"""The segments of one person, and why somebody belongs to one or does not."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions import Step
from threadline.capabilities.foundation.events.forms import Instant, PersonRef, instant
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.foundation.events.parameters import AsOf
from threadline.capabilities.profile.segments.definition import Segment
from threadline.capabilities.profile.segments.membership import Memberships, leaves_at
from threadline.capabilities.profile.segments.operations import SEGMENTS_GROUP
from threadline.capabilities.profile.segments.operations.definitions import Name, Segments, segment_named
from threadline.capabilities.profile.segments.projection import SEGMENTS
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Operation, shaped_operation
from threadline.kernel.ports import Person
from threadline.kernel.time import YEAR

STEPS_MAX = 500
"""Instants looked at ahead to tell when a member leaves."""


@key_fields("segment", "member", "since", "until")
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
    changes_at: Annotated[
        Instant | None,
        Meta(description="When time alone may next change whether they belong; null: never, or an earlier instant."),
    ] = None


class SegmentsParams(AsOf, kw_only=True):
    """Whose segments, and at which instant."""

    id: PersonRef


class SegmentsResult(msgspec.Struct, kw_only=True):
    """Every declared segment, by name."""

    person: str
    position: Annotated[int, Meta(description="How many events were ever recorded of the person, erased ones too.")]
    as_of: Instant
    segments: list[MemberView]


@shaped_operation("GET /v1/people/{id}/segments", SEGMENTS_GROUP, example=SegmentsParams(id="user_id:42"))
def of(segments: Segments, context: Context, params: SegmentsParams) -> SegmentsResult:
    """Show which segments a person belongs to, now or at an instant."""
    person, memberships = _looked_at(context, params)
    memberships_view = memberships.person.view(SEGMENTS.name) or {}
    return SegmentsResult(
        person=person.id,
        position=person.position,
        as_of=instant(memberships.at),
        segments=[_member(segment, memberships, memberships_view, ahead=params.as_of is None) for segment in segments],
    )


def _looked_at(context: Context, params: SegmentsParams | SegmentParams) -> tuple[Person, Memberships]:
    """Whose segments are asked for, and this person at the instant that was asked for."""
    asked = person_as_of(context, params.id, params.as_of)
    return asked.person, Memberships(asked.view, asked.at)


def _member(segment: Segment, memberships: Memberships, memberships_view: dict[str, Any], *, ahead: bool) -> MemberView:
    member = memberships.belongs(segment)
    until = leaves_at(segment, memberships, memberships.at + 10 * YEAR, STEPS_MAX) if member and ahead else None
    changes_at = memberships.next((segment,)) if ahead else None
    return MemberView(
        segment=segment.name,
        member=member,
        since=memberships_view.get(segment.name, {}).get("since"),
        until=None if until is None else instant(until),
        changes_at=None if changes_at is None else instant(changes_at),
    )


class SegmentParams(AsOf, kw_only=True):
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


@shaped_operation(
    "GET /v1/people/{id}/segments/{segment}",
    SEGMENTS_GROUP,
    example=SegmentParams(id="user_id:42", segment="big_spenders"),
)
def why(segments: Segments, context: Context, params: SegmentParams) -> SegmentResult:
    """Explain why a person belongs to a segment, or why not."""
    segment = segment_named(segments, params.segment)
    person, memberships = _looked_at(context, params)
    memberships_view = memberships.person.view(SEGMENTS.name) or {}
    shown = _member(segment, memberships, memberships_view, ahead=params.as_of is None)
    return SegmentResult(
        person=person.id,
        as_of=instant(memberships.at),
        segment=segment.name,
        member=shown.member,
        since=shown.since,
        until=shown.until,
        steps=segment.conditions.explain(memberships.subject_of(segment)),
    )


def memberships_now(context: Context, person: Person) -> Memberships:
    """A person's segments at the instant of reading."""
    return Memberships(context.engine.reader.as_of(person, context.now), context.now)


def operations(segments: Segments) -> list[Operation]:
    """The operations on one person's segments."""
    return [of(segments), why(segments)]
