"""The library peer: `eventsourcing`, one aggregate a person, as its documentation shows it or cached in batches."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import msgspec
from eventsourcing.application import AggregateNotFoundError, Application
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import Transcoder, Transcoding

from bench.side import FILLING_PRAGMAS, SYNCED_PRAGMAS, strongest
from threadline.app import catalogue
from threadline.kernel.event import Event, Identifier, Recorded

CATALOGUE = catalogue()
"""Everything that ships."""


class Person(Aggregate):
    """A person as an aggregate in the library's own idiom: a decorated command is the event and its fold.

    Its fold is the one that Threadline ships, all projections of it, over the event in memory: what differs is who
    keeps the events, finds the person and makes it idempotent. It is spared identity, index rows, policies and the
    outbox, and where it is cached it never writes a state down. The keys it has seen make it idempotent.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        # Lists and dicts rather than tuples and sets: a snapshot goes through the library's JSON and back.
        self.keys: dict[str, None] = {}
        self.states = CATALOGUE.empty()

    @staticmethod
    def create_id(name: str) -> UUID:
        """The same person is the same aggregate."""
        return uuid5(NAMESPACE_URL, f"/people/{name}")

    def record(self, told: Event) -> None:
        """The command: an event whose key was seen before does nothing."""
        key = f"{told.source}/{told.key}"
        if key not in self.keys:
            identifiers = [[identifier.kind, identifier.value] for identifier in told.identifiers]
            self.track(key, told.type, told.occurred_at, told.received_at, identifiers, told.properties, told.context)

    @event("Tracked")
    def track(
        self,
        key: str,
        kind: str,
        occurred_at: int,
        received_at: int,
        identifiers: list[list[str]],
        properties: dict[str, Any],
        context: dict[str, Any],
    ) -> None:
        """The event and its fold, in one, as the library's documentation writes it."""
        self.keys[key] = None
        named = tuple([Identifier(*pair) for pair in identifiers])
        told = Event(
            type=kind,
            identifiers=named,
            occurred_at=occurred_at,
            key=key,
            properties=properties,
            context=context,
            received_at=received_at,
        )
        recorded = Recorded(told, key, "", len(self.keys), received_at)
        for index, fold in CATALOGUE.plan(kind).steps:
            state = fold(self.states[index], recorded)
            if state is not None:
                self.states[index] = state


class _People(Application[UUID]):
    """The application of the library that keeps them."""


class _RawAsText(Transcoding):
    """Parts of a state that no event has touched are still packed, and the library's snapshots are JSON."""

    type = msgspec.Raw
    name = "raw"

    def encode(self, obj: msgspec.Raw) -> str:
        return b64encode(bytes(obj)).decode()

    def decode(self, data: str) -> msgspec.Raw:
        return msgspec.Raw(b64decode(data))


class _SnapshottingPeople(Application[UUID]):
    """The same with the library's snapshots, so that a long history need not be replayed for each event."""

    name = "People"
    is_snapshotting_enabled = True
    snapshotting_intervals = {Person: 50}  # noqa: RUF012  (the library declares it as a class variable)

    def register_transcodings(self, transcoder: Transcoder) -> None:
        super().register_transcodings(transcoder)
        transcoder.register(_RawAsText())


class EventsourcingDocumented:
    """Get, track, save, one event at a time: the form of the library's tutorial, with its default settings.

    Its default is WAL with ``synchronous = FULL``, so each save is durable.
    """

    application: type[Application[UUID]] = _People

    def __init__(self, path: Path) -> None:
        self._people = self.application(env=_environment(path))

    def fill(self, batches: Iterable[list[Event]]) -> None:
        """Record the history in the same way: there is no other in this form."""
        for batch in batches:
            self.record(batch)

    def record(self, events: list[Event]) -> None:
        """Get the aggregate, trigger one event, save; for each event."""
        for told in events:
            name = strongest(told)
            try:
                person: Person = self._people.repository.get(Person.create_id(name))
            except AggregateNotFoundError:
                person = Person(name)
            person.record(told)
            self._people.save(person)

    def person(self, name: str) -> Person:
        """One aggregate, from its events."""
        person: Person = self._people.repository.get(Person.create_id(name))
        return person

    def count(self) -> int:
        """Tracked events of all aggregates."""
        return _count(self._people)

    def close(self) -> None:
        """Close the pool."""
        self._people.close()


class EventsourcingSnapshotted(EventsourcingDocumented):
    """The documented form with a snapshot every 50 events."""

    application = _SnapshottingPeople


class EventsourcingCached:
    """Aggregates stay in the library's cache and a whole batch is saved in one transaction.

    This is the library at its fastest: no copy, no fast-forward, an unbounded cache, the tuned connection.
    """

    def __init__(self, path: Path) -> None:
        unbounded = {
            "AGGREGATE_CACHE_MAXSIZE": "0",
            "AGGREGATE_CACHE_FASTFORWARD": "n",
            "DEEPCOPY_FROM_AGGREGATE_CACHE": "n",
        }
        self._people = _People(env={**_environment(path), **unbounded})
        self._tune(SYNCED_PRAGMAS)

    def _tune(self, pragmas: Iterable[str]) -> None:
        # The pool is a stack and this peer has one thread, so the connection tuned here is the one that is used.
        with self._people.factory.datastore.get_connection(commit=True) as connection:  # type: ignore[attr-defined]
            for pragma in pragmas:
                connection.cursor().execute(f"PRAGMA {pragma}")

    def fill(self, batches: Iterable[list[Event]]) -> None:
        """Record without syncing; the cache is warm after, as in a process that has run for long."""
        self._tune(FILLING_PRAGMAS)
        for batch in batches:
            self.record(batch)
        self._tune((*SYNCED_PRAGMAS, "wal_checkpoint(TRUNCATE)"))

    def record(self, events: list[Event]) -> None:
        """Trigger every event on its cached aggregate, then save all that were touched at once."""
        touched: dict[UUID, Person] = {}
        for told in events:
            name = strongest(told)
            identity = Person.create_id(name)
            person = touched.get(identity)
            if person is None:
                try:
                    person = self._people.repository.get(identity)
                except AggregateNotFoundError:
                    person = Person(name)
                touched[identity] = person
            person.record(told)
        self._people.save(*touched.values())

    def person(self, name: str) -> Person:
        """One aggregate, from the cache."""
        person: Person = self._people.repository.get(Person.create_id(name))
        return person

    def count(self) -> int:
        """Tracked events of all aggregates."""
        return _count(self._people)

    def close(self) -> None:
        """Close the pool."""
        self._people.close()


def _count(people: Application[UUID]) -> int:
    with people.factory.datastore.transaction(commit=False) as cursor:  # type: ignore[attr-defined]
        cursor.execute("SELECT count(*) FROM stored_events WHERE topic LIKE '%Tracked'")
        return int(cursor.fetchone()[0])


def _environment(path: Path) -> dict[str, str]:
    return {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
