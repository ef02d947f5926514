"""The store port: items under (table, partition, sort), an append-only log of events, atomic batches.

What a database adapter or storage backend implements; memory, SQLite, PostgreSQL and DynamoDB are the four that ship.
The semantics are DynamoDB's, the narrowest of the stores: versions are conditions (optimistic concurrency), a batch
is all or nothing and bounded (`kernel/limits.py`), ranges are ordered, nothing is joined. Everything above this port
is written once.

    >>> from threadline.kernel.store import Batch, Key, Put
    >>> from threadline.stores.memory import MemoryStore
    >>> store, key = MemoryStore(), Key("notes", "ada")
    >>> new = Batch(writes=[Put(key, b"1", expected=0)])
    >>> first, again = store.commit([new, new])
    >>> first is None, again is None, [(item.version, item.value) for item in store.get([key])]
    (True, False, [(1, b'1')])

A backend of your own is tried by `threadline.testing.store_laws`; the memory store is the model, short enough to be
checked by reading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import NamedTuple, Protocol

from threadline.kernel.errors import InvalidValue, LimitExceeded
from threadline.kernel.limits import (
    BATCH_BYTES_MAX,
    BATCH_WRITES_MAX,
    ERASED_IDS_MAX,
    ITEM_BEGINS_MAX,
    ITEM_BYTES_MAX,
    KEY_BYTES_MAX,
    PAGE_ITEMS_MAX,
)


class Key(NamedTuple):
    """Where an item lives. All three are non-empty text, ordered by their UTF-8 bytes."""

    table: str
    partition: str
    sort: str = "-"


class Item(NamedTuple):
    """A stored value and its version, which starts at `Put.begins` and grows by 1 with every write."""

    key: Key
    version: int
    value: bytes


class Put(NamedTuple):
    """Write an item. ``expected`` is the version it must have now: 0 for absent, None for whatever it is.

    An absent item gets the version ``begins``. One that is deleted and made anew needs another than it had before:
    otherwise a process that remembers the former item finds its version again and takes the two for one.
    """

    key: Key
    value: bytes
    expected: int | None = None
    begins: int = 1


class Delete(NamedTuple):
    """Remove an item; ``expected`` as for `Put`. Removing what is absent with None is no error."""

    key: Key
    expected: int | None = None


class Check(NamedTuple):
    """Write nothing, but let the batch through only if the item has this version (0: is absent)."""

    key: Key
    expected: int


class LogEntry(NamedTuple):
    """An event as the log keeps it. ``id`` is unique in the store, and every store sees to that.

    (thread, sequence) is unique because whoever appends to a thread does so on the expected version of an item that
    guards it. Stores do not check it again: one more index would cost a page write per event.
    """

    thread: str
    """32 hex digits."""
    sequence: int
    occurred_at: int
    type: str
    id: str
    """32 hex digits."""
    digest: int
    """A signed 64-bit hash of the payload, to tell a duplicate from a conflict."""
    body: bytes
    """The packed `Recorded`; see `engine/folding/packing.py`."""


ERASED_THREAD = "0" * 32
"""The thread of every erased entry; no event has it."""
ERASED_DIGEST = 0
"""The digest of every erased entry. One payload of 2**64 has the same; nobody will meet it."""


def erased(id: str) -> LogEntry:
    """What is left of an event that was erased: its id, so that it is a duplicate if it is sent again, and its place
    in the feed."""
    return LogEntry(ERASED_THREAD, 0, 0, "", id, ERASED_DIGEST, b"")


def is_erased(entry: LogEntry) -> bool:
    """Whether of this event nothing is left but its id; see `Store.erase`."""
    return entry.thread == ERASED_THREAD


class FeedEntry(NamedTuple):
    """A log entry as the feed gives it, with the cursor from which reading goes on after it."""

    cursor: str
    entry: LogEntry


class Batch(NamedTuple):
    """What commits together or not at all, as one transaction. ``writes`` may name an item once only."""

    events: Sequence[LogEntry] = ()
    writes: Sequence[Put | Delete | Check] = ()
    builds_on: Sequence[int] = ()
    """Places, in the call, of earlier batches without which this one means nothing: if one is refused, so is this.

    Its versions alone cannot say so. Where another process has written an item in between, the refused batch leaves
    that item at the very version that it would have left itself.
    """


class Refusal(NamedTuple):
    """Why a batch was not committed: ``version`` (a condition failed, or what it builds on was refused) or
    ``event_exists`` (an id is taken).

    Where both are true it is ``event_exists``. Its ``detail`` is the first id that is taken; else it is text.
    """

    reason: str
    detail: str


class Span(NamedTuple):
    """Which events of a thread to read: [start, stop) in occurred time, types (empty: all), and how.

    Events come ordered by (occurred_at, sequence); ``reverse`` gives the newest first. ``after`` goes on
    from the (occurred_at, sequence) of the last event seen, in the direction of reading. ``limit`` counts
    the entries given, after the filter on types.
    """

    start: int | None = None
    stop: int | None = None
    types: frozenset[str] = frozenset()
    after: tuple[int, int] | None = None
    limit: int = 1_000
    reverse: bool = False


class Range(NamedTuple):
    """Some items of one partition; see `Store.query`."""

    table: str
    partition: str
    start: str = ""
    stop: str | None = None
    limit: int = 1_000


class Store(Protocol):
    """What a backend must do. One conformance suite, `threadline.testing.store_laws`, holds for all."""

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """The items under these keys, in their order; None where there is none. Sees every commit.

        SQLite reads them in one statement, DynamoDB in consistent reads of 100.
        """
        ...

    def query(
        self,
        table: str,
        partition: str,
        start: str = "",
        stop: str | None = None,
        limit: int = 1_000,
        reverse: bool = False,
    ) -> list[Item]:
        """Items of one partition with start <= sort < stop, by sort, at most ``limit``; go on from the last sort.

        A range of an index in PostgreSQL; DynamoDB's ranges include their end, and may hold expired items.
        """
        ...

    def ranges(self, ranges: Sequence[Range]) -> list[list[Item]]:
        """What `query` answers to each of these, read together.

        One statement in PostgreSQL; DynamoDB is asked for several at the same time.
        """
        ...

    def scan(
        self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000
    ) -> list[Item]:
        """Items of a whole table, every item in exactly one of ``shards``, in a stable order, after a key.

        By key in the embedded stores; in the order of DynamoDB's own hash, which reads the log along with the items.
        """
        ...

    def tables(self) -> list[str]:
        """The tables that hold an item, sorted. For moving and checking a whole store.

        SQLite has a list of names; DynamoDB reads everything.
        """
        ...

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """The log entries with these ids; an id that is not there or is erased is left out.

        SQLite looks in the tail and in an index; in DynamoDB an item names the page that holds the event.
        """
        ...

    def seen(self, ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """The digests of those ids that are in the log: `find` without the bodies, for duplicates; see `ERASED_DIGEST`.

        Without ``certain`` some may be missing that were committed within the last seconds: DynamoDB answers that for
        half the price, the others make no difference. For guesses that `commit` puts right.
        """
        ...

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """A page of each thread's events in occurred order; see `Span`. Threads without events are left out.

        One statement in SQLite and PostgreSQL, a query for each thread in DynamoDB, several at once.
        """
        ...

    def histories(
        self, threads: Sequence[str], wanted: Callable[[str], bool] | None = None
    ) -> dict[str, list[LogEntry]]:
        """All events of each of these threads, in occurred order; threads that hold none are left out.

        ``wanted`` says of which types; a predicate, because nobody has a list of types. For threads that the caller
        knows to be short together: one read without pages in SQLite and PostgreSQL, pages in DynamoDB.
        """
        ...

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """Commit batches, each all or nothing, in order; None for each that is durable, else why not.

        Returns only when what was committed is synced. SQLite and PostgreSQL put the batches of a call into one
        transaction, DynamoDB makes each a transaction.
        Raises `StoreFull` or `StoreBusy` with nothing written of this call's unanswered batches.
        """
        ...

    def erase(self, ids: Sequence[str]) -> int:
        """Take the events with these ids out of the log for good; how many were taken now. Durable when it returns.

        An id that is not there, or is erased, is ignored. At most `ERASED_IDS_MAX` ids. No place in the feed changes.
        SQLite and PostgreSQL do it in one transaction, DynamoDB page by page of the log: repeat it if it raises.
        """
        ...

    def purge(self) -> None:
        """Overwrite what erased events and deleted items have left behind in the store's own files.

        SQLite also empties its write-ahead log; PostgreSQL frees the rows; DynamoDB leaves nothing.
        """
        ...

    def advisory_lock(self, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """A context in which other processes that ask for one of these keys wait.

        Advisory: it keeps nobody from a commit, and who waits too long goes on without it. It spares writers of the
        same items lost races on PostgreSQL; SQLite has one writer, and DynamoDB no such lock.
        """
        ...

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """Every committed event once, in an order that never skips one, from a cursor on ("": the start).

        What is erased stays in its place, without its content: see `is_erased`.
        The position in the log in SQLite; PostgreSQL numbers commits as they are read, DynamoDB has a journal.
        """
        ...

    def feed_end(self) -> str:
        """A cursor behind which everything follows that is committed from now on: for who wants the news alone.

        What was committed shortly before may follow as well. Reading to the end of a long feed takes minutes. SQLite
        and PostgreSQL know the last position, DynamoDB the last entry of each part of its journal.
        """
        ...

    def feed_waits(self, cursor: str = "") -> bool:
        """Whether the feed withholds what lies behind a cursor until a writer that announced it has committed or gone.

        Acknowledged events may be behind that, so that a page with nothing more in it is not the end. Only DynamoDB
        has such gaps.
        """
        ...

    def mend(self, damaged: FeedEntry, good: LogEntry) -> bool:
        """Put the entry that was written in the place of a damaged one of the feed, durably; whether that was done.

        Only while the damaged bytes are still there. The place in the feed stays. For a process that writes alone: what
        others have read, or have in memory, does not change.
        """
        ...

    def stats(self) -> dict[str, int]:
        """The store's size, by names such as ``log_entries`` and ``file_bytes``; any name may be missing.

        DynamoDB has none: it would have to read the whole table.
        """
        ...

    def integrity(self) -> list[str]:
        """What is wrong with the store itself, in words; empty when nothing is. It may read everything.

        SQLite checks its pages and indexes, PostgreSQL its tables; DynamoDB's copies are the service's own affair.
        """
        ...

    def close(self) -> None:
        """Release everything. Further calls are errors."""
        ...


def by_thread(entries: Iterable[LogEntry]) -> dict[str, list[LogEntry]]:
    """Entries of several threads apart, each thread's in the order in which they come."""
    threads: dict[str, list[LogEntry]] = {}
    for entry in entries:
        threads.setdefault(entry.thread, []).append(entry)
    return threads


