"""The tables of the embedded index: for each workspace its own, so that no query can reach into another one.

A document's key says when it happened: the key in milliseconds, then 15 bits that tell events of one millisecond apart.
So the newest matches are those with the highest keys, a range of time is a range of keys, and a page ends at a key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from threadline.exports.search.database import Connection, Cursor, integers
from threadline.kernel.errors import InvalidValue
from threadline.kernel.search import Document, Phrase, Query
from threadline.kernel.time import EARLIEST, LATEST, MILLISECOND

_SLOT_BITS = 15
_KEY_MIN, _KEY_MAX = -(1 << 63), (1 << 63) - 1
FACETS = ("type", "rule", "status")
EVENT, DECISION = "ke", "kd"
THREAD = "h"
"""How the term begins that has the first letters of a thread's id."""
_CURSOR = re.compile(r"-?[0-9]{1,19}")
REWRITE_FROM = 1_000
"""Documents from which on their removal rewrites the whole index: one by one takes longer."""
MERGES_AT_ONCE = 8
"""Segments of the index of one size that are merged into one."""

# In the statements, # is the number of the workspace, and @ another statement.
_ALL = "SELECT k FROM doc# WHERE k BETWEEN ? AND ? ORDER BY k DESC"
_MATCHING = "SELECT rowid AS k FROM words# WHERE words# MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC"
_PAGE = "SELECT d.k, d.id FROM (@ LIMIT ?) m JOIN doc# d ON d.k = m.k ORDER BY m.k DESC"
_ANY = "SELECT 1 FROM words# WHERE words# MATCH ? LIMIT 1"
_COUNTS = "SELECT f.type, f.rule, f.status, count(*) FROM (@ LIMIT ?) m JOIN facet# f ON f.k = m.k GROUP BY 1, 2, 3"


class Rows(NamedTuple):
    """Documents as they are written."""

    documents: list[tuple[int, bytes, str, str]]
    """Key, id, text and terms."""
    facets: list[tuple[int, int, int, int]]
    """Key, and the numbers of type, rule and status."""


