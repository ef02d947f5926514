"""The changes of an attempt: the open one of each person, and the sealed ones in the order in which they commit."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import VALUE_BYTES_MAX, Person
from threadline.engine.recording.change import Change
from threadline.engine.recording.plans import Plans
from threadline.engine.recording.retry import PROJECTION_FAILED, TOO_MANY_CHANGES, UnrecordableEvents
from threadline.engine.recording.working_set import WorkingSet
from threadline.kernel.errors import EventDamaged
from threadline.kernel.identity import MERGED
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.store import Batch, Delete, Key, Put


class Changes:
    """Decides which batch a write is in. Nothing is written to the store here."""

    def __init__(self, catalogue: Catalogue, people: WorkingSet, plans: Plans) -> None:
        self._catalogue = catalogue
        self._people = people
        self._plans = plans
        self.position = -1
        """Position of the request at work: every change that it touches decides on it."""
        self.sealed: list[tuple[Change, Batch]] = []
        """In the order in which they must commit."""
        self._loose: dict[Key, Sequence[Put | Delete]] = {}
        """Writes that belong to no person, such as the row of a new source: each of these a batch, by its first key."""
        self._open: dict[str, Change] = {}
        """The open change of each person, by person id."""
        self._sealed_last: dict[str, int] = {}
        """Person id -> the index of the last batch that was sealed with this person in it."""

    def of(self, person: Person, room: int = 0) -> Change:
        """The person's open change with room for so many more writes; a full one is sealed first."""
        change = self._open.get(person.id)
        if change is not None and change.free < room:
            self.seal(change, interim=True)
            change = None
        if change is None:
            change = self._open[person.id] = Change(person)
            if person.unwritten:
                change.note_rows(person, self._catalogue, person.unwritten)
                change.count_rows(self._catalogue)
                person.unwritten = frozenset()
            self._people.touched[person.id] = person
        if self.position >= 0 and (not change.requests or change.requests[-1] != self.position):
            change.requests.append(self.position)
        return change

    def share(self, change: Change, person: Person) -> None:
        """Add a person to a change of another: they commit together."""
        change.add(person)
        self._people.touched[person.id], self._open[person.id] = person, change

    def joined(self, survivor: Person, merged: Person) -> Change:
        """One change for two people who are being merged, with room for the merge."""
        change, further = self.of(survivor), self.of(merged)
        room = 2 * len(merged.heads) + 9 + self._plans.of(survivor.workspace, MERGED).room
        if change is not further and change.free < further.size + len(further.rows_to_write) + room:
            self.seal(change)
            self.seal(further)
            change, further = self.of(survivor), self.of(merged)
        if change is not further:
            change.absorb(further)
            for id in further.ids:
                self._open[id] = change
        return change

    def seal(self, change: Change, *, interim: bool = False) -> None:
        """Make a batch of a change: nothing is added to it any more. ``interim``: another one of the same people comes.

        Raises `UnrecordableEvents` for what no batch can hold.
        """
        try:
            batch = change.seal(self._catalogue, interim=interim)
        except EventDamaged as error:
            raise UnrecordableEvents(change.requests, error.code, str(error)) from error
        except Exception as error:
            raise UnrecordableEvents(change.requests, PROJECTION_FAILED, f"{type(error).__name__}: {error}") from error
        writes = batch.writes
        if max([len(write.value) for write in writes if write.__class__ is Put], default=0) > VALUE_BYTES_MAX:
            message = f"what is known of the person would exceed {VALUE_BYTES_MAX} bytes"
            raise UnrecordableEvents(change.requests, "person_too_large", message)
        if 2 * len(batch.events) + len(writes) > BATCH_WRITES_MAX:
            message = f"it would change more than {BATCH_WRITES_MAX} items at once; tags and groups count one each"
            raise UnrecordableEvents(change.requests, TOO_MANY_CHANGES, message)
        before = {self._sealed_last[id] for id in change.ids if id in self._sealed_last}
        self.sealed.append((change, batch._replace(builds_on=sorted(before)) if before else batch))
        for id in change.ids:
            self._sealed_last[id] = len(self.sealed) - 1
            self._open.pop(id, None)

    def seal_open(self) -> None:
        """Seal every open change."""
        while self._open:
            self.seal(next(iter(self._open.values())))

    def drop(self, first: int) -> set[str]:
        """Drop the open changes and those sealed since `sealed` had ``first``; returns the ids of their people."""
        sealed = self.sealed[first:]
        for change, _ in sealed:
            for id in change.ids:
                self._sealed_last.pop(id, None)
        changes = [*(change for change, _ in sealed), *self._open.values()]
        del self.sealed[first:]
        self._open.clear()
        return {id for change in changes for id in change.ids}

    def commit_apart(self, writes: Sequence[Put | Delete]) -> None:
        """Commit these together, in a batch that touches no person."""
        if writes:
            self._loose[writes[0].key] = writes

    def batches(self) -> list[Batch]:
        """All batches, in the order in which they must commit."""
        return [batch for _, batch in self.sealed] + [Batch(writes=writes) for writes in self._loose.values()]
