"""Refold: derive states again from the log. Rebuild, as-of, merge, split and what-if are this one function."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from threadline.engine.catalogue import Catalogue
from threadline.engine.collecting import uncollected
from threadline.engine.packing import unpack_event
from threadline.engine.person import PERSON, Person, lasting, pack_person, person_key, unpack_person
from threadline.engine.states import States
from threadline.kernel.event import Recorded
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.projection import State
from threadline.kernel.store import Batch, Item, Key, LogEntry, Put, Span, Store, event_pages, following_pages

_FOREVER = 1 << 62
NOTHING = (-(1 << 63), "")
"""The `latest` of a person of whom nothing is folded."""


Ahead = Mapping[str, Sequence[LogEntry]]
"""Whole threads that have been read already."""
PAGE_PEOPLE = 200
NEXT_PAGE = 8
"""Entries read at a time where only the first is wanted."""
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


def thread_entries(store: Store, heads: Mapping[str, int], ahead: Ahead | None = None) -> Iterator[LogEntry]:
    """Entries of several threads up to these heads, thread after thread."""
    for thread, head in heads.items():
        if head:
            for entry in event_pages(store, thread, _WHOLE) if ahead is None else ahead.get(thread, ()):
                if entry.sequence <= head:
                    yield entry


_WHOLE = Span(limit=PAGE_ITEMS_MAX)


def thread_events(
    store: Store,
    heads: Mapping[str, int],
    start: int | None = None,
    stop: int | None = None,
    types: frozenset[str] = frozenset(),
) -> Iterator[Recorded]:
    """Events of several threads up to these heads, thread after thread, [start, stop) in occurred time.

    Without ``types`` those of every type.
    """
    span = Span(start, stop, types)
    first = store.spans([thread for thread, head in heads.items() if head], span)
    for thread, head in heads.items():
        if page := first.get(thread):
            for entry in chain(page, following_pages(store, thread, span, page)):
                if entry.sequence <= head:
                    yield unpack_event(entry)


def occurred_order(recorded: Recorded) -> tuple[int, str]:
    """The order in which events of one person happened: by time, ties by id; the same on every store."""
    return (recorded.event.occurred_at, recorded.id)


def in_occurred_order(
    store: Store, heads: Mapping[str, int], start: int | None = None, stop: int | None = None
) -> Iterator[Recorded]:
    """The same events as `thread_events`, all threads together, in occurred order, page by page."""
    streams = [_ties_sorted(thread_events(store, {thread: head}, start, stop)) for thread, head in heads.items()]
    return heapq.merge(*streams, key=occurred_order)


def next_occurred(store: Store, heads: Mapping[str, int], start: int) -> int | None:
    """When the first event of several threads occurred that did at an instant or later; None if none did."""
    span = Span(start, limit=NEXT_PAGE)
    pages = store.spans([thread for thread, head in heads.items() if head], span)
    found = []
    for thread, page in pages.items():
        entries = chain(page, following_pages(store, thread, span, page))
        # What another process has added since the heads were read is no part of this picture.
        found.append(next((entry.occurred_at for entry in entries if entry.sequence <= heads[thread]), None))
    return min((at for at in found if at is not None), default=None)


def _ties_sorted(events: Iterator[Recorded]) -> Iterator[Recorded]:
    # A store orders ties by sequence, that is by arrival; the order of folding must not depend on arrival.
    ties: list[Recorded] = []
    for recorded in events:
        if ties and recorded.event.occurred_at != ties[0].event.occurred_at:
            yield from sorted(ties, key=occurred_order)
            ties = []
        ties.append(recorded)
    yield from sorted(ties, key=occurred_order)


def fold_events(
    catalogue: Catalogue, events: Iterable[Recorded], states: list[State], only: Sequence[int] | None = None
) -> tuple[int, str]:
    """Fold events into states, in place, and answer (occurred_at, id) of the newest. ``only``: these projections."""
    latest = NOTHING
    plans: dict[str, tuple[tuple[int, object], ...]] = {}
    for recorded in events:
        event = recorded.event
        plan = plans.get(event.type)
        if plan is None:
            plan = plans[event.type] = tuple(
                step for step in catalogue.plan(event.type).steps if only is None or step[0] in only
            )
        for index, fold in plan:
            states[index] = fold(states[index], recorded)  # type: ignore[operator]
        if plan and event.occurred_at >= latest[0]:
            latest = max(latest, (event.occurred_at, recorded.id))
    return latest


def refold_person(
    store: Store,
    catalogue: Catalogue,
    person: Person,
    only: Sequence[int] | None = None,
    extra: Sequence[Recorded] = (),
    ahead: Ahead | None = None,
) -> None:
    """Fold a person again from the log, in place: all projections or ``only`` some.

    ``ahead`` holds their threads, if these have been read. ``extra`` are events that belong to the person and are not
    in the store yet (they commit together with what is folded from them); the heads in ``person`` may already count
    them.
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
    latest = fold_events(catalogue, events, states, None if only is None else chosen)
    for index in chosen:
        person.states[index] = states[index]
    if only is None:
        person.latest, person.meanwhile = latest, None
        person.stale = ()


def states_before(
    store: Store,
    catalogue: Catalogue,
    heads: Mapping[str, int],
    instant: int,
    *,
    known_at: int = _FOREVER,
    extra: Iterable[Recorded] = (),
    only: Sequence[int] | None = None,
) -> States:
    """The states from the events that occurred before an instant and were known by ``known_at``.

    From the log up to these heads and from ``extra`` events. ``only``: these projections; the others stay empty.
    """
    states = catalogue.empty()
    early = sorted((r for r in extra if r.event.occurred_at < instant), key=occurred_order)
    events = heapq.merge(in_occurred_order(store, heads, stop=instant), early, key=occurred_order)
    fold_events(catalogue, (r for r in events if r.known_at <= known_at), states, only)
    return States(catalogue, states)


def refold_shard(
    store: Store, catalogue: Catalogue, shard: int = 0, shards: int = 1
) -> Iterator[tuple[Item, bytes, int]]:
    """(stored item, packed item folded anew, events folded) of every person of one shard. Writes nothing."""
    after: Key | None = None
    while items := store.scan(PERSON, shard, shards, after, PAGE_PEOPLE):
        after = items[-1].key
        stored = {item.key.partition: item for item in items}
        everybody = (unpack_person(item, catalogue) for item in items)
        done = []
        with uncollected():
            for person, ahead in read_ahead(store, (person for person in everybody if isinstance(person, Person))):
                refold_person(store, catalogue, person, ahead=ahead)
                done.append((stored[person.id], pack_person(person, catalogue), person.position))
        yield from done


def differs(stored: bytes, fresh: bytes) -> bool:
    """Whether two packed people say different things; the order in which dicts were filled says nothing."""
    return stored != fresh and lasting(stored) != lasting(fresh)


def write_refolded(store: Store, fresh: Iterable[tuple[Item, bytes]]) -> list[str]:
    """Replace items by their refolded bytes where these differ; answers the ids of people that changed meanwhile."""
    changed = [(item, data) for item, data in fresh if differs(item.value, data)]
    refusals = store.commit([Batch(writes=[Put(item.key, data, item.version)]) for item, data in changed])
    return [item.key.partition for (item, _), refusal in zip(changed, refusals, strict=True) if refusal is not None]


__all__ = [
    "fold_events", "in_occurred_order", "next_occurred", "person_key", "read_ahead", "refold_person", "refold_shard",
    "states_before", "thread_entries", "thread_events", "write_refolded",
]  # fmt: skip
