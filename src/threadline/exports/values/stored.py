"""Values of people in a SQLite file beside the store, so that a question about a feature looks at few people again.

They are those of whom something was recorded since the last one, and whose value time alone may have changed.
What was taken in of the log and what follows from it are one transaction: a process that is killed leaves values that
go on where they were. There is nothing in the file that the store has not: any doubt about it ends with an empty one,
and so does another log, because the store was put back from a backup.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from threadline.engine.engine import Engine
from threadline.engine.erasure.erased_ids import erased_since
from threadline.engine.folding.person import own, person_key
from threadline.engine.folding.person_packing import erasing
from threadline.engine.interpreter import gc_deferred
from threadline.engine.reading.lookup import owners
from threadline.engine.reading.values_anew import PAGE, ValuesAnew
from threadline.exports.search.database import (
    Connection,
    DamageError,
    blobs,
    clean,
    connect,
    own_errors,
    transaction,
)
from threadline.kernel.errors import EventDamaged, InvalidValue, StoreFull, Unavailable
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.personal import Copy
from threadline.kernel.ports import Person, ValueAsked, ValuesRead
from threadline.kernel.search import IndexProgress
from threadline.kernel.store import FeedEntry, is_erased
from threadline.kernel.time import CLOCK_SKEW_MAX, DAY

LAYOUT = 1
"""Rises with every change of the tables: a file of another layout is begun anew."""
UNUSED_MAX = 7 * DAY
"""How long values are kept that nobody asks for."""
_AT_ONCE, _NEVER = -(1 << 63), (1 << 63) - 1
"""When somebody is to be looked at again."""
_TABLES = """
DROP TABLE IF EXISTS reached;
DROP TABLE IF EXISTS what;
DROP TABLE IF EXISTS value;
CREATE TABLE reached (cursor TEXT, before TEXT, last_id TEXT, erased TEXT, erasing TEXT);
CREATE TABLE what (
    n INTEGER PRIMARY KEY, workspace TEXT, name TEXT, content TEXT, after TEXT, is_whole INT, as_of INT,
    UNIQUE (workspace, name, content)
);
CREATE TABLE value (what INT, person BLOB, value BLOB, due INT, PRIMARY KEY (what, person)) WITHOUT ROWID;
"""
"""Of ``what`` is asked for, everybody up to ``after`` has been looked at, or all people of the workspace."""

log = logging.getLogger("threadline.exports")
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


class _Reached(NamedTuple):
    """How far the file has come."""

    cursor: str
    before: str
    """The cursor before the last entry, where it is known."""
    last_id: str
    """The id of the last entry: another store, or one put back from a backup, has another one behind ``before``."""
    erased: str
    """The mark up to which erasures are applied."""
    erasing: str
    """The erasures that were not done then: whoever is being erased is nobody already."""


class StoredValues:
    """The values of one store's people. Thread-safe; any number of processes may share the file."""

    def __init__(self, engine: Engine, path: Path | None) -> None:
        self.path = path
        """None: in memory."""
        self._engine = engine
        self._lock = threading.RLock()
        self._db: Connection | None = None

    @property
    def is_begun(self) -> bool:
        """Whether anybody has ever asked: until then nothing is kept."""
        return self._db is not None or (self.path is not None and self.path.exists())

    def read(self, asked: ValueAsked, is_over: Callable[[], bool] = lambda: False) -> ValuesRead:
        """See `PeopleValues.read`. Where nothing can be kept everybody is looked at."""
        try:
            return self._read(asked, is_over)
        except (StoreFull, Unavailable) as error:
            log.info("values of people are not kept: %s", error)
            return ValuesAnew(self._engine.reader).read(asked, is_over)

    def catch_up(self, limit: int) -> IndexProgress:
        """Take out whom an erasure has reached. It ignores ``limit``: what is new is taken in with a question."""
        with self._opened() as db:
            reached = self._reached(db)
            if self._erasures(reached.erased) != reached[3:]:
                self._take(db)
        return IndexProgress(0, True)

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db = None

    def _read(self, asked: ValueAsked, is_over: Callable[[], bool]) -> ValuesRead:
        after = ""
        """Up to here those have been looked at again who were due."""
        while True:
            # Others come between two pages: the first question about a feature takes seconds.
            with self._opened() as db, gc_deferred():
                self._take(db)
                reached = self._reached(db)
                number, now, scanned, is_whole = self._what(db, asked)
                due = self._due(db, number, now, after)
                if due:
                    ids, people, ends = due, self._engine.reader.people_of(asked.workspace, due), list[str]()
                    last = due[-1] if is_whole else min(due[-1], scanned)
                elif not is_whole:
                    page, last = self._engine.reader.people(asked.workspace, scanned, PAGE)
                    people, ends = {person.id: person for person in page}, [last]
                    ids = list(people)
                else:
                    return ValuesRead(self._values(db, number, ""), "", now)
                if not self._look(db, reached, asked._replace(now=now), number, ids, people, ends):
                    continue
                after = due[-1] if due else after
                if last and is_over():
                    return ValuesRead(self._values(db, number, last), last, now)

    def _look(
        self,
        db: Connection,
        reached: _Reached,
        asked: ValueAsked,
        number: int,
        ids: Sequence[str],
        people: Mapping[str, Person],
        scanned: Sequence[str],
    ) -> bool:
        """Keep the values of some people as they are now; whoever is somebody else's by now has none.

        False where another process has taken in what was recorded since ``reached``, after which these people were
        read: they may be as they were before it.
        """
        rows, gone = list[tuple[int, bytes, bytes, int]](), list[bytes]()
        for id in ids:
            person = people.get(id)
            if person is None or person.id != id:
                gone.append(bytes.fromhex(id))
                continue
            value, changes_at = asked.look(person, asked.now)
            if own(person).latest[0] >= asked.now:
                changes_at = _AT_ONCE  # something of theirs lies ahead, and counts from then on
            rows.append((number, bytes.fromhex(id), _pack(value), _NEVER if changes_at is None else changes_at))
        with transaction(db):
            if self._reached(db) != reached:
                return False
            db.executemany("INSERT OR REPLACE INTO value VALUES (?, ?, ?, ?)", rows)
            db.execute("DELETE FROM value WHERE what = ? AND person IN carray(?)", (number, blobs(gone)))
            for after in scanned:
                db.execute("UPDATE what SET (after, is_whole) = (?, ?) WHERE n = ?", (after, not after, number))
        return True

    def _due(self, db: Connection, number: int, now: int, after: str) -> list[str]:
        """The next people who have to be looked at again."""
        rows = db.execute(
            "SELECT person FROM value WHERE what = ? AND person > ? AND due <= ? ORDER BY person LIMIT ?",
            (number, bytes.fromhex(after), now, PAGE),
        )
        return [person.hex() for (person,) in rows]

    def _values(self, db: Connection, number: int, last: str) -> list[tuple[str, Any]]:
        until = bytes.fromhex(last) if last else b"\xff" * 17
        rows = db.execute("SELECT person, value FROM value WHERE what = ? AND person <= ?", (number, until))
        return [(person.hex(), _unpack(value)) for person, value in rows]

    # --- the file -----------------------------------------------------------------------------

    @contextmanager
    def _opened(self) -> Iterator[Connection]:
        where = "in memory" if self.path is None else str(self.path)
        with self._lock, own_errors("the values of people", where, "analytics_dir"):
            try:
                if self._db is None:
                    self._db = self._connected()
                yield self._db
            except DamageError as error:
                self.close()
                if self.path is not None:
                    for end in ("", "-wal", "-shm"):
                        self.path.with_name(self.path.name + end).unlink(missing_ok=True)
                raise Unavailable(f"{where} was damaged and is begun anew: {error}") from None

    def _connected(self) -> Connection:
        db = connect(self.path)
        try:
            if db.pragma("user_version") != LAYOUT:
                with transaction(db):
                    if db.pragma("user_version") != LAYOUT:
                        self._begin(db)
        except BaseException:
            db.close()
            raise
        return db

    def _begin(self, db: Connection) -> None:
        """Forget everything, and begin at the end of the log."""
        store = self._engine.store
        end = store.feed_end()
        # A position says itself what comes before it. Stores with other cursors are not put back as a file is.
        before = str(int(end) - 1) if end.isdigit() and int(end) else ""
        last = store.feed(before, 1) if before else []
        db.execute(_TABLES)
        id = last[0].entry.id if last else ""
        db.execute("INSERT INTO reached VALUES (?, ?, ?, ?, ?)", (end, before, id, *self._erasures("")))
        db.pragma("user_version", LAYOUT)

    def _reached(self, db: Connection) -> _Reached:
        values: Any = db.execute("SELECT * FROM reached").get
        return _Reached(*values)

    def _what(self, db: Connection, asked: ValueAsked) -> tuple[int, int, str, bool]:
        """The number of what is asked for, the instant to look at people, and how far everybody has been looked at."""
        names = asked[:3]
        with transaction(db):
            row: Any = db.execute(
                "SELECT n, as_of, after, is_whole FROM what WHERE (workspace, name, content) = (?, ?, ?)", names
            ).fetchone()
            # The clock of another process may be a little ahead. Beyond that it was wrong, and so are the values.
            if row is not None and row[1] - asked.now <= CLOCK_SKEW_MAX:
                number, as_of, after, is_whole = row
                if as_of < asked.now:
                    db.execute("UPDATE what SET as_of = ? WHERE n = ?", (asked.now, number))
                return number, max(as_of, asked.now), after, bool(is_whole)
            unused = [n for (n,) in db.execute("SELECT n FROM what WHERE as_of < ?", (asked.now - UNUSED_MAX,))]
            for number in unused if row is None else [row[0]]:
                db.execute("DELETE FROM value WHERE what = ?", (number,))
                db.execute("DELETE FROM what WHERE n = ?", (number,))
            db.execute(
                "INSERT INTO what (workspace, name, content, after, is_whole, as_of) VALUES (?, ?, ?, '', 0, ?)",
                (*names, asked.now),
            )
            return db.last_insert_rowid(), asked.now, "", False

    # --- what is new --------------------------------------------------------------------------

    def _take(self, db: Connection) -> None:
        """Take in what was recorded and erased since."""
        while True:
            reached = self._reached(db)
            page = self._page(reached)
            if page is None:
                log.warning("the values of people belong to another store, or to a later state of this one: begun anew")
                with transaction(db):
                    self._begin(db)
                continue
            # After the page was read: of what is erased meanwhile nothing is taken in.
            erasures = self._erasures(reached.erased)
            if not page and erasures == reached[3:]:
                return
            threads = self._touched(page)
            changed = set(owners(self._engine.store, threads).values())
            gone = threads - changed
            if erasures != reached[3:]:
                gone |= self._nobody(db)
            after = _Reached(*reached[:3], *erasures)
            if page:
                before = page[-2].cursor if len(page) > 1 else reached.cursor
                after = after._replace(cursor=page[-1].cursor, before=before, last_id=page[-1].entry.id)
            with transaction(db):
                if self._reached(db) != reached:
                    continue  # another process has taken them
                self._mark(db, changed - gone, gone)
                db.execute("UPDATE reached SET (cursor, before, last_id, erased, erasing) = (?, ?, ?, ?, ?)", after)
            if erasures != reached[3:] and self.path is not None:
                clean(db, rewritten=False)

    def _page(self, reached: _Reached) -> list[FeedEntry] | None:
        """The entries that follow; None where the values did not come from this log."""
        store = self._engine.store
        try:
            if not reached.last_id:
                return store.feed(reached.cursor, PAGE_ITEMS_MAX)
            entries = store.feed(reached.before, PAGE_ITEMS_MAX)
        except InvalidValue:
            return None  # a cursor of another kind of store
        if not entries or (entries[0].cursor, entries[0].entry.id) != (reached.cursor, reached.last_id):
            return None
        return entries[1:]

    def _touched(self, page: Sequence[FeedEntry]) -> set[str]:
        """The threads of people of whom something is new, and of those who were merged or parted."""
        threads = set[str]()
        for feed_entry in page:
            entry = feed_entry.entry
            if is_erased(entry):
                continue
            threads.add(entry.thread)
            if entry.type not in (MERGED, SPLIT):
                continue
            try:
                event = self._engine.log.read(feed_entry).event
            except EventDamaged:
                continue
            if self._engine.catalogue.event_types.counts(event):
                noted = event.properties
                threads.update(noted.get("threads", ()))
                threads.update(noted[name] for name in ("survivor", "merged", "person", "split") if name in noted)
        return threads

    def _erasures(self, mark: str) -> tuple[str, str]:
        """The mark up to which events are erased, from an earlier one on, and the erasures that are not done."""
        unfinished = sorted(self._engine.erasures.unfinished())
        return erased_since(self._engine.store, mark)[1], _pack(unfinished).hex()

    def _nobody(self, db: Connection) -> set[str]:
        """Those who have values and are nobody any more."""
        people = [person.hex() for (person,) in db.execute("SELECT DISTINCT person FROM value")]
        gone = set[str]()
        for start in range(0, len(people), PAGE_ITEMS_MAX):
            page = people[start : start + PAGE_ITEMS_MAX]
            items = self._engine.store.get([person_key(id) for id in page])
            gone.update(id for id, item in zip(page, items, strict=True) if item is None or erasing(item) is not None)
        return gone

    def _mark(self, db: Connection, changed: Collection[str], gone: Collection[str]) -> None:
        """Let people be looked at again when somebody asks, and forget those who are nobody."""
        packed = [bytes.fromhex(id) for id in sorted(changed)]
        for number in [n for (n,) in db.execute("SELECT n FROM what")]:
            db.executemany(
                "INSERT INTO value VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET due = excluded.due",
                [(number, id, _NOTHING, _AT_ONCE) for id in packed],
            )
        db.execute(
            "DELETE FROM value WHERE what IN (SELECT n FROM what) AND person IN carray(?)",
            (blobs([bytes.fromhex(id) for id in sorted(gone)]),),
        )


_NOTHING = _pack(None)

COPY = Copy("values of people", StoredValues.catch_up)
