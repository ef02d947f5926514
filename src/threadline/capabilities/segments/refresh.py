"""Segments of everybody looked at again: who belongs to another one than their events say gets an event for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from threadline.capabilities.segments.definition import Segment
from threadline.capabilities.segments.events import SEGMENTS_REFRESHED
from threadline.capabilities.segments.membership import Memberships, next_change
from threadline.capabilities.segments.projection import SEGMENTS
from threadline.kernel.event import Event, marks_of
from threadline.kernel.operation import Refresh, RefreshPart, refresh_reason
from threadline.kernel.ports import Person, WithMaintenance, WithReader, WithRecorder
from threadline.kernel.why import Why


class Needs(WithReader, WithRecorder, WithMaintenance, Protocol):
    """What is needed here of the engine."""


def segments_refresh(segments: Sequence[Segment]) -> Refresh:
    """The refresh of everybody's segments, by these definitions."""
    versions = " ".join(f"{segment.name}={segment.version}" for segment in segments)
    parts = {segment.name: RefreshPart(segment.version, segment.reads) for segment in segments}
    return Refresh(SEGMENTS.name, versions or "none", partial(_page, tuple(segments)), parts, foretold=True)


def _page(segments: Sequence[Segment], engine: Needs, after: str, limit: int) -> tuple[int, str]:
    page, following = engine.reader.people(None, after, limit)
    now, why = engine.recorder.now(), refresh_reason(engine, SEGMENTS.name)
    events = [_request(engine, person, why) for person in page if _outdated(segments, engine, now, person)]
    engine.recorder.record(events, known=True)
    return len(page), following


def _outdated(segments: Sequence[Segment], engine: WithReader, now: int, person: Person) -> bool:
    memberships = Memberships(engine.reader.as_of(person, now), now)
    recorded = {
        name: membership["version"] for name, membership in (memberships.person.view(SEGMENTS.name) or {}).items()
    }
    if recorded != {segment.name: segment.version for segment in segments if memberships.belongs(segment)}:
        return True
    ahead = memberships.next(segments)
    if ahead is None:
        return False
    first = min((due for name, due in person.timers.items() if name.split("/")[1] == SEGMENTS.name), default=None)
    if first is not None and first <= ahead:
        return False
    change_at = next_change(segments, memberships)
    return change_at is not None and (first is None or first > change_at)


def _request(engine: WithRecorder, person: Person, why: Why) -> Event:
    return Event(
        type=SEGMENTS_REFRESHED,
        identifiers=(person.identifiers[person.id],),
        occurred_at=engine.recorder.clock(),
        # Told twice at one position it is the same wish, and it moves the position.
        key=f"segments/{person.id}/{person.position}",
        source="threadline.segments",
        source_type="internal",
        workspace=person.workspace,
        marks=marks_of(why),
    )