def only(histories: dict[str, list[LogEntry]], wanted: Callable[[str], bool] | None) -> dict[str, list[LogEntry]]:
    """Of `Store.histories` what is wanted, for a store that has read everything."""
    if wanted is not None:
        histories = {
            thread: [entry for entry in entries if wanted(entry.type)] for thread, entries in histories.items()
        }
    return {thread: entries for thread, entries in histories.items() if entries}


def thread_page(store: Store, thread: str, span: Span = Span()) -> list[LogEntry]:
    """A page of the events of one thread; see `Store.spans`."""
    return store.spans((thread,), span).get(thread, [])


def event_pages(store: Store, thread: str, span: Span = Span()) -> Iterator[LogEntry]:
    """All events of a span, page by page, whatever its limit: the flat-memory way to read a thread."""
    page = thread_page(store, thread, span)
    yield from page
    yield from following_pages(store, thread, span, page)


def following_pages(store: Store, thread: str, span: Span, page: Sequence[LogEntry]) -> Iterator[LogEntry]:
    """The rest of `event_pages` after the first page."""
    while len(page) == span.limit:
        span = span._replace(after=(page[-1].occurred_at, page[-1].sequence))
        page = thread_page(store, thread, span)
        yield from page


def scan_pages(store: Store, table: str, shard: int = 0, shards: int = 1) -> Iterator[Item]:
    """All items of a table's shard, page by page."""
    after: Key | None = None
    while page := store.scan(table, shard, shards, after):
        yield from page
        after = page[-1].key


