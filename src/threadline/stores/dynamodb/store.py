"""The DynamoDB store: one table, on demand, shared by any number of processes; a batch is one transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import chain

from threadline.kernel.errors import Unavailable
from threadline.kernel.store import (
    ERASED_THREAD,
    Batch,
    FeedEntry,
    Item,
    Key,
    LogEntry,
    Range,
    Refusal,
    Span,
    check_batches,
    check_erase,
    check_page,
    check_shard,
    event_pages,
    only,
    text_bytes,
)
from threadline.kernel.time import Clock
from threadline.stores.dynamodb import commit as writing
from threadline.stores.dynamodb import layout, reading
from threadline.stores.dynamodb.address import parse
from threadline.stores.dynamodb.client import Client, Refused
from threadline.stores.dynamodb.erasure import erase
from threadline.stores.dynamodb.feed import Feed
from threadline.stores.dynamodb.frames import ATTEMPTS_MAX, Frames
from threadline.stores.dynamodb.journal import Journal
from threadline.stores.dynamodb.mending import mend_page
from threadline.stores.dynamodb.stream import StreamTail
from threadline.stores.dynamodb.table import check_table, migrate_table
from threadline.stores.plan import BUILT_ON_REFUSED

TRANSACTIONS_AT_ONCE = 8
Outcomes = dict[int, Refusal | None]
"""Outcomes of batches of a call, by position."""
_ID = re.compile(r"[0-9a-f]{32}")


class DynamoStore:
    """A store in the table of a URL such as ``dynamodb://people?region=eu-central-1``. Safe for use from many threads.

    `migrate` makes the table. ``clock`` gives positions in the journal and decides what has expired; how it agrees
    with other machines' clocks decides nothing else. A writer that died holds up the feed for ``expiry_seconds``.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        readonly: bool = False,
        client: Client | None = None,
        expiry_seconds: float = 10.0,
        patience_seconds: float = 20.0,
    ) -> None:
        self.address = parse(url)
        self.client = client or Client(self.address, patience_seconds=patience_seconds)
        self._clock = clock
        self._readonly = readonly
        self._closed = False
        check_table(self.client)
        self._journal = Journal(self.client, clock, expiry_seconds=expiry_seconds)
        self.leave_journal = self._journal.leave
        """Lets readers of the feed not wait for this process until its next commit: it is about to be frozen."""
        tail = StreamTail(self.client, clock) if self.address.streams else None
        self._frames = Frames(self.client)
        self._feed = Feed(self.client, self._journal, tail)
        self._pool = ThreadPoolExecutor(TRANSACTIONS_AT_ONCE, thread_name_prefix="threadline-dynamodb")

    # --- reading ------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store.get`."""
        self._check_open()
        _check_texts(part for key in keys for part in key)
        stored = reading.get_many(self.client, [layout.item_key(key) for key in keys if all(key)])
        items = {item.key: item for item in self._items(stored.values())}
        return [items.get(key) for key in keys]

    def _items(self, stored: Iterable[layout.Attributes]) -> list[Item]:
        """The items of the port among those found, without what has expired."""
        now = self._clock()
        items = []
        for item, value in self._frames.whole(stored):
            # A write that builds on this comes after it in the feed, whatever the clocks say.
            self._journal.observe(layout.position_of(item))
            if not layout.has_expired(item, now):
                items.append(Item(layout.key_of(item), layout.version_of(item), value))
        return items

    def _page(self, answers: Iterable[list[layout.Attributes]], limit: int, stop: str | None = None) -> list[Item]:
        """The first items of a range, but for the one at its end."""
        items: list[Item] = []
        for answer in answers:
            rows = [item for item in answer if item[layout.SK]["S"] != stop]
            # Only those that will be given, because each may have a frame to be read.
            for start in range(0, len(rows), limit):
                items += self._items(rows[start : start + limit])
                if len(items) >= limit:
                    return items[:limit]
        return items

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
        self._check_open()
        check_page(limit)
        _check_texts((table, partition, start, stop or ""))
        if stop is not None and stop <= start:
            return []
        pk = layout.table_prefix(table) + partition
        # One more, for DynamoDB's ranges include their end.
        answers = reading.query_pages(self.client, pk, start, stop, reverse=reverse, limit=limit + 1)
        return self._page(answers, limit, stop)

    def ranges(self, ranges: Sequence[Range]) -> list[list[Item]]:
        """See `Store.ranges`."""
        return list(self._pool.map(lambda key_range: self.query(*key_range), ranges))

    def scan(
        self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000
    ) -> list[Item]:
        """See `Store.scan`; in the order of DynamoDB's own hash. It reads, and bills, the log along with the items."""
        self._check_open()
        check_page(limit)
        check_shard(shard, shards)
        _check_texts((table, *(after or ())))
        start = None if after is None else layout.item_key(after)
        return self._page(reading.scan_pages(self.client, layout.table_prefix(table), shard, shards, start), limit)

    def tables(self) -> list[str]:
        """See `Store.tables`; it reads the whole table."""
        self._check_open()
        pages = reading.scan_pages(self.client, "i", 0, 1, None, keys_only=True)
        return sorted({item[layout.PK]["S"][1:].partition("\0")[0] for item in chain.from_iterable(pages)})

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        entries: dict[str, LogEntry] = {}
        page_keys = self._places(ids)
        for _ in range(ATTEMPTS_MAX):
            pages = reading.get_many(self.client, [layout.page_key(key) for key in set(page_keys.values())])
            for page in pages.values():
                name = layout.page_name(page)
                # Only where its id says: that it lies on another page that was read leads nobody to it.
                entries.update((e.id, e) for _, e in layout.unpack_page(page) if page_keys.get(e.id) == name)
            missing = [id for id in page_keys if id not in entries]
            if not missing:
                return entries
            # Lost; or their page was replaced since its name was read, because it had an event that was erased.
            again = self._places(missing)
            if all(page_keys[id] == key for id, key in again.items()):
                return entries
            page_keys = again
        raise Unavailable("pages of the log are replaced faster than they can be read; try again")

    def _places(self, ids: Sequence[str]) -> dict[str, layout.PageKey]:
        """Where those of these events are that are not erased."""
        page_keys = {id: layout.page_of(item) for id, item in self._ids(ids).items()}
        return {id: key for id, key in page_keys.items() if key.thread != ERASED_THREAD}

    def seen(self, ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """See `Store.seen`; half a read unit for each id instead of a whole one if it need not be certain."""
        return {id: int(item[layout.DIGEST]["N"]) for id, item in self._ids(ids, consistent=certain).items()}

    def _ids(self, ids: Sequence[str], *, consistent: bool = True) -> dict[str, layout.Attributes]:
        self._check_open()
        keys = [layout.id_key(id) for id in ids if _ID.fullmatch(id)]
        items = reading.get_many(self.client, keys, consistent=consistent)
        return {name[0][1:]: item for name, item in items.items()}

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """See `Store.spans`."""
        self._check_open()
        check_page(span.limit)
        return self._of_each(threads, lambda thread: reading.read_thread(self.client, thread, span))

    def histories(
        self, threads: Sequence[str], wanted: Callable[[str], bool] | None = None
    ) -> dict[str, list[LogEntry]]:
        """See `Store.histories`."""
        return only(self._of_each(threads, lambda thread: list(event_pages(self, thread))), wanted)

    def _of_each(self, threads: Sequence[str], read: Callable[[str], list[LogEntry]]) -> dict[str, list[LogEntry]]:
        _check_texts(threads)
        chosen = [thread for thread in dict.fromkeys(threads) if thread not in ("", ERASED_THREAD)]
        # One thread without the pool: `histories` reads its pages from within it, and waiting there could block all.
        run = self._pool.map if len(chosen) > 1 else map
        results = zip(chosen, run(read, chosen), strict=True)
        return {thread: entries for thread, entries in results if entries}

    def advisory_lock(self, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """See `Store.advisory_lock`."""
        return nullcontext()

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """See `Store.feed`; in the order of the journal. What another process commits shows half a second later."""
        self._check_open()
        check_page(limit)
        return self._feed.read(cursor, limit)

    def feed_end(self) -> str:
        """See `Store.feed_end`; the call that was committed last may follow."""
        self._check_open()
        return self._feed.end()

    def feed_waits(self, cursor: str = "") -> bool:
        """See `Store.feed_waits`: for half a second, or until a writer that stands still is given up on."""
        self._check_open()
        return self._feed.waits(cursor)

    # --- writing ------------------------------------------------------------------------------

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`. Batches that have nothing in common are committed side by side."""
        self._check_open()
        if self._readonly:
            raise Unavailable("the store is open for reading only")
        check_batches(batches)
        outcomes: Outcomes = {}
        for number, batch in enumerate(batches):
            if (id := writing.repeated_id(batch)) is not None:
                outcomes[number] = Refusal("event_exists", id)
        while len(outcomes) < len(batches):
            outcomes |= self._round(batches, outcomes)
        return [outcomes[number] for number in range(len(batches))]

    def mend(self, damaged: FeedEntry, good: LogEntry) -> bool:
        """See `Store.mend`; the page that holds the entry is written anew, if it still is as it was read."""
        self._check_open()
        if self._readonly:
            raise Unavailable("the store is open for reading only")
        where = self._ids([good.id]).get(good.id)
        if where is None:
            return False
        return mend_page(self.client, layout.page_of(where), damaged.entry, good)

    def _round(self, batches: Sequence[Batch], known: Outcomes) -> Outcomes:
        """Write one entry of the journal and its batches; those without an outcome have to be sent again."""
        todo = [number for number in range(len(batches)) if number not in known]
        recording = [number for number in todo if batches[number].events]
        if not recording:
            return self._chains(batches, known, {}, self._journal.tick())
        position = self._journal.begin()
        places = {number: layout.Place(position, index) for index, number in enumerate(recording)}
        answered = False
        try:
            pages = [writing.batch_pages(batches[number], places[number]) for number in recording]
            outcomes: Outcomes = {}
            if self._journal.enter(position, pages):
                outcomes = self._chains(batches, known, places, position)
            answered = True
        finally:
            self._journal.end(position, answered=answered)
        return outcomes

    def _chains(
        self, batches: Sequence[Batch], known: Outcomes, places: dict[int, layout.Place], position: str
    ) -> Outcomes:
        todo = [number for number in range(len(batches)) if number not in known]
        # Batches without events take numbers after those with, so that every batch of a call has its own.
        rest = [number for number in todo if number not in places]
        places = {**places, **{n: layout.Place(position, len(places) + index) for index, n in enumerate(rest)}}
        clause = writing.Clause(self.address.table, self._clock(), dict(self.address.expire))

        def follow(numbers: Iterable[int]) -> Outcomes:
            done: Outcomes = {}
            for number in numbers:
                lost = any(done.get(earlier) or known.get(earlier) for earlier in batches[number].builds_on)
                try:
                    done[number] = self._commit(batches[number], places[number], clause, lost=lost)
                except writing.Expelled:
                    break
            return done

        chains = writing.chains(batches, todo)
        if len(chains) == 1:
            return follow(chains[0])
        # Every chain comes to its end before an error of one of them is raised.
        running = [self._pool.submit(follow, numbers) for numbers in chains]
        outcomes: Outcomes = {}
        errors = [task.exception() for task in running]
        for task, error in zip(running, errors, strict=True):
            if error is not None:
                raise error
            outcomes.update(task.result())
        return outcomes

    def _commit(self, batch: Batch, place: layout.Place, clause: writing.Clause, *, lost: bool) -> Refusal | None:
        refusal = BUILT_ON_REFUSED if lost else self._transact(batch, place, clause)
        if refusal is not None and refusal.reason == "version" and batch.events:
            # DynamoDB's answer names the conditions that it came to; the port puts a taken id before all others.
            taken = self._ids([entry.id for entry in batch.events])
            exists = [entry.id for entry in batch.events if entry.id in taken]
            return Refusal("event_exists", exists[0]) if exists else refusal
        return refusal

    def _transact(self, batch: Batch, place: layout.Place, clause: writing.Clause) -> Refusal | None:
        for attempt in range(ATTEMPTS_MAX):
            known = {write.key: frame for write in batch.writes if (frame := self._frames.known(write.key)) is not None}
            made = writing.transaction(batch, place, clause, known, attempt)
            if not made.steps:
                return None
            try:
                return self._send(made, place, clause)
            except writing.Framed as framed:
                for write in framed.writes:
                    self._frames.learn(write.key, None)
                    if clause.is_bare(write):
                        self._frames.dissolve(write.key)
        raise Unavailable("other writers keep changing the same items; try again")

    def _send(self, made: writing.Transaction, place: layout.Place, clause: writing.Clause) -> Refusal | None:
        request = {
            "TransactItems": [step.action for step in made.steps],
            "ClientRequestToken": made.token,
            "ReturnConsumedCapacity": "TOTAL",
        }
        try:
            self.client.call("TransactWriteItems", request)
        except Refused as refused:
            refusal = writing.meaning(made, refused.reasons, place, clause.now)
            if refusal is not None:
                return refusal
        for key, frame in made.frames.items():
            self._frames.learn(key, frame)
        return None

    def erase(self, ids: Sequence[str]) -> int:
        """See `Store.erase`; a transaction for each page of the log. Repeat it if it raises."""
        self._check_open()
        if self._readonly:
            raise Unavailable("the store is open for reading only")
        check_erase(ids)
        count, waiting = 0, self._places(ids)
        for _ in range(ATTEMPTS_MAX):
            done = erase(self.client, waiting, self._pool.map)
            count += len(done)
            if len(done) == len(waiting):
                return count
            waiting = self._places([id for id in waiting if id not in done])
        raise Unavailable("others keep erasing the same events; try again")

    def purge(self) -> None:
        """See `Store.purge`; what is deleted is gone, but for backups and the stream, which end by themselves."""
        self._check_open()

    # --- the rest -----------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    def stats(self) -> dict[str, int]:
        """See `Store.stats`; a table is counted by reading all of it, so nothing is told."""
        self._check_open()
        return {}

    def integrity(self) -> list[str]:
        """See `Store.integrity`; that its copies are whole is the service's own affair."""
        self._check_open()
        return []

    def close(self) -> None:
        """See `Store.close`."""
        if self._closed:
            return
        self._closed = True
        self._pool.shutdown()
        self._journal.close()
        self.client.close()


def migrate(url: str) -> list[str]:
    """Create or upgrade the table of this URL; returns the steps taken, in words.

    The table is on demand, has a stream of new images, point-in-time recovery, deletion protection and expiry.
    It may be run again at any time.
    """
    client = Client(parse(url))
    try:
        return migrate_table(client)
    finally:
        client.close()


def _check_texts(texts: Iterable[str]) -> None:
    for text in texts:
        text_bytes(text)
