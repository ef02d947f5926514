"""Events that are past their time: taken out of the log of somebody who stays, and what is carried of them stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from operator import attrgetter

import msgspec

from threadline.engine.erasure import removal
from threadline.engine.erasure.erased_ids import note_erased
from threadline.engine.erasure.steps import EngineParts
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import occurred_order
from threadline.engine.folding.packing import pack, unpack, unpack_event
from threadline.engine.folding.person import Person, own
from threadline.engine.folding.refold import fold_events, refold_person
from threadline.engine.recording.attempt import Attempt
from threadline.kernel import ports
from threadline.kernel.erasure import EXPIRING
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.event import Event, Recorded
from threadline.kernel.limits import BATCH_WRITES_MAX, IDENTIFIERS_PER_EVENT_MAX
from threadline.kernel.opening import OPENING, Opening, carried_from, is_current, opening_of
from threadline.kernel.store import Batch, Delete, Key, LogEntry, Put, Span, event_pages, query_pages
from threadline.kernel.time import EARLIEST

_ROWS_MAX = BATCH_WRITES_MAX
_sequence = attrgetter("sequence")
_OPENINGS = Span(types=frozenset({OPENING}))


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

    def uncounted(self, people: Iterable[ports.Person]) -> dict[str, int]:
        """Projection -> how many of these people have an opening with what other definitions than those in force have
        made of events that are gone: it does not count."""
        owner = {thread: person.id for person in people for thread, head in own(person).heads.items() if head}
        known = {projection.name: projection for projection in self._engine.catalogue.projections}
        affected = {
            (carried.projection, owner[thread])
            for thread, page in self._engine.store.spans(list(owner), _OPENINGS).items()
            for carried in opening_of(unpack_event(max(page, key=_sequence))).carried
            if carried.projection in known and not is_current(known[carried.projection], carried)
        }
        return dict(sorted(Counter(name for name, _ in affected).items()))

    def expire(self, person: str, types: Collection[str], before: int) -> int:
        """Erase a person's events of these types that occurred before an instant; how many there were.

        In one commit each thread gets an opening, by which they count no more, and what is carried of them does. Then
        they are taken out. It may be killed at any point and repeated.

        Raises `LimitExceeded` if more would change than one commit holds, and `StoreDamaged` if a state that is carried
        over would be another one than before; the events are still there then.
        """
        self._take_out(person)  # what another rule's expiry was killed amid
        count = self._engine.recorder.change(lambda attempt: self._leave(attempt, person, types, before))
        if count:
            self._finish(person)
        return count

    def finish(self) -> None:
        """Go on with those amid whose expiry a process was killed."""
        for item in query_pages(self._engine.store, EXPIRING, "-"):
            if self._engine.reader.by_id(item.key.sort) is None:
                self._engine.store.commit([Batch(writes=[Delete(item.key)])])  # erased meanwhile
            else:
                with suppress(StoreDamaged):  # tried again once the event is repaired
                    self._finish(item.key.sort)

    def _finish(self, person: str) -> None:
        self._take_out(person)
        catalogue = self._engine.catalogue

        def work(attempt: Attempt) -> None:
            current = attempt.people.person(person)
            change = attempt.changes.of(current)
            change.note_rows(current, catalogue)
            refold_person(attempt.store, catalogue, current)
            change.count_rows(catalogue)
            change.take([Delete(_note(person))])

        self._engine.recorder.change(work)

    # --- the commit in which they leave ---------------------------------------------------------

    def _leave(self, attempt: Attempt, id: str, types: Collection[str], before: int) -> int:
        """Put an opening into each thread that has such events, and fold the person by them; how many events leave."""
        catalogue, person = self._engine.catalogue, attempt.people.person(id)
        span, leaving = _span(types, before), dict[str, list[LogEntry]]()
        for thread, head in person.heads.items():
            older = event_pages(attempt.store, thread, span) if head else ()
            if entries := [entry for entry in older if entry.sequence <= head]:
                leaving[thread] = entries
        if not leaving:
            return 0
        carrying = [index for index, projection in enumerate(catalogue.projections) if projection.carries is not None]
        former = [unpack(pack(person.states[index])) for index in carrying]
        change = attempt.changes.of(person)
        change.take([Put(_note(id), b"-")])
        # Whole states: a tail of ids since the snapshot would name events that are gone.
        person.tail = None
        change.note_rows(person, catalogue)
        for thread, entries in leaving.items():
            _append_opening(attempt, person, thread, entries, before)
        refold_person(attempt.store, catalogue, person, extra=person.pending)
        for index, state in zip(carrying, former, strict=True):
            if person.states[index] != state:
                name = catalogue.projections[index].name
                raise StoreDamaged(f"the state {name!r} of person {id} is not what their events make; see `verify`")
        attempt.changes.of(person).count_rows(catalogue)
        return sum(map(len, leaving.values()))

    # --- what the openings stand for -------------------------------------------------------------

    def _take_out(self, person: str) -> None:
        """Erase the events for which openings of the person stand, with their index rows."""
        store = self._engine.store
        entries = list(self._stood_for(person))
        for start in range(0, len(entries), removal.PAGE_EVENTS):
            page = removal.page_of(self._engine.catalogue, entries[start : start + removal.PAGE_EVENTS])
            rows = [Delete(key) for key in dict.fromkeys(page.rows)]
            store.commit([Batch(writes=rows[at : at + _ROWS_MAX]) for at in range(0, len(rows), _ROWS_MAX)])
            note_erased(store, page.ids, page.recorded)
            store.erase(page.ids)
            self._engine.recorder.forget_events(page.ids)

    def _stood_for(self, person: str) -> Iterator[LogEntry]:
        store, current = self._engine.store, self._engine.reader.by_id(person)
        for thread in () if current is None else [thread for thread, head in current.heads.items() if head]:
            openings = list(event_pages(store, thread, _OPENINGS))
            for at in openings:
                opening = opening_of(unpack_event(at))
                leaving = event_pages(store, thread, _span(opening.types, opening.before)) if opening.types else ()
                yield from (entry for entry in (*leaving, *openings) if entry.sequence < at.sequence)


def _append_opening(attempt: Attempt, person: Person, thread: str, entries: list[LogEntry], before: int) -> None:
    former = [unpack_event(entry) for entry in event_pages(attempt.store, thread, _OPENINGS)]
    events = sorted([*former, *map(unpack_event, entries)], key=occurred_order)
    named = (identifier for recorded in events for identifier in recorded.event.identifiers)
    event = Event(
        type=OPENING,
        # Also by whom the events were known, from which it is seen who was whose before a join.
        identifiers=tuple(dict.fromkeys((person.identifiers[thread], *named)))[:IDENTIFIERS_PER_EVENT_MAX],
        occurred_at=max(events[0].event.occurred_at - 1, EARLIEST),
        key=f"opening/{thread}/{person.heads[thread] + 1}",
        source="threadline",
        source_type="internal",
        workspace=person.workspace,
        properties=msgspec.to_builtins(_opening(attempt.catalogue, former, events, before)),
        received_at=attempt.now,
        # Known since it occurred, as most of what it stands for.
        historical=True,
    )
    own_event = attempt.own(event, "")
    attempt.ids.add(own_event.validated.id)
    # Nothing is folded of it here: the states have the events still.
    attempt.append(person, thread, own_event.validated, own_event.plan._replace(steps=(), rows=()))


def _opening(catalogue: Catalogue, former: list[Recorded], events: list[Recorded], before: int) -> Opening:
    """The opening of these events, former openings among them."""
    states = catalogue.empty()
    fold_events(catalogue, events, states)
    carried = [
        part
        for projection, state in zip(catalogue.projections, states, strict=True)
        for part in carried_from(projection, state)
    ]
    openings = [opening_of(recorded) for recorded in former]
    known = {projection.name: projection for projection in catalogue.projections}
    # What was folded by other definitions than those in force stays as it is: they may come back.
    carried += [
        part
        for opening in openings
        for part in opening.carried
        if part.projection not in known or not is_current(known[part.projection], part)
    ]
    newest = max(recorded.event.occurred_at for recorded in events)
    return Opening(
        events=len(events) - len(former) + sum(opening.events for opening in openings),
        types=sorted({recorded.event.type for recorded in events} - {OPENING}),
        before=before,
        until=max([newest, *(opening.until for opening in openings)]),
        carried=carried,
    )


def _note(person: str) -> Key:
    return Key(EXPIRING, "-", person)


def _span(types: Collection[str], before: int, limit: int = removal.PAGE_EVENTS) -> Span:
    return Span(stop=before, types=frozenset(types), limit=limit)