def beyond(sort: str) -> str:
    """Where to start so as to go on right after a sort key; "" is the beginning. Nothing sorts between the two."""
    return f"{sort}\0" if sort else ""


def query_pages(
    store: Store, table: str, partition: str, after: str = "", stop: str | None = None, size: int = PAGE_ITEMS_MAX
) -> Iterator[Item]:
    """All items of a partition after a sort key and before ``stop``, in pages of ``size``."""
    while page := store.query(table, partition, beyond(after), stop, size):
        yield from page
        if len(page) < size:
            return
        after = page[-1].key.sort


def following_items(store: Store, wanted: Range, page: Sequence[Item]) -> Iterator[Item]:
    """All items of a range of which the first page was read, in pages of its limit."""
    yield from page
    while len(page) == wanted.limit:
        page = store.query(*wanted._replace(start=beyond(page[-1].key.sort)))
        yield from page


def feed_pages(store: Store, cursor: str = "") -> Iterator[FeedEntry]:
    """All of the feed from a cursor to its present end, page by page."""
    while page := store.feed(cursor):
        yield from page
        cursor = page[-1].cursor


# --- checks that every store makes before it writes, so that the narrowest's limits hold on all ----

_ID_LENGTH = 32
_is_hex = re.compile(r"[0-9a-f]+").fullmatch
_EVENT_KEYS_MAX = 2 * _ID_LENGTH + KEY_BYTES_MAX
"""Length of id, thread and type of an event together, bytes."""
_INTEGER_START, _INTEGER_END = -(2**63), 2**63


