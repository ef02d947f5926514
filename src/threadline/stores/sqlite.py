"""The embedded store: one SQLite file in WAL mode, one writer, any number of readers, every commit synced."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from threadline.kernel.errors import InvalidSetting, InvalidValue, StoreBusy, StoreDamaged, StoreFull, ThreadlineError, Unavailable
from threadline.kernel.store import Batch, FeedEntry, Item, Key, LogEntry, Refusal, Span
from threadline.stores.bounds import check_batches, check_page, check_shard
from threadline.stores.sqlite_file import WriterLock, refuse_network, sync_folder
from threadline.stores.sqlite_plan import Plan, decide, fat

SCHEMA_VERSION = 1
APPLICATION_ID = 0x5468_726C
"""``Thrl``: how ``file`` and we tell a store from any other SQLite file."""
READER_CACHE_BYTES = 4 * 1_024 * 1_024
READERS_IDLE_MAX = 8
WAL_GROWTH_MAX = 4
"""A write-ahead log this many times longer than wished for is brought back by the writer itself."""

# Events are wide and come in time order, items are wide and change often: both stand in rowid tables with narrow
# indexes beside them. Clustering either by its key was measured slower, and a third index on the log, for the
# uniqueness of (thread, sequence), would cost a page write per event for what the engine's conditions give already.
_SCHEMA = f"""
BEGIN;
CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE log (
    position INTEGER PRIMARY KEY, thread BLOB NOT NULL, sequence INTEGER NOT NULL, occurred_at INTEGER NOT NULL,
    type INTEGER NOT NULL, id BLOB NOT NULL, digest INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX log_id ON log (id);
CREATE INDEX log_thread ON log (thread, occurred_at, sequence, type);
CREATE TABLE item (
    id INTEGER PRIMARY KEY, tbl INTEGER NOT NULL, partition TEXT NOT NULL, sort TEXT NOT NULL,
    version INTEGER NOT NULL, value BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX item_key ON item (tbl, partition, sort);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

_ENTRY = "log.thread, log.sequence, log.occurred_at, log.type, log.id, log.digest, log.body"
# CROSS JOIN keeps the few rows asked for as the outer loop; rows of NULL, which only fill up, meet nothing.
_GET = """SELECT item.tbl, item.partition, item.sort, item.version, item.value, item.id
    FROM (VALUES {rows}) AS v CROSS JOIN item ON item.tbl = v.column1 AND item.partition = v.column2 AND item.sort = v.column3"""
_VERSIONS = _GET.replace("item.value", "NULL")
_FIND = "SELECT " + _ENTRY + " FROM (VALUES {rows}) AS v CROSS JOIN log ON log.id = v.column1"
_SEEN = "SELECT log.id, log.digest FROM (VALUES {rows}) AS v CROSS JOIN log ON log.id = v.column1"
_APPEND = """INSERT INTO log (thread, sequence, occurred_at, type, id, digest, body)
    SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL"""
_INSERT = """INSERT INTO item (tbl, partition, sort, version, value)
    SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL"""
_UPDATE = "UPDATE item SET version = v.column2, value = v.column3 FROM (VALUES {rows}) AS v WHERE item.id = v.column1"
_DELETE = "DELETE FROM item WHERE id IN (VALUES {rows})"

_Row = tuple[Any, ...]


class SqliteStore:
    """A store in the file ``path``, which is created if it is missing. Safe for use from many threads.

    Holds ``<path>.lock`` as long as it is open for writing; `StoreBusy` names the process that holds it already.
    With ``readonly`` it opens beside a writer of another process, sees every commit, and cannot write. ``wal_pages_max``
    is the length, in pages, at which the write-ahead log is copied into the file, in a thread of its own.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        page_cache_bytes: int = 64 * 1_024 * 1_024,
        wal_pages_max: int = 16_000,
        busy_timeout_seconds: float = 5.0,
        readonly: bool = False,
    ) -> None:
        self.path = Path(path)
        self._busy_timeout_ms = int(busy_timeout_seconds * 1_000)
        self._wal_pages_max = wal_pages_max
        self._wal_pages = 0
        self._closed = False
        self._readers: deque[apsw.Connection] = deque()
        self._names: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._writing_lock = threading.Lock()
        self._checkpoint_wanted = threading.Event()
        self._writer: apsw.Connection | None = None
        refuse_network(self.path)
        if readonly:
            self._check_ours()
            return
        self._lock = WriterLock(self.path)
        try:
            self._writer = self._open_writer(page_cache_bytes)
        except BaseException:
            self._lock.release()
            raise
        self._checkpointer = threading.Thread(target=self._checkpoint_loop, name="threadline-checkpoint", daemon=True)
        self._checkpointer.start()

    # --- opening ------------------------------------------------------------------------------

    def _check_ours(self) -> None:
        if not self.path.exists():
            raise InvalidSetting(f"there is no store at {self.path} to open for reading")
        with self._reading() as db:
            _check_version(db, self.path)

    def _open_writer(self, page_cache_bytes: int) -> apsw.Connection:
        existed = self.path.exists()
        with _translated(self.path):
            db = self._connect(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, page_cache_bytes)
            if not db.execute("SELECT count(*) FROM sqlite_schema").get and not db.pragma("application_id"):
                db.pragma("journal_mode", "wal")
                db.execute(_SCHEMA).fetchall()
            _check_version(db, self.path)
            db.set_wal_hook(self._note_wal)
        if not existed:
            sync_folder(self.path.absolute().parent)
        return db

    def _connect(self, flags: int, cache_bytes: int) -> apsw.Connection:
        db = apsw.Connection(str(self.path), flags=flags, statementcachesize=256)
        db.set_busy_timeout(self._busy_timeout_ms)
        for pragma, value in (
            ("synchronous", "full"),
            ("cache_size", -(cache_bytes // 1_024)),
            ("wal_autocheckpoint", 0),
            ("temp_store", "memory"),
        ):
            db.pragma(pragma, value)
        return db

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """A connection of the caller's own for as long as it reads; connections are used again, not one per thread."""
        if self._closed:
            raise Unavailable("the store is closed")
        with _translated(self.path):
            try:
                db = self._readers.pop()
            except IndexError:
                db = self._connect(apsw.SQLITE_OPEN_READONLY, READER_CACHE_BYTES)
            try:
                yield db
            finally:
                if self._closed or len(self._readers) >= READERS_IDLE_MAX:
                    db.close()
                else:
                    self._readers.append(db)

    # --- reading ------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store.get`."""
        with self._reading() as db:
            found = {key: Item(key, row[3], row[4]) for key, row in self._rows(db, _GET, keys)}
        return [found.get(key) for key in keys]

    def _rows(self, db: apsw.Connection, sql: str, keys: Sequence[Key]) -> Iterator[tuple[Key, _Row]]:
        """The rows of those keys that exist, by key."""
        tables = {table: self._name(db, table) for table in {key.table for key in keys}}
        back = {number: table for table, number in tables.items()}
        places = [(tables[key.table], key.partition, key.sort) for key in keys]
        for statement, values in fat(sql, places):
            for row in db.execute(statement, values).fetchall():
                yield Key(back[row[0]], row[1], row[2]), row

    def query(
        self, table: str, partition: str, start: str = "", stop: str | None = None, limit: int = 1_000, reverse: bool = False
    ) -> list[Item]:
        """See `Store.query`."""
        check_page(limit)
        where, values = "tbl = ? AND partition = ? AND sort >= ?", [partition, start]
        if stop is not None:
            where, values = where + " AND sort < ?", [*values, stop]
        order = "sort DESC" if reverse else "sort"
        return self._items(table, where, order, values, limit)

    def scan(self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000) -> list[Item]:
        """See `Store.scan`; ordered by (partition, sort), sharded by the row's number, which updates keep."""
        check_page(limit)
        check_shard(shard, shards)
        where, values = "tbl = ? AND id % ? = ?", [shards, shard]
        if after is not None:
            where, values = where + " AND (partition, sort) > (?, ?)", [*values, after.partition, after.sort]
        return self._items(table, where, "partition, sort", values, limit)

    def _items(self, table: str, where: str, order: str, values: Sequence[Any], limit: int) -> list[Item]:
        # Only the fixed texts of the two callers are put together here; values are bound.
        sql = f"SELECT partition, sort, version, value FROM item WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
        with self._reading() as db:
            rows = db.execute(sql, (self._name(db, table), *values, limit)).fetchall()
        return [Item(Key(table, partition, sort), version, value) for partition, sort, version, value in rows]

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        with self._reading() as db:
            return {entry.id: entry for entry in self._entries(db, self._by_id(db, _FIND, ids))}

    def seen(self, ids: Sequence[str]) -> dict[str, int]:
        """See `Store.seen`."""
        with self._reading() as db:
            return {id.hex(): digest for id, digest in self._by_id(db, _SEEN, ids)}

    def _by_id(self, db: apsw.Connection, sql: str, ids: Sequence[str]) -> list[_Row]:
        wanted = [(blob,) for blob in map(_blob, ids) if blob is not None]
        return [row for statement, values in fat(sql, wanted) for row in db.execute(statement, values).fetchall()]

    def events(self, thread: str, span: Span = Span()) -> list[LogEntry]:
        """See `Store.events`."""
        check_page(span.limit)
        wanted = _blob(thread)
        if wanted is None:
            return []
        where, values = "thread = ?", [wanted]
        if span.start is not None:
            where, values = where + " AND occurred_at >= ?", [*values, span.start]
        if span.stop is not None:
            where, values = where + " AND occurred_at < ?", [*values, span.stop]
        if span.after is not None:
            where, values = where + f" AND (occurred_at, sequence) {'<' if span.reverse else '>'} (?, ?)", [*values, *span.after]
        order = "occurred_at DESC, sequence DESC" if span.reverse else "occurred_at, sequence"
        with self._reading() as db:
            if span.types:
                types = [self._name(db, type) for type in sorted(span.types)]
                where, values = where + f" AND type IN ({','.join('?' * len(types))})", [*values, *types]
            # Only the fixed texts above are put together here; values are bound.
            sql = f"SELECT {_ENTRY} FROM log WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
            return self._entries(db, db.execute(sql, (*values, span.limit)).fetchall())

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """See `Store.feed`; the cursor is the position of the last entry read."""
        check_page(limit)
        if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise InvalidValue(f"{cursor!r:.80} is not a cursor of this feed")
        sql = f"SELECT {_ENTRY}, position FROM log WHERE position > ? ORDER BY position LIMIT ?"  # noqa: S608
        with self._reading() as db:
            rows = db.execute(sql, (int(cursor or 0), limit)).fetchall()
            entries = self._entries(db, rows)
        return [FeedEntry(str(row[7]), entry) for row, entry in zip(rows, entries, strict=True)]

    def _entries(self, db: apsw.Connection, rows: Sequence[_Row]) -> list[LogEntry]:
        if not {row[3] for row in rows} <= self._texts.keys():
            self._load_names(db)
        texts = self._texts
        return [LogEntry(r[0].hex(), r[1], r[2], texts[r[3]], r[4].hex(), r[5], r[6]) for r in rows]

    # --- names: tables and event types are kept as numbers ---------------------------------------

    def _name(self, db: apsw.Connection, text: str) -> int | None:
        """The number of a table or event type; None, which no row has, where there is none yet."""
        if text not in self._names:
            self._load_names(db)
        return self._names.get(text)

    def _load_names(self, db: apsw.Connection) -> None:
        # Names are never changed or removed, and only committed ones are visible here, so the newest copy is right.
        rows = db.execute("SELECT id, text FROM name").fetchall()
        self._texts = dict(rows)
        self._names = {text: number for number, text in rows}

    # --- writing ------------------------------------------------------------------------------

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`. All batches of a call share one transaction and one sync."""
        check_batches(batches)
        with self._writing_lock, _translated(self.path):
            db = self._writer
            if self._closed or db is None:
                raise Unavailable("the store is closed" if self._closed else "the store is open for reading only")
            if self._wal_pages > self._wal_pages_max * WAL_GROWTH_MAX:
                self._restart_wal(db)
            outcomes = self._transact(db, batches)
        if self._wal_pages > self._wal_pages_max:
            self._checkpoint_wanted.set()
        return outcomes

    def _transact(self, db: apsw.Connection, batches: Sequence[Batch]) -> list[Refusal | None]:
        self._learn_names(db, batches)
        keys = list({write.key: None for batch in batches for write in batch.writes})
        ids = [entry.id for batch in batches for entry in batch.events]
        db.execute("BEGIN IMMEDIATE")
        try:
            stored = dict(self._rows(db, _VERSIONS, keys))
            versions = {key: row[3] for key, row in stored.items()}
            plan = decide(batches, versions, frozenset())
            try:
                self._append(db, plan)
            except apsw.ConstraintError:
                # An id is taken. That is rare, for callers ask `seen` first, so only now is it worth asking which.
                db.execute("ROLLBACK")
                db.execute("BEGIN IMMEDIATE")
                taken = {row[0].hex() for row in self._by_id(db, _SEEN, ids)}
                plan = decide(batches, versions, taken)
                self._append(db, plan)
            self._write_items(db, plan, stored)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return plan.outcomes

    def _append(self, db: apsw.Connection, plan: Plan) -> None:
        names, unhex = self._names, bytes.fromhex
        rows = [(unhex(e.thread), e.sequence, e.occurred_at, names[e.type], unhex(e.id), e.digest, e.body) for e in plan.entries]
        _write(db, _APPEND, rows)

    def _write_items(self, db: apsw.Connection, plan: Plan, stored: Mapping[Key, _Row]) -> None:
        inserts: list[_Row] = []
        updates: list[_Row] = []
        deletes: list[_Row] = []
        for key, after in plan.items.items():
            before = stored.get(key)
            if after is None:
                if before is not None:
                    deletes.append((before[5],))
            elif before is None:
                inserts.append((self._names[key.table], key.partition, key.sort, *after))
            else:
                updates.append((before[5], *after))
        _write(db, _DELETE, deletes)
        _write(db, _UPDATE, updates)
        _write(db, _INSERT, inserts)

    def _learn_names(self, db: apsw.Connection, batches: Sequence[Batch]) -> None:
        """Give new tables and event types their numbers, in a commit of their own: a number outlives any refusal."""
        texts = {write.key.table for batch in batches for write in batch.writes}
        texts.update(entry.type for batch in batches for entry in batch.events)
        if not texts <= self._names.keys():
            self._load_names(db)
            fresh = [(text,) for text in sorted(texts - self._names.keys())]
            if fresh:
                _write(db, "INSERT INTO name (text) SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL", fresh)
                self._load_names(db)

    # --- the write-ahead log --------------------------------------------------------------------

    def _note_wal(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint_loop(self) -> None:
        """Copies the write-ahead log into the file, out of the way of commits."""
        with _translated(self.path):
            db = self._connect(apsw.SQLITE_OPEN_READWRITE, READER_CACHE_BYTES)
        db.set_busy_timeout(100)
        while True:
            self._checkpoint_wanted.wait()
            if self._closed:
                db.close()
                return
            try:
                # The first pass copies most of it, the second what was written meanwhile; the little that is then
                # left is copied while commits wait, so that the next one starts the log from its beginning again.
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                with self._writing_lock:
                    self._restart_wal(db)
            except apsw.Error:
                # Nothing is lost, it all stays in the log; a full disk or a long reader will have gone by the next time.
                pass
            self._checkpoint_wanted.clear()

    def _restart_wal(self, db: apsw.Connection) -> None:
        # Restarted, not truncated: writing over what is there costs half of what growing the file again does.
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        self._wal_pages = 0
