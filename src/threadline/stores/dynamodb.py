"""The DynamoDB store: one table, on demand, shared by any number of processes; a batch is one transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from threadline.kernel.errors import Unavailable
from threadline.kernel.store import Batch, FeedEntry, Item, Key, LogEntry, Refusal, Span
from threadline.kernel.time import Clock
from threadline.stores import dynamodb_commit as writing
from threadline.stores import dynamodb_layout as layout
from threadline.stores import dynamodb_reading as reading
from threadline.stores.bounds import check_batches, check_page, check_shard, text_bytes
from threadline.stores.dynamodb_address import parse
from threadline.stores.dynamodb_client import Client, Refused
from threadline.stores.dynamodb_feed import Feed
from threadline.stores.dynamodb_frames import Frames
from threadline.stores.dynamodb_journal import Journal
from threadline.stores.dynamodb_stream import StreamTail
from threadline.stores.dynamodb_table import check_table, migrate_table

TRANSACTIONS_AT_ONCE = 8
FRAMES_MET_MAX = 10
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
        tail = StreamTail(self.client, clock) if self.address.streams else None
        self._frames = Frames(self.client)
        self._feed = Feed(self.client, self._journal, tail)
        self._pool = ThreadPoolExecutor(TRANSACTIONS_AT_ONCE, thread_name_prefix="threadline-dynamodb")

    # --- reading ------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store.get`."""
        self._check_open()
        _check_texts(part for key in keys for part in key)
        names = {key: layout.item_key(key) for key in keys if all(key)}
        found = reading.get_many(self.client, list(names.values()))
        there = [key for key, name in names.items() if reading.name_of(name) in found]
        items = {item.key: item for item in self._items([(k.table, found[reading.name_of(names[k])]) for k in there])}
        return [items.get(key) for key in keys]

    def _items(self, found: Sequence[tuple[str, layout.Attributes]]) -> list[Item]:
        """Items of the port, each with its table; those that have expired are left out."""
        now = self._clock()
        for _, item in found:
            # Whoever writes on top of this comes after it in the feed, whatever their clocks say.
            self._journal.observe(item[layout.POSITION]["S"])
        living = [(table, item) for table, item in found if not layout.has_expired(item, now)]
        whole = self._frames.values([item for _, item in living])
        return [
            layout.port_item(table, *each) for (table, _), each in zip(living, whole, strict=True) if each is not None
        ]

    def _page(self, table: str, answers: Iterator[list[layout.Attributes]], limit: int, but: str | None) -> list[Item]:
        """The first items of a range, but for the one whose sort is its end."""
        items: list[Item] = []
        for answer in answers:
            wanted = [(table, found) for found in answer if found[layout.SK]["S"] != but]
            for start in range(0, len(wanted), limit):
                items += self._items(wanted[start : start + limit])
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
        return self._page(table, answers, limit, stop)

    def scan(
        self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000
    ) -> list[Item]:
        """See `Store.scan`; in the order of DynamoDB's own hash. It reads, and bills, the log along with the items."""
        self._check_open()
        check_page(limit)
        check_shard(shard, shards)
        _check_texts((table, *(after or ())))
        start = None if after is None else layout.item_key(after)
        answers = reading.scan_pages(self.client, layout.table_prefix(table), shard, shards, start)
        return self._page(table, answers, limit, None)

    def tables(self) -> list[str]:
        """See `Store.tables`; it reads the whole table."""
        self._check_open()
        pages = reading.scan_pages(self.client, "i", 0, 1, None, keys_only=True)
        return sorted({found["pk"]["S"][1:].partition("\0")[0] for found in chain.from_iterable(pages)})

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        places = {id: writing.page_of(found) for id, found in self._ids(ids).items()}
        pages = reading.get_many(self.client, [layout.page_key(key) for key in set(places.values())])
        entries = {entry.id: entry for found in pages.values() for _, entry in layout.unpack_page(found)}
        return {id: entries[id] for id in places}

    def seen(self, ids: Sequence[str]) -> dict[str, int]:
        """See `Store.seen`."""
        return {id: int(found[layout.DIGEST]["N"]) for id, found in self._ids(ids).items()}

    def _ids(self, ids: Sequence[str]) -> dict[str, layout.Attributes]:
        self._check_open()
        keys = [layout.id_key(id) for id in ids if _ID.fullmatch(id)]
        return {name[0][1:]: found for name, found in reading.get_many(self.client, keys).items()}

    def events(self, thread: str, span: Span = Span()) -> list[LogEntry]:
        """See `Store.events`."""
        self._check_open()
        check_page(span.limit)
        return reading.read_thread(self.client, thread, span)

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """See `Store.feed`; in the order of the journal. What another process commits shows half a second later."""
        self._check_open()
        check_page(limit)
        return self._feed.read(cursor, limit)

    # --- writing ------------------------------------------------------------------------------

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`. Batches that have nothing in common are committed side by side."""
        self._check_open()
        if self._readonly:
            raise Unavailable("the store is open for reading only")
        check_batches(batches)
        outcomes: dict[int, Refusal | None] = {}
        for number, batch in enumerate(batches):
            if (id := writing.repeated_id(batch)) is not None:
                outcomes[number] = Refusal("event_exists", id)
            elif not batch.events and not batch.writes:
                outcomes[number] = None
        while len(outcomes) < len(batches):
            todo = [number for number in range(len(batches)) if number not in outcomes]
            outcomes.update(self._round(batches, todo))
        return [outcomes[number] for number in range(len(batches))]

    def _round(self, batches: Sequence[Batch], todo: Sequence[int]) -> dict[int, Refusal | None]:
        """One entry of the journal and what it announces; what is not answered is to be told anew."""
        told = [number for number in todo if batches[number].events]
        if not told:
            return self._chains(batches, todo, {}, self._journal.tick())
        position = self._journal.begin()
        places = {number: layout.Place(position, index) for index, number in enumerate(told)}
        answered = False
        try:
            pages = [writing.batch_pages(batches[number], places[number]) for number in told]
            outcomes = {}
            if self._journal.enter(position, pages):
                outcomes = self._chains(batches, todo, places, position)
            answered = True
        finally:
            self._journal.end(position, answered=answered)
        return outcomes

    def _chains(
        self, batches: Sequence[Batch], todo: Sequence[int], places: dict[int, layout.Place], position: str
    ) -> dict[int, Refusal | None]:
        # Batches without events take numbers after those with, so that every batch of a call has its own.
        rest = [number for number in todo if number not in places]
        places = {**places, **{n: layout.Place(position, len(places) + index) for index, n in enumerate(rest)}}
        clause = writing.Clause(self.address.table, self._clock(), dict(self.address.expire), self._frames)

        def follow(numbers: Iterable[int]) -> dict[int, Refusal | None]:
            done: dict[int, Refusal | None] = {}
            for number in numbers:
                try:
                    done[number] = self._commit(batches[number], places[number], clause)
                except writing.Expelled:
                    break
            return done

        chains = writing.chains(batches, todo)
        if len(chains) == 1:
            return follow(chains[0])
        # Every chain comes to its end before an error of one of them is raised.
        running = [self._pool.submit(follow, numbers) for numbers in chains]
        outcomes: dict[int, Refusal | None] = {}
        errors = [task.exception() for task in running]
        for task, error in zip(running, errors, strict=True):
            if error is not None:
                raise error
            outcomes.update(task.result())
        return outcomes

    def _commit(self, batch: Batch, place: layout.Place, clause: writing.Clause) -> Refusal | None:
        for attempt in range(FRAMES_MET_MAX):
            try:
                return self._transact(batch, place, writing.transaction(batch, place, clause, attempt), clause)
            except writing.Framed as framed:
                for name, in_the_way in framed.found.items():
                    self._frames.learn(name, None)
                    if in_the_way:
                        self._frames.dissolve(name)
        raise Unavailable("other writers keep changing the same items; try again")

    def _transact(
        self, batch: Batch, place: layout.Place, made: writing.Transaction, clause: writing.Clause
    ) -> Refusal | None:
        request = {
            "TransactItems": [step.action for step in made.steps],
            "ClientRequestToken": made.token,
            "ReturnConsumedCapacity": "TOTAL",
        }
        try:
            self.client.call("TransactWriteItems", request)
        except Refused as refused:
            refusal = writing.meaning(made, refused.reasons, place, clause)
            if refusal is not None and refusal.reason == "version" and batch.events:
                # The answer names the conditions that it came to; the port puts a taken id before all others.
                taken = self._ids([entry.id for entry in batch.events])
                exists = [entry.id for entry in batch.events if entry.id in taken]
                return Refusal("event_exists", exists[0]) if exists else refusal
            if refusal is not None:
                return refusal
        for name, known in made.learnt.items():
            self._frames.learn(name, known)
        return None

    # --- the rest -----------------------------------------------------------------------------

    def units(self) -> dict[str, float]:
        """Capacity used so far, as AWS bills it: ``write`` and ``read`` units, and requests by operation."""
        return dict(self.client.units)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    def close(self) -> None:
        """See `Store.close`."""
        if self._closed:
            return
        self._closed = True
        self._pool.shutdown()
        self._journal.close()
        self.client.close()


def migrate(url: str) -> list[str]:
    """Make the table of this URL, or bring it to what this version needs; answers what was done, in words.

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