def check_batches(batches: Sequence[Batch]) -> None:
    """Raise `LimitExceeded` or `InvalidValue` if a store could not hold one of these batches."""
    longest = _check_entries([entry for batch in batches for entry in batch.events])
    for index, (events, writes, builds_on) in enumerate(batches):
        assert not builds_on or 0 <= min(builds_on) <= max(builds_on) < index, "a batch builds on earlier ones only"
        count = 2 * len(events) + len(writes)
        if count > BATCH_WRITES_MAX:
            raise LimitExceeded(f"a batch has {count} writes (an event counts as two); at most {BATCH_WRITES_MAX} fit")
        items = 0
        for write in writes:
            if isinstance(write, Put):
                items += _item_bytes(write.key, write.value)
                if not 1 <= write.begins <= ITEM_BEGINS_MAX:
                    raise InvalidValue(f"an item's version must begin between 1 and {ITEM_BEGINS_MAX:,}")
            else:
                items += _item_bytes(write.key, b"")
        if len(writes) > 1 and len({write.key for write in writes}) != len(writes):
            # Which of two writes of one item a condition would see differs between stores, so none may try.
            raise InvalidValue("a batch names the same item twice; fold its writes into one")
        if items + len(events) * (_EVENT_KEYS_MAX + longest) > BATCH_BYTES_MAX:
            size = items + sum(map(_event_bytes, events))
            if size > BATCH_BYTES_MAX:
                raise LimitExceeded(f"a batch has {size:,} bytes; at most {BATCH_BYTES_MAX:,} fit")


