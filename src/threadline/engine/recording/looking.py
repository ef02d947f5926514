"""While not everybody was looked at by new definitions: a person is, before anything new is recorded of them."""

from __future__ import annotations

from typing import Any

from threadline.engine.folding.person import Person
from threadline.engine.folding.person_view import ReactingPersonView
from threadline.engine.recording.attempt import Attempt
from threadline.engine.recording.reactions import Reactions, react
from threadline.kernel.event import Event, marks_of
from threadline.kernel.operation import BEFORE, PARTS, Refresh, first_due
from threadline.kernel.why import DEFINITIONS

LOOKS_MAX = 64
"""Of one cause may come so much and no more: whoever enters many segments is looked at several times."""


def look_first(attempt: Attempt, person: Person, event_type: str, cause: str) -> None:
    """Note what was so before an event by the definitions in force. Otherwise the event would seem to be the reason of
    all that these say of the person, and people would be sent mail for what they did a year ago.

    ``cause`` is the id of the event that is about to be recorded.
    """
    if not person.position or any(event_type == refresh.event for refresh, _ in attempt.unfilled):
        return
    for refresh, parts in attempt.unfilled:
        if refresh.event:
            _look_until_noted(attempt, person, refresh, parts, cause)


def _look_until_noted(attempt: Attempt, person: Person, refresh: Refresh, parts: frozenset[str], cause: str) -> None:
    due = first_due(person.timers, refresh.name, attempt.now)
    properties: dict[str, Any] = {PARTS: sorted(parts)} if due is None else {PARTS: sorted(parts), BEFORE: due}
    for _ in range(LOOKS_MAX):
        at = attempt.now + 1 if due is None else due - 1
        known = ReactingPersonView(Reactions(attempt), person, refresh.event, at)
        noted = person.position + 1
        if not refresh.lacks(known, parts):
            break
        _look(attempt, person, refresh.event, f"threadline.{refresh.name}", properties, cause)
        if person.position == noted:
            break  # the rest comes an instant later, by a timer


def _look(attempt: Attempt, person: Person, type: str, source: str, properties: dict[str, Any], cause: str) -> None:
    thread = next(iter(person.heads))
    event = Event(
        type=type,
        identifiers=(person.identifiers[thread],),
        occurred_at=attempt.now,
        # Tried again after a part was committed, it is another look.
        key=f"{cause}/{person.id}/{person.position}",
        source=source,
        source_type="internal",
        workspace=person.workspace,
        properties=properties,
        received_at=attempt.now,
        marks=marks_of(DEFINITIONS),
    )
    attempt.changes.of(person, 3 + attempt.plans.of_event(event).room)
    react(attempt, person, attempt.append_own(person, thread, attempt.own(event, "")))
