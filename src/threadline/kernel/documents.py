"""Documents that users write, in the store: one under each id, its versions in their order, changes that lose no other.

A rule, an alert, a broadcast and a proposal are each a `Documents` of its table; versions and log entries of one are
`Numbered`, which are only ever added. Whoever changes one reads it, decides, and commits under the version that was
read; `changed` does so again where another process was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from threadline.kernel.errors import Unavailable
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.store import Delete, Item, Key, Put, Store, beyond, query_pages

ATTEMPTS_MAX = 16

D = TypeVar("D")
T = TypeVar("T")


class Stored(NamedTuple, Generic[D]):
    """A document, and the version of its item."""

    document: D
    version: int


class Documents(Generic[D]):
    """The documents in a table: one of each id in a workspace."""

    def __init__(self, table: str, type: type[D]) -> None:
        self._table = table
        self._decode = msgspec.json.Decoder(type).decode

    def key(self, workspace: str, id: str) -> Key:
        """Where a document is."""
        return Key(self._table, workspace, id)

    def find(self, store: Store, workspace: str, id: str) -> Stored[D] | None:
        """A document; None if there is none."""
        item = store.get([self.key(workspace, id)])[0]
        return None if item is None else Stored(self.of(item), item.version)

    def some(self, store: Store, workspace: str, ids: Sequence[str]) -> list[D]:
        """Those of these that are there, in this order."""
        items = store.get([self.key(workspace, id) for id in ids])
        return [self.of(item) for item in items if item is not None]

    def page(self, store: Store, workspace: str, after: str, limit: int) -> list[tuple[str, D]]:
        """Some of them by id, after an id."""
        items = store.query(self._table, workspace, start=beyond(after), limit=limit)
        return [(item.key.sort, self.of(item)) for item in items]

    def all(self, store: Store, workspace: str) -> Iterator[tuple[str, D]]:
        """All of a workspace by id."""
        return ((item.key.sort, self.of(item)) for item in query_pages(store, self._table, workspace))

    def put(self, workspace: str, id: str, document: D, expected: int) -> Put:
        """Writes a document in the place of the version that was read; 0: of none."""
        return Put(self.key(workspace, id), msgspec.json.encode(document), expected)

    def delete(self, workspace: str, id: str, expected: int) -> Delete:
        """Takes the version away that was read."""
        return Delete(self.key(workspace, id), expected)

    def of(self, item: Item) -> D:
        """The document of an item of the table."""
        return self._decode(item.value)


class Numbered(Generic[D]):
    """What a table has of each id under the numbers 1, 2, 3 …: versions, entries of a log. None is ever changed."""

    def __init__(self, table: str, type: type[D]) -> None:
        self._table = table
        self._decode = msgspec.json.Decoder(type).decode

    def find(self, store: Store, workspace: str, id: str, number: int) -> D | None:
        """The one of a number; None if there is none."""
        item = store.get([numbered_key(self._table, workspace, id, number)])[0] if number > 0 else None
        return None if item is None else self._decode(item.value)

    def after(self, store: Store, workspace: str, id: str, number: int, limit: int = PAGE_ITEMS_MAX) -> list[D]:
        """Those after a number, in their order."""
        _, partition, start = numbered_key(self._table, workspace, id, number + 1)
        return [self._decode(item.value) for item in store.query(self._table, partition, start, limit=limit)]

    def before(self, store: Store, workspace: str, id: str, number: int, limit: int) -> list[D]:
        """Those before a number (0: all), the newest first."""
        _, partition, stop = numbered_key(self._table, workspace, id, number)
        items = store.query(self._table, partition, stop=stop if number else None, limit=limit, reverse=True)
        return [self._decode(item.value) for item in items]

    def all(self, store: Store, workspace: str, id: str) -> Iterator[D]:
        """All of them, in their order."""
        seen = 0
        while page := self.after(store, workspace, id, seen):
            yield from page
            seen += len(page)

    def last_number(self, store: Store, workspace: str, id: str) -> int:
        """The number of the last one; 0 if there is none."""
        partition = numbered_key(self._table, workspace, id, 0).partition
        last = store.query(self._table, partition, limit=1, reverse=True)
        return int(last[0].key.sort) if last else 0

    def put(self, workspace: str, id: str, number: int, document: D) -> Put:
        """Adds one, unless its number is taken."""
        return Put(numbered_key(self._table, workspace, id, number), msgspec.json.encode(document), 0)


def numbered_key(table: str, workspace: str, id: str, number: int) -> Key:
    """Where a table has what an id has under a number."""
    return Key(table, f"{workspace}/{id}", f"{number:08d}")


def changed(what: str, attempt: Callable[[], T | None]) -> T:
    """The result of a change; ``attempt`` is None where another process was faster, and is made again.

    Raises `Unavailable`, naming ``what`` is changed, if others always are.
    """
    for _ in range(ATTEMPTS_MAX):
        result = attempt()
        if result is not None:
            return result
    raise Unavailable(f"other processes keep changing {what}; try again")