def _check_entries(entries: Sequence[LogEntry]) -> int:
    """Raise `LimitExceeded` or `InvalidValue` for an event that no store would keep: column by column, as it is the
    rule that every event is fit. Returns the length of the longest body."""
    if not entries:
        return 0
    threads, sequences, instants, types, ids, digests, bodies = zip(*entries, strict=True)
    numbers = (*sequences, *instants, *digests)
    if ERASED_THREAD in threads:
        wrong = [entry.id for entry in entries if entry.thread == ERASED_THREAD and entry != erased(entry.id)]
        if wrong:
            raise InvalidValue(f"event {wrong[0]} is in the thread of erased events, but has a content")
        types = tuple(entry.type for entry in entries if entry.thread != ERASED_THREAD)
    for type in set(types):
        _name_bytes(type, "event type")
    longest = max(map(len, bodies))
    if (
        set(map(len, ids + threads)) != {_ID_LENGTH}
        or not _is_hex("".join(ids + threads))
        or not _INTEGER_START <= min(numbers) <= max(numbers) < _INTEGER_END
        or longest > ITEM_BYTES_MAX - _EVENT_KEYS_MAX
    ):
        for entry in entries:
            _event_bytes(entry)
    return longest


def check_erase(ids: Sequence[str]) -> None:
    """Raise `LimitExceeded` for more ids than one call may erase."""
    if len(ids) > ERASED_IDS_MAX:
        raise LimitExceeded(f"{len(ids)} events are to be erased at once; at most {ERASED_IDS_MAX:,} can be")


def check_page(limit: int) -> None:
    """Raise `LimitExceeded` for a page size that no store would serve."""
    if not 1 <= limit <= PAGE_ITEMS_MAX:
        raise LimitExceeded(f"a page of {limit} was asked for; it must be between 1 and {PAGE_ITEMS_MAX}")


def check_shard(shard: int, shards: int) -> None:
    """Raise `InvalidValue` for a shard that is not one of so many."""
    if not 0 <= shard < shards:
        raise InvalidValue(f"there is no shard {shard} of {shards}; shards count from 0")


def text_bytes(text: str) -> int:
    """The length of a text in UTF-8. Raises `InvalidValue` for half a surrogate pair, which UTF-8 cannot hold."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidValue(f"{text!r:.80} is not Unicode text: it holds half a surrogate pair") from None


@lru_cache(maxsize=4_096)
def _name_bytes(text: str, part: str) -> int:
    """The length of a table's name or an event type, of which there are few."""
    return _part_bytes(text, part)


def _part_bytes(text: str, part: str) -> int:
    size = len(text) if text.isascii() else text_bytes(text)
    if not 0 < size <= KEY_BYTES_MAX:
        raise LimitExceeded(f"the {part} {text!r:.80} has {size:,} bytes; it must have between 1 and {KEY_BYTES_MAX:,}")
    return size


def _item_bytes(key: Key, value: bytes) -> int:
    table, partition, sort = key
    if sort == "-" and len(partition) == _ID_LENGTH and partition.isascii():
        size = len(value) + _name_bytes(table, "table") + _ID_LENGTH + 1
    else:
        size = (
            len(value) + _name_bytes(table, "table") + _part_bytes(partition, "partition") + _part_bytes(sort, "sort")
        )
    if size > ITEM_BYTES_MAX:
        raise LimitExceeded(f"the item {'/'.join(key)!r:.200} has {size:,} bytes; at most {ITEM_BYTES_MAX:,} fit")
    return size


def _event_bytes(entry: LogEntry) -> int:
    thread, sequence, occurred_at, type, id, digest, body = entry
    if not (len(id) == len(thread) == _ID_LENGTH and _is_hex(id) and _is_hex(thread)):
        raise InvalidValue(f"event {id!r:.80}: its id and its thread must each be 32 lower-case hex digits")
    if not (
        _INTEGER_START <= sequence < _INTEGER_END
        and _INTEGER_START <= occurred_at < _INTEGER_END
        and _INTEGER_START <= digest < _INTEGER_END
    ):
        raise InvalidValue(f"event {id}: sequence, occurred_at and digest must each fit in 64 signed bits")
    size = len(body) + len(id) + len(thread) + (_name_bytes(type, "event type") if thread != ERASED_THREAD else 0)
    if size > ITEM_BYTES_MAX:
        raise LimitExceeded(f"event {id} has {size:,} bytes; at most {ITEM_BYTES_MAX:,} fit")
    return size
