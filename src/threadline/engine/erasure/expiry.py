"""Events that are past their time: taken out of the log of somebody who stays, who is folded again without them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from threadline.engine.erasure import removal
from threadline.engine.erasure.erased_ids import note_erased
from threadline.engine.erasure.steps import EngineParts
from threadline.engine.folding.history import in_occurred_order
from threadline.engine.folding.person import Person, own
from threadline.engine.folding.person_packing import index_rows
from threadline.engine.folding.refold import fold_events, refold_person
from threadline.engine.folding.states import States
from threadline.engine.recording.attempt import Attempt
from threadline.kernel import ports
from threadline.kernel.erasure import EXPIRING
from threadline.kernel.errors import LimitExceeded, StoreDamaged
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.store import Batch, Delete, Key, LogEntry, Put, Span, query_pages

ROWS_MAX = BATCH_WRITES_MAX - 12
"""Index rows that may change because of the events of one person that go."""


class Expiry:
    """Takes events out of the log by their type and age."""

    def __init__(self, engine: EngineParts) -> None:
        self._engine = engine

    def expired(
        self, people: Iterable[ports.Person], types: Collection[str], before: int, limit: int
    ) -> dict[str, int]:
        """Person -> events of these types that occurred before an instant, counted to ``limit`` in each thread; people
        without one are left out. One read for all."""
        owner = {thread: person.id for person in people for thread, head in own(person).heads.items() if head}
        counts: dict[str, int] = {}
        for thread, page in self._engine.store.spans(list(owner), _span(types, before, limit)).items():
            counts[owner[thread]] = counts.get(owner[thread], 0) + len(page)
        return counts

    def expire(self, person: str, types: Collection[str], before: int) -> int:
        """Erase a person's events of these types that occurred before an instant, and fold the person from what is
        left; how many there were. It may be killed at any point and repeated.

        Raises `LimitExceeded` if more index rows would change than one commit holds, with the events still there.
        """
        entries = self._entries(person, types, before)
        if not entries:
            return 0
        self._refuse_too_many_rows(person, {entry.id for entry in entries})
        self._engine.recorder.change(lambda attempt: _begin(attempt, person))
        for start in range(0, len(entries), removal.PAGE_EVENTS):
            page = removal.page_of(self._engine.catalogue, entries[start : start + removal.PAGE_EVENTS])
            rows = [Delete(key) for key in dict.fromkeys(page.rows)]
            parts = [rows[at : at + ROWS_MAX] for at in range(0, len(rows), ROWS_MAX)]
            self._engine.store.commit([Batch(writes=part) for part in parts])
            note_erased(self._engine.store, page.ids, page.recorded)
            self._engine.store.erase(page.ids)
            self._engine.recorder.forget_events(page.ids)
        self._fold_again(person)
        return len(entries)

    def finish(self) -> None:
        """Fold those again of whom a process was killed before it did: their states still count what is gone."""
        for item in query_pages(self._engine.store, EXPIRING, "-"):
            if self._engine.reader.by_id(item.key.sort) is None:
                self._engine.store.commit([Batch(writes=[Delete(item.key)])])  # erased meanwhile
            else:
                with suppress(StoreDamaged):  # tried again once the event is repaired
                    self._fold_again(item.key.sort)

    def _entries(self, person: str, types: Collection[str], before: int) -> list[LogEntry]:
        current = self._engine.reader.by_id(person)
        threads = [] if current is None else [thread for thread, head in current.heads.items() if head]
        entries: list[LogEntry] = []
        for thread in threads:
            span = _span(types, before, removal.PAGE_EVENTS)
            while page := self._engine.store.spans((thread,), span).get(thread, []):
                entries += page
                span = span._replace(after=(page[-1].occurred_at, page[-1].sequence))
        return entries

    def _refuse_too_many_rows(self, person: str, gone: Collection[str]) -> None:
        before, catalogue = self._engine.reader.by_id(person), self._engine.catalogue
        if before is None:
            return
        states = catalogue.empty()
        stored = in_occurred_order(self._engine.store, before.heads)
        fold_events(catalogue, (event for event in stored if event.id not in gone), states)
        after = Person(before.id, before.workspace, before.created_at, States(catalogue, states))
        changed = index_rows(before, catalogue).items() ^ index_rows(after, catalogue).items()
        if len({key for key, _ in changed}) > ROWS_MAX:
            raise LimitExceeded(f"more than {ROWS_MAX} index rows of person {person} depend on events that are to go")

    def _fold_again(self, person: str) -> None:
        catalogue = self._engine.catalogue

        def work(attempt: Attempt) -> None:
            current = attempt.people.person(person)
            change = attempt.changes.of(current)
            change.note_rows(current, catalogue)
            refold_person(attempt.store, catalogue, current)
            change.count_rows(catalogue)
            change.take([Delete(_note(person))])

        self._engine.recorder.change(work)


def _begin(attempt: Attempt, person: str) -> None:
    current: Person = attempt.people.person(person)
    attempt.changes.of(current).take([Put(_note(person), b"-")])
    # Whole states: a tail of ids since the snapshot would name events that are gone.
    current.tail = None


def _note(person: str) -> Key:
    return Key(EXPIRING, "-", person)


def _span(types: Collection[str], before: int, limit: int) -> Span:
    return Span(stop=before, types=frozenset(types), limit=limit)
