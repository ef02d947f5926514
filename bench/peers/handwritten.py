"""The fair opponent: one hand-written SQLite table, a unique idempotency key and a (person, time) index, tuned."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import msgspec

from bench.side import FILLING_PRAGMAS, SYNCED_PRAGMAS, strongest
from threadline.kernel.event import Event

_TABLE = """
CREATE TABLE IF NOT EXISTS log (
    position INTEGER PRIMARY KEY, key BLOB NOT NULL, person TEXT NOT NULL, occurred_at INTEGER NOT NULL,
    type TEXT NOT NULL, body BLOB NOT NULL
)"""
_UNIQUE_KEY = "CREATE UNIQUE INDEX IF NOT EXISTS log_key ON log (key)"
_BY_PERSON = "CREATE INDEX IF NOT EXISTS log_person ON log (person, occurred_at)"
_INSERT = "INSERT OR IGNORE INTO log (key, person, occurred_at, type, body) VALUES (?, ?, ?, ?, ?)"

Line = tuple[bytes, str, int, str, bytes]


class Handwritten:
    """Appends and nothing else: no identity, no projection, no receipt. What a careful engineer writes in a day.

    The idempotency key is (workspace, source, key) as 16 hashed bytes, which costs less in the index
    than the text does. A duplicate is ignored by the unique index.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._encode = msgspec.json.Encoder().encode
        self._apply(SYNCED_PRAGMAS)
        for statement in (_TABLE, _UNIQUE_KEY, _BY_PERSON):
            self._connection.execute(statement)

    def _apply(self, pragmas: Iterable[str]) -> None:
        for pragma in pragmas:
            self._connection.execute(f"PRAGMA {pragma}").fetchall()

    def _lines(self, events: list[Event]) -> list[Line]:
        encode = self._encode
        return [
            (
                blake2b(f"{e.workspace}\0{e.source}\0{e.key}".encode(), digest_size=16).digest(),
                strongest(e),
                e.occurred_at,
                e.type,
                encode((e.identifiers, e.received_at, e.properties, e.context)),
            )
            for e in events
        ]

    def fill(self, batches: Iterable[list[Event]]) -> None:
        """Insert without indexes, which are built at the end: the state after is the one that inserting gives."""
        self._apply(FILLING_PRAGMAS)
        self._connection.execute("DROP INDEX log_key")
        self._connection.execute("DROP INDEX log_person")
        for batch in batches:
            self.record(batch)
        self._connection.execute(_UNIQUE_KEY)
        self._connection.execute(_BY_PERSON)
        self._apply(SYNCED_PRAGMAS)
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def record(self, events: list[Event]) -> None:
        """One transaction of one ``executemany``."""
        lines = self._lines(events)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(_INSERT, lines)
        self._connection.execute("COMMIT")

    def count(self) -> int:
        """Events in the log."""
        return int(self._connection.execute("SELECT count(*) FROM log").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
