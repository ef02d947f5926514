"""Refold: derive states again from the log. Rebuild, as-of, merge, split and what-if are this one function."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from threadline.engine.folding.catalogue import Catalogue, Folding
from threadline.engine.folding.history import Ahead, History, in_occurred_order, occurred_order, thread_entries
from threadline.engine.folding.packing import unpack_event
from threadline.engine.folding.person import Person
from threadline.engine.folding.states import States
from threadline.kernel.event import Recorded
from threadline.kernel.projection import State
from threadline.kernel.store import Item, Store

NOTHING = (-(1 << 63), "")
"""The `latest` of a person of whom nothing is folded."""
AHEAD_EVENTS_MAX = 4_000
"""Events of the people whose threads are read at once; whoever has more is read page by page."""


def read_ahead(
    store: Store, people: Iterable[Person], wanted: Callable[[str], bool] | None = None
) -> Iterator[tuple[Person, Ahead | None]]:
    """Each of these people, in order, with their threads read ahead; None of somebody who has too many events.

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
    folding: Folding, events: Iterable[Recorded], states: list[State], only: Sequence[int] | None = None
) -> tuple[int, str]:
    """Fold events into states, in place, and answer (occurred_at, id) of the newest. ``only``: these projections."""
    latest = NOTHING
    plans: dict[str, tuple[tuple[int, object], ...]] = {}
    for recorded in events:
        event = recorded.event
        plan = plans.get(event.type)
        if plan is None:
            plan = plans[event.type] = tuple(
                step for step in folding.plan(event.type).steps if only is None or step[0] in only
            )
        for index, fold in plan:
            state = fold(states[index], recorded)  # type: ignore[operator]
            if state is not None:
                states[index] = state
        if plan and event.occurred_at >= latest[0]:
            latest = max(latest, (event.occurred_at, recorded.id))
    return latest


class Onlooker(Protocol):
    """Who looks on while people are folded anew, so that nothing has to be read a second time."""

    types: frozenset[str]
    """The types of events that it is shown."""

    def note(self, recorded: Recorded) -> None:
        """An event of one of these types that is being folded."""
        ...

    def look(self, people: Sequence[tuple[Item, Person]]) -> None:
        """The people of a page, folded anew, with the items of which they were; all their events were shown."""
        ...


def _shown(events: Iterable[Recorded], onlooker: Onlooker) -> Iterator[Recorded]:
    for recorded in events:
        if recorded.event.type in onlooker.types:
            onlooker.note(recorded)
        yield recorded


def refold_person(
    store: Store,
    catalogue: Catalogue,
    person: Person,
    only: Sequence[int] | None = None,
    extra: Sequence[Recorded] = (),
    ahead: Ahead | None = None,
    onlooker: Onlooker | None = None,
) -> None:
    """Fold a person again from the log, in place: all projections, or ``only`` these.

    ``ahead`` holds their threads, if these have been read. ``extra`` are events that belong to the person and are not
    in the store yet (they commit together with what is folded from them); the heads in ``person`` may already count
    them. ``onlooker`` is shown events as they are folded.
    """
    chosen = tuple(range(len(catalogue.projections))) if only is None else tuple(only)
    states = catalogue.empty()
    if ahead is None:
        ahead = _ahead(store, (person,), person.position)
    is_ordered = any(catalogue.projections[index].ordered for index in chosen)
    if ahead is None and is_ordered:
        stored: Iterable[Recorded] = in_occurred_order(store, person.heads)
        events: Iterable[Recorded] = heapq.merge(stored, sorted(extra, key=occurred_order), key=occurred_order)
    else:
        stored = map(unpack_event, thread_entries(store, person.heads, ahead))
        events = sorted((*stored, *extra), key=occurred_order) if is_ordered else chain(stored, extra)
    if onlooker is not None:
        events = _shown(events, onlooker)
    latest = fold_events(catalogue, events, states, None if only is None else chosen)
    for index in chosen:
        person.states[index] = states[index]
    if only is None:
        person.latest, person.provisional, person.tail = latest, None, None
        person.stale = ()


def catch_up(store: Store, catalogue: Catalogue, person: Person) -> None:
    """Fold again those states of a person that were written for other definitions than those in force."""
    if person.stale:
        refold_person(store, catalogue, person, only=person.stale)
        person.stale = ()


def folded_before(folding: Folding, history: History, instant: int, only: Sequence[int] | None = None) -> States:
    """The states from the events of a history that occurred before an instant.

    ``only``: these projections; the others stay empty.
    """
    states = folding.empty()
    fold_events(folding, history.between(None, instant), states, only)
    return States(folding, states)