@lru_cache(maxsize=65_536)
def term(kind: str, value: str) -> str:
    """A value to filter by as a word that the tokenizer leaves whole.

    48 bits: with a million documents one query in 280 million has a match too many.
    """
    return kind + blake2b(value.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def id_term(kind: str, id: str) -> str:
    """The same for an id, which is a hash already."""
    return kind + id[:12]


def key_of(at: int) -> int:
    """The lowest key of the millisecond of an instant."""
    if not EARLIEST <= at <= LATEST:  # from Python
        at = min(max(at, EARLIEST), LATEST)
    return (at // MILLISECOND) << _SLOT_BITS


class Tables:
    """The documents of one workspace."""

    def __init__(self, db: Connection, number: int) -> None:
        self._db = db
        self._number = str(number)

    @property
    def values(self) -> str:
        """A query for the numbers of the types, rules and statuses that documents have."""
        query = "SELECT type FROM facet# UNION SELECT rule FROM facet# UNION SELECT status FROM facet#"
        return query.replace("#", self._number)

    def create(self) -> None:
        """Make them, empty."""
        self._run(
            "CREATE TABLE doc# (k INTEGER PRIMARY KEY, id BLOB NOT NULL, text TEXT NOT NULL, terms TEXT NOT NULL);"
            "CREATE TABLE facet# (k INTEGER PRIMARY KEY, type INT, rule INT, status INT);"
            "CREATE VIRTUAL TABLE words# USING fts5(text, terms, content='doc#', content_rowid='k',"
            " columnsize=0, tokenize='unicode61 remove_diacritics 2');"
        )
        # Otherwise the words of a document that was taken out stay in the file until segments are merged.
        self._configure("secure-delete", 1)
        self._configure("automerge", MERGES_AT_ONCE)

    def add(self, documents: Sequence[Document], number_of: Mapping[str, int]) -> None:
        """Add documents that are not there. ``number_of``: the number of each value that facets count."""
        self.write(self.rows(documents, number_of))

    def write(self, rows: Rows) -> None:
        """Write what `rows` has made."""
        self._many("INSERT INTO doc# VALUES (?, ?, ?, ?)", rows.documents)
        self._many("INSERT INTO words# (rowid, text, terms) VALUES (?1, ?3, ?4)", rows.documents)
        self._many("INSERT INTO facet# VALUES (?, ?, ?, ?)", rows.facets)

    def rows(self, documents: Sequence[Document], number_of: Mapping[str, int]) -> Rows:
        """Documents as rows, by key: the index takes keys that rise, and begins a new segment at one that does not."""
        keys = [
            (document.occurred_at // MILLISECOND << _SLOT_BITS) + (int(document.id[:4], 16) >> 1)
            for document in documents
        ]
        taken = self._taken(keys)
        if taken or len(set(keys)) < len(keys):
            keys = self._free_keys(keys, taken, documents)
        ordered, unhex = sorted(zip(keys, documents, strict=True)), bytes.fromhex
        return Rows(
            [(key, unhex(document.id), document.text, _terms(document)) for key, document in ordered],
            [
                (key, number_of[document.type], number_of[document.rule], number_of[document.status])
                for key, document in ordered
            ],
        )

    def _taken(self, keys: Sequence[int]) -> set[int]:
        """Which of these keys documents have. Of events that come in their order none is looked for."""
        last: Any = self._run("SELECT max(k) FROM doc#").get
        if last is None or min(keys, default=_KEY_MAX) > last:
            return set()
        return {key for (key,) in self._run("SELECT k FROM doc# WHERE k IN carray(?)", (integers(keys),))}

    def _free_keys(self, keys: list[int], taken: set[int], documents: Sequence[Document]) -> list[int]:
        """The same where a key is taken, or wanted twice: the next one that is free."""
        free = list(keys)
        for key, _, index in sorted((key, documents[index].id, index) for index, key in enumerate(keys)):
            free[index] = self._free(key, taken) if key in taken else key
            taken.add(free[index])
        return free

    def _free(self, key: int, taken: set[int]) -> int:
        while (key := key + 1) in taken or self._has(key):
            pass
        return key

    def _has(self, key: int) -> bool:
        return bool(self._run("SELECT 1 FROM doc# WHERE k = ?", (key,)).fetchone())

    def remove(self, ids: Iterable[str]) -> tuple[int, set[str]]:
        """Take documents out, so that nothing of them is left in the file; how many there were, and how the ids of
        their threads begin."""
        rows = [row for id in ids if (row := self._row_of(id)) is not None]
        rewrites = len(rows) >= REWRITE_FROM
        if rewrites:
            self._configure("secure-delete", 0)
        for key, text, terms in rows:
            self._run(
                "INSERT INTO words# (words#, rowid, text, terms) VALUES ('delete', ?, ?, ?)",
                (key, text, terms),
            )
            self._run("DELETE FROM doc# WHERE k = ?", (key,))
            self._run("DELETE FROM facet# WHERE k = ?", (key,))
        if rewrites:
            self._run("INSERT INTO words# (words#) VALUES ('optimize')")
            self._configure("secure-delete", 1)
        beginnings = {word[1:] for _, _, terms in rows for word in terms.split() if word[0] == THREAD}
        return len(rows), beginnings

    def _row_of(self, id: str) -> tuple[int, str, str] | None:
        row = self._run(
            "SELECT d.k, d.text, d.terms FROM words# w JOIN doc# d ON d.k = w.rowid WHERE words# MATCH ? AND d.id = ?",
            (_any_of([id_term("i", id)]), bytes.fromhex(id)),
        ).fetchone()
        return None if row is None else (int(row[0]), str(row[1]), str(row[2]))

    def search(self, query: Query) -> tuple[list[str], str]:
        """The ids of a page of matches, the newest first, and the cursor of the next page."""
        source, values = self._matching(query, _before(query.cursor))
        rows = list(self._run(_PAGE.replace("@", source), (*values, query.limit + 1)))
        following = str(rows[query.limit - 1][0]) if len(rows) > query.limit else ""
        return [id.hex() for _, id in rows[: query.limit]], following

    def facets(self, query: Query, limit: int) -> tuple[int, dict[str, dict[str, int]]]:
        """Matches that were counted, and how often which value occurs among them."""
        source, values = self._matching(query, _KEY_MAX)
        counted = 0
        by_facet: dict[str, Counter[int]] = {name: Counter() for name in FACETS}
        for *numbers, matches in self._run(_COUNTS.replace("@", source), (*values, limit)):
            counted += matches
            for name, number in zip(FACETS, numbers, strict=True):
                by_facet[name][number] += matches
        names = dict(self._run("SELECT n, text FROM value"))
        plain = {
            facet: {names[n]: times for n, times in counts.items() if names[n]} for facet, counts in by_facet.items()
        }
        return counted, {
            facet: dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))) for facet, counts in plain.items()
        }

    def types(self) -> Iterator[str]:
        """The types of the documents. Each value that facets count is looked for in the index of words, which takes no
        longer with more documents."""
        for (value,) in self._run("SELECT text FROM value ORDER BY n").fetchall():
            if value and self._run(_ANY, (_any_of([term("t", str(value))]),)).fetchone():
                yield str(value)

    def _matching(self, query: Query, before: int) -> tuple[str, tuple[str | int, ...]]:
        """A statement that gives the keys of the matches, without its limit, and what it is asked with."""
        first = _KEY_MIN if query.start is None else key_of(query.start)
        # A key knows milliseconds: of the one in which the range ends, whoever reads the events takes what is outside.
        last = _KEY_MAX if query.stop is None else key_of(query.stop) + (1 << _SLOT_BITS) - 1
        last = min(last, before - 1)
        wanted = _expression(query)
        if not wanted:
            return _ALL, (first, last)
        return _MATCHING, (wanted, first, last)

    def contents(self) -> Iterator[tuple[object, ...]]:
        """Everything that a search can depend on, in an order of its own: the same for equal indexes."""
        yield from self._run(
            "SELECT hex(d.id), d.text, d.terms, t.text, r.text, s.text FROM doc# d JOIN facet# f USING (k) "
            "JOIN value t ON t.n = f.type JOIN value r ON r.n = f.rule JOIN value s ON s.n = f.status ORDER BY 1"
        )
        self._run("CREATE VIRTUAL TABLE temp.content# USING fts5vocab('main', 'words#', 'instance')")
        try:
            yield from self._run(
                "SELECT term, col, offset, hex(d.id) FROM temp.content# v LEFT JOIN doc# d ON d.k = v.doc "
                "ORDER BY 1, 2, 4, 3"
            )
        finally:
            self._run("DROP TABLE temp.content#")

    def count(self) -> int:
        """How many documents there are."""
        count: Any = self._run("SELECT count(*) FROM facet#").get
        return int(count)

    def _run(self, sql: str, values: Sequence[Any] = ()) -> Cursor:
        return self._db.execute(sql.replace("#", self._number), values)

    def _many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(sql.replace("#", self._number), rows)

    def _configure(self, option: str, value: int) -> None:
        self._run("INSERT INTO words# (words#, rank) VALUES (?, ?)", (option, value))


