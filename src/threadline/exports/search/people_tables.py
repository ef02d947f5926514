"""The people of one workspace in the embedded index: what names each of them now, found by any part of it.

A row is made of the person as they are when an event of theirs is taken in that says something new of who they are, so
that it names them as every other read does. Parts of three letters are found by trigrams, shorter ones row by row.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from threadline.exports.search.database import Connection, Cursor, blobs, integers
from threadline.kernel.errors import InvalidValue
from threadline.kernel.search import NamedPerson, PeopleOf, PeopleOrder, PeopleQuery

_SORTED_MAX = 10_000
"""Matches that are read and sorted; of more the rows are gone through in their order, as most of them match."""
COUNTED_MAX = 10_000
"""Matches up to which they are counted."""
TRIGRAM = 3
_NEVER = -(1 << 62)
"""When somebody was last seen who never was."""
_COLUMNS: dict[PeopleOrder, str] = {"last_seen": "seen", "created": "created", "name": "name"}

# In the statements, # is the number of the workspace; what begins with @ is filled in.
_EVERYBODY, _AMONG = "person#", "(SELECT n FROM person# WHERE id IN carray(?)) CROSS JOIN person# USING (n)"
_NUMBERED = "(SELECT value AS n FROM carray(?)) CROSS JOIN person# USING (n)"
_BY_TRIGRAMS = "SELECT rowid FROM called# WHERE called# MATCH ? LIMIT ?"
_BY_ROWS = "SELECT n FROM @source @where LIMIT ?"
_PAGE = "SELECT n, id, @column FROM @source @where ORDER BY @column @way, n @way LIMIT ?"
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM @source @where LIMIT ?)"


class _Condition(NamedTuple):
    """A part of a statement, and its values."""

    sql: str
    values: tuple[Any, ...] = ()


class PeopleTables:
    """The people of one workspace."""

    def __init__(self, db: Connection, number: int) -> None:
        self._db = db
        self._number = str(number)

    def create(self) -> None:
        """Make them, empty."""
        self._run(
            "CREATE TABLE person# (n INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, name TEXT NOT NULL,"
            " seen INT NOT NULL, created INT NOT NULL, text TEXT NOT NULL);"
            "CREATE INDEX person#_name ON person# (name, n);"
            "CREATE INDEX person#_seen ON person# (seen, n);"
            "CREATE INDEX person#_created ON person# (created, n);"
            "CREATE TABLE thread# (thread BLOB PRIMARY KEY, n INT NOT NULL) WITHOUT ROWID;"
            "CREATE INDEX thread#_n ON thread# (n);"
            "CREATE VIRTUAL TABLE called# USING fts5(text, content='person#', content_rowid='n',"
            " columnsize=0, tokenize='trigram case_sensitive 1');"
        )
        self._run("INSERT INTO called# (called#, rank) VALUES ('secure-delete', 1)")

    # --- what is kept -------------------------------------------------------------------------

    def refresh(self, threads: Collection[str], people_of: PeopleOf) -> None:
        """Let the people of these threads be as they are now, with those from whom they came or with whom they are."""
        pending, read = set(threads), set[str]()
        while pending:
            people = {person.id: person for person in people_of(sorted(pending)).values()}
            read |= pending.union(*(person.threads for person in people.values()))
            rows = self._rows_of(pending.union(*(person.threads for person in people.values())))
            pending = {thread for _, own in rows.values() for thread in own} - read
            for n, (id, own) in rows.items():
                if id in people:
                    self._update(n, set(own), people.pop(id))
                else:
                    self._remove(n)
            for person in people.values():
                self._insert(person)

    def seen(self, at_by_thread: Mapping[str, int]) -> None:
        """Let people have been seen at these instants, unless they were seen later."""
        self._many(
            "UPDATE person# SET seen = ?1 WHERE n = (SELECT n FROM thread# WHERE thread = ?2) AND seen < ?1",
            [(at, bytes.fromhex(thread)) for thread, at in at_by_thread.items()],
        )

    def threads_beginning(self, beginnings: Iterable[str]) -> set[str]:
        """The threads of people whose ids begin so, in whole bytes."""
        threads: set[str] = set()
        for beginning in beginnings:
            first = bytes.fromhex(beginning)
            rows = self._run(
                "SELECT thread FROM thread# WHERE thread >= ? AND thread <= ?", (first, first + b"\xff" * 16)
            )
            threads.update(thread.hex() for (thread,) in rows)
        return threads

    def _rows_of(self, threads: Iterable[str]) -> dict[int, tuple[str, list[str]]]:
        """By number, the id and the threads of the people to whom these threads belonged."""
        named = blobs([bytes.fromhex(thread) for thread in sorted(threads)])
        rows = self._run(
            "SELECT p.n, p.id, t.thread FROM thread# t JOIN person# p USING (n) "
            "WHERE t.n IN (SELECT n FROM thread# WHERE thread IN carray(?)) ORDER BY p.id, t.thread",
            (named,),
        )
        by_number: dict[int, tuple[str, list[str]]] = {}
        for n, id, thread in rows:
            by_number.setdefault(n, (id.hex(), []))[1].append(thread.hex())
        return by_number

    def _insert(self, person: NamedPerson) -> None:
        seen = _NEVER if person.last_seen_at is None else person.last_seen_at
        self._run(
            "INSERT INTO person# (id, name, seen, created, text) VALUES (?, ?, ?, ?, ?)",
            (bytes.fromhex(person.id), person.name, seen, person.created_at, person.text),
        )
        n = self._db.last_insert_rowid()
        self._run("INSERT INTO called# (rowid, text) VALUES (?, ?)", (n, person.text))
        self._own(n, person.threads)

    def _update(self, n: int, own: set[str], person: NamedPerson) -> None:
        text: Any = self._run("SELECT text FROM person# WHERE n = ?", (n,)).get
        if text != person.text:
            self._run("INSERT INTO called# (called#, rowid, text) VALUES ('delete', ?, ?)", (n, text))
            self._run("INSERT INTO called# (rowid, text) VALUES (?, ?)", (n, person.text))
        seen = _NEVER if person.last_seen_at is None else person.last_seen_at
        self._run(
            "UPDATE person# SET (name, seen, created, text) = (?, ?, ?, ?) WHERE n = ?",
            (person.name, seen, person.created_at, person.text, n),
        )
        if own != set(person.threads):
            self._run("DELETE FROM thread# WHERE n = ?", (n,))
            self._own(n, person.threads)

    def _own(self, n: int, threads: Iterable[str]) -> None:
        self._many("INSERT OR REPLACE INTO thread# VALUES (?, ?)", [(bytes.fromhex(thread), n) for thread in threads])

    def _remove(self, n: int) -> None:
        text: Any = self._run("SELECT text FROM person# WHERE n = ?", (n,)).get
        self._run("INSERT INTO called# (called#, rowid, text) VALUES ('delete', ?, ?)", (n, text))
        self._run("DELETE FROM person# WHERE n = ?", (n,))
        self._run("DELETE FROM thread# WHERE n = ?", (n,))

    # --- what is asked ------------------------------------------------------------------------

    def search(self, query: PeopleQuery) -> tuple[dict[str, str], bool, int, bool]:
        """By id a page of people with the cursor after each, whether it is the last, how many match in all, and whether
        that is exact."""
        source, conditions = self._source(query)
        total, is_total = self._counted(source, conditions) if query.is_counted else (0, False)
        column = _COLUMNS[query.order]
        if query.cursor:
            conditions.append(_after(query))
        direction = "DESC" if query.is_descending else "ASC"
        page = _filled(_PAGE, source, conditions).replace("@column", column).replace("@way", direction)
        rows = list(self._run(page, (*source.values, *_values(conditions), query.limit + 1)))
        cursors = {id.hex(): f"{_written(value)}.{n}" for n, id, value in rows[: query.limit]}
        return cursors, len(rows) <= query.limit, total, is_total

    def _source(self, query: PeopleQuery) -> tuple[_Condition, list[_Condition]]:
        """Where rows are read, and what has to hold for them: few are read by what finds them and then sorted; many are
        gone through in their order."""
        source, conditions = _Condition(_EVERYBODY), list(_limits(query))
        if query.among is not None:
            named = blobs([bytes.fromhex(id) for id in query.among])
            source = _Condition(_AMONG, (named,))
        if query.texts:
            text = _has_text(query.texts)
            few, is_exact = self._few(query.texts, text) if query.among is None else (None, False)
            if few is not None:
                source = _Condition(_NUMBERED, (integers(few),))
            if not is_exact:
                conditions.append(text)
        return source, conditions

    def _few(self, texts: tuple[tuple[str, ...], ...], text: _Condition) -> tuple[list[int] | None, bool]:
        """The numbers of all whose text may match, None where these are more than can be sorted; and whether it does
        match then."""
        long = [[part for part in parts if len(part) >= TRIGRAM] for parts in texts]
        if all(long):
            match = " OR ".join(f"({' AND '.join(map(_quoted, parts))})" for parts in long)
            rows = self._run(_BY_TRIGRAMS, (match, _SORTED_MAX + 1))
        else:
            rows = self._run(_filled(_BY_ROWS, _Condition(_EVERYBODY), [text]), (*text.values, _SORTED_MAX + 1))
        numbers = [int(n) for (n,) in rows]
        if len(numbers) > _SORTED_MAX:
            return None, False
        return numbers, not all(long) or sum(map(len, long)) == sum(map(len, texts))

    def _counted(self, source: _Condition, conditions: Sequence[_Condition]) -> tuple[int, bool]:
        if not conditions and not source.values:
            every: Any = self._run("SELECT count(*) FROM person#").get
            return int(every), True
        values = (*source.values, *_values(conditions), COUNTED_MAX + 1)
        counted: Any = self._run(_filled(_COUNT, source, conditions), values).get
        return min(int(counted), COUNTED_MAX), counted <= COUNTED_MAX

    def contents(self) -> Iterator[tuple[object, ...]]:
        """Everything that a search of people can depend on, in an order of its own: the same for equal indexes."""
        yield from self._run(
            "SELECT 'person', hex(p.id), p.name, p.seen, p.created, p.text, group_concat(hex(t.thread)) "
            "FROM person# p JOIN (SELECT * FROM thread# ORDER BY thread) t USING (n) GROUP BY p.id ORDER BY p.id"
        )

    def _run(self, sql: str, values: Sequence[Any] = ()) -> Cursor:
        return self._db.execute(sql.replace("#", self._number), values)

    def _many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(sql.replace("#", self._number), rows)


def _has_text(texts: tuple[tuple[str, ...], ...]) -> _Condition:
    """That all parts of one of some texts stand in somebody's."""
    inside = [" AND ".join("instr(text, ?)" for _ in parts) for parts in texts]
    return _Condition(
        f"({' OR '.join(f'({clause})' for clause in inside)})", tuple(part for parts in texts for part in parts)
    )


