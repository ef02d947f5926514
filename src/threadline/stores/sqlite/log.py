"""The log in SQLite: rows in commit order, found through an index on disk and, the newest of them, through memory.

An index entry per event under a random key dirties a page per event, and those pages are most of what a commit writes.
So the indexes by id and by thread, the tables ``event_id`` and ``place``, are filled later and in key order, from the
`Tail`; ``indexed`` says up to which position they are complete. The log alone is the truth: after a crash the tail is
read from it again, and entries that are moved twice are ignored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import ge, itemgetter

from threadline.kernel.errors import StoreDamaged
from threadline.kernel.ids import packed_ids
from threadline.kernel.store import FeedEntry, LogEntry, Span, by_thread
from threadline.stores import compression
from threadline.stores.sqlite.names import Names
from threadline.stores.sqlite.rows import Ask, Row, fat, write
from threadline.stores.sqlite.tail import AFTER_ALL, BEFORE_ALL, BUCKETS, ERASED, IndexRow, Tail, View

# What looks into the index begins with a row of state, (NULL, indexed, last position), of the same snapshot.
_SEEN = """SELECT NULL, indexed.position, (SELECT max(position) FROM log) FROM indexed
    UNION ALL SELECT log.id, log.digest, NULL FROM (VALUES {rows}) AS v
    CROSS JOIN event_id ON event_id.id = v.column1 CROSS JOIN log ON log.position = event_id.position"""
_FIND = """SELECT NULL, indexed.position, (SELECT max(position) FROM log), NULL, NULL, NULL, NULL, NULL FROM indexed
    UNION ALL SELECT log.thread, log.sequence, log.occurred_at, log.type, log.id, log.digest, log.body, log.position
    FROM (VALUES {rows}) AS v
    CROSS JOIN event_id ON event_id.id = v.column1 CROSS JOIN log ON log.position = event_id.position"""
# The thread is the one that was asked for, which led here: that of a damaged row would be anybody's.
_OF_THREAD = _FIND.partition(" CROSS JOIN")[0].replace("log.thread", "v.column1")
_HISTORIES = f"""{_OF_THREAD}
    CROSS JOIN place ON place.thread = v.column1 CROSS JOIN log ON log.position = place.position"""
_NAMES = "SELECT id, text FROM name"
_TAKEN = "SELECT event_id.id FROM (VALUES {rows}) AS v CROSS JOIN event_id ON event_id.id = v.column1"
_READ = """SELECT log.thread, log.sequence, log.occurred_at, log.type, log.id, log.digest, log.body, log.position
    FROM (VALUES {rows}) AS v CROSS JOIN log ON log.position = v.column1"""
_FEED = """SELECT thread, sequence, occurred_at, type, id, digest, body, position FROM log
    WHERE position > ? ORDER BY position LIMIT ?"""
_BEYOND = """SELECT position, thread, sequence, occurred_at, type, id, digest FROM log
    WHERE position > ? AND position <= ? ORDER BY position"""
_APPEND = """INSERT INTO log (position, thread, sequence, occurred_at, type, id, digest, body)
    SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL"""
_MEND = """UPDATE log SET thread = ?, sequence = ?, occurred_at = ?, type = ?, id = ?, digest = ?, body = ?
    WHERE position = ?"""
_INDEX_ID = "INSERT OR IGNORE INTO event_id SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL"
_INDEX_THREAD = """INSERT OR IGNORE INTO place (thread, occurred_at, sequence, type, position)
    SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL"""
_PLACES = "SELECT event_id.position FROM (VALUES {rows}) AS v CROSS JOIN event_id ON event_id.id = v.column1"
_ERASE = """UPDATE log SET thread = zeroblob(16), sequence = 0, occurred_at = 0, type = 0, digest = 0, body = x''
    FROM (VALUES {rows}) AS v WHERE log.position = v.column1"""
_UNPLACE = """DELETE FROM place WHERE (thread, occurred_at, sequence, type, position) IN (VALUES {rows})"""

_COUNTS = """SELECT (SELECT position FROM indexed), (SELECT count(*) FROM log), (SELECT max(position) FROM log),
    (SELECT count(*) FROM log CROSS JOIN event_id ON event_id.id = log.id AND event_id.position = log.position),
    (SELECT count(*) FROM event_id),
    (SELECT count(*) FROM place CROSS JOIN log ON log.position = place.position AND log.thread = place.thread
        AND log.occurred_at = place.occurred_at AND log.sequence = place.sequence AND log.type = place.type),
    (SELECT count(*) FROM place), (SELECT count(*) FROM log WHERE type = 0),
    (SELECT count(*) FROM log CROSS JOIN indexed WHERE log.type = 0 AND log.position <= indexed.position)"""

_TYPES = """SELECT type FROM place GROUP BY type
    UNION SELECT log.type FROM indexed CROSS JOIN log WHERE log.position > indexed.position"""
_TYPES_SINCE = "SELECT DISTINCT type FROM log WHERE position > ?"

_entry = tuple.__new__
"""As `LogEntry` does it, without a call of its constructor, which is in Python."""
_THREAD_AT_SEQUENCE = itemgetter(0, 2, 1)

ABSENT_MAX = 10_000
"""Bound of the cache of ids that are not in the log, which saves a commit a second look-up."""


class EventLog:
    """The log of one open file. The caller brings the connection, begins and ends transactions, and has one writer.

    A read-only process follows another one's writer: it has a tail of its own, as far as it has read.
    """

    def __init__(self, names: Names, tail_entries_max: int, follow: bool) -> None:
        self._names = names
        self._tail = Tail(tail_entries_max)
        self._follow = follow
        self._behind = True
        """Whether the log may have more than the tail: from `append` to `published`."""
        self._stale = True
        """Whether the tail may have places of entries that are erased on disk: from `erase` to `forget`."""
        self._following = threading.Lock()
        self._absent: tuple[int, set[str]] = (-1, set())
        """Ids that were asked for and are not in the log up to a position."""

    def start(self, ask: Ask) -> None:
        """Read what the index on disk does not have yet."""
        self.catch_up(ask)

    def catch_up(self, ask: Ask) -> None:
        """Take in what is in the log but not in the tail: all of it at the start; later nothing, unless a commit
        was interrupted between the disk and the tail."""
        if self._stale:
            [(indexed,)] = ask("SELECT position FROM indexed", ())
            self._tail.start(indexed)
            self._stale, self._behind = False, True
        if not self._behind:
            return
        [(end,)] = ask("SELECT max(position) FROM log", ())
        # Page by page, so that memory holds the tail and not its rows as well.
        while (last := self._tail.view().last) < (end or 0):
            rows = ask(_BEYOND, (last, min(last + 1_000, end)))
            self._tail.add(_in_order(rows, [row[0] for row in rows], last))

    # --- reading --------------------------------------------------------------------------------

    def find(self, ask: Ask, ids: Sequence[str]) -> dict[str, LogEntry]:
        """The entries with these ids that are not erased."""
        rows, view = self._look(ask, list(fat(_FIND, _packed(ids))), self._tail.view())
        by_id = {row[4]: row for row in rows}
        missing = [view.find(id) for (id,) in _packed(ids) if id not in by_id]
        rows.extend(_read(ask, [pair[0] for pair in missing if pair]))
        return {entry.id: entry for entry in self._entries(ask, _present(rows))}

    def digests(self, ask: Ask, ids: Sequence[str]) -> dict[str, int]:
        """The digests of the entries with these ids."""
        packed, before = _packed(ids), self._tail.view()
        rows, view = self._look(ask, list(fat(_SEEN, packed)), before)
        indexed = {row[0]: row[1] for row in rows}
        digests = {id.hex(): digest for id, digest in indexed.items()}
        newest = [(id, pair) for (id,) in packed if id not in indexed and (pair := view.find(id))]
        if self._follow:
            # The tail does not hear of it when the process that writes erases an entry.
            digests.update((row[4].hex(), row[5]) for row in _read(ask, [position for _, (position, _) in newest]))
        else:
            digests.update((id.hex(), digest) for id, (_, digest) in newest)
        position, absent = self._absent
        if position != before.last or len(absent) > ABSENT_MAX:
            absent = set()
            self._absent = before.last, absent
        absent.update([id for id in ids if id not in digests])
        return digests

    def spans(self, ask: Ask, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """A span of each of these threads; threads without events in it are left out."""
        erased: set[int] = set()
        while True:
            rows = self._span_rows(ask, threads, span, erased)
            gone = {row[7] for row in rows if row[0] == ERASED}
            if not gone:
                return by_thread(self._entries(ask, rows))
            # Erased since the tail took them in. Without them the page would be short, and be taken for the last.
            erased |= gone

    def _span_rows(self, ask: Ask, threads: Sequence[str], span: Span, erased: set[int]) -> list[Row]:
        wanted = _packed(threads)
        types = set(self._names.numbers(ask, span.types).values())
        rows, view = self._look(ask, list(_span_queries(wanted, span, types)), self._tail.view())
        by_position = {row[7]: row for row in rows}
        places: dict[bytes, set[tuple[int, int, int]]] = {thread: set() for (thread,) in wanted}
        for row in rows:
            places[row[0]].add((row[2], row[1], row[7]))
        start, stop = _bounds(span)
        chosen: list[int] = []
        for thread, known in places.items():
            newest = view.places(
                thread, start, stop, types=types, limit=span.limit, reverse=span.reverse, erased=erased
            )
            known.update((at, sequence, position) for at, sequence, _, position in newest)
            chosen += [position for _, _, position in sorted(known, reverse=span.reverse)[: span.limit]]
        missing = _read(ask, [position for position in chosen if position not in by_position])
        by_position.update((row[7], row) for row in missing)
        return [by_position[position] for position in chosen]

    def histories(
        self, ask: Ask, threads: Sequence[str], wanted: Callable[[str], bool] | None
    ) -> dict[str, list[LogEntry]]:
        """Whole threads, by thread, or their events of the types that are wanted."""
        # In the order of the index, so that it is read from one end to the other.
        named = sorted(set(_packed(threads)))
        view = self._tail.view()
        # Looked up after the view was taken, so that every type in it is among them.
        types = None if wanted is None else {number for number, text in ask(_NAMES, ()) if wanted(text)}
        sql = (
            _HISTORIES if types is None else _HISTORIES + f" WHERE place.type IN ({','.join(map(str, sorted(types)))})"
        )
        rows, view = self._look(ask, list(fat(sql, named)), view)
        known = {row[7] for row in rows}
        places = (place for (thread,) in named for place in view.places(thread))
        fresh = {place[3] for place in places if types is None or place[2] in types} - known
        rows.extend(_read(ask, sorted(fresh)))
        rows.sort(key=_THREAD_AT_SEQUENCE)
        return by_thread(self._entries(ask, _present(rows)))

    def feed(self, ask: Ask, position: int, limit: int) -> list[FeedEntry]:
        """The entries after a position."""
        rows = ask(_FEED, (position, limit))
        if rows:
            _in_order(rows, [row[7] for row in rows], position)
        return [FeedEntry(str(row[7]), entry) for row, entry in zip(rows, self._entries(ask, rows), strict=True)]

    def _look(self, ask: Ask, statements: Sequence[tuple[str, Sequence[object]]], view: View) -> tuple[list[Row], View]:
        """The rows from the index on disk, and a view of all that the index does not have.

        ``view`` was taken before, so it holds whatever was moved to the disk since. What was committed since it was
        taken is read from the log: entries never change but for being erased, so it hardly matters that this is another
        snapshot. Whoever reads what the view names passes over what is erased by then.
        """
        rows: list[Row] = []
        states: list[Row] = []
        for statement, values in statements:
            for row in ask(statement, values):
                (states if row[0] is None else rows).append(row)
        for _, indexed, last, *_ in states[:1]:
            first = max(view.last, indexed)
            if last is not None and last > first:
                beyond = ask(_BEYOND, (first, last))
                view = view.extended(beyond)
                if self._follow:
                    self._follow_up(beyond, first, indexed)
        return rows, view

    def _follow_up(self, rows: Sequence[IndexRow], first: int, indexed: int) -> None:
        with self._following:
            last = self._tail.view().last
            if last < indexed:
                self._tail.start(indexed)
            self._tail.forget(indexed)
            # Another thread may have been here with the same rows.
            if self._tail.view().last == first:
                self._tail.add(rows)

    def _entries(self, ask: Ask, rows: Sequence[Row]) -> list[LogEntry]:
        types = self._names.texts(ask, {row[3] for row in rows} - {0})
        try:
            bodies = compression.bodies.readable([row[6] for row in rows])
            return [
                _entry(LogEntry, (thread.hex(), sequence, at, types[type] if type else "", id.hex(), digest, body))
                for (thread, sequence, at, type, id, digest, _, _), body in zip(rows, bodies, strict=True)
            ]
        except (AttributeError, KeyError, TypeError):
            # A damaged row must not keep the others from being read; `check_entry` finds it.
            return [_readable(row, types) for row in rows]

    @property
    def last(self) -> int:
        """The last position; 0 before the first."""
        return self._tail.view().last

    # --- writing --------------------------------------------------------------------------------

    def taken(self, ask: Ask, ids: Sequence[str]) -> set[str]:
        """Those ids that are in the log; what `digests` did not find is not looked for twice if nothing was added."""
        view = self._tail.view()
        last, absent = self._absent
        packed = _packed([id for id in ids if id not in absent] if last == view.last else ids)
        present = {row[0].hex() for statement, values in fat(_TAKEN, packed) for row in ask(statement, values)}
        present.update(id.hex() for (id,) in packed if view.find(id))
        return present

    def append(self, ask: Ask, entries: Sequence[LogEntry], names: Mapping[str, int | None]) -> list[IndexRow]:
        """Add entries at the end of the log; what it gives is to be `published` when the transaction is durable."""
        unhex = bytes.fromhex
        bodies = compression.bodies.compressed([e.body for e in entries])
        rows = [
            (position, unhex(e.thread), e.sequence, e.occurred_at, names.get(e.type) or 0, unhex(e.id), e.digest, body)
            for position, (e, body) in enumerate(zip(entries, bodies, strict=True), self._tail.view().last + 1)
        ]
        self._behind = True
        write(ask, _APPEND, rows)
        return [row[:7] for row in rows]

    def erase(self, ask: Ask, ids: Sequence[str]) -> list[IndexRow]:
        """Take entries out of the log; what it gives is to be passed to `forget` when the transaction is durable."""
        view = self._tail.view()
        newest = [view.find(id) for (id,) in _packed(ids)]
        positions = {pair[0] for pair in newest if pair}
        for statement, values in fat(_PLACES, _packed(ids)):
            positions.update(position for (position,) in ask(statement, values))
        rows = [
            (position, thread, sequence, at, type, id, digest)
            for thread, sequence, at, type, id, digest, _, position in _present(_read(ask, sorted(positions)))
        ]
        self._stale = True
        write(
            ask, _UNPLACE, [(thread, at, sequence, type, position) for position, thread, sequence, at, type, *_ in rows]
        )
        write(ask, _ERASE, [row[:1] for row in rows])
        return rows

    def forget(self, rows: Sequence[IndexRow]) -> None:
        """Forget the places of entries that are erased, durably."""
        self._tail.drop(rows)
        self._stale = False

    def types(self, ask: Ask) -> set[int]:
        """The numbers of the types of all entries; it goes through the index of threads, which is the narrowest."""
        return {number for (number,) in ask(_TYPES, ())}

    def types_since(self, ask: Ask, position: int) -> set[int]:
        """The numbers of the types of the entries beyond a position."""
        return {number for (number,) in ask(_TYPES_SINCE, (position,))}

    def index(self, ask: Ask, added: int) -> range:
        """Move a part of the tail to the disk, in proportion to what is added; give its buckets to `published`."""
        buckets, moving = self._tail.next_buckets(added), self._tail.moving
        parts = [moving.bucket(number) for number in buckets]
        write(ask, _INDEX_ID, [row for ids, _ in parts for row in ids])
        write(ask, _INDEX_THREAD, [row for _, threads in parts for row in threads])
        if buckets and buckets.stop == BUCKETS:
            ask("UPDATE indexed SET position = ?", (moving.last,))
        return buckets

    def seal(self) -> bool:
        """Make `index` move all that is left, a generation a call; False when nothing is."""
        self._tail.seal()
        return len(self._tail.view().generations) > 1

    def problems(self, ask: Ask) -> list[str]:
        """Where the index on disk disagrees with the log."""
        [(indexed, entries, last, by_id, ids, placed, places, erased, erased_indexed)] = ask(_COUNTS, ())
        wrong = []
        if entries != (last or 0):
            wrong.append(f"the log has {entries} entries but its last position is {last}")
        if not (
            indexed <= by_id == ids <= entries and indexed - erased_indexed <= placed == places <= entries - erased
        ):
            wrong.append(
                f"of {indexed} indexed entries {by_id} of {ids} are found by id and {placed} of {places} by thread"
            )
        return wrong

    def mend(self, ask: Ask, damaged: FeedEntry, good: LogEntry, type: int) -> bool:
        """Put an entry in the place of another, and what the index on disk says of it."""
        position = int(damaged.cursor)
        row = ask(_READ.replace("{rows}", "(?)"), (position,))
        if self._entries(ask, row) != [damaged.entry]:
            return False
        self._stale = True  # the tail may have the damaged one
        thread, id = bytes.fromhex(good.thread), bytes.fromhex(good.id)
        [body] = compression.bodies.compressed([good.body])
        values = (thread, good.sequence, good.occurred_at, type, id, good.digest, body, position)
        ask(_MEND, values)
        ask("DELETE FROM event_id WHERE position = ?", (position,))
        ask("DELETE FROM place WHERE position = ?", (position,))
        [(indexed,)] = ask("SELECT position FROM indexed", ())
        if position <= indexed:
            write(ask, _INDEX_ID, [(id, position)])
            if thread != ERASED:
                write(ask, _INDEX_THREAD, [(thread, good.occurred_at, good.sequence, type, position)])
        return True

    def published(self, rows: Sequence[IndexRow], buckets: range) -> None:
        """Publish the tail of a durable transaction to readers."""
        if buckets:
            self._tail.moved(buckets)
        self._tail.add(rows)
        self._behind = False


def _in_order(rows: list[Row], positions: Sequence[int], after: int) -> list[Row]:
    """These rows. Raises `StoreDamaged` if they are not all that follows a position: who reads on would never end."""
    if not rows or positions[0] <= after or any(map(ge, positions, positions[1:])):
        raise StoreDamaged(f"the log is not in the order of its positions after {after}")
    return rows


def _readable(row: Row, types: Mapping[int, str]) -> LogEntry:
    """The entry of a row, with nothing in the place of a value that no row of the log has."""
    thread, sequence, at, type, id, digest, body, _ = row
    thread, id, body = (value if isinstance(value, bytes) else b"?" for value in (thread, id, body))
    [body] = compression.bodies.readable([body])
    sequence, at, digest = (value if isinstance(value, int) else 0 for value in (sequence, at, digest))
    return LogEntry(thread.hex(), sequence, at, types.get(type, ""), id.hex(), digest, body)


def _bounds(span: Span) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The conditions of `_span_queries` on time, for places in memory."""
    start = BEFORE_ALL if span.start is None else (span.start,)
    stop = AFTER_ALL if span.stop is None else (span.stop,)
    if span.after is not None and span.reverse:
        stop = min(stop, span.after)
    elif span.after is not None:
        at, sequence = span.after
        start = max(start, (at, sequence + 1))
    return start, stop