def _before(cursor: str) -> int:
    if not cursor:
        return _KEY_MAX
    if not _CURSOR.fullmatch(cursor):
        message = f"{cursor[:64]!r} is not a cursor; pass the `next` of the page before as it is"
        raise InvalidValue(message, param="cursor")
    return min(max(int(cursor), _KEY_MIN + 1), _KEY_MAX)


def _terms(document: Document) -> str:
    terms = f"{EVENT} i{document.id[:12]} {THREAD}{document.thread[:12]} {term('t', document.type)}"
    if document.rule:
        terms = f"{DECISION}{terms[len(EVENT) :]} {term('r', document.rule)} {term('s', document.status)}"
    for link in document.links:
        terms += " " + term("l", link)
    return terms


def _any_of(terms: Iterable[str]) -> str:
    return f"terms : ({' OR '.join(terms)})"


def _expression(query: Query) -> str:
    """The query in the language of FTS5; empty: every document."""
    wanted = [f"text : {_phrase(phrase)}" for phrase in query.phrases if not phrase.is_excluded]
    excluded = [f"text : {_phrase(phrase)}" for phrase in query.phrases if phrase.is_excluded]
    if query.decisions is not None:
        wanted.append(f"terms : {DECISION if query.decisions else EVENT}")
    if query.threads is not None:
        wanted.append(_any_of(id_term(THREAD, thread) for thread in query.threads))
    for kind, values in (("t", [query.type]), ("r", [query.rule]), ("s", [query.status]), ("l", query.links)):
        if any(values):
            wanted.append(_any_of(term(kind, value) for value in values))
    if excluded and not wanted:
        wanted.append(f"terms : ({EVENT} OR {DECISION})")
    expression = " AND ".join(wanted)
    return " NOT ".join([f"({expression})", *excluded]) if excluded else expression


def _phrase(phrase: Phrase) -> str:
    words = " ".join(phrase.words).replace('"', "")
    return f'"{words}"{" *" if phrase.is_beginning else ""}'