def _limits(query: PeopleQuery) -> Iterator[_Condition]:
    if query.seen_from is not None:
        yield _Condition("seen >= ?", (query.seen_from,))
    if query.seen_before is not None:
        yield _Condition("seen < ?", (query.seen_before,))
    if query.without:
        yield _Condition("id NOT IN carray(?)", (blobs([bytes.fromhex(id) for id in query.without]),))


def _filled(statement: str, source: _Condition, conditions: Sequence[_Condition]) -> str:
    where = "WHERE " + " AND ".join(condition.sql for condition in conditions) if conditions else ""
    return statement.replace("@source", source.sql).replace("@where", where)


def _values(conditions: Sequence[_Condition]) -> tuple[Any, ...]:
    return tuple(value for condition in conditions for value in condition.values)


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'


def _written(value: Any) -> str:
    """A value of a cursor, as text without a full stop."""
    return urlsafe_b64encode(value.encode()).decode() if isinstance(value, str) else str(value)


def _after(query: PeopleQuery) -> _Condition:
    """The people who come after a cursor."""
    written, _, n = query.cursor.rpartition(".")
    try:
        value = urlsafe_b64decode(written).decode() if query.order == "name" else int(written)
        number = int(n)
    except ValueError:
        message = f"{query.cursor[:64]!r} is not a cursor of this list; pass the `next` of the page before as it is"
        raise InvalidValue(message, param="cursor") from None
    if not -(1 << 63) <= number < 1 << 63 or (isinstance(value, int) and not -(1 << 63) <= value < 1 << 63):
        raise InvalidValue(f"{query.cursor[:64]!r} is not a cursor of this list", param="cursor")
    sign = "<" if query.is_descending else ">"
    return _Condition(f"({_COLUMNS[query.order]}, n) {sign} (?, ?)", (value, number))
