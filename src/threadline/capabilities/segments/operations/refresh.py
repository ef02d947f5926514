"""Checking everybody's segments again, after definitions have changed."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.parameters import Page
from threadline.capabilities.segments.events import SEGMENTS_REFRESHED
from threadline.capabilities.segments.membership import next_turn
from threadline.capabilities.segments.operations import SEGMENTS_GROUP
from threadline.capabilities.segments.operations.definitions import Segments
from threadline.capabilities.segments.operations.members import LOOKED_AT_MAX
from threadline.capabilities.segments.operations.person import memberships_now
from threadline.capabilities.segments.projection import SEGMENTS
from threadline.kernel.event import Event
from threadline.kernel.operation import Context, Operation
from threadline.kernel.ports import Person, WithReader, WithRecorder


class RefreshParams(Page, kw_only=True, forbid_unknown_fields=True):
    """From where to go on."""

    limit: Annotated[int, Meta(description="People to look at in this call.", ge=1, le=LOOKED_AT_MAX)] = LOOKED_AT_MAX


class RefreshResult(msgspec.Struct, kw_only=True):
    """How far it came. Calling again from ``next`` goes on; calling twice changes nothing more."""

    people: Annotated[int, Meta(description="People looked at.")]
    refreshed: Annotated[int, Meta(description="Those for whom something had to be told or a timer set.")]
    next: Annotated[str, Meta(description="Where to go on; empty when everybody has been looked at.")] = ""


class Needs(WithReader, WithRecorder, Protocol):
    """What is needed here of the engine."""


def _refresh(segments: Segments, context: Context[Needs], params: RefreshParams) -> RefreshResult:
    page, following = context.engine.reader.people(context.workspace, params.cursor, params.limit)
    events = [_request(context, person) for person in page if _outdated(segments, context, person)]
    context.engine.recorder.record(events, known=True)
    return RefreshResult(people=len(page), refreshed=len(events), next=following)


def _outdated(segments: Segments, context: Context[WithReader], person: Person) -> bool:
    memberships = memberships_now(context, person)
    told = {name: word["version"] for name, word in (memberships.person.view(SEGMENTS.name) or {}).items()}
    if told != {segment.name: segment.version for segment in segments if memberships.belongs(segment)}:
        return True
    ahead = memberships.next(segments)
    if ahead is None:
        return False
    first = min((due for name, due in person.timers.items() if name.split("/")[1] == SEGMENTS.name), default=None)
    if first is not None and first <= ahead:
        return False
    turn = next_turn(segments, memberships)
    return turn is not None and (first is None or first > turn)


def _request(context: Context[WithRecorder], person: Person) -> Event:
    return Event(
        type=SEGMENTS_REFRESHED,
        identifiers=(person.identifiers[person.id],),
        occurred_at=context.engine.recorder.clock(),
        # Told twice at one position it is the same wish, and it moves the position.
        key=f"segments/{person.id}/{person.position}",
        source="threadline.segments",
        source_type="internal",
        workspace=context.workspace,
    )


def operations(segments: Segments) -> list[Operation]:
    """The operation that checks these segments again."""
    return [
        Operation(
            name="segments_refresh", group=SEGMENTS_GROUP,
            summary="Check everybody's segments again, after definitions have changed.",
            params=RefreshParams, result=RefreshResult, run=partial(_refresh, segments), method="POST",
            path="/v1/segments/refresh", scope="admin", example=RefreshParams(),
        ),
    ]  # fmt: skip
