"""Segments of everybody looked at again: who belongs to another one than their events say gets an event for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from threadline.capabilities.profile.segments.definition import Segment
from threadline.capabilities.profile.segments.events import SEGMENTS_REFRESHED
from threadline.capabilities.profile.segments.membership import Memberships, next_change
from threadline.capabilities.profile.segments.projection import SEGMENTS
from threadline.kernel.applied import IndexPart
from threadline.kernel.operation import Refresh, RefreshPart, first_due, refresh_reason, refresh_request
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Person, Ports
from threadline.kernel.why import DEFINITIONS


def segments_refresh(segments: Sequence[Segment]) -> Refresh:
    """The refresh of everybody's segments, by these definitions."""
    versions = " ".join(f"{segment.name}={segment.version}" for segment in segments)
    parts = {segment.name: RefreshPart(segment.version, segment.reads) for segment in segments}
    declared = tuple(segments)
    return Refresh(
        SEGMENTS.name,
        versions or "none",
        partial(_page, declared),
        parts,
        foretold=True,
        event=SEGMENTS_REFRESHED,
        lacks=partial(_lacks, declared),
    )


def _lacks(segments: Sequence[Segment], known: PersonView, names: Collection[str]) -> bool:
    asked = [segment for segment in segments if segment.name in names]
    return _differs(segments, asked, Memberships(known, known.at))


def _page(segments: Sequence[Segment], engine: Ports, after: str, limit: int) -> tuple[int, str]:
    page, following = engine.reader.people(None, after, limit)
    now, why = engine.recorder.now(), refresh_reason(engine, SEGMENTS.name)
    names = {segment.name for segment in segments}
    if why == DEFINITIONS:
        # Whatever has turned of the others has its own reason: a timer that is due has not fired yet.
        filling = engine.maintenance.filling(IndexPart(SEGMENTS.name, name, rows=False) for name in sorted(names))
        names = {unfilled.part.of for unfilled in filling if unfilled.part.name == SEGMENTS.name}
    asked = [segment for segment in segments if segment.name in names]
    events = []
    for person in page:
        due = first_due(person.timers, SEGMENTS.name, now) if why == DEFINITIONS else None
        at = now if due is None else due - 1
        if _outdated(segments, asked, Memberships(engine.reader.as_of(person, at), at), person):
            parts = None if len(asked) == len(segments) else names
            events.append(refresh_request(engine, (SEGMENTS.name, SEGMENTS_REFRESHED), person, why, parts, due))
    engine.recorder.record(events, known=True)
    return len(page), following


def _outdated(segments: Sequence[Segment], asked: Sequence[Segment], memberships: Memberships, person: Person) -> bool:
    if _differs(segments, asked, memberships):
        return True
    ahead = memberships.next(asked)
    if ahead is None:
        return False
    first = min((due for name, due in person.timers.items() if name.split("/")[1] == SEGMENTS.name), default=None)
    if first is not None and first <= ahead:
        return False
    change_at = next_change(asked, memberships)
    return change_at is not None and (first is None or first > change_at)


def _differs(segments: Sequence[Segment], asked: Sequence[Segment], memberships: Memberships) -> bool:
    """Whether the events say something else of the segments asked for, or of one that is not declared, than is so."""
    others = {segment.name for segment in segments} - {segment.name for segment in asked}
    recorded = {
        name: membership["version"]
        for name, membership in (memberships.person.view(SEGMENTS.name) or {}).items()
        if name not in others
    }
    return recorded != {segment.name: segment.version for segment in asked if memberships.belongs(segment)}
