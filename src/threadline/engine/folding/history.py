"""A person's events from several threads, in the order in which they occurred."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Protocol

from threadline.engine.folding.packing import unpack_event
from threadline.kernel.event import Event, Recorded
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.projection import Edge
from threadline.kernel.store import LogEntry, Span, Store, event_pages, following_pages, thread_page

NEXT_PAGE = 8
"""Entries read at a time where only the first is wanted."""
_WHOLE = Span(limit=PAGE_ITEMS_MAX)

Ahead = Mapping[str, Sequence[LogEntry]]
"""Whole threads that have been read already."""


class History(Protocol):
    """The events of one person: those in the store and in an attempt, or those replayed in a sandbox."""

    def between(self, start: int | None, stop: int) -> Iterable[Recorded]:
        """Those that occurred in [start, stop), in occurred order; a ``start`` of None is the beginning."""
        ...

    def at_edges(self, edges: Sequence[Edge]) -> list[Recorded]:
        """Those in these ranges, which are sorted and do not overlap, in occurred order."""
        ...

    def next_at(self, instant: int) -> int | None:
        """The time of the first that occurred at an instant or later; None if none did."""
        ...


class StoredHistory:
    """What is in the store up to these heads, with ``extra`` events that are not there yet.

    ``counts`` says of an event whether its speaker may say it: views get no others. With ``known_at`` only what was
    known by then.
    """

    __slots__ = ("_counts", "_extra", "_heads", "_known_at", "_store")

    def __init__(
        self,
        store: Store,
        heads: Mapping[str, int],
        counts: Callable[[Event], bool],
        extra: Sequence[Recorded] = (),
        known_at: int | None = None,
    ) -> None:
        self._store = store
        self._counts = counts
        self._heads = heads
        self._extra = extra
        self._known_at = known_at

    def between(self, start: int | None, stop: int) -> Iterable[Recorded]:
        """See `History`."""
        edge = Edge(-(1 << 63) if start is None else start, stop)
        extra = sorted(filter(edge.holds, self._extra), key=occurred_order)
        stored = in_occurred_order(self._store, self._heads, start, stop)
        return self._known(heapq.merge(stored, extra, key=occurred_order))

    def at_edges(self, edges: Sequence[Edge]) -> list[Recorded]:
        """See `History`."""
        by_id = {recorded.id: recorded for recorded in self._extra if any(edge.holds(recorded) for edge in edges)}
        for edge in edges:
            by_id.update((event.id, event) for event in thread_events(self._store, self._heads, *edge))
        counted = (recorded for recorded in by_id.values() if self._counts(recorded.event))
        return sorted(self._known(counted), key=occurred_order)

    def next_at(self, instant: int) -> int | None:
        """See `History`."""
        assert self._known_at is None, "who asks what was known then asks for nothing that lay ahead"
        later = [at for recorded in self._extra if (at := recorded.event.occurred_at) >= instant]
        stored = next_occurred(self._store, self._heads, instant)
        return min(later if stored is None else (*later, stored), default=None)

    def _known(self, events: Iterable[Recorded]) -> Iterable[Recorded]:
        known_at = self._known_at
        return events if known_at is None else (event for event in events if event.known_at <= known_at)


class ReplayedHistory:
    """Events in memory, in occurred order."""

    def __init__(self) -> None:
        self._events: list[tuple[int, str, Recorded]] = []

    def add(self, recorded: Recorded) -> None:
        """Put an event in its place."""
        entry = (recorded.event.occurred_at, recorded.id, recorded)
        if self._events and entry[:2] < self._events[-1][:2]:
            insort(self._events, entry, key=_time_order)
        else:
            self._events.append(entry)

    def between(self, start: int | None, stop: int) -> Iterable[Recorded]:
        """See `History`."""
        first = 0 if start is None else self._index_at(start)
        return [event[2] for event in self._events[first : self._index_at(stop)]]

    def at_edges(self, edges: Sequence[Edge]) -> list[Recorded]:
        """See `History`."""
        return [recorded for edge in edges for recorded in self.between(edge.start, edge.stop) if edge.holds(recorded)]

    def next_at(self, instant: int) -> int | None:
        """See `History`."""
        index = self._index_at(instant)
        return self._events[index][0] if index < len(self._events) else None

    def _index_at(self, instant: int) -> int:
        return bisect_left(self._events, (instant, ""), key=_time_order)


def _time_order(entry: tuple[int, str, Recorded]) -> tuple[int, str]:
    return entry[:2]


def occurred_order(recorded: Recorded) -> tuple[int, str]:
    """The order in which events of one person happened: by time, ties by id; the same on every store."""
    return (recorded.event.occurred_at, recorded.id)


entry_order = attrgetter("occurred_at", "id")
"""`occurred_order` of log entries."""
_occurred_at = attrgetter("occurred_at")


def thread_entries(store: Store, heads: Mapping[str, int], ahead: Ahead | None = None) -> Iterator[LogEntry]:
    """Entries of several threads up to these heads, thread after thread."""
    for thread, head in heads.items():
        if head:
            for entry in event_pages(store, thread, _WHOLE) if ahead is None else ahead.get(thread, ()):
                if entry.sequence <= head:
                    yield entry


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


def in_occurred_order(
    store: Store, heads: Mapping[str, int], start: int | None = None, stop: int | None = None
) -> Iterator[Recorded]:
    """The same events as `thread_events`, all threads together, in occurred order, page by page."""
    span = Span(start, stop)
    pages: Mapping[str, Sequence[LogEntry]] = store.spans([thread for thread, head in heads.items() if head], span)
    read: list[LogEntry] = []
    goes_on: dict[str, LogEntry] = {}
    """The last entry read of each thread that may have more."""
    while True:
        for thread, page in pages.items():
            head = heads[thread]
            read += [entry for entry in page if entry.sequence <= head]
            if len(page) == span.limit:
                goes_on[thread] = page[-1]
            else:
                goes_on.pop(thread, None)
        read.sort(key=entry_order)
        if not goes_on:
            break
        # Events of this instant may still follow, and have smaller ids.
        settled_until = min(last.occurred_at for last in goes_on.values())
        settled = bisect_left(read, settled_until, key=_occurred_at)
        yield from map(unpack_event, read[:settled])
        del read[:settled]
        pages = {
            thread: thread_page(store, thread, span._replace(after=(last.occurred_at, last.sequence)))
            for thread, last in goes_on.items()
            if last.occurred_at == settled_until
        }
    yield from map(unpack_event, read)


def next_occurred(store: Store, heads: Mapping[str, int], start: int) -> int | None:
    """The time of the first event of several threads at an instant or later; None if there is none."""
    span = Span(start, limit=NEXT_PAGE)
    pages = store.spans([thread for thread, head in heads.items() if head], span)
    firsts = []
    for thread, page in pages.items():
        entries = chain(page, following_pages(store, thread, span, page))
        # Without events that another process has added since the heads were read.
        firsts.append(next((entry.occurred_at for entry in entries if entry.sequence <= heads[thread]), None))
    return min((at for at in firsts if at is not None), default=None)


def ties_sorted(events: Iterable[Recorded], reverse: bool = False) -> Iterator[Recorded]:
    """Events of one thread as its store gives them, those of one instant by id; ``reverse``: the newest come first.

    A store orders ties by sequence, that is by arrival; the order of reading and folding must not depend on arrival.
    """
    ties: list[Recorded] = []
    for recorded in events:
        if ties and recorded.event.occurred_at != ties[0].event.occurred_at:
            yield from sorted(ties, key=occurred_order, reverse=reverse)
            ties = []
        ties.append(recorded)
    yield from sorted(ties, key=occurred_order, reverse=reverse)
