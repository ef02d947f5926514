"""A draft: what one batch will commit for a person, or for people who are being joined."""

from __future__ import annotations

from collections.abc import Set

from threadline.engine.catalogue import Catalogue
from threadline.engine.person import Person, pack_person, person_key
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.projection import Row
from threadline.kernel.store import Batch, Check, Delete, Key, LogEntry, Put

_RESERVE = 12
"""Writes kept free for what sealing adds: person items and index rows."""


class Draft:
    """Collects events and writes until it is sealed into a `Batch`. Sealing packs each person once."""

    __slots__ = ("checks", "entries", "ids", "people", "requests", "rows_before", "rows_changed", "rows_of", "writes")

    def __init__(self) -> None:
        self.people: dict[str, Person] = {}
        self.ids: set[str] = set()
        """Everybody whose draft this is, those who were merged away in it included."""
        self.entries: list[LogEntry] = []
        self.writes: dict[Key, Put | Delete] = {}
        self.checks: dict[Key, Check] = {}
        self.requests: list[int] = []
        """Positions, in the call, of the requests whose fate is this batch's."""
        self.rows_before: dict[Key, bytes] = {}
        self.rows_of: set[str] = set()
        self.rows_changed = 0
        """Index rows to be written or removed as things stand."""

    @property
    def size(self) -> int:
        """Writes so far, as the store counts them."""
        return 2 * len(self.entries) + len(self.writes) + len(self.checks) + len(self.people)

    def has_room(self, writes: int) -> bool:
        """Whether so many more writes fit beside what sealing may add."""
        return self.size + self.rows_changed + writes + _RESERVE <= BATCH_WRITES_MAX

    def add(self, person: Person) -> None:
        """Let the batch write this person."""
        self.people[person.id] = person
        self.ids.add(person.id)

    def absorb(self, other: Draft) -> None:
        """Take over another draft: two people are being joined and must commit as one."""
        self.people.update(other.people)
        self.ids |= other.ids
        self.entries += other.entries
        self.writes.update(other.writes)
        self.checks.update(other.checks)
        self.requests += other.requests
        self.rows_before.update(other.rows_before)
        self.rows_of |= other.rows_of
        self.rows_changed += other.rows_changed

    def note_rows(self, person: Person, catalogue: Catalogue) -> None:
        """Remember a person's index rows as they stand in the store; call before the first change to them."""
        if person.id not in self.rows_of:
            self.rows_of.add(person.id)
            self.rows_before.update(index_rows(person, catalogue, person.unwritten))

    def count_rows(self, catalogue: Catalogue) -> None:
        """Reckon how many rows differ by now; call after a change to what rows are made of."""
        self.rows_changed = len(self._row_writes(catalogue))

    def _row_writes(self, catalogue: Catalogue) -> list[Put | Delete]:
        if not self.rows_of:
            return []
        after: dict[Key, bytes] = {}
        for person in self.people.values():
            if person.id in self.rows_of:
                after.update(index_rows(person, catalogue))
        rows: list[Put | Delete] = [Put(k, v) for k, v in after.items() if self.rows_before.get(k) != v]
        return rows + [Delete(k) for k in self.rows_before if k not in after]

    def seal(self, catalogue: Catalogue) -> Batch:
        """The batch: events, changed rows, and each person's packed item under its expected version."""
        rows = self._row_writes(catalogue)
        states = []
        for person in self.people.values():
            person.packed = pack_person(person, catalogue)
            states.append(Put(person_key(person.id), person.packed, person.version))
            person.version += 1
        return Batch(self.entries, [*states, *self.writes.values(), *self.checks.values(), *rows])


def index_rows(person: Person, catalogue: Catalogue, leave_out: Set[int] = frozenset()) -> dict[Key, bytes]:
    """The index rows that a person's states ask for, but for those of some projections."""
    found: dict[Key, bytes] = {}
    for index in catalogue.with_rows:
        if index in leave_out:
            continue
        rows = catalogue.projections[index].rows
        assert rows is not None
        row: Row
        for row in rows(person.states[index], person.workspace, person.id):
            found[Key(row.table, row.partition, row.sort)] = row.value or b"\x00"
    return found
