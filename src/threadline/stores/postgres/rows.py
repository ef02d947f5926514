"""Rows of PostgreSQL and the values they stand for: items, log entries, the names of tables as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from threadline.kernel.errors import InvalidValue
from threadline.kernel.store import LogEntry
from threadline.stores import compression

Row = tuple[Any, ...]
Ask = Callable[[str, Sequence[Any]], list[Row]]
"""Runs one statement with its values and gives all its rows."""


class Tables:
    """A cache over ``item_table``, whose rows are never changed or removed. Safe for use from many threads."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbers(self, ask: Ask, tables: Iterable[str]) -> dict[str, int]:
        """The numbers of those tables that have one."""
        wanted = set(tables)
        missing = [utf8(table) for table in wanted - self._numbers.keys()]
        if missing:
            rows = ask("SELECT name, id FROM item_table WHERE name = ANY(%b::bytea[])", (missing,))
            self._numbers.update((name.decode(), number) for name, number in rows)
        return {table: self._numbers[table] for table in wanted if table in self._numbers}

    def learn(self, ask: Ask, tables: Iterable[str]) -> dict[str, int]:
        """As `numbers`, and gives new tables a number, which outlives whatever becomes of the commit."""
        wanted = set(tables)
        fresh = sorted(utf8(table) for table in wanted - self.numbers(ask, wanted).keys())
        if fresh:
            ask("INSERT INTO item_table (name) SELECT * FROM unnest(%b::bytea[]) ON CONFLICT DO NOTHING", (fresh,))
        return self.numbers(ask, wanted)


def log_entries(rows: Sequence[Row]) -> list[LogEntry]:
    """The entries of rows (thread, sequence, occurred_at, type, id, digest, stored body).

    A body that cannot be read stays as it is stored, for a damaged row must not keep the others from being read.
    """
    bodies = compression.bodies.readable([row[6] for row in rows])
    return [
        LogEntry(thread.hex(), sequence, occurred_at, type.decode(errors="replace"), id.hex(), digest, body)
        for (thread, sequence, occurred_at, type, id, digest, *_), body in zip(rows, bodies, strict=True)
    ]


def utf8(text: str) -> bytes:
    """The bytes of a text. Raises `InvalidValue` for half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{text!r:.80} is not Unicode text: it holds half a surrogate pair") from None


def columns(rows: Sequence[Row], width: int) -> list[list[Any]]:
    """Rows as one list for each column, which is how many rows travel in one statement."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
