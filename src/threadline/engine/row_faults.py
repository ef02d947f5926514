"""Whether the index rows that stand in the store are those that people's states ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from threadline.engine.catalogue import Catalogue
from threadline.engine.draft import index_rows
from threadline.engine.indexing import is_complete
from threadline.engine.person import PERSON, Person, unpack_person
from threadline.engine.refold import refold_person
from threadline.kernel.store import Item, Key, Store, scan_pages

_PAGE_ROWS = 500
_PERSON_ID = re.compile("[0-9a-f]{32}")


class RowFault(NamedTuple):
    """A row that is not as it should be."""

    projection: str
    said: str


class RowCheck:
    """Compares people with their rows, page by page, beside live traffic. It only reads."""

    def __init__(self, store: Store, catalogue: Catalogue) -> None:
        self._store = store
        self._catalogue = catalogue
        self._checked = [
            index
            for index, each in enumerate(catalogue.projections)
            # Of the others it is known that their rows are not written yet for the definitions in force.
            if each.tables and is_complete(store, each)
        ]
        self._of_table = {table: index for index in self._checked for table in catalogue.projections[index].tables}
        self._found = 0
        self._faults: list[RowFault] = []

    def look(self, people: Sequence[tuple[Item, Person]]) -> None:
        """Look for the rows of these people, whose states are those of their items, or better."""
        if not self._checked:
            return
        wanted = [index_rows(person, self._catalogue, self._checked) for _, person in people]
        held = self._held([key for rows in wanted for key in rows])
        for (item, _), rows in zip(people, wanted, strict=True):
            wrong = [key for key, value in rows.items() if held.get(key) != value]
            self._found += sum(key in held for key in rows)
            if wrong and self._store.get([item.key])[0] == item:
                self._faults += [
                    self._fault(key, "says something else" if key in held else "is missing") for key in wrong
                ]

    def told(self) -> tuple[int, list[RowFault]]:
        """How many rows that are asked for are there, and what is amiss, since it was told last."""
        told = self._found, self._faults
        self._found, self._faults = 0, []
        return told

    def unasked(self, found: int) -> Iterator[RowFault]:
        """Rows for which nobody asks. ``found`` is how many there are of those that somebody asks for."""
        if sum(1 for table in self._of_table for _ in scan_pages(self._store, table)) == found:
            return
        for table in self._of_table:
            rows = scan_pages(self._store, table)
            while page := [row.key for row in islice(rows, _PAGE_ROWS)]:
                asked = self._asked_for(self._store.get(self._owners(page)))
                yield from (self._fault(key, "is asked for by nobody") for key in page if self._astray(key, asked))

    def _astray(self, row: Key, asked: set[Key]) -> bool:
        if row in asked:
            return False
        owners = self._owners([row])
        before = self._store.get(owners)
        # Only if it stands while its owner stays as they are: else they may have changed while both were read.
        stands = self._store.get([row])[0] is not None
        return stands and row not in self._asked_for(before) and self._store.get(owners) == before

    @staticmethod
    def _owners(rows: Iterable[Key]) -> list[Key]:
        """Whose rows these may be. Two people's would be one if the key of a row did not tell."""
        return [
            Key(PERSON, id) for id in {id for row in rows for id in _PERSON_ID.findall(f"{row.sort} {row.partition}")}
        ]

    def _asked_for(self, items: Iterable[Item | None]) -> set[Key]:
        asked: set[Key] = set()
        for item in items:
            person = None if item is None else unpack_person(item, self._catalogue)
            if isinstance(person, Person):
                if person.stale:
                    refold_person(self._store, self._catalogue, person, only=person.stale)
                asked |= index_rows(person, self._catalogue, self._checked).keys()
        return asked

    def _held(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        return {item.key: item.value for item in self._store.get(keys) if item is not None}

    def _fault(self, key: Key, said: str) -> RowFault:
        projection = self._catalogue.projections[self._of_table[key.table]]
        return RowFault(projection.name, f"{key.table} {key.partition} {key.sort} {said}")
