"""A draft: what one batch will commit for a person, or for people who are being joined."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.engine.catalogue import Catalogue
from threadline.engine.person import Person, pack_person, person_key
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.projection import Row
from threadline.kernel.store import Batch, Check, Delete, Key, LogEntry, Put

_RESERVE = 12
"""Writes kept free for what sealing adds: person items and index rows."""
_LARGE_EVENT_BYTES = 64 * 1_024
"""An event of more bytes counts as two: a draft full of such would exceed what a batch may hold."""


class Draft:
    """Collects events and writes until it is sealed into a `Batch`. Sealing packs each person once."""

    __slots__ = ("_large", "_weighed", "checks", "entries", "ids", "people", "requests", "rows_before", "rows_of",
                 "rows_to_write", "writes")  # fmt: skip

    def __init__(self) -> None:
        self.people: dict[str, Person] = {}
        self.ids: set[str] = set()
        """Everybody whose draft this is, those who were merged away in it included."""
        self.entries: list[LogEntry] = []
        self._large = 0
        self._weighed = 0
        """Entries that were looked at to count the large ones among them."""
        self.writes: dict[Key, Put | Delete] = {}
        self.checks: dict[Key, Check] = {}
        self.requests: list[int] = []
        """Positions, in the call, of the requests whose fate is this batch's."""
        self.rows_before: dict[Key, bytes] = {}
        self.rows_of: dict[str, set[int]] = {}
        """Person id -> the projections whose rows may change."""
        self.rows_to_write: list[Put | Delete] = []
        """Index rows to be written or removed as things stand."""

    @property
    def size(self) -> int:
        """Writes so far, as the store counts them, and two more for every large event."""
        if self._weighed < len(self.entries):
            self._large += sum(len(each.body) > _LARGE_EVENT_BYTES for each in self.entries[self._weighed :])
            self._weighed = len(self.entries)
        return 2 * (len(self.entries) + self._large) + len(self.writes) + len(self.checks) + len(self.people)

    @property
    def free(self) -> int:
        """How many more writes fit beside what sealing may add."""
        return BATCH_WRITES_MAX - _RESERVE - self.size - len(self.rows_to_write)

    def has_room(self, writes: int) -> bool:
        """Whether so many more writes fit beside what sealing may add."""
        return writes <= self.free

    def take(self, writes: Iterable[Put | Delete | Check]) -> None:
        """Commit these with the rest."""
        for write in writes:
            if isinstance(write, Check):
                self.checks[write.key] = write
            else:
                self.writes[write.key] = write

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
        self.rows_of.update(other.rows_of)
        self.rows_to_write += other.rows_to_write

    def note_rows(self, person: Person, catalogue: Catalogue, only: Iterable[int] | None = None) -> None:
        """Remember a person's index rows as they stand in the store; call before the first change to them.

        ``only`` are the projections whose rows may change; without it all that have any.
        """
        noted = self.rows_of.setdefault(person.id, set())
        new = [index for index in (catalogue.with_rows if only is None else only) if index not in noted]
        noted.update(new)
        self.rows_before.update(index_rows(person, catalogue, [i for i in new if i not in person.unwritten]))

    def count_rows(self, catalogue: Catalogue) -> None:
        """Reckon which rows differ by now; call after each change to what rows are made of."""
        after: dict[Key, bytes] = {}
        for id, noted in self.rows_of.items():
            if id in self.people:
                after.update(index_rows(self.people[id], catalogue, noted))
        changed: list[Put | Delete] = [Put(k, v) for k, v in after.items() if self.rows_before.get(k) != v]
        self.rows_to_write = changed + [Delete(k) for k in self.rows_before if k not in after]

    def seal(self, catalogue: Catalogue) -> Batch:
        """The batch: events, changed rows, and each person's packed item under its expected version."""
        states = []
        for person in self.people.values():
            person.packed = pack_person(person, catalogue)
            states.append(Put(person_key(person.id), person.packed, person.version))
            person.version += 1
        return Batch(self.entries, [*states, *self.writes.values(), *self.checks.values(), *self.rows_to_write])


def index_rows(person: Person, catalogue: Catalogue, only: Iterable[int] | None = None) -> dict[Key, bytes]:
    """The index rows that a person's states ask for: those of all projections, or of ``only`` some."""
    found: dict[Key, bytes] = {}
    for index in catalogue.with_rows if only is None else only:
        rows = catalogue.projections[index].rows
        assert rows is not None
        row: Row
        for row in rows(person.states[index], person.workspace, person.id):
            found[Key(row.table, row.partition, row.sort)] = row.value or b"\x00"
    return found