def _span_queries(
    threads: Sequence[tuple[bytes]], span: Span, types: Collection[int | None]
) -> Iterator[tuple[str, list[object]]]:
    wheres = ["place.thread = v.column1"]
    values: list[object] = []
    if span.start is not None:
        wheres.append("place.occurred_at >= ?")
        values.append(span.start)
    if span.stop is not None:
        wheres.append("place.occurred_at < ?")
        values.append(span.stop)
    if span.after is not None:
        wheres.append(f"(place.occurred_at, place.sequence) {'<' if span.reverse else '>'} (?, ?)")
        values.extend(span.after)
    if types:
        wheres.append(f"place.type IN ({','.join('?' * len(types))})")
        values.extend(types)
    order = "DESC" if span.reverse else "ASC"
    # Only the fixed texts above are put together here; values are bound. One statement for all threads: at each one the
    # interpreter is given up, and a busy writer is slow to give it back.
    sql = f"""{_OF_THREAD} CROSS JOIN log ON log.position IN (
        SELECT place.position FROM place WHERE {" AND ".join(wheres)}
        ORDER BY place.occurred_at {order}, place.sequence {order} LIMIT ?)"""  # noqa: S608
    for statement, rows in fat(sql, threads):
        yield statement, [*rows, *values, span.limit]


def _read(ask: Ask, positions: Sequence[int]) -> list[Row]:
    wanted = [(position,) for position in positions]
    return [row for statement, values in fat(_READ, wanted) for row in ask(statement, values)]


def _present(rows: Sequence[Row]) -> list[Row]:
    """Without what is erased."""
    return [row for row in rows if row[0] != ERASED]


def _packed(ids: Sequence[str]) -> list[tuple[bytes]]:
    return [(blob,) for blob in packed_ids(ids)]
