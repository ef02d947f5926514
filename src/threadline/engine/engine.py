"""The engine: one store, one catalogue, one clock, and every way in and out that operations build on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from threadline.engine.credentials import Credentials
from threadline.engine.definition_history import content_of, history_of, remember
from threadline.engine.delivery import circuit as lanes
from threadline.engine.delivery import dead_letters as parking
from threadline.engine.delivery.outcomes import EffectStatus, effect_of
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import unpack_event
from threadline.engine.folding.person import PERSON, Person, people_of
from threadline.engine.maintenance import indexes as indexing
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.engine.reading.person_reader import Asker, Cursor
from threadline.engine.reading.ranks import Ranks
from threadline.engine.recording import correcting, merging
from threadline.engine.recording import rejected_log as rejected
from threadline.engine.recording.fresh import fresh_among
from threadline.engine.recording.identity import Grounds
from threadline.engine.recording.recorder import Recorder
from threadline.engine.recording.sources import sources_of
from threadline.engine.recording.validation import Checked, RecordRequest, ValidatedEvent
from threadline.engine.scheduled import effect_id, pending_timers
from threadline.engine.shared import SharedValues
from threadline.engine.simulation.jobs import Running, Trials
from threadline.engine.simulation.run import Done, Way, run, trial
from threadline.kernel.errors import Unavailable
from threadline.kernel.event import Event, Receipt, Recorded, event_id
from threadline.kernel.limits import EVENTS_PAGE_MAX
from threadline.kernel.policy import Known
from threadline.kernel.rejected import Reader, RejectedEntry, StoredEntry
from threadline.kernel.store import FeedEntry, Key, LogEntry, Store
from threadline.kernel.time import Clock


class Engine:
    """Everything that works on one store. Thread-safe. Close it to release the store; a fork has to open its own."""

    def __init__(self, store: Store, catalogue: Catalogue, clock: Clock) -> None:
        self._process = os.getpid()
        self.store = store
        self.catalogue = catalogue
        self.clock = clock
        self.recorder = Recorder(store, catalogue, clock)
        self.asker = Asker(store, catalogue)
        self.ranks = Ranks(store, clock, self.recorder.committing)
        self.recorder.watchers.append(self.ranks.committed)
        indexing.prepare(store, catalogue)
        remember(store, catalogue, clock)
        self.credentials = Credentials(store, clock)
        self.trials = Trials()
        self.activation_changed_max: float | None = None
        """The largest share of answers that may change when a version of a rule is activated, 0 to 1, by a saved
        what-if; None: no what-if is required."""
        self.readers: dict[str, Reader] = {}
        """Form of a rejected payload -> how to read it again; only the composition root knows the wire formats."""

    def now(self) -> int:
        """The instant to read at: after everything that this process has recorded. See `threadline.kernel.time`."""
        return self.recorder.now()

    def reading(self) -> AbstractContextManager[None]:
        """A context for the reads of a surface: the writer of this process lets them go first."""
        return self.recorder.readers.reading()

    def give_way(self) -> None:
        """Wait for those reads, as the writer does: for who prepares what it will write, not on an event loop."""
        self.recorder.readers.give()

    def refuse_forks(self) -> None:
        """Raise `Unavailable` in a copy of the process that opened the store.

        It has the locks and connections of its parent, but not the threads that hold them: it would wait for ever, or
        write where the parent writes.
        """
        if os.getpid() != self._process:
            raise Unavailable(
                f"the store was opened by the process {self._process}, of which this one is a fork",
                hint="Open it in the process that uses it, after the fork.",
            )

    @property
    def shared(self) -> SharedValues:
        """What policies share of a workspace."""
        return self.recorder.shared

    # --- writing ---------------------------------------------------------------------------

    def record(
        self, events: Sequence[Event], *, expected: int | None = None, cause: str = "", known: bool = False
    ) -> list[Receipt]:
        """Record events; one receipt each, in order. What is accepted is durable when this returns.

        ``expected`` is the position the events' person must be at (optimistic concurrency); None for any. ``cause`` is
        the event because of which Threadline itself records them. ``known``: they are about people who have been looked
        up, and name these by an identifier in its stored form; see `RecordRequest.known`.
        """
        self.refuse_forks()
        return self.recorder.record([RecordRequest(event, cause, expected, known=known) for event in events])

    def check(self, events: Sequence[Event]) -> list[Checked]:
        """Validate events for `record_checked`, without the store and beside whatever is recorded meanwhile.

        Raises `InvalidValue` where the caller is at fault, such as for a workspace that cannot be one.
        """
        return self.recorder.check(map(RecordRequest, events))

    def record_checked(self, checked: Sequence[Checked]) -> list[Receipt]:
        """Record what `check` returned, once; one receipt each, in order. What is accepted is durable when this
        returns."""
        self.refuse_forks()
        return self.recorder.record_checked(checked)

    def likely_person(self, one: ValidatedEvent) -> str:
        """What events of the same person have in common, without the store; see `Recorder.likely_person`."""
        return self.recorder.likely_person(one)

    def fresh(self, checked: Sequence[Checked]) -> list[list[int]]:
        """The positions of each new thing among these events: an exact duplicate is not new, a different payload is."""
        return fresh_among(self.store, checked)

    def rehearse(self, event: Event, look: Callable[[Recorded, Known], Any]) -> Any:
        """What ``look`` returns for an event and its person as a policy would see them. Nothing is recorded."""
        return self.recorder.rehearse(RecordRequest(event), look)

    def reject(self, entries: Sequence[RejectedEntry]) -> None:
        """Keep what a wire could not even read as an event in the rejected log."""
        rejected.keep(self.store, entries)

    def resubmit(
        self, stored: StoredEntry, event: Event, *, expected: int | None = None
    ) -> tuple[Receipt, RejectedEntry]:
        """Record the correction of an entry, which is settled in the same commit. See `correcting.resubmit`."""
        return correcting.resubmit(self.recorder, stored, event, expected)

    def dismiss(self, stored: StoredEntry, reason: str) -> RejectedEntry:
        """Settle an entry without recording anything. Raises `Conflict` if somebody has decided about it."""
        return rejected.settle(self.store, stored, "dismissed", reason)

    def merge(
        self, workspace: str, one: str, other: str, *, request: str, reason: str = "", by: str = "", force: bool = False
    ) -> tuple[str, str]:
        """Join two people; returns the ids of (survivor, merged)."""
        return merging.merge(self.recorder, workspace, one, other, Grounds(request, reason, by), force=force)

    def split(
        self, workspace: str, person: str, identifiers: Sequence[str], *, request: str, reason: str = "", by: str = ""
    ) -> tuple[str, str]:
        """Take identifiers out of a person; returns the ids of (person, new person)."""
        return merging.split(self.recorder, workspace, person, identifiers, Grounds(request, reason, by))

    def unmerge(self, workspace: str, event: str, *, request: str, reason: str = "", by: str = "") -> tuple[str, str]:
        """Undo the merge that this event records; returns the ids of (survivor, the person who is back)."""
        return merging.unmerge(self.recorder, workspace, event, Grounds(request, reason, by))

    def review(self, workspace: str, id: str, *, join: bool, by: str = "") -> dict[str, Any]:
        """Decide about a join that was set aside."""
        return merging.review(self.recorder, workspace, id, join=join, by=by)

    # --- reading ---------------------------------------------------------------------------

    def person(self, workspace: str, ref: str, *, known_at: int | None = None) -> Person:
        """The person of an id or of ``kind:value``, as of today or of an earlier instant; raises `NotFound`."""
        return self.asker.person(workspace, ref, known_at=known_at)

    def views(
        self, person: Person, now: int, *, known_at: int | None = None, names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Each projection's view of a person at an instant; see `Asker.views`."""
        return self.asker.views(person, now, known_at=known_at, names=names)

    def events(
        self, person: Person, *, start: int | None = None, stop: int | None = None, types: frozenset[str] = frozenset(),
        after: Cursor | None = None, limit: int = 100, reverse: bool = False,
    ) -> list[Recorded]:  # fmt: skip
        """A page of a person's events; see `Asker.events`."""
        return self.asker.events(person, start=start, stop=stop, types=types, after=after, limit=limit, reverse=reverse)

    def all_events(
        self, person: Person, *, start: int | None = None, stop: int | None = None, types: frozenset[str] = frozenset(),
        after: Cursor | None = None, reverse: bool = False, size: int = EVENTS_PAGE_MAX,
    ) -> Iterator[Recorded]:  # fmt: skip
        """The same to the end, however many there are, in pages of ``size``."""
        while page := self.events(
            person, start=start, stop=stop, types=types, after=after, limit=size, reverse=reverse
        ):
            yield from page
            if len(page) < size:
                return
            after = (page[-1].event.occurred_at, page[-1].id)

    def event(self, workspace: str, id: str) -> Recorded:
        """One event by id; raises `NotFound`."""
        return self.asker.event(workspace, id)

    def event_of_key(self, workspace: str, source: str, key: str) -> Recorded | None:
        """The event that a source sent under an idempotency key; None if there is none."""
        return self.event_of_keys(workspace, [source], [key])

    def event_of_keys(self, workspace: str, sources: Sequence[str], keys: Sequence[str]) -> Recorded | None:
        """The event that the first of these sources sent under one of these keys; None if there is none."""
        ids = [event_id(workspace, source, key) for source in sources for key in keys]
        known = self.store.seen(ids)
        return next((self.asker.event(workspace, id) for id in ids if id in known), None)

    def sources(self, workspace: str) -> list[str]:
        """Every source that has recorded in a workspace or has a credential for it."""
        return list(dict.fromkeys([*self.credentials.sources(workspace), *sources_of(self.store, workspace)]))

    def rejected_entry(self, workspace: str, id: str) -> StoredEntry:
        """One entry of the rejected log; raises `NotFound`."""
        return rejected.read(self.store, workspace, id)

    def rejected_page(self, workspace: str, before: str = "", limit: int = 100) -> list[tuple[str, RejectedEntry]]:
        """Entries of the rejected log newest first, with the cursor after each."""
        return rejected.page(self.store, workspace, before, limit)

    def people(self, workspace: str | None, after: str = "", limit: int = 1_000) -> tuple[list[Person], str]:
        """A page of the people of a workspace in a stable order, and the id to continue after ("": the end).

        None means all workspaces, for what an operator does to the whole store.
        """
        start = Key(PERSON, after) if after else None
        items = self.store.scan(PERSON, after=start, limit=limit)
        found = [
            self.asker.by_id(person.id) or person if person.stale else person
            for person in people_of(self.store, self.catalogue, items)
            if isinstance(person, Person) and workspace in (None, person.workspace)
        ]
        return found, items[-1].key.partition if len(items) == limit else ""

    def all_people(self, workspace: str) -> Iterator[Person]:
        """Every person of a workspace, page by page."""
        after = ""
        while True:
            page, after = self.people(workspace, after)
            yield from page
            if not after:
                return

    def due(self, person: Person, name: str, now: int) -> int | None:
        """The next instant after ``now`` at which a view of a person changes through time alone; None: never."""
        return self.asker.due(person, name, now)

    def ahead(self, person: Person, now: int) -> int | None:
        """The next instant after ``now`` from which a further event of the log counts; None if all count already."""
        return self.asker.ahead(person, now)

    def of_entry(self, entry: LogEntry) -> Recorded:
        """The event of an entry of the feed."""
        return unpack_event(entry)

    def effect(self, workspace: str, policy: str, cause: str, key: str, at: int) -> EffectStatus:
        """The effect that a policy wished for because of an event, and what became of it."""
        return effect_of(self.store, self.catalogue.lanes, workspace, effect_id(policy, cause, key), at)

    def parked(self, workspace: str, lane: str = "", after: str = "", limit: int = 100) -> list[parking.Parked]:
        """A page of the effects that were given up on; see `parking.parked`."""
        return parking.parked(self.store, workspace, lane, after, limit)

    def redrive(self, found: Sequence[parking.Parked], by: str) -> int:
        """Make parked effects due again; returns how many are."""
        return parking.redrive(self.recorder, self.asker, found, by)

    def lane_states(self) -> list[lanes.LaneState]:
        """The declared lanes of the outbox, with the state of each and what waits in it."""
        return lanes.lane_states(self.store, self.catalogue.lanes)

    def stop_lane(self, name: str, why: str) -> bool:
        """Stop sending in a lane; returns whether that changes anything. Raises `NotFound`."""
        return lanes.stop_lane(self.store, self.clock, self.catalogue.lanes, name, why)

    def start_lane(self, name: str) -> bool:
        """Resume sending in a lane; returns whether that changes anything. Raises `NotFound`."""
        return lanes.start_lane(self.store, self.catalogue.lanes, name)

    def declared_turns(self, shared: str, name: str) -> list[tuple[int, int]]:
        """(instant, version) of each change of what the definitions declare, oldest first; version 0: nothing
        declared."""
        history = history_of(self.store, shared, name)
        return [] if history is None else [(turn.at, turn.version) for turn in history.turns]

    def declared_content(self, shared: str, name: str, version: int) -> bytes | None:
        """The content of a version that was declared at some time; None if it never was."""
        return content_of(self.store, shared, name, version)

    def upcoming(self, workspace: str, policy: str, before: int, after: str = "") -> Iterator[tuple[str, Person]]:
        """People for whom a policy has a timer due before an instant, in order of its due time, with the cursor after
        each."""
        for timer in pending_timers(self.store, before, after):
            if (timer.workspace, timer.policy) == (workspace, policy):
                person = self.asker.by_thread(timer.thread)
                if person is not None:
                    yield timer.item.key.sort, person

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """Every committed event once, in the order of commits, of all workspaces."""
        return self.store.feed(cursor, limit)

    def quarantined(self, workspace: str, after: str = "", limit: int = 100) -> list[dict[str, Any]]:
        """Joins that were set aside for review."""
        return merging.quarantined(self.recorder, workspace, after, limit)

    def preview_merge(self, workspace: str, one: str, other: str) -> tuple[Person, Person, str]:
        """The merged person, the one merged away, and what speaks against the merge. Writes nothing."""
        return merging.preview_merge(self.asker, workspace, one, other)

    def preview_split(self, workspace: str, person: str, identifiers: Sequence[str]) -> tuple[Person, Person]:
        """The two people a split would leave. Writes nothing."""
        return merging.preview_split(self.asker, workspace, person, identifiers)

    def has_all_rows(self, name: str) -> bool:
        """Whether everybody's index rows of a projection are written, as it is declared now."""
        return indexing.is_complete(self.store, self.catalogue.projections[self.catalogue.index[name]])

    def write_rows(self, name: str) -> int:
        """Write everybody's index rows, after a change of a projection; returns how many people were read.

        The projection may be gone: if nothing declared needs it any more, there is none of that name.
        """
        changed = [each for each in self.catalogue.projections if each.name == name]
        people = indexing.write_rows(self.store, self.catalogue, changed)
        self.recorder.clear_caches()
        self.ranks.clear()
        return people

    def refold_all(self) -> int:
        """Derive everybody's states again from the log on this core; returns the number of events folded."""
        done = refold_everybody(self.store, self.catalogue)
        self.recorder.clear_caches()
        self.ranks.clear()
        return done.events

    def what_if(
        self, workspace: str, old: tuple[Any, ...], new: tuple[Any, ...], start: int, stop: int, tally: Any, *,
        people: Sequence[str] | None = None, **more: Any,
    ) -> Callable[[Key | None], Iterator[Done]]:  # fmt: skip
        """Replay everybody's history in two ways, from a key on; a way is given as the fields of `whatif.Way`. It only
        reads.

        ``more`` are the options of `whatif.trial`; ``people`` are ids.
        """
        tried = trial(Way(*old), Way(*new), start, stop, tally, **more)
        return lambda after: run(self.store, self.catalogue, workspace, tried, after=after, people=people)

    def try_out(
        self, id: str, workspace: str, subject: Any, pages: Callable[[Key | None], Iterator[Done]],
        finish: Callable[[Any], None], *, wait: bool,
    ) -> Running:  # fmt: skip
        """Run a what-if under an id, in this thread with ``wait``, else beside it.

        ``finish`` is called in the end with the subject of the one that ran: somebody may have asked the same before.
        """
        running = Running(id, workspace, subject, pages, finish, self.store.stats().get("log_entries"))
        return self.trials.run(running, wait=wait)

    def close(self) -> None:
        """Release the store. In a fork it does nothing: the store is its parent's."""
        if os.getpid() != self._process:
            return
        self.trials.stop_all()
        self.store.close()
