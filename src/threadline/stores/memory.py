"""The reference store: everything in dictionaries under one lock, simple enough to be obviously right.

The in-memory database for tests and trials, and the fake that is no fake: it passes the same laws as SQLite, PostgreSQL
and DynamoDB, and is the model that they are compared with. Nothing of it outlives the process.

    >>> import threadline
    >>> threadline.open("memory:").track("ada", "page").status
    'accepted'
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any
from zlib import crc32

from threadline.kernel.errors import InvalidValue, Unavailable
from threadline.kernel.store import (
    ERASED_THREAD,
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
    check_batches,
    check_erase,
    check_page,
    check_shard,
    erased,
    is_erased,
    only,
    text_bytes,
)
from threadline.stores.plan import BUILT_ON_REFUSED

# Python compares text by code points, which is the order of its UTF-8 bytes as well; so text is kept as it is.


class _Closed(AbstractContextManager[None]):
    """Replaces the lock of a closed store."""

    def __enter__(self) -> None:
        raise Unavailable("the store is closed")

    def __exit__(self, *_: object) -> None:
        """Never reached."""


class MemoryStore:
    """A store that lives as long as its process: for tests, for what-if, and as the model of all the others."""

    def __init__(self, *, readonly: bool = False) -> None:
        self._readonly = readonly
        self._lock: AbstractContextManager[Any] = threading.Lock()
        self._items: dict[Key, Item] = {}
        self._partitions: dict[str, list[str]] = {}
        """Table -> its partitions that have items, sorted."""
        self._sorts: dict[tuple[str, str], list[str]] = {}
        """(table, partition) -> the sorts of its items, sorted."""
        self._log: list[LogEntry] = []
        self._positions: dict[str, int] = {}
        """Event id -> its index in the log."""
        self._threads: dict[str, list[tuple[int, int, int]]] = {}
        """Thread -> (occurred_at, sequence, index in the log), sorted."""

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store.get`."""
        _check_texts(map("".join, keys))
        with self._lock:
            return [self._items.get(key) for key in keys]

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
        check_page(limit)
        _check_texts((table, partition, start, stop or ""))
        with self._lock:
            sorts = self._sorts.get((table, partition), [])
            end = len(sorts) if stop is None else bisect_left(sorts, stop)
            chosen = sorts[bisect_left(sorts, start) : end]
            return [self._items[Key(table, partition, sort)] for sort in (chosen[::-1] if reverse else chosen)[:limit]]

    def ranges(self, ranges: Sequence[Range]) -> list[list[Item]]:
        """See `Store.ranges`."""
        return [self.query(*key_range) for key_range in ranges]

    def scan(
        self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000
    ) -> list[Item]:
        """See `Store.scan`; ordered by (partition, sort), sharded by a hash of both."""
        check_page(limit)
        check_shard(shard, shards)
        _check_texts((table, *(after or ())))
        with self._lock:
            keys = (key for key in self._keys_after(table, after) if crc32("\0".join(key).encode()) % shards == shard)
            return [self._items[key] for key in islice(keys, limit)]

    def _keys_after(self, table: str, after: Key | None) -> Iterator[Key]:
        partitions = self._partitions.get(table, [])
        for partition in partitions[bisect_left(partitions, after.partition) if after else 0 :]:
            sorts = self._sorts[table, partition]
            first = bisect_right(sorts, after.sort) if after and after.partition == partition else 0
            for sort in sorts[first:]:
                yield Key(table, partition, sort)

    def tables(self) -> list[str]:
        """See `Store.tables`."""
        with self._lock:
            return sorted(table for table, partitions in self._partitions.items() if partitions)

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        with self._lock:
            entries = (self._log[self._positions[id]] for id in ids if id in self._positions)
            return {entry.id: entry for entry in entries if not is_erased(entry)}

    def seen(self, ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """See `Store.seen`."""
        with self._lock:
            return {id: self._log[self._positions[id]].digest for id in ids if id in self._positions}

    def _page(self, thread: str, span: Span) -> list[LogEntry]:
        with self._lock:
            places = self._threads.get(thread, [])
            first = 0 if span.start is None else bisect_left(places, (span.start,))
            end = len(places) if span.stop is None else bisect_left(places, (span.stop,))
            if span.after is not None and span.reverse:
                end = min(end, bisect_left(places, span.after))
            elif span.after is not None:
                first = max(first, bisect_left(places, (span.after[0], span.after[1] + 1)))
            chosen = places[first:end]
            entries = (self._log[index] for _, _, index in (reversed(chosen) if span.reverse else chosen))
            return list(islice((entry for entry in entries if not span.types or entry.type in span.types), span.limit))

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`; durable as long as the process lives."""
        if self._readonly:
            raise Unavailable("the store is open for reading only")
        check_batches(batches)
        with self._lock:
            outcomes: list[Refusal | None] = []
            for batch in batches:
                outcomes.append(self._commit(batch, lost=any(outcomes[number] for number in batch.builds_on)))
            return outcomes

    def _commit(self, batch: Batch, *, lost: bool) -> Refusal | None:
        refusal = self._refusal(batch, lost=lost)
        if refusal is None:
            for entry in batch.events:
                self._append(entry)
            for write in batch.writes:
                if isinstance(write, Put):
                    self._put(write)
                elif isinstance(write, Delete):
                    self._delete(write.key)
        return refusal

    def _refusal(self, batch: Batch, *, lost: bool) -> Refusal | None:
        ids = set()
        for entry in batch.events:
            if entry.id in self._positions or entry.id in ids:
                return Refusal("event_exists", entry.id)
            ids.add(entry.id)
        if lost:
            return BUILT_ON_REFUSED
        for write in batch.writes:
            item = self._items.get(write.key)
            version = item.version if item else 0
            if write.expected is not None and write.expected != version:
                return Refusal("version", f"{'/'.join(write.key)}: expected {write.expected}, found {version}")
        return None

    def _append(self, entry: LogEntry) -> None:
        self._positions[entry.id] = len(self._log)
        if entry.thread != ERASED_THREAD:
            insort(self._threads.setdefault(entry.thread, []), (entry.occurred_at, entry.sequence, len(self._log)))
        self._log.append(entry)

    def _put(self, write: Put) -> None:
        key, item = write.key, self._items.get(write.key)
        if item is None:
            sorts = self._sorts.setdefault((key.table, key.partition), [])
            if not sorts:
                insort(self._partitions.setdefault(key.table, []), key.partition)
            insort(sorts, key.sort)
        self._items[key] = Item(key, item.version + 1 if item else write.begins, write.value)

    def _delete(self, key: Key) -> None:
        if self._items.pop(key, None) is None:
            return
        sorts = self._sorts[key.table, key.partition]
        sorts.remove(key.sort)
        if not sorts:
            del self._sorts[key.table, key.partition]
            self._partitions[key.table].remove(key.partition)

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """See `Store.spans`."""
        check_page(span.limit)
        pages = {thread: self._page(thread, span) for thread in threads}
        return {thread: entries for thread, entries in pages.items() if entries}

    def histories(
        self, threads: Sequence[str], wanted: Callable[[str], bool] | None = None
    ) -> dict[str, list[LogEntry]]:
        """See `Store.histories`."""
        with self._lock:
            known = {thread: self._threads[thread] for thread in threads if thread in self._threads}
            histories = {thread: [self._log[at] for _, _, at in places] for thread, places in known.items()}
        return only(histories, wanted)

    def erase(self, ids: Sequence[str]) -> int:
        """See `Store.erase`."""
        if self._readonly:
            raise Unavailable("the store is open for reading only")
        check_erase(ids)
        with self._lock:
            places = {self._positions[id] for id in ids if id in self._positions}
            present = [position for position in places if not is_erased(self._log[position])]
            for position in present:
                entry = self._log[position]
                places_left = self._threads[entry.thread]
                places_left.remove((entry.occurred_at, entry.sequence, position))
                if not places_left:
                    del self._threads[entry.thread]
                self._log[position] = erased(entry.id)
            return len(present)

    def purge(self) -> None:
        """See `Store.purge`; there is no file."""
        with self._lock:
            return

    def advisory_lock(self, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """See `Store.advisory_lock`."""
        return nullcontext()

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """See `Store.feed`; the cursor is how many entries have been read."""
        check_page(limit)
        if cursor and not (cursor.isascii() and cursor.isdigit()):
            raise InvalidValue(f"{cursor!r:.80} is not a cursor of this feed", param="cursor")
        start = int(cursor or 0)
        with self._lock:
            page = self._log[start : start + limit]
            return [FeedEntry(str(count), entry) for count, entry in enumerate(page, start + 1)]

    def feed_end(self) -> str:
        """See `Store.feed_end`."""
        with self._lock:
            return str(len(self._log))

    def feed_waits(self, cursor: str = "") -> bool:
        """See `Store.feed_waits`: what is committed is there."""
        return False

    def mend(self, damaged: FeedEntry, good: LogEntry) -> bool:
        """See `Store.mend`."""
        if self._readonly:
            raise Unavailable("the store is open for reading only")
        with self._lock:
            index = int(damaged.cursor) - 1
            if self._log[index] != damaged.entry:
                return False
            for places in self._threads.values():
                places[:] = [row for row in places if row[2] != index]
            self._positions = {id: at for id, at in self._positions.items() if at != index} | {good.id: index}
            self._log[index] = good
            insort(self._threads.setdefault(good.thread, []), (good.occurred_at, good.sequence, index))
            return True

    def stats(self) -> dict[str, int]:
        """See `Store.stats`; nothing here has a size."""
        with self._lock:
            return {}

    def integrity(self) -> list[str]:
        """See `Store.integrity`; there is no file that could be damaged."""
        with self._lock:
            return []

    def close(self) -> None:
        """See `Store.close`."""
        self._lock = _Closed()


def _check_texts(texts: Iterable[str]) -> None:
    for text in texts:
        text_bytes(text)
