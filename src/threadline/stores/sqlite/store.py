"""The embedded store: one SQLite file in WAL mode, one writer, any number of readers, every commit synced."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from threadline.kernel.errors import InvalidSetting, InvalidValue, StoreDamaged, StoreMissing, Unavailable
from threadline.kernel.store import (
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
)
from threadline.stores.plan import decide
from threadline.stores.sqlite import file as sqlite_file
from threadline.stores.sqlite import free_space
from threadline.stores.sqlite import rows as sqlite_rows
from threadline.stores.sqlite.acknowledged import Acknowledged, Presence, Watch
from threadline.stores.sqlite.driver import (
    Access,
    Connection,
    DriverError,
    asking,
    checkpoint,
    connect,
    leave_log,
    transaction,
    translated,
    watch_wal,
    whole_frames,
)
from threadline.stores.sqlite.log import EventLog
from threadline.stores.sqlite.loss import refuse_loss, refuse_loss_beside_writer
from threadline.stores.sqlite.names import Names, named
from threadline.stores.sqlite.rescue import rescue
from threadline.stores.sqlite.rows import Ask
from threadline.stores.sqlite.wal import CHECKPOINT_BUSY_MS, WriteAheadLog

READER_CACHE_BYTES = 4 * 1_024 * 1_024
READERS_IDLE_MAX = 8
NEWEST_ENTRIES = 1_000
"""Of the log that are looked at first for types: the usual ones are among them, and the rest need not be read."""
PAGE_BYTES = 2_048
"""Of a new file; an older one keeps its pages of 4,096. Most that a commit writes is a small head on a page of its own:
half the page is two fifths less in the log, and 5 to 20 % less written for an event, as the file is large or small."""


class SqliteStore:
    """A store in the file ``path``, which is created if it is missing. Safe for use from many threads.

    Holds ``<path>.lock`` as long as it is open for writing; `StoreBusy` names the process that holds it already.
    With ``readonly`` it opens beside a writer of another process, sees every commit, and cannot write.
    ``wal_pages_max`` is the length, in pages, at which the write-ahead log is copied into the file.
    ``tail_entries_max``: of so many of the newest events the index is kept in memory, about 100 bytes each.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        page_cache_bytes: int = 64 * 1_024 * 1_024,
        wal_pages_max: int = 16_000,
        busy_timeout_seconds: float = 5.0,
        readonly: bool = False,
        tail_entries_max: int = 65_536,
    ) -> None:
        self.path = Path(path)
        self._busy_timeout_ms = int(busy_timeout_seconds * 1_000)
        self._closing = threading.Event()
        self._readers: deque[Connection] = deque()
        self._names = Names(writes_alone=not readonly)
        self._rows = sqlite_rows.RowMemory()
        self._log = EventLog(self._names, tail_entries_max, follow=readonly)
        self._writing_lock = threading.Lock()
        self._wal = WriteAheadLog(self._writing_lock, self._closing, wal_pages_max, self._busy_timeout_ms)
        self._writer: Connection | None = None
        self._erased_types: set[int] | None = None
        """The types of the events that were erased since the last purge; None: of those before this process as well."""
        self._mended = 0
        """How many entries were mended: each may have a type again that no other entry has."""
        self._writes_from: int | None = None
        """The thread that wrote last."""
        self._presence: Presence | None = None
        sqlite_file.refuse_network(self.path)
        if readonly:
            self._check_ours()
        else:
            self._begin_writing(page_cache_bytes)

    # --- opening ------------------------------------------------------------------------------

    def _begin_writing(self, page_cache_bytes: int) -> None:
        self._lock = sqlite_file.WriterLock(self.path)
        try:
            refuse_loss(self.path)
            self._writer = self._open_writer(page_cache_bytes)
            with translated(self.path):
                self._acknowledged = self._open_mark(self._writer)
                copier = self._connect(Access.WRITE, READER_CACHE_BYTES)
                leave_log(copier, leave=True)
            self._presence = Presence(self.path)
        except BaseException:
            self._lock.release()
            raise
        self._wal.begin(copier, self._acknowledged)
        self._watch = Watch(self._presence, self._acknowledged, self._rescue)

    def _check_ours(self) -> None:
        if not self.path.exists():
            raise InvalidSetting(
                f"there is no store at {self.path} to open for reading",
                hint="Name another file; whatever records first makes it.",
            )
        sqlite_file.refuse_unfit(self.path)
        try:
            with self._reading() as db:
                sqlite_file.refuse_foreign(self.path, db.pragma("application_id"), db.pragma("user_version"))
            refuse_loss_beside_writer(self.path)
        except BaseException:
            self._close_readers()
            raise

    def _open_writer(self, page_cache_bytes: int) -> Connection:
        existed = self.path.exists()
        with translated(self.path):
            if not existed:
                os.close(sqlite_file.open_private(self.path))
            db = self._connect(Access.CREATE, page_cache_bytes)
            try:
                self._prepare(db)
            except BaseException:
                db.close()
                raise
        if not existed:
            sqlite_file.sync_folder(self.path.absolute().parent)
        return db

    def _prepare(self, db: Connection) -> None:
        leave_log(db, leave=True)
        if not db.execute("SELECT count(*) FROM sqlite_schema").get and not db.pragma("application_id"):
            db.pragma("page_size", PAGE_BYTES)
            db.pragma("journal_mode", "wal")
            db.execute(sqlite_rows.SCHEMA).fetchall()
        sqlite_file.refuse_foreign(self.path, db.pragma("application_id"), db.pragma("user_version"))
        sqlite_rows.upgrade(asking(db), db.pragma("user_version"))
        watch_wal(db, self._wal.note)
        self._log.start(asking(db))

    def _open_mark(self, db: Connection) -> Acknowledged:
        [(store,)] = asking(db)("SELECT id FROM store_id", ())
        frames = whole_frames(db)
        try:
            checkpoint(db, "restart")
            is_copied = True
        except DriverError:
            is_copied = False
        # Marked before the log is emptied: until then an earlier mark may need it.
        acknowledged = Acknowledged(self.path, store, self._log.last, frames, is_copied=is_copied)
        if is_copied:
            # What a dead process left behind the last commit would look like commits that are gone.
            with suppress(DriverError):
                checkpoint(db, "truncate")
        return acknowledged

    def _connect(self, access: Access, cache_bytes: int) -> Connection:
        return connect(self.path, access, cache_bytes, self._busy_timeout_ms)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A connection of the caller's own for as long as it reads; connections are used again, not one per thread."""
        if self._closing.is_set():
            raise Unavailable("the store is closed")
        if self._presence is not None:
            self._presence.check()
        with translated(self.path):
            try:
                db = self._readers.pop()
            except IndexError:
                if self._presence is not None:
                    self._presence.look()
                db = self._connect(Access.READ, READER_CACHE_BYTES)
            try:
                yield db
            finally:
                if len(self._readers) < READERS_IDLE_MAX:
                    self._readers.append(db)
                else:
                    db.close()
                if self._closing.is_set():
                    self._close_readers()

    # --- reading ------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store.get`."""
        with self._looking_up() as db:
            ask = asking(db)
            names = self._names.numbers(ask, {key.table for key in keys})
            # One snapshot for all, however many statements it takes.
            with db if len(keys) > sqlite_rows.ROWS_MAX else nullcontext():
                items = sqlite_rows.items(ask, keys, names)
        return [items.get(key) for key in keys]

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
        with self._reading() as db:
            return self._range(asking(db), Range(table, partition, start, stop, limit), reverse=reverse)

    def ranges(self, ranges: Sequence[Range]) -> list[list[Item]]:
        """See `Store.ranges`."""
        for key_range in ranges:
            check_page(key_range.limit)
        with self._reading() as db:
            ask = asking(db)
            return [self._range(ask, key_range) for key_range in ranges]

    def _range(self, ask: Ask, key_range: Range, *, reverse: bool = False) -> list[Item]:
        table, partition, start, stop, limit = key_range
        where = "tbl = ? AND partition = ? AND sort >= ?" + ("" if stop is None else " AND sort < ?")
        values = (partition, start) if stop is None else (partition, start, stop)
        return self._items(ask, table, where, "sort DESC" if reverse else "sort", values, limit)

    def scan(
        self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000
    ) -> list[Item]:
        """See `Store.scan`; ordered by (partition, sort), sharded by a hash of the row's number, which updates keep."""
        check_page(limit)
        check_shard(shard, shards)
        where = sqlite_rows.OF_SHARD + ("" if after is None else " AND (partition, sort) > (?, ?)")
        values = (shards, shard) if after is None else (shards, shard, after.partition, after.sort)
        with self._reading() as db:
            items = self._items(asking(db), table, where, "partition, sort", values, limit)
        if after is not None and items and items[-1].key <= after._replace(table=table):
            raise StoreDamaged(f"the items of {table!r} are not in their order after {after.partition!r}")
        return items

    def _items(
        self, ask: Ask, table: str, where: str, order: str, values: Sequence[int | str], limit: int
    ) -> list[Item]:
        # Only the fixed texts of the two callers are put together here; values are bound.
        sql = f"SELECT partition, sort, version, value, crc FROM item WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
        rows = ask(sql, (self._names.numbers(ask, (table,))[table], *values, limit))
        return sqlite_rows.checked((Key(table, row[0], row[1]), *row[2:]) for row in rows)

    def tables(self) -> list[str]:
        """See `Store.tables`."""
        with self._reading() as db:
            rows = asking(db)(sqlite_rows.TABLES, ())
        # SQLite orders text by its UTF-8 bytes, as we do.
        return [text for (text,) in rows]

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        with self._reading() as db:
            return self._log.find(asking(db), ids)

    def seen(self, ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """See `Store.seen`."""
        with self._looking_up() as db:
            return self._log.digests(asking(db), ids)

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """See `Store.spans`."""
        check_page(span.limit)
        with self._reading() as db:
            return self._log.spans(asking(db), threads, span)

    def histories(
        self, threads: Sequence[str], wanted: Callable[[str], bool] | None = None
    ) -> dict[str, list[LogEntry]]:
        """See `Store.histories`."""
        with self._reading() as db:
            return self._log.histories(asking(db), threads, wanted)

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """See `Store.feed`; the cursor is the position of the last entry read."""
        check_page(limit)
        if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise InvalidValue(f"{cursor!r:.80} is not a cursor of this feed", param="cursor")
        with self._reading() as db:
            return self._log.feed(asking(db), int(cursor or 0), limit)

    def feed_end(self) -> str:
        """See `Store.feed_end`."""
        with self._reading() as db:
            return str(asking(db)("SELECT coalesce(max(position), 0) FROM log", ())[0][0])

    def feed_waits(self, cursor: str = "") -> bool:
        """See `Store.feed_waits`: what is committed is there."""
        return False

    # --- writing ------------------------------------------------------------------------------

    def advisory_lock(self, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """See `Store.advisory_lock`."""
        return nullcontext()

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`. All batches of a call share one transaction and one sync."""
        check_batches(batches)
        with self._writing() as db:
            self._wal.before_commit(db)
            # A name's number outlives any refusal, so names are learnt outside the transaction.
            names = self._names.learn(asking(db), named(batches))
            try:
                outcomes = self._transact(db, batches, names)
            except BaseException:
                self._rows.clear()
                raise
        self._wal.after_commit()
        return outcomes

    @contextmanager
    def _looking_up(self) -> Iterator[Connection]:
        """For the thread that writes its own connection, for any other one for reading.

        With each commit the pages that other connections have cached are void. But a reader that waits for the
        interpreter must not hold up the writer.
        """
        if self._writes_from != threading.get_ident() or not self._writing_lock.acquire(blocking=False):
            with self._reading() as db:
                yield db
            return
        try:
            if self._closing.is_set() or self._presence is None or self._writer is None:
                raise Unavailable("the store is closed")
            self._presence.check()
            with translated(self.path):
                yield self._writer
        finally:
            self._writing_lock.release()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._writing_lock, translated(self.path):
            if self._closing.is_set() or self._writer is None:
                raise Unavailable("the store is closed or open for reading only")
            if self._presence is not None:
                # Before anything is written: what is refused must not be there later.
                self._presence.look()
            self._writes_from = threading.get_ident()
            yield self._writer

    def erase(self, ids: Sequence[str]) -> int:
        """See `Store.erase`; one transaction."""
        check_erase(ids)
        with self._writing() as db:
            with transaction(db):
                self._log.catch_up(asking(db))
                rows = self._log.erase(asking(db), ids)
            self._log.forget(rows)
            if self._erased_types is not None:
                self._erased_types.update(type for _, _, _, _, type, _, _ in rows)
            self._mark(None)
        return len(rows)

    def purge(self) -> None:
        """See `Store.purge`. Commits wait while a part of the file is gone through, and while an old file is rebuilt.

        Raises `StoreBusy` if another process keeps reading an earlier instant.
        """
        self._forget_types()
        part, refusals = 1, 0
        while part:
            with self._writing() as db:
                try:
                    part = self._purge_part(db, part)
                    refusals = 0
                except DriverError:
                    refusals += 1
                    if refusals * CHECKPOINT_BUSY_MS > self._busy_timeout_ms:
                        raise
            if refusals:
                # A reader is in the way. Commits go on while it is waited for.
                self._closing.wait(CHECKPOINT_BUSY_MS / 1_000)

    def _forget_types(self) -> None:
        """Take out the names of event types that no event has any more: a type can tell as much as its events."""
        with self._writing_lock:
            sought, self._erased_types = self._erased_types, set()
        try:
            if sought is None or sought:
                self._forget_unused(sought)
        except BaseException:
            self._erased_types = None
            raise

    def _forget_unused(self, sought: set[int] | None) -> None:
        with self._reading() as db:
            # The log is gone through beside commits; while they wait, only what they have added meanwhile.
            ask = asking(db)
            [(last,)] = ask("SELECT coalesce(max(position), 0) FROM log", ())
            mended, unused = self._mended, self._names.unused(ask)
            unused = unused if sought is None else unused & sought
            unused -= self._log.types_since(ask, last - NEWEST_ENTRIES)
            unused -= self._log.types(ask) if unused else set()
        if not unused:
            return
        with self._writing() as db:
            ask = asking(db)
            if mended != self._mended:
                self._erased_types = None
                return
            with transaction(db):
                unused &= self._names.unused(ask)
                self._names.forget(ask, unused - self._log.types_since(ask, last))
            self._names.forgot(ask)
            self._mark(None)

    def _purge_part(self, db: Connection, part: int) -> int:
        self._wal.empty(db, CHECKPOINT_BUSY_MS)
        if free_space.rebuild(db):
            self._mark(None)
            self._wal.empty(db, CHECKPOINT_BUSY_MS)
        return free_space.overwrite(db, self.path, part)

    def mend(self, damaged: FeedEntry, good: LogEntry) -> bool:
        """See `Store.mend`."""
        with self._writing() as db:
            ask = asking(db)
            number = self._names.learn(ask, [good.type])[good.type] if good.type else 0
            with transaction(db):
                done = self._log.mend(ask, damaged, good, number or 0)
            self._log.start(ask)
            self._mended += 1
            self._mark(None)
            return done

    def _transact(
        self, db: Connection, batches: Sequence[Batch], names: Mapping[str, int | None]
    ) -> list[Refusal | None]:
        ask = asking(db)
        keys = list({write.key: None for batch in batches for write in batch.writes})
        with transaction(db):
            self._log.catch_up(ask)
            places = self._rows.places(ask, keys, names)
            versions = {key: version for key, (_, version) in places.items()}
            taken = self._log.taken(ask, [entry.id for batch in batches for entry in batch.events])
            plan = decide(batches, versions, taken)
            added = self._log.append(ask, plan.entries, names)
            written = sqlite_rows.write_items(ask, plan, places, names)
            buckets = self._log.index(ask, len(added))
        self._log.published(added, buckets)
        self._rows.written(plan, places)
        self._mark(written)
        return plan.outcomes

    def _mark(self, written: tuple[int, int] | None) -> None:
        """Note what is durable before it is acknowledged."""
        self._acknowledged.committed(self._wal.pages, self._log.last, written)

    def _move_index(self, db: Connection) -> None:
        with transaction(db):
            buckets = self._log.index(asking(db), 0)
        self._log.published([], buckets)
        self._mark(None)

    def _rescue(self) -> None:
        with self._writing_lock:
            if self._writer is not None and self._presence is not None:
                rescue(self._writer, self.path, self._acknowledged, is_removed=self._presence.is_removed)

    # --- the rest ---------------------------------------------------------------------------------

    def stats(self) -> dict[str, int]:
        """See `Store.stats`: the file and its write-ahead log in bytes, the log in entries, the file in pages."""
        with self._reading() as db:
            [(entries, indexed)] = asking(db)("SELECT (SELECT max(position) FROM log), position FROM indexed", ())
            pages, free, size = (int(db.pragma(name)) for name in ("page_count", "freelist_count", "page_size"))
        return {
            "file_bytes": sqlite_file.file_bytes(self.path),
            "wal_bytes": sqlite_file.file_bytes(self.path.with_name(self.path.name + "-wal")),
            "log_entries": entries or 0,
            "indexed_entries": indexed,
            "pages": pages,
            "free_pages": free,
            "page_bytes": size,
        }

    def integrity(self) -> list[str]:
        """See `Store.integrity`: what is wrong with the file, as SQLite sees it. Reads all of the file."""
        try:
            with self._reading() as db:
                ask = asking(db)
                return sqlite_rows.faults(ask) or self._log.problems(ask) or sqlite_rows.damaged_items(ask)
        except StoreDamaged as error:
            return [str(error)]

    def close(self) -> None:
        """See `Store.close`; folds the write-ahead log into the file, so that one file is all there is."""
        with self._writing_lock:
            if self._closing.is_set():
                return
            self._closing.set()
        self._close_readers()
        if self._writer is None or self._presence is None:
            return
        self._wal.end()
        self._watch.stop()
        with translated(self.path):
            try:
                self._presence.look_at_all()
                if self._presence.missing is None:
                    self._fold(self._writer)
                else:
                    self._watch.miss(self._presence.missing)
            except (DriverError, StoreMissing):
                # A full disk or another process that reads: it stays in the write-ahead log, which is as durable.
                pass
            finally:
                self._presence.close()
                self._acknowledged.close()
                self._writer.close()
                self._lock.release()

    def _fold(self, db: Connection) -> None:
        """Make the file all there is; the next one to open it then has nothing to catch up with."""
        while self._log.seal():
            self._move_index(db)
        self._wal.empty(db)
        self._acknowledged.closed()
        leave_log(db, leave=False)

    def _close_readers(self) -> None:
        with suppress(IndexError):
            while True:
                self._readers.pop().close()
