"""An overlay: a store as it is, in which whatever is written stays in memory and is forgotten with it."""

from __future__ import annotations

import threading
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from heapq import merge
from itertools import islice

from threadline.kernel.errors import Unavailable
from threadline.kernel.store import (
    Batch,
    Delete,
    FeedEntry,
    Item,
    Key,
    LogEntry,
    Put,
    Range,
    Refusal,
    Span,
    Store,
    only,
)


class Overlay:
    """A store over another one, which is only read. For as much as a rehearsal writes: all of it lies in memory.

    The feed is that of the store below: nothing that follows the log in the background sees a rehearsal.
    """

    def __init__(self, below: Store) -> None:
        self._below = below
        self._lock = threading.RLock()
        self.events: dict[str, LogEntry] = {}
        """The events that were appended here, by id."""
        self._threads: dict[str, list[LogEntry]] = {}
        """The same by thread, each thread's in occurred order."""
        self.items: dict[tuple[str, str], dict[str, Item | None]] = {}
        """(table, partition) -> sort -> what was written here; None: it was deleted."""

    # --- items ----------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store.get`."""
        with self._lock:
            missing = [key for key in keys if key.sort not in self.items.get(key[:2], ())]
            below = dict(zip(missing, self._below.get(missing), strict=True)) if missing else {}
            return [below[key] if key in below else self.items[key[:2]][key.sort] for key in keys]

    def query(
        self,
        table: str,
        partition: str,
        start: str = "",
        stop: str | None = None,
        limit: int = 1_000,
        reverse: bool = False,
    ) -> list[Item]:
        """See `Store.query`."""
        with self._lock:
            items = self.items.get((table, partition), {})
            own = [(sort, item) for sort, item in items.items() if sort >= start and (stop is None or sort < stop)]
            hidden = {sort for sort, _ in own}
            # Of so many items so many may be written over, or deleted, here.
            below = self._pages(Range(table, partition, start, stop, min(limit + len(own), 1_000)), reverse)
            left = ((item.key.sort, item) for item in below if item.key.sort not in hidden)
            written = ((sort, item) for sort, item in sorted(own, key=_sort, reverse=reverse) if item is not None)
            return [item for _, item in islice(merge(left, written, key=_sort, reverse=reverse), limit)]

    def _pages(self, wanted: Range, reverse: bool) -> Iterator[Item]:
        table, partition, start, stop, limit = wanted
        while True:
            page = self._below.query(table, partition, start, stop, limit, reverse)
            yield from page
            if len(page) < limit:
                return
            last = page[-1].key.sort
            start, stop = (start, last) if reverse else (f"{last}\0", stop)

    def ranges(self, ranges: Sequence[Range]) -> list[list[Item]]:
        """See `Store.ranges`."""
        return [self.query(*key_range) for key_range in ranges]

    def scan(
        self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000
    ) -> list[Item]:
        """See `Store.scan`; of the store below alone: no rehearsal looks at a whole table that it has written to."""
        return self._below.scan(table, shard, shards, after, limit)

    def tables(self) -> list[str]:
        """See `Store.tables`."""
        return sorted({*self._below.tables(), *(table for table, _ in self.items)})

    # --- events ---------------------------------------------------------------------------------

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        return self._below.find(ids) | {id: self.events[id] for id in ids if id in self.events}

    def seen(self, ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """See `Store.seen`."""
        own = {id: self.events[id].digest for id in ids if id in self.events}
        return self._below.seen(ids, certain=certain) | own

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """See `Store.spans`."""
        below = self._below.spans(threads, span)
        for thread, known in self._own(threads).items():
            own = [entry for entry in (reversed(known) if span.reverse else known) if _is_in(span, entry)]
            if own:
                both = merge(below.get(thread, ()), own, key=_at, reverse=span.reverse)
                below[thread] = list(islice(both, span.limit))
        return below

    def histories(
        self, threads: Sequence[str], wanted: Callable[[str], bool] | None = None
    ) -> dict[str, list[LogEntry]]:
        """See `Store.histories`."""
        below, own = self._below.histories(threads, wanted), only(self._own(threads), wanted)
        return below | {thread: [*merge(below.get(thread, ()), own[thread], key=_at)] for thread in own}

    def _own(self, threads: Iterable[str]) -> dict[str, list[LogEntry]]:
        with self._lock:
            return {thread: [*self._threads[thread]] for thread in threads if thread in self._threads}

    # --- writing --------------------------------------------------------------------------------

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`; nothing of it lasts."""
        with self._lock:
            outcomes: list[Refusal | None] = []
            for batch in batches:
                lost = any(outcomes[number] for number in batch.builds_on)
                outcomes.append(Refusal("version", "built on a refused batch") if lost else self._commit(batch))
            return outcomes

    def _commit(self, batch: Batch) -> Refusal | None:
        known = self.seen([entry.id for entry in batch.events])
        if known:
            return Refusal("event_exists", next(iter(known)))
        items = self.get([write.key for write in batch.writes])
        for write, item in zip(batch.writes, items, strict=True):
            version = item.version if item else 0
            if write.expected is not None and write.expected != version:
                return Refusal("version", f"{'/'.join(write.key)}: expected {write.expected}, found {version}")
        for entry in batch.events:
            self.events[entry.id] = entry
            insort(self._threads.setdefault(entry.thread, []), entry, key=_at)
        for write, item in zip(batch.writes, items, strict=True):
            items_there = self.items.setdefault(write.key[:2], {})
            if isinstance(write, Put):
                version = item.version + 1 if item else write.begins
                items_there[write.key.sort] = Item(write.key, version, write.value)
            elif isinstance(write, Delete):
                items_there[write.key.sort] = None
        return None

    def erase(self, ids: Sequence[str]) -> int:
        """Never: a rehearsal erases nothing."""
        raise Unavailable("a rehearsal erases nothing")

    def purge(self) -> None:
        """Nothing is left behind."""

    def advisory_lock(self, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """See `Store.advisory_lock`; nobody else writes here."""
        return nullcontext()

    # --- the rest is that of the store below ----------------------------------------------------

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """See `Store.feed`."""
        return self._below.feed(cursor, limit)

    def feed_end(self) -> str:
        """See `Store.feed_end`."""
        return self._below.feed_end()

    def feed_waits(self, cursor: str = "") -> bool:
        """See `Store.feed_waits`."""
        return self._below.feed_waits(cursor)

    def mend(self, damaged: FeedEntry, good: LogEntry) -> bool:
        """Never: a rehearsal mends nothing."""
        return False

    def stats(self) -> dict[str, int]:
        """See `Store.stats`."""
        return self._below.stats()

    def integrity(self) -> list[str]:
        """See `Store.integrity`."""
        return self._below.integrity()

    def close(self) -> None:
        """The store below stays open: it is somebody else's."""


def _sort(pair: tuple[str, Item | None]) -> str:
    return pair[0]


def _at(entry: LogEntry) -> tuple[int, int]:
    return entry.occurred_at, entry.sequence


def _is_in(span: Span, entry: LogEntry) -> bool:
    if span.types and entry.type not in span.types:
        return False
    if (span.start is not None and entry.occurred_at < span.start) or (
        span.stop is not None and entry.occurred_at >= span.stop
    ):
        return False
    return span.after is None or (_at(entry) < span.after if span.reverse else _at(entry) > span.after)
