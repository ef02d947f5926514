"""Whether the index rows that stand in the store are those that people's states and their events ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import THREAD, Person, thread_key
from threadline.engine.folding.person_packing import index_rows
from threadline.engine.maintenance.indexes import asked_for, owners_of, remove_unasked, write_person
from threadline.engine.maintenance.marks import is_complete
from threadline.engine.maintenance.thread_tally import ThreadTally
from threadline.kernel.event import Recorded
from threadline.kernel.store import Batch, Item, Key, Put, Store, scan_pages

_PAGE_ROWS = 500


class RowFault(NamedTuple):
    """A row that is not as it should be."""

    projection: str
    """Which asks for it; "" where people themselves do."""
    problem: str
    row: Key
    owner: Key | None = None
    """Whose row it is that is not there, or says something else."""
    mending: Batch | None = None
    """What puts it right by itself, if that is one batch."""

    @property
    def can_be_mended(self) -> bool:
        """Whether a refold puts it right. Where people claim the same thread, somebody has to look at them."""
        return bool(self.projection or self.mending)


def mend(store: Store, catalogue: Catalogue, faults: Sequence[RowFault]) -> None:
    """Put right what can be, beside live traffic: just these rows, so that no list is incomplete meanwhile."""
    batches = [fault.mending for fault in faults if fault.mending is not None]
    for start in range(0, len(batches), _PAGE_ROWS):
        store.commit(batches[start : start + _PAGE_ROWS])
    owners = list(dict.fromkeys(fault.owner for fault in faults if fault.owner is not None))
    for start in range(0, len(owners), _PAGE_ROWS):
        for item in store.get(owners[start : start + _PAGE_ROWS]):
            if item is not None:
                write_person(store, catalogue, item)
    unasked = [fault.row for fault in faults if fault.projection and fault.owner is None and fault.mending is None]
    for start in range(0, len(unasked), _PAGE_ROWS):
        items = store.get(unasked[start : start + _PAGE_ROWS])
        remove_unasked(store, catalogue, [item for item in items if item is not None])


class RowCheck:
    """Compares people and their events with their rows, page by page, beside live traffic. It only reads.

    It looks on while people are folded anew; see `rebuild.Onlooker`.
    """

    def __init__(self, store: Store, catalogue: Catalogue) -> None:
        self._store = store
        self._catalogue = catalogue
        self._checked = [
            index
            for index, projection in enumerate(catalogue.projections)
            # Of the others it is known that their rows are not written yet for the definitions in force.
            if projection.index.tables and is_complete(store, projection)
        ]
        # Another one has rows of its events alone.
        self._with_rows = [index for index in self._checked if index in catalogue.with_rows]
        self._of_table = {
            table: index for index in self._checked for table in catalogue.projections[index].index.tables
        }
        # A projection whose marks were of every type of event would not be looked at here; there is none.
        self.types = frozenset().union(
            *(projection.handles or () for projection in catalogue.projections if projection.index.event_rows)
        )
        self._marks: dict[Key, tuple[str, bytes]] = {}
        self._matching = 0
        self._faults: list[RowFault] = []
        self._tally = ThreadTally()

    def counted(self, events: Iterator[Recorded]) -> Iterator[Recorded]:
        """The same events, each counted with its thread."""
        return self._tally.counted(events)

    def tallied(self) -> ThreadTally:
        """What was counted, since it was told last."""
        tally, self._tally = self._tally, ThreadTally()
        return tally

    def note(self, recorded: Recorded) -> None:
        """Have the rows of this event itself looked for."""
        for projection in self._catalogue.projections:
            if projection.index.event_rows is not None and recorded.event.type in (projection.handles or ()):
                for row in projection.index.event_rows(recorded):
                    self._marks[Key(row.table, row.partition, row.sort)] = projection.name, row.value or b"\x00"
        if len(self._marks) >= _PAGE_ROWS:
            self._look_for_marks()

    def _look_for_marks(self) -> None:
        # They are written with their event, and stay: what is not there by now was lost.
        stored = self._stored(list(self._marks))
        for key, (projection, value) in self._marks.items():
            if stored.get(key) != value:
                problem = "says something else" if key in stored else "is missing"
                self._faults.append(_fault(projection, key, problem, mending=_put_row(key, value)))
        self._marks.clear()

    def look(self, people: Sequence[tuple[Item, Person]]) -> None:
        """Look for the rows of these people, whose states are those of their items, or better."""
        self._look_for_marks()
        wanted = [self._rows(person) for _, person in people]
        stored = self._stored([key for rows in wanted for key in rows])
        for (item, _), rows in zip(people, wanted, strict=True):
            wrong = [key for key, value in rows.items() if stored.get(key) != value]
            self._matching += sum(key in stored for key in rows)
            if wrong and self._store.get([item.key])[0] == item:
                self._faults += [self._not_stored(item, key, rows[key], key in stored) for key in wrong]

    def _not_stored(self, item: Item, key: Key, value: bytes, is_stored: bool) -> RowFault:
        if key.table != THREAD:
            return _fault(self._name(key), key, "says something else" if is_stored else "is missing", owner=item.key)
        if is_stored:  # two people may claim the thread, and only somebody who looks at them can tell whose it is
            return _fault("", key, f"leads to somebody else than {item.key.partition}, who has its events")
        # A join or a split that came in between would have written it.
        return _fault(
            "", key, f"is missing, and does not lead to {item.key.partition}", mending=_put_row(key, value, 0)
        )

    def result(self) -> tuple[int, list[RowFault]]:
        """How many rows that are asked for are there, and what is amiss, since it was told last."""
        counts = self._matching, self._faults
        self._matching, self._faults = 0, []
        return counts

    def unasked(self, expected: int) -> Iterator[RowFault]:
        """Rows for which nobody asks. ``expected`` is how many there are of those that somebody asks for."""
        tables = (THREAD, *self._of_table)
        if sum(1 for table in tables for _ in scan_pages(self._store, table)) == expected:
            return
        for table in tables:
            rows = scan_pages(self._store, table)
            while page := list(islice(rows, _PAGE_ROWS)):
                asked = self._asked_for(self._store.get(owners_of(page)))
                astray = (row.key for row in page if self._astray(row, asked))
                problem = "leads to nobody who has it" if table == THREAD else "is asked for by nobody"
                yield from (_fault(self._name(key), key, problem) for key in astray)

    def _astray(self, row: Item, asked: set[Key]) -> bool:
        if row.key in asked:
            return False
        stands = self._store.get([row.key])[0]
        if stands is None:
            return False
        owners = owners_of([stands])
        before = self._store.get(owners)
        # Only if it stands while its owner stays as they are: else they may have changed while both were read.
        unchanged = self._store.get([row.key])[0] == stands
        return unchanged and row.key not in self._asked_for(before) and self._store.get(owners) == before

    def _asked_for(self, items: Iterable[Item | None]) -> set[Key]:
        stored = (item for item in items if item is not None)
        return asked_for(self._store, self._catalogue, stored, lambda person: self._rows(person).keys())

    def _rows(self, person: Person) -> dict[Key, bytes]:
        threads = {thread_key(thread): person.id.encode() for thread in person.heads}
        return index_rows(person, self._catalogue, self._with_rows) | threads

    def _stored(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        return {item.key: item.value for item in self._store.get(keys) if item is not None}

    def _name(self, key: Key) -> str:
        return self._catalogue.projections[self._of_table[key.table]].name if key.table in self._of_table else ""


def _put_row(key: Key, value: bytes, expected: int | None = None) -> Batch:
    return Batch(writes=[Put(key, value, expected)])


def _fault(
    projection: str, key: Key, problem: str, *, owner: Key | None = None, mending: Batch | None = None
) -> RowFault:
    where = f"{key.table} {key.partition}" if key.table == THREAD else " ".join(key)
    return RowFault(projection, f"{where} {problem}", key, owner, mending)
