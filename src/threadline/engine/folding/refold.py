"""Refold: derive states again from the log. Rebuild, as-of, merge, split and what-if are this one function."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from msgspec.structs import replace

from threadline.engine.folding.catalogue import Catalogue, Folding
from threadline.engine.folding.history import (
    Ahead,
    History,
    entry_order,
    in_occurred_order,
    occurred_order,
    thread_entries,
)
from threadline.engine.folding.packing import unpack_event
from threadline.engine.folding.person import Person
from threadline.engine.folding.states import States
from threadline.kernel.event import Recorded
from threadline.kernel.opening import OPENING, Opening, opening_of
from threadline.kernel.projection import Fold, State
from threadline.kernel.store import LogEntry, Store

NOTHING = (-(1 << 63), "")
"""The `latest` of a person of whom nothing is folded."""
AHEAD_EVENTS_MAX = 4_000
"""Events of people whose threads are read at once; a person with more is read page by page."""


class EventOnlooker(Protocol):
    """Who sees events while they are folded, so that they need not be read a second time."""

    @property
    def types(self) -> frozenset[str]:
        """The types of events that it is shown."""
        ...

    def note(self, recorded: Recorded) -> None:
        """An event of one of these types, before it is folded."""
        ...


def read_ahead(
    store: Store, people: Iterable[Person], wanted: Callable[[str], bool] | None = None
) -> Iterator[tuple[Person, Ahead | None]]:
    """Each of these people, in order, with their threads read ahead; None for a person with too many events.

    ``wanted`` says which types of events are read.
    """
    waiting: list[Person] = []
    events = 0
    for person in people:
        if waiting and events + person.position > AHEAD_EVENTS_MAX:
            yield from _with_threads(store, waiting, events, wanted)
            waiting, events = [], 0
        waiting.append(person)
        events += person.position
    yield from _with_threads(store, waiting, events, wanted)


def _with_threads(
    store: Store, people: Sequence[Person], events: int, wanted: Callable[[str], bool] | None
) -> Iterator[tuple[Person, Ahead | None]]:
    ahead = _ahead(store, people, events, wanted)
    for person in people:
        yield person, ahead


def _ahead(
    store: Store, people: Sequence[Person], events: int, wanted: Callable[[str], bool] | None = None
) -> Ahead | None:
    if events > AHEAD_EVENTS_MAX:
        return None
    return store.histories([thread for person in people for thread, head in person.heads.items() if head], wanted)


def fold_events(
    folding: Folding,
    events: Iterable[Recorded],
    states: list[State],
    only: Sequence[int] | None = None,
    onlooker: EventOnlooker | None = None,
    before: int | None = None,
) -> tuple[int, str]:
    """Fold events into states, in place, and answer (occurred_at, id) of the newest. ``only``: these projections.

    Of each thread an opening comes before the events that it stands for, and these are left out where they are still
    there. As of an instant ``before`` which not all of them occurred it says nothing.
    """
    at, id = NOTHING
    known: dict[str, tuple[tuple[tuple[int, Fold], ...], bool]] = {}
    openings: list[tuple[Recorded, Opening]] = []
    for recorded in events:
        event = recorded.event
        if openings and _has_left(recorded, openings):
            continue
        type = folding.event_types.counts_as(event)
        cached = known.get(type)
        if cached is None:
            steps = folding.plan(type).steps
            if only is not None:
                steps = tuple(step for step in steps if step[0] in only)
            cached = known[type] = steps, onlooker is not None and type in onlooker.types
        steps, is_noted = cached
        if type == OPENING:
            opening = opening_of(recorded)
            if before is not None and opening.until >= before:
                continue
            openings.append((recorded, opening))
        if is_noted:
            assert onlooker is not None
            onlooker.note(recorded)
        for index, fold in steps:
            state = fold(states[index], recorded)
            if state is not None:
                states[index] = state
        if steps and event.occurred_at >= at and (event.occurred_at > at or recorded.id > id):
            at, id = event.occurred_at, recorded.id
    return at, id


def _has_left(recorded: Recorded, openings: Iterable[tuple[Recorded, Opening]]) -> bool:
    """Whether one of these openings stands for an event."""
    thread, sequence, event = recorded.thread, recorded.sequence, recorded.event
    return any(
        at.thread == thread and sequence < at.sequence and opening.stands_for(event.type, event.occurred_at)
        for at, opening in openings
    )


def with_openings_in_place(events: Iterable[Recorded]) -> list[Recorded]:
    """A person's events in occurred order, each opening at the instant from which it is whole and without the events
    that it stands for: for who folds day by day."""
    openings: list[tuple[Recorded, Opening]] = []
    placed: list[Recorded] = []
    for recorded in events:
        if _has_left(recorded, openings):
            continue
        if recorded.event.type == OPENING:
            opening = opening_of(recorded)
            openings.append((recorded, opening))
            recorded = replace(recorded, event=replace(recorded.event, occurred_at=opening.until))
        placed.append(recorded)
    return sorted(placed, key=occurred_order) if openings else placed


def person_entries(store: Store, person: Person, ahead: Ahead | None = None) -> list[LogEntry] | None:
    """A person's log entries in occurred order; None if there are too many to be read at once. ``ahead`` holds the
    person's threads, if these have been read."""
    if ahead is None:
        ahead = _ahead(store, (person,), person.position)
    return None if ahead is None else sorted(thread_entries(store, person.heads, ahead), key=entry_order)


def person_events(store: Store, person: Person, entries: Sequence[LogEntry] | None) -> Iterator[Recorded]:
    """A person's events in occurred order, from `person_entries`, or page by page where that gives None.

    Each is unpacked right before it is folded, while it is in the processor's caches.
    """
    return in_occurred_order(store, person.heads) if entries is None else map(unpack_event, entries)


def refold_person(
    store: Store,
    catalogue: Catalogue,
    person: Person,
    only: Sequence[int] | None = None,
    extra: Sequence[Recorded] = (),
) -> None:
    """Fold a person again from the log, in place: all projections, or ``only`` these.

    ``extra`` are events that belong to the person and are not in the store yet (they commit together with what is
    folded from them); the heads in ``person`` may already count them.
    """
    chosen = range(len(catalogue.projections)) if only is None else only
    states = catalogue.empty()
    if any(catalogue.projections[index].ordered for index in chosen):
        stored = person_events(store, person, person_entries(store, person))
        events = heapq.merge(stored, sorted(extra, key=occurred_order), key=occurred_order) if extra else stored
    else:
        ahead = _ahead(store, (person,), person.position)
        events = chain(extra, map(unpack_event, thread_entries(store, person.heads, ahead)))
    latest = fold_events(catalogue, events, states, only)
    for index in chosen:
        person.states[index] = states[index]
    if only is None:
        person.latest, person.provisional, person.tail = latest, None, None
        person.stale = ()


def catch_up(store: Store, catalogue: Catalogue, person: Person) -> None:
    """Fold the stale states of a person again: those written for other definitions than those in force."""
    if person.stale:
        refold_person(store, catalogue, person, only=person.stale)
        person.stale = ()


def folded_before(folding: Folding, history: History, instant: int, only: Sequence[int] | None = None) -> States:
    """The states from the events of a history that occurred before an instant.

    ``only``: these projections; the others stay empty.
    """
    states = folding.empty()
    fold_events(folding, history.between(None, instant), states, only, before=instant)
    return States(folding, states)
