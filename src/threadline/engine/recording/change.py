"""A change: what one batch will commit for a person, or for people who are being joined."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person
from threadline.engine.folding.person_packing import index_rows, person_writes
from threadline.kernel.event import Event
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.policy import Emit
from threadline.kernel.store import Batch, Check, Delete, Key, LogEntry, Put

_FREE = BATCH_WRITES_MAX - 12
"""Writes of a batch without those reserved for sealing: person items, snapshots and index rows."""
FULL_EVENT_BYTES = 64 * 1_024
"""An event of more bytes counts as two: a change full of such would exceed what a batch may hold."""


class Change:
    """Collects events and writes until it is sealed into a `Batch`."""

    __slots__ = ("checks", "counted", "entries", "failures", "ids", "large", "people", "requests", "rows_before",
                 "rows_of", "rows_to_write", "writes")  # fmt: skip

    def __init__(self, person: Person) -> None:
        self.people: dict[str, Person] = {person.id: person}
        self.ids: set[str] = {person.id}
        """The people of this change, with those merged away in it."""
        self.entries: list[LogEntry] = []
        self.counted: list[Event] = []
        """Those of these events that metrics count once they are committed."""
        self.failures: list[tuple[str, Emit, Exception]] = []
        """Policies that raised about events of this change (id of the event, what says so, error), logged once it is
        committed."""
        self.large = 0
        """How many events are so large that they count twice."""
        self.writes: dict[Key, Put | Delete] = {}
        self.checks: dict[Key, Check] = {}
        self.requests: list[int] = []
        """Positions of the requests that are decided by this batch."""
        self.rows_before: dict[Key, bytes] = {}
        self.rows_of: dict[str, set[int]] = {}
        """Person id -> the projections whose rows may change."""
        self.rows_to_write: list[Put | Delete] = []
        """Index rows to be written or removed so far."""

    @property
    def size(self) -> int:
        """Writes so far, as the store counts them, and two more for every large event."""
        return 2 * (len(self.entries) + self.large) + len(self.writes) + len(self.checks) + len(self.people)

    @property
    def free(self) -> int:
        """How many more writes fit beside those that sealing may add."""
        return _FREE - (
            2 * (len(self.entries) + self.large)
            + len(self.writes) + len(self.checks) + len(self.people) + len(self.rows_to_write)
        )  # fmt: skip

    def take(self, writes: Iterable[Put | Delete | Check]) -> None:
        """Commit these with the rest."""
        for write in writes:
            if isinstance(write, Check):
                self.checks[write.key] = write
            else:
                self.writes[write.key] = write

    def add(self, person: Person) -> None:
        """Add a person to be written."""
        self.people[person.id] = person
        self.ids.add(person.id)

    def absorb(self, other: Change) -> None:
        """Take over another change: two people who are merged commit as one."""
        self.people.update(other.people)
        self.ids |= other.ids
        self.entries += other.entries
        self.counted += other.counted
        self.failures += other.failures
        self.large += other.large
        self.writes.update(other.writes)
        self.checks.update(other.checks)
        self.requests += other.requests
        self.rows_before.update(other.rows_before)
        self.rows_of.update(other.rows_of)
        self.rows_to_write += other.rows_to_write

    def note_rows(self, person: Person, catalogue: Catalogue, only: Iterable[int] | None = None) -> None:
        """Note a person's index rows as stored; call before the first change to them.

        ``only`` are the projections whose rows may change; by default all that have rows.
        """
        noted = self.rows_of.setdefault(person.id, set())
        new = [index for index in (catalogue.with_rows if only is None else only) if index not in noted]
        if new:
            noted.update(new)
            self.rows_before.update(index_rows(person, catalogue, [i for i in new if i not in person.unwritten]))

    def count_rows(self, catalogue: Catalogue) -> None:
        """Compute the rows that differ; call after each change of the states that rows come from."""
        after: dict[Key, bytes] = {}
        for id, noted in self.rows_of.items():
            if id in self.people:
                after.update(index_rows(self.people[id], catalogue, noted))
        changed: list[Put | Delete] = [Put(k, v) for k, v in after.items() if self.rows_before.get(k) != v]
        self.rows_to_write = changed + [Delete(k) for k in self.rows_before if k not in after]

    def seal(self, catalogue: Catalogue, *, interim: bool = False) -> Batch:
        """The batch: events, changed rows, and each person under the expected version."""
        people = self.people.values()
        states = [put for person in people for put in person_writes(person, catalogue, interim=interim)]
        return Batch(self.entries, [*states, *self.writes.values(), *self.checks.values(), *self.rows_to_write])
