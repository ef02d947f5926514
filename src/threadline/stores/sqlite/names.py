"""Tables and event types as numbers: a few bytes in every row instead of a name."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from threadline.kernel.store import Batch
from threadline.stores.sqlite.rows import Ask, fat

CACHED_MAX = 10_000
"""Names kept in memory. Producers choose event types, so their number has no end that we could rely on."""

_BY_TEXT = "SELECT name.id, name.text FROM (VALUES {rows}) AS v CROSS JOIN name ON name.text = v.column1"
_BY_NUMBER = "SELECT name.id, name.text FROM (VALUES {rows}) AS v CROSS JOIN name ON name.id = v.column1"
_FORGOTTEN = "threadline.forgotten."
"""Begins the text of a name that is forgotten; no table and no event type of anybody is called so. After it stands a
number that grows: whoever remembers names sees by the last one whether some were forgotten since."""
_LAST_FORGOTTEN = "SELECT max(text) FROM name WHERE text > ? AND text < ?"
_UNUSED = """SELECT id FROM name WHERE NOT (text > ? AND text < ?)
    AND NOT EXISTS (SELECT 1 FROM item WHERE item.tbl = name.id)"""
_FORGET = "UPDATE name SET text = ? WHERE id = ?"
_LEARN = "INSERT INTO name (text) SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL"
_RANGE = (_FORGOTTEN, f"{_FORGOTTEN}~")


class Names:
    """A cache over the table ``name``. Safe for use from many threads.

    A number means one name for ever. When nothing has a name any more its text is forgotten, and the name gets another
    number when it comes again. ``writes_alone``: no other process adds or forgets names, so a name that is absent stays
    so until it is learnt here.
    """

    def __init__(self, writes_alone: bool = False) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._writes_alone = writes_alone
        self._absent: set[str] = set()
        self._learnt = 0
        """How often names were learnt: a reader must not call absent what was learnt while it looked."""
        self._forgotten = ""
        """The last name that was forgotten, as far as is known here: nothing that was read before may be cached."""
        self._lock = threading.Lock()

    def numbers(self, ask: Ask, texts: Iterable[str]) -> dict[str, int | None]:
        """The number of each name; None, which equals nothing in SQL, for a name that is not there yet."""
        if not self._writes_alone:
            self._look_again(ask)
        known, wanted, learnt = self._numbers, set(texts), self._learnt
        missing = [(text,) for text in wanted if text not in known and text not in self._absent]
        if not missing:
            return {text: known.get(text) for text in wanted}
        fresh = {text: number for number, text in self._fetch(ask, _BY_TEXT, missing)}
        if self._writes_alone:
            self._note_absent({text for (text,) in missing}.difference(fresh), learnt)
        return {text: known.get(text, fresh.get(text)) for text in wanted}

    def _note_absent(self, texts: set[str], learnt: int) -> None:
        with self._lock:
            if learnt == self._learnt and len(self._absent) < CACHED_MAX:
                self._absent |= texts

    def texts(self, ask: Ask, numbers: Iterable[int]) -> dict[int, str]:
        """The name of each number; only numbers that were read from the file may be asked for."""
        known, wanted = self._texts, set(numbers)
        missing = [(number,) for number in wanted if number not in known]
        if not missing:
            return known
        return known | dict(self._fetch(ask, _BY_NUMBER, missing))

    def learn(self, ask: Ask, texts: Iterable[str]) -> dict[str, int | None]:
        """As `numbers`, and gives new names a number, in a commit of its own unless a transaction is open."""
        numbers = self.numbers(ask, texts)
        fresh = [(text,) for text, number in numbers.items() if number is None]
        if not fresh:
            return numbers
        try:
            for statement, values in fat(_LEARN, fresh):
                ask(statement, values)
        finally:  # the disk may become full after some of them
            with self._lock:
                self._absent, self._learnt = set(), self._learnt + 1
        return self.numbers(ask, numbers)

    def unused(self, ask: Ask) -> set[int]:
        """The numbers of all names that no item has: those of event types are among them."""
        return {number for (number,) in ask(_UNUSED, _RANGE)}

    def forget(self, ask: Ask, numbers: Iterable[int]) -> None:
        """Take the texts of these names out of the file; call `forgot` when the transaction is durable."""
        first = int(self._last_forgotten(ask).removeprefix(_FORGOTTEN) or 0) + 1
        for place, number in enumerate(sorted(numbers), first):
            ask(_FORGET, (f"{_FORGOTTEN}{place:016}", number))

    def forgot(self, ask: Ask) -> None:
        """Remember nothing of what was forgotten."""
        self._look_again(ask)

    def _look_again(self, ask: Ask) -> None:
        last = self._last_forgotten(ask)
        with self._lock:
            if last != self._forgotten:
                self._forgotten = last
                self._numbers, self._texts, self._absent = {}, {}, set()

    def _last_forgotten(self, ask: Ask) -> str:
        return ask(_LAST_FORGOTTEN, _RANGE)[0][0] or ""

    def _fetch(self, ask: Ask, sql: str, missing: Sequence[tuple[Any, ...]]) -> list[tuple[int, str]]:
        forgotten, rows = self._forgotten, list[tuple[int, str]]()
        for statement, values in fat(sql, missing):
            rows.extend((number, text) for number, text in ask(statement, values))
        with self._lock:
            if forgotten == self._forgotten:
                self._remember(rows)
        return rows

    def _remember(self, rows: Sequence[tuple[int, str]]) -> None:
        if len(self._numbers) + len(rows) > CACHED_MAX:
            # Replaced rather than emptied: other threads may be reading the old ones.
            self._numbers, self._texts = {}, {}
        self._numbers.update((text, number) for number, text in rows)
        self._texts.update(rows)


def named(batches: Sequence[Batch]) -> set[str]:
    """All tables and event types that these batches name. An erased event has no type."""
    names = {write.key.table for batch in batches for write in batch.writes}
    names.update(entry.type for batch in batches for entry in batch.events if entry.type)
    return names
