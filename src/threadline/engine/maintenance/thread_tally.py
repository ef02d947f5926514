"""Whether the feed and the threads of people have the same events: both are counted, and where they differ compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from threadline.engine.folding.packing import unpack_event
from threadline.engine.folding.person import THREAD
from threadline.kernel.counted import counted
from threadline.kernel.errors import EventDamaged
from threadline.kernel.event import Recorded
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.store import ERASED_DIGEST, LogEntry, Span, Store, event_pages, feed_pages, is_erased, scan_pages
from threadline.kernel.time import MINUTE

_BUCKET_DIGITS = 3
"""Threads are counted together whose ids begin with the same digits: so that everybody's fit into memory."""
COMPARED_MAX = 64
"""Buckets that differ and are compared event by event; of more it is only said how many there are."""
SETTLED_AFTER = MINUTE
"""An event shows in the feed of every store that long after it was recorded."""


class ThreadTally:
    """How many events there are, and which, by the first digits of their threads' ids, in whatever order."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, int]] = {}

    def add(self, thread: str, id: str) -> None:
        """Count an event."""
        bucket = _bucket(thread)
        count, total = self._sums.get(bucket, (0, 0))
        try:
            number = int(id[:16], 16)
        except ValueError:
            number = 0  # a damaged id, which is named as such
        self._sums[bucket] = count + 1, total + number

    def count(self, entries: Iterable[LogEntry]) -> None:
        """Count entries of the log, but those that are erased, of which nobody knows the thread."""
        for entry in entries:
            if not is_erased(entry):
                self.add(entry.thread, entry.id)

    def counted(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        """The same events, each counted as it is read."""
        for recorded in events:
            self.add(recorded.thread, recorded.id)
            yield recorded

    def absorb(self, other: ThreadTally) -> None:
        """Count all that another one has counted."""
        for bucket, (count, total) in other._sums.items():
            before = self._sums.get(bucket, (0, 0))
            self._sums[bucket] = before[0] + count, before[1] + total

    def differing(self, other: ThreadTally) -> list[str]:
        """The buckets of which the two say different things."""
        buckets = self._sums.keys() | other._sums.keys()
        return sorted(bucket for bucket in buckets if self._sums.get(bucket) != other._sums.get(bucket))


def differences(store: Store, feed: ThreadTally, threads: ThreadTally, now: int) -> Iterator[str]:
    """In words, each thread that has events which the feed lacks, or lacks events of the feed.

    What was recorded while both were counted makes them differ and is no fault: the threads are read again and then the
    feed, so that the feed must have what they have, and what it has besides is looked for once more.
    """
    differing = feed.differing(threads)
    if len(differing) > COMPARED_MAX:
        yield f"the feed and {len(differing):,} groups of threads differ; of these {COMPARED_MAX} are compared"
    buckets = frozenset(differing[:COMPARED_MAX])
    if not buckets:
        return
    in_threads = {entry.id: entry for entry in _of_threads(store, buckets)}
    entries = (feed_entry.entry for feed_entry in feed_pages(store))
    in_feed = {entry.id: entry for entry in entries if _bucket(entry.thread) in buckets and not is_erased(entry)}
    lost = [entry for id, entry in in_threads.items() if id not in in_feed and _is_settled(entry, now)]
    stray = [entry for id, entry in in_feed.items() if id not in in_threads and _is_settled(entry, now)]
    now_there = {entry.id for entry in _entries(store, {entry.thread for entry in stray})}
    yield from _reported(store, lost, "has {} that the feed lacks: {}")
    yield from _reported(store, [entry for entry in stray if entry.id not in now_there], "lacks {} of the feed: {}")


def _bucket(thread: str) -> str:
    return thread[:_BUCKET_DIGITS]


def _of_threads(store: Store, buckets: frozenset[str]) -> Iterator[LogEntry]:
    threads = (item.key.partition for item in scan_pages(store, THREAD))
    yield from _entries(store, [thread for thread in threads if _bucket(thread) in buckets])


def _entries(store: Store, threads: Iterable[str]) -> Iterator[LogEntry]:
    for thread in threads:
        yield from event_pages(store, thread, Span(limit=PAGE_ITEMS_MAX))


def _is_settled(entry: LogEntry, now: int) -> bool:
    try:
        return unpack_event(entry).recorded_at <= now - SETTLED_AFTER
    except EventDamaged:
        return False  # it is named as such


def _reported(store: Store, entries: list[LogEntry], what: str) -> Iterator[str]:
    """By thread, in words; events that were erased meanwhile are left out."""
    digests = store.seen([entry.id for entry in entries])
    by_thread: dict[str, list[str]] = {}
    for entry in entries:
        if digests.get(entry.id) != ERASED_DIGEST:
            by_thread.setdefault(entry.thread, []).append(entry.id)
    for thread, ids in sorted(by_thread.items()):
        yield f"thread {thread} {what.format(counted(len(ids), 'event'), ', '.join(ids[:3]))}"
