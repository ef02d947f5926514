"""A shared cache in front of any store: reads answered by Redis, never older than the store, never in its way."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import msgspec

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.personal import Copy
from threadline.kernel.store import (
    Batch,
    Check,
    FeedEntry,
    Item,
    Key,
    LogEntry,
    Put,
    Range,
    Refusal,
    Span,
    Store,
    check_batches,
    text_bytes,
)
from threadline.stores.redis.client import RedisLost, RedisServer, RedisUnreachable
from threadline.stores.redis.epochs import Epoch, Epochs
from threadline.stores.redis.invalidation import Fill, Marked, Place, RedisCache

PAGE_BYTES_MAX = 65_536
"""A larger page of a query is not kept: it would push many small things out. The first places of a board are smaller,
the pages in which a whole board is counted are larger."""

_VERSION_BYTES = 8
_ITEM, _PAGE = b"=", b"?"
_Page = list[tuple[str, int, bytes]]
_pack = msgspec.msgpack.Encoder().encode
_unpack_page = msgspec.msgpack.Decoder(_Page).decode

log = logging.getLogger("threadline.cache")


class _Writing(NamedTuple):
    """The marks of a commit: in which life of the cache, or none because nobody reads it."""

    nonce: str
    marked: Marked | None


class CachedStore:
    """A store whose `get` and `query` of some tables are answered from Redis where they can be.

    ``lifetimes`` names these tables and how long, in seconds, what is kept of each may live. Whatever a commit has
    acknowledged, every process sees from then on, through the cache or past it, also when Redis was stopped, paused,
    emptied or out of this process's reach meanwhile: see `docs/decisions/0019-cache.md`. An unreachable Redis costs
    a reader one time-out in ``retry_seconds``, and a writer once the wait for the others' ``lease_seconds``.
    """

    def __init__(
        self,
        store: Store,
        connect: Callable[[str, str], RedisCache],
        lifetimes: Mapping[str, float],
        *,
        lease_seconds: float = 1.0,
        retry_seconds: float = 5.0,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self.leave_journal: Callable[[], None] = getattr(store, "leave_journal", lambda: None)
        """See `DynamoStore.leave_journal`; the other stores have nothing to leave."""
        self._connect = connect
        """(nonce, run id or "") -> what Redis keeps under this nonce, on this server."""
        self._lifetimes_ms = {table: round(lifetime * 1_000) for table, lifetime in lifetimes.items()}
        self._retry = retry_seconds
        self._seconds = seconds
        self._epochs = Epochs(
            store, self._begin, lease_seconds=lease_seconds, retry_seconds=retry_seconds, seconds=seconds
        )
        self._life: tuple[str, RedisCache] | None = None
        self._unreachable_until = float("-inf")
        self._hits = self._misses = self._failures = 0

    # --- the life of the cache ----------------------------------------------------------------

    def _begin(self, nonce: str) -> str:
        cache = self._connect(nonce, "")
        try:
            return cache.begin()
        finally:
            cache.close()

    def _cache(self, epoch: Epoch) -> RedisCache:
        life = self._life
        if life is None or life[0] != epoch.nonce:
            # The connections of the life before close when the last call that uses them lets go of them.
            life = self._life = (epoch.nonce, self._connect(epoch.nonce, epoch.server))
        return life[1]

    def _failed(self, epoch: Epoch, error: RedisUnreachable) -> None:
        """Leave Redis alone for a while; if it has forgotten, let everybody know."""
        self._failures += 1
        now = self._seconds()
        if now >= self._unreachable_until:
            log.warning("the cache does not answer, the store does: %s", error)
        self._unreachable_until = now + self._retry
        if isinstance(error, RedisLost):
            try:
                self._epochs.close(epoch.nonce, wait=False)
            except ThreadlineError:
                log.warning("the cache has lost its content, and the store cannot take note of that now")

    # --- reading ------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store.get`."""
        cached = list(dict.fromkeys(key for key in keys if key.table in self._lifetimes_ms))
        _check_texts(cached)
        epoch = self._readable() if cached else None
        if epoch is None:
            return self._store.get(keys)
        answers = self._ask(epoch, [((key.table, key.partition), _ITEM + key.sort.encode()) for key in cached])
        result: dict[Key, Item | None] = {}
        leases: dict[Key, int] = {}
        for key, answer in zip(cached, answers, strict=True):
            if isinstance(answer, bytes):
                version = int.from_bytes(answer[:_VERSION_BYTES], "big")
                result[key] = Item(key, version, answer[_VERSION_BYTES:])
            else:
                leases[key] = answer
        missing = [key for key in dict.fromkeys(keys) if key not in result]
        if missing:
            items = dict(zip(missing, self._store.get(missing), strict=True))
            result.update(items)
            fills = [self._fill(key, items[key], lease) for key, lease in leases.items()]
            self._keep(epoch, [fill for fill in fills if fill is not None])
        return [result[key] for key in keys]

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
        epoch = self._readable() if table in self._lifetimes_ms else None
        if epoch is None:
            return self._store.query(table, partition, start, stop, limit, reverse)
        _check_texts([Key(table, partition, start), Key(table, partition, stop or "")])
        place, field = (table, partition), _PAGE + _pack((start, stop, limit, reverse))
        [answer] = self._ask(epoch, [(place, field)])
        if isinstance(answer, bytes):
            return [Item(Key(table, partition, sort), version, value) for sort, version, value in _unpack_page(answer)]
        page = self._store.query(table, partition, start, stop, limit, reverse)
        value = _pack([(item.key.sort, item.version, item.value) for item in page]) if answer else b""
        if answer and len(value) <= PAGE_BYTES_MAX:
            self._keep(epoch, [Fill(place, answer, field, value, self._lifetimes_ms[table])])
        return page

    def _readable(self) -> Epoch | None:
        return None if self._seconds() < self._unreachable_until else self._epochs.to_read()

    def _ask(self, epoch: Epoch, wanted: Sequence[tuple[Place, bytes]]) -> list[bytes | int]:
        try:
            answers = self._cache(epoch).read(wanted)
        except RedisUnreachable as error:
            self._failed(epoch, error)
            return [0] * len(wanted)
        hits = sum(isinstance(answer, bytes) for answer in answers)
        self._hits += hits
        self._misses += len(answers) - hits
        return answers

    def _fill(self, key: Key, item: Item | None, lease: int) -> Fill | None:
        if item is None or not lease:
            return None
        field, value = _ITEM + key.sort.encode(), _packed(item.version, item.value)
        return Fill((key.table, key.partition), lease, field, value, self._lifetimes_ms[key.table])

    def _keep(self, epoch: Epoch, fills: Sequence[Fill]) -> None:
        if fills:
            try:
                self._cache(epoch).fill(fills)
            except RedisUnreachable as error:
                self._failed(epoch, error)

    # --- writing ------------------------------------------------------------------------------

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`. The cache is told before it and after it, or else everybody that it is not to be read."""
        places = {
            (write.key.table, write.key.partition): None
            for batch in batches
            for write in batch.writes
            if write.key.table in self._lifetimes_ms and not isinstance(write, Check)
        }
        if not places:
            return self._store.commit(batches)
        check_batches(batches)
        writing = self._mark(list(places))
        # Whatever is raised here leaves the marks: it may have been committed, and readers go on to ask the store.
        outcomes = self._store.commit(batches)
        self._settle(writing, list(places), _written(batches, outcomes, places))
        return outcomes

    def _mark(self, places: Sequence[Place]) -> _Writing:
        while True:
            epoch, is_read = self._epochs.to_write()
            if not is_read:
                return _Writing(epoch.nonce, None)
            try:
                return _Writing(epoch.nonce, self._cache(epoch).mark(places))
            except RedisUnreachable as error:
                self._failed(epoch, error)
                self._epochs.close(epoch.nonce)

    def _settle(self, writing: _Writing, places: Sequence[Place], values: dict[Place, dict[bytes, bytes]]) -> None:
        while True:
            nonce, marked = writing
            life = self._life
            if marked is not None and life is not None and life[0] == nonce:
                try:
                    life[1].settle(marked, values, self._lifetimes_ms)
                except RedisUnreachable as error:
                    self._failed(Epoch(nonce=nonce), error)
                    self._epochs.close(nonce)
            if self._epochs.current().nonce == nonce:
                return
            # The commit took so long that another life of the cache has begun, and may hold what was there before.
            writing, values = self._mark(places), {}

    # --- passed through -----------------------------------------------------------------------

    def ranges(self, ranges: Sequence[Range]) -> list[list[Item]]:
        """See `Store.ranges`."""
        if any(key_range.table in self._lifetimes_ms for key_range in ranges):
            return [self.query(*key_range) for key_range in ranges]
        return self._store.ranges(ranges)

    def scan(
        self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000
    ) -> list[Item]:
        """See `Store.scan`."""
        return self._store.scan(table, shard, shards, after, limit)

    def tables(self) -> list[str]:
        """See `Store.tables`."""
        return self._store.tables()

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        return self._store.find(ids)

    def seen(self, ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """See `Store.seen`."""
        return self._store.seen(ids, certain=certain)

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """See `Store.spans`."""
        return self._store.spans(threads, span)

    def histories(
        self, threads: Sequence[str], wanted: Callable[[str], bool] | None = None
    ) -> dict[str, list[LogEntry]]:
        """See `Store.histories`."""
        return self._store.histories(threads, wanted)

    def erase(self, ids: Sequence[str]) -> int:
        """See `Store.erase`; no event is in the cache."""
        return self._store.erase(ids)

    def purge(self) -> None:
        """See `Store.purge`, of the store behind the cache."""
        self._store.purge()

    def advisory_lock(self, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """See `Store.advisory_lock`."""
        return self._store.advisory_lock(keys)

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """See `Store.feed`."""
        return self._store.feed(cursor, limit)

    def feed_end(self) -> str:
        """See `Store.feed_end`."""
        return self._store.feed_end()

    def feed_waits(self, cursor: str = "") -> bool:
        """See `Store.feed_waits`."""
        return self._store.feed_waits(cursor)

    def mend(self, damaged: FeedEntry, good: LogEntry) -> bool:
        """See `Store.mend`; events are not cached."""
        return self._store.mend(damaged, good)

    def stats(self) -> dict[str, int]:
        """See `Store.stats`, and how often the cache had an answer, had none, or failed, in this process."""
        counts = {"cache_hits": self._hits, "cache_misses": self._misses, "cache_failures": self._failures}
        return {**self._store.stats(), **counts}

    def integrity(self) -> list[str]:
        """See `Store.integrity`, of the store behind the cache."""
        return self._store.integrity()

    def close(self) -> None:
        """See `Store.close`."""
        self._store.close()
        if self._life is not None:
            self._life[1].close()


def redis_connections(url: str, timeout_seconds: float) -> Callable[[str, str], RedisCache]:
    """What connects a `CachedStore` to the Redis at this address."""
    RedisServer(url, timeout_seconds)  # an address that cannot be is told at once
    return lambda nonce, run_id: RedisCache(RedisServer(url, timeout_seconds, run_id), nonce)


def _written(
    batches: Sequence[Batch], outcomes: Sequence[Refusal | None], places: Iterable[Place]
) -> dict[Place, dict[bytes, bytes]]:
    """The items of these places that are in the store now with a version that is known: what may be written through."""
    values: dict[Place, dict[bytes, bytes]] = {place: {} for place in places}
    committed = (batch for batch, refusal in zip(batches, outcomes, strict=True) if refusal is None)
    for write in (write for batch in committed for write in batch.writes):
        fields = values.get((write.key.table, write.key.partition))
        if fields is None or isinstance(write, Check):
            continue
        field = _ITEM + write.key.sort.encode()
        if isinstance(write, Put) and write.expected is not None:
            fields[field] = _packed(write.expected + 1 if write.expected else write.begins, write.value)
        else:
            fields.pop(field, None)
    return values


def _packed(version: int, value: bytes) -> bytes:
    return version.to_bytes(_VERSION_BYTES, "big") + value


def _check_texts(keys: Sequence[Key]) -> None:
    for key in keys:
        for part in key:
            text_bytes(part)


COPY = Copy("Redis", CachedStore.commit)
