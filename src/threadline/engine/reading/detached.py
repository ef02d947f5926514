"""People made of events that were read elsewhere, such as in a lake: as of an instant they are who they were then."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import ReplayedHistory, occurred_order
from threadline.engine.folding.packing import encode_event, log_entry
from threadline.engine.folding.person import Person
from threadline.engine.folding.person_view import view_at
from threadline.engine.folding.refold import folded_before
from threadline.engine.folding.states import States
from threadline.engine.reading.identity_history import IdentityHistory
from threadline.kernel import ports
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Identifier, Recorded, identifier_named, is_thread_id
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.store import LogEntry, Span


class DetachedPeople:
    """People who were ever joined with one another, with all of their events."""

    def __init__(
        self, catalogue: Catalogue, workspace: str, owners: Mapping[str, str], events: Iterable[Recorded]
    ) -> None:
        """``owners``: thread -> id of the person whose it is now. Events of other threads do not count."""
        self._catalogue = catalogue
        self._workspace = workspace
        self._owners = owners
        self._events: dict[str, list[Recorded]] = {thread: [] for thread in owners}
        for recorded in sorted(events, key=occurred_order):
            if recorded.thread in owners:
                self._events[recorded.thread].append(recorded)
        self._store: Any = _Events(self._events)
        self._people = self._made()

    def identity_history(self, ref: str) -> ports.IdentityHistory:
        """As `PersonReader.identity_history`; raises `NotFound`."""
        person, thread = self._meant(ref)
        lookup: Any = SimpleNamespace(by_thread=self._by_thread)
        return IdentityHistory(self._store, self._catalogue, lookup, person, thread, named=thread != ref)

    def person(self, ref: str) -> Person:
        """As `PersonReader.person`, at present; raises `NotFound`."""
        return self._meant(ref)[0]

    def view(self, name: str, person: ports.Person, at: int, known_at: int | None = None) -> Any:
        """As `PersonReader.views` of one projection."""
        history = ReplayedHistory()
        for thread in person.heads:
            for recorded in self._events[thread]:
                if not self._catalogue.event_types.is_unspoken(recorded.event) and (
                    known_at is None or recorded.known_at <= known_at
                ):
                    history.add(recorded)
        index = self._catalogue.index[name]
        states = folded_before(self._catalogue, history, at, (index,))
        return view_at(self._catalogue.looks[index], states[index], at, history.at_edges)

    def _meant(self, ref: str) -> tuple[Person, str]:
        threads = [ref] if is_thread_id(ref) and ref in self._founders() else []
        threads = threads or self._catalogue.rules.threads(self._workspace, identifier_named(ref))
        for thread in threads:
            if (person := self._by_thread(thread)) is not None:
                return person, thread
        raise NotFound(f"nobody is known as {ref!r} in workspace {self._workspace!r}")

    def _founders(self) -> set[str]:
        """The ids of people, those who were merged since among them."""
        changes = [
            event.event for events in self._events.values() for event in events if event.event.type in (MERGED, SPLIT)
        ]
        gone = {
            str(change.properties[name])
            for change in changes
            for name in ("merged", "split")
            if name in change.properties
        }
        return {*self._owners.values(), *gone}

    def _by_thread(self, thread: str) -> Person | None:
        return self._people.get(self._owners.get(thread, ""))

    def _made(self) -> dict[str, Person]:
        people: dict[str, Person] = {}
        for thread, owner in self._owners.items():
            if owner not in people:
                people[owner] = Person(owner, self._workspace, 0, States(self._catalogue))
            head = max((event.sequence for event in self._events[thread]), default=0)
            # Which identifier it is makes no difference to any view.
            people[owner].add_thread(thread, Identifier("", thread), head)
        return people


class _Events:
    """Of `Store` what an `IdentityHistory` reads."""

    def __init__(self, threads: Mapping[str, Sequence[Recorded]]) -> None:
        self._threads = {thread: sorted(events, key=_stored_order) for thread, events in threads.items()}
        self._by_id = {event.id: event for events in threads.values() for event in events}

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        return {id: _entry(self._by_id[id]) for id in ids if id in self._by_id}

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """See `Store.spans`, in forward direction."""
        first = (-(1 << 63), 0) if span.start is None else (span.start, 0)
        if span.after is not None:
            first = max(first, (span.after[0], span.after[1] + 1))
        pages = {thread: self._page(self._threads.get(thread, ()), first, span) for thread in threads}
        return {thread: page for thread, page in pages.items() if page}

    def _page(self, events: Sequence[Recorded], first: tuple[int, int], span: Span) -> list[LogEntry]:
        page: list[LogEntry] = []
        for index in range(bisect_left(events, first, key=_stored_order), len(events)):
            recorded = events[index]
            if len(page) == span.limit or (span.stop is not None and recorded.event.occurred_at >= span.stop):
                break
            if not span.types or recorded.event.type in span.types:
                page.append(_entry(recorded))
        return page


def _stored_order(recorded: Recorded) -> tuple[int, int]:
    return recorded.event.occurred_at, recorded.sequence


def _entry(recorded: Recorded) -> LogEntry:
    return log_entry(recorded, encode_event(recorded.event), 0)
