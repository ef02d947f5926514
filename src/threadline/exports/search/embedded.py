"""The embedded search index: a SQLite file beside the store that catches up with the log before it answers.

What it took of the log and how far it has come are one transaction, so that a process that is killed leaves an index
that goes on where it was. It holds nothing that the log has not: any doubt about it ends with building it anew.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from threadline.engine.interpreter import gc_deferred
from threadline.exports.search.database import (
    BusyError,
    Connection,
    DamageError,
    clean,
    connect,
    own_errors,
    transaction,
)
from threadline.exports.search.people_tables import PeopleTables
from threadline.exports.search.tables import REWRITE_FROM, Tables
from threadline.kernel.errors import EventDamaged, InvalidValue, Unavailable
from threadline.kernel.event import Recorded
from threadline.kernel.event_type import SeenTypes
from threadline.kernel.limits import PAGE_ITEMS_MAX, SEARCH_CATCH_UP_EVENTS, SEARCH_FACETED_MAX, SEEN_TYPES_MAX
from threadline.kernel.personal import Copy
from threadline.kernel.search import (
    Document,
    Documents,
    Facets,
    IndexProgress,
    IndexStatus,
    Matches,
    PeopleMatches,
    PeopleOf,
    PeopleQuery,
    Query,
)
from threadline.kernel.store import FeedEntry, is_erased
from threadline.kernel.time import EARLIEST

LAYOUT = 2
"""Rises with every change of the tables or of the documents: an index of another layout is built anew."""
COMMITTED_PAGES = 5
"""Pages of the feed in one transaction, where so many wait."""
_NAMING_MAX = 100_000
"""Threads of which is remembered who their people were said to be."""

log = logging.getLogger("threadline.search")


class Log(Protocol):
    """What is read of the log; see `threadline.kernel.ports.EventLog`."""

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]: ...  # noqa: D102
    def read(self, feed_entry: FeedEntry) -> Recorded: ...  # noqa: D102
    def feed_waits(self, cursor: str = "") -> bool: ...  # noqa: D102


Erased = Callable[[str], tuple[Collection[str], str]]
"""The ids of the events erased since a mark ("": ever), and the mark to ask with the next time."""


class _Reached(NamedTuple):
    """How far the index has come."""

    position: int = 0
    cursor: str = ""
    before: str = ""
    """The cursor before the last entry."""
    last_id: str = ""
    """The id of the last entry: another store, or one put back from a backup, has another one behind ``before``."""
    erased: str = ""
    """The mark up to which erasures are applied."""


class EmbeddedIndex:
    """The index of one store. Thread-safe; any number of processes may share the file."""

    def __init__(self, path: Path | None, log: Log, documents: Documents, erased: Erased, people_of: PeopleOf) -> None:
        self.path = path
        """None: in memory."""
        self._log = log
        self._document_of = documents
        self._erased = erased
        self._people_of = people_of
        self._naming = _Naming()
        self._lock = threading.RLock()
        self._db: Connection | None = None

    @property
    def is_begun(self) -> bool:
        """Whether anybody has ever searched: until then nothing keeps an index."""
        return self._db is not None or (self.path is not None and self.path.exists())

    def search(self, query: Query) -> Matches:
        """See `SearchIndex.search`."""
        with self.opened() as db:
            progress = self.catch_up(SEARCH_CATCH_UP_EVENTS)
            tables = self._tables(db, query.workspace)
            if tables is None or query.threads == () or query.contradicts_itself:
                return Matches([], "", progress, Facets(0, True, {}) if query.facets else None)
            ids, following = tables.search(query)
            facets = None
            if query.facets:
                counted, values = tables.facets(query, SEARCH_FACETED_MAX)
                facets = Facets(counted, counted < SEARCH_FACETED_MAX, values)
            return Matches(ids, following, progress, facets)

    def people(self, query: PeopleQuery) -> PeopleMatches:
        """See `SearchIndex.people`."""
        with self.opened() as db:
            progress = self.catch_up(SEARCH_CATCH_UP_EVENTS)
            number = self._number(db, query.workspace)
            if number is None:
                return PeopleMatches({}, True, 0, True, progress)
            return PeopleMatches(*PeopleTables(db, number).search(query), progress)

    def types(self, workspace: str) -> SeenTypes:
        """See `SearchIndex.types`."""
        if not self.is_begun:
            raise Unavailable("nobody has searched this store yet, so that no index has its types")
        with self.opened() as db:
            reached = self._reached(db)
            is_at_end = not self._log.feed(reached.cursor, 1) and not self._log.feed_waits(reached.cursor)
            tables = self._tables(db, workspace)
            names = frozenset() if tables is None else frozenset(islice(tables.types(), SEEN_TYPES_MAX))
            return SeenTypes(names, is_at_end and len(names) < SEEN_TYPES_MAX)

    def catch_up(self, limit: int) -> IndexProgress:
        """See `SearchIndex.catch_up`."""
        with self.opened() as db:
            try:
                with gc_deferred():
                    return self._catch_up(db, limit)
            except BusyError:
                # Another process is at it, and what it has not committed yet is not here.
                return IndexProgress(self._reached(db).position, False)

    def rebuild(self) -> None:
        """See `SearchIndex.rebuild`."""
        with self.opened() as db, transaction(db):
            self._forget(db)

    def status(self) -> IndexStatus:
        """See `SearchIndex.status`."""
        with self.opened() as db:
            reached = self._reached(db)
            page = [] if self._page(reached, 1) is None else self._page(reached, 1)
            documents = sum(Tables(db, number).count() for number, _ in self._workspaces(db))
            size = db.pragma("page_count") * db.pragma("page_size")
            where = "memory" if self.path is None else str(self.path)
            return IndexStatus("embedded", IndexProgress(reached.position, not page), documents, size, where)

    def contents(self) -> Iterator[tuple[object, ...]]:
        """Everything that a search can depend on: equal for an index that was built anew."""
        with self.opened() as db:
            for number, name in self._workspaces(db):
                for row in chain(Tables(db, number).contents(), PeopleTables(db, number).contents()):
                    yield (name, *row)

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db = None

    # --- catching up --------------------------------------------------------------------------

    def _catch_up(self, db: Connection, limit: int) -> IndexProgress:
        taken = 0
        while True:
            reached = self._reached(db)
            size = min(PAGE_ITEMS_MAX * COMMITTED_PAGES, limit - taken)
            page = self._page(reached, size)
            if page is None:
                log.warning("the search index belongs to another store, or to a later state of this one: built anew")
                self.rebuild()
                continue
            # Asked for after the page was read: what was erased meanwhile is in the page, and taken out again.
            ids, mark = self._erased(reached.erased)
            if page or ids or mark != reached.erased:
                try:
                    is_taken = self._take(db, reached, page, ids, mark)
                except BaseException:
                    self._naming.forget()  # what was taken back is to be taken in again
                    raise
                if not is_taken:
                    continue  # another process has taken some of it, perhaps not all
                taken += len(page)
            if len(page) < size or taken >= limit:
                position = self._reached(db).position
                return IndexProgress(position, len(page) < size and not self._log.feed_waits(self._reached(db).cursor))

    def _page(self, reached: _Reached, size: int) -> list[FeedEntry] | None:
        """The entries that follow; None where the index did not come from this feed."""
        if not reached.position:
            return self._entries("", size)
        try:
            entries = self._entries(reached.before, size + 1)
        except InvalidValue:
            return None  # a cursor of another kind of store
        if not entries or (entries[0].cursor, entries[0].entry.id) != (reached.cursor, reached.last_id):
            return None
        return entries[1:]

    def _entries(self, cursor: str, size: int) -> list[FeedEntry]:
        entries: list[FeedEntry] = []
        while len(entries) < size:
            asked = min(PAGE_ITEMS_MAX, size - len(entries))
            page = self._log.feed(entries[-1].cursor if entries else cursor, asked)
            entries += page
            if len(page) < asked:
                break
        return entries

    def _take(self, db: Connection, reached: _Reached, page: list[FeedEntry], ids: Collection[str], mark: str) -> bool:
        """Take in what follows what was reached; whether the index had still come as far as that and no further."""
        documents = self._documents(page)
        with transaction(db):
            if self._reached(db) != reached:
                return False
            values = {document.type for document in documents} | {document.rule for document in documents}
            values |= {document.status for document in documents}
            number_of = self._numbers(db, values)
            by_workspace: dict[str, list[Document]] = defaultdict(list)
            for document in documents:
                by_workspace[document.workspace].append(document)
            for workspace, some in by_workspace.items():
                number = self._number(db, workspace) or self._create(db, workspace)
                Tables(db, number).add(some, number_of)
                people = PeopleTables(db, number)
                people.refresh(self._naming.threads_of(some, reached.position), self._people_of)
                people.seen(_seen(some))
            removed = sum(self._remove(db, number, ids) for number, _ in self._workspaces(db)) if ids else 0
            if removed:
                self._forget_values(db)
            if page:
                before = page[-2].cursor if len(page) > 1 else reached.cursor
                last = page[-1]
                reached = _Reached(reached.position + len(page), last.cursor, before, last.entry.id)
            db.execute(
                "UPDATE reached SET (position, cursor, before, last_id, erased) = (?, ?, ?, ?, ?)", (*reached[:4], mark)
            )
        self._naming.position = reached.position
        if removed:
            self._naming.forget()
        if removed and self.path is not None:
            clean(db, rewritten=removed >= REWRITE_FROM)
        return True

    def _remove(self, db: Connection, number: int, ids: Collection[str]) -> int:
        """Take documents out of a workspace, and what only they said of who somebody is."""
        count, beginnings = Tables(db, number).remove(sorted(ids))
        if beginnings:
            people = PeopleTables(db, number)
            people.refresh(people.threads_beginning(beginnings), self._people_of)
        return count

    def _documents(self, page: Sequence[FeedEntry]) -> list[Document]:
        documents, read, document_of = [], self._log.read, self._document_of
        for feed_entry in page:
            if is_erased(feed_entry.entry):
                continue
            try:
                documents.append(document_of(read(feed_entry)))
            except EventDamaged:
                continue  # noted by whoever reads it; nobody can find what cannot be read
        return documents

    # --- the file -----------------------------------------------------------------------------

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """The database, to which nobody else of this process comes meanwhile."""
        where = "in memory" if self.path is None else str(self.path)
        with self._lock, own_errors("the search index", where, "search_index"):
            try:
                if self._db is None:
                    self._db = self._open()
                yield self._db
            except DamageError as error:
                self.close()
                log.error("the search index %s is damaged (%s): built anew", where, error)
                self._remove_files()
                raise Unavailable(f"the search index {where} was damaged and is being built anew: {error}") from None

    def _open(self) -> Connection:
        db = connect(self.path)
        try:
            if db.pragma("user_version") != LAYOUT:
                with transaction(db):
                    if db.pragma("user_version") != LAYOUT:
                        self._forget(db)
        except BaseException:
            db.close()
            raise
        return db

    def _forget(self, db: Connection) -> None:
        tables = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'words\\_%\\_%' ESCAPE '\\'"
            )
        ]
        for name in tables:
            db.execute(f'DROP TABLE IF EXISTS "{name}"')
        db.execute(
            "CREATE TABLE reached (position INT, cursor TEXT, before TEXT, last_id TEXT, erased TEXT);"
            "INSERT INTO reached VALUES (0, '', '', '', '');"
            "CREATE TABLE workspace (n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
            "CREATE TABLE value (n INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
        )
        db.pragma("user_version", LAYOUT)

    def _remove_files(self) -> None:
        if self.path is not None:
            for end in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + end).unlink(missing_ok=True)

    def _reached(self, db: Connection) -> _Reached:
        values: Any = db.execute("SELECT position, cursor, before, last_id, erased FROM reached").get
        return _Reached(*values)

    def _workspaces(self, db: Connection) -> list[tuple[int, str]]:
        return [(int(number), str(name)) for number, name in db.execute("SELECT n, name FROM workspace ORDER BY name")]

    def _tables(self, db: Connection, workspace: str) -> Tables | None:
        number = self._number(db, workspace)
        return None if number is None else Tables(db, number)

    def _number(self, db: Connection, workspace: str) -> int | None:
        row = db.execute("SELECT n FROM workspace WHERE name = ?", (workspace,)).fetchone()
        return None if row is None else int(row[0])

    def _create(self, db: Connection, workspace: str) -> int:
        db.execute("INSERT INTO workspace (name) VALUES (?)", (workspace,))
        number = db.last_insert_rowid()
        Tables(db, number).create()
        PeopleTables(db, number).create()
        return number

    def _forget_values(self, db: Connection) -> None:
        """Take out types, rules and statuses that no document has: one may be of an erased person alone."""
        named = " UNION ".join(Tables(db, number).values for number, _ in self._workspaces(db))
        db.execute("DELETE FROM value WHERE n NOT IN (#)".replace("#", named))

    def _numbers(self, db: Connection, values: set[str]) -> dict[str, int]:
        db.executemany("INSERT OR IGNORE INTO value (text) VALUES (?)", [(value,) for value in sorted(values)])
        numbers: dict[str, Any] = {
            value: db.execute("SELECT n FROM value WHERE text = ?", (value,)).get for value in values
        }
        return numbers


class _Naming:
    """The identifiers with which events of a thread came last: with the same again nobody has to be read again."""

    def __init__(self) -> None:
        self.position = 0
        """Up to where this process took entries in: another one may have taken in what lies behind."""
        self._last: dict[str, str] = {}

    def threads_of(self, documents: Sequence[Document], position: int) -> set[str]:
        """The threads of documents, the first behind a position, that say something new of who somebody is."""
        if position != self.position or len(self._last) > _NAMING_MAX:
            self.forget()
        threads: set[str] = set()
        last = self._last
        for document in documents:
            if document.is_naming:
                threads.add(document.thread)
            elif document.naming and last.get(document.thread) != document.naming:
                last[document.thread] = document.naming
                threads.add(document.thread)
        return threads

    def forget(self) -> None:
        """Take everything for new."""
        self._last.clear()


def _seen(documents: Sequence[Document]) -> dict[str, int]:
    """By thread, the newest instant at which people were seen."""
    at_by_thread: dict[str, int] = {}
    for document in documents:
        if document.is_activity and document.occurred_at > at_by_thread.get(document.thread, EARLIEST - 1):
            at_by_thread[document.thread] = document.occurred_at
    return at_by_thread


COPY = Copy("the search index, embedded", EmbeddedIndex.catch_up)
