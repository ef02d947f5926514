"""People of a group who have events ahead of the clock: what is so now is kept up beside what will be."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from threadline.engine.meanwhile import Meanwhile, copied
from threadline.engine.person import VALUE_BYTES_MAX, Person
from threadline.engine.refold import NOTHING, in_occurred_order, next_occurred, occurred_order, states_before
from threadline.engine.states import States
from threadline.kernel.event import Recorded
from threadline.kernel.projection import State

if TYPE_CHECKING:
    from threadline.engine.group import Group


def keep_up(group: Group, person: Person, recorded: Recorded) -> None:
    """Bring what is so now up to an event that the person's states are about to take in."""
    # What policies add occurs now, and has happened for whoever asks later: it is no reason to begin.
    now, kept = group.now + 1, person.meanwhile
    others = [each for each in group.pending_of(person) if each is not recorded]
    if kept is not None:
        if kept.until < now:
            kept.advance(now, _between(group, person, others, kept.until, now))
    elif person.latest[0] < now:
        kept = Meanwhile(group.catalogue, copied(person.states, group.catalogue), person.latest, now)
    elif 2 * len(person.packed) <= VALUE_BYTES_MAX:
        kept = Meanwhile(group.catalogue, States(group.catalogue), NOTHING, now)
        kept.advance(now, _between(group, person, others, None, now))
    if kept is not None and recorded.event.occurred_at < kept.until:
        until = kept.until
        kept.fold(recorded, lambda index: _folded_before(group, person, index, until))
    person.meanwhile = kept


def state_before(group: Group, person: Person, index: int, instant: int) -> State:
    """One state of a person before an instant, the events of the group included."""
    if person.latest[0] < instant:
        return person.states[index]
    if person.meanwhile is not None:
        pending = group.pending_of(person)
        states = person.meanwhile.at(
            instant, lambda start: _between(group, person, pending, start, instant), only=(index,)
        )
        if states is not None:
            return states[index]
    return _folded_before(group, person, index, instant)


def next_ahead(group: Group, person: Person, instant: int) -> int | None:
    """From when on the next event of a person counts that does not yet at an instant, the group's included."""
    if person.latest[0] < instant:
        return None
    pending = [at for each in group.pending_of(person) if (at := each.event.occurred_at) >= instant]
    stored = next_occurred(group.store, group.stored_heads(person), instant)
    first = min(pending if stored is None else (*pending, stored), default=None)
    return None if first is None else first + 1


def _folded_before(group: Group, person: Person, index: int, instant: int) -> State:
    heads, pending = group.stored_heads(person), group.pending_of(person)
    return states_before(group.store, group.catalogue, heads, instant, extra=pending, only=(index,))[index]


def _between(
    group: Group, person: Person, pending: Sequence[Recorded], start: int | None, stop: int
) -> Iterator[Recorded]:
    """A person's events that occurred in [start, stop), in occurred order; of the group's only those given."""
    stored = in_occurred_order(group.store, group.stored_heads(person), start, stop)
    fresh = [
        each for each in pending if (start is None or start <= each.event.occurred_at) and each.event.occurred_at < stop
    ]
    return heapq.merge(stored, sorted(fresh, key=occurred_order), key=occurred_order)
