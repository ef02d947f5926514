"""The recorder: events in, receipts out, everything durable or nothing.

One call goes through six steps: validation (`validation.py`), finding duplicates (`duplicates.py`), reading its people
and assigning its events to groups without a common person (`working_set.py`), work on one group after the other, and
the commit (`attempt.py` has what it is made of). Lost races are tried again (`_Retries`).
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from threadline.engine.counts import IDENTITY_MERGES, PROJECTION_ERRORS, Counts
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person
from threadline.engine.folding.person_view import ReactingPersonView
from threadline.engine.interpreter import ReaderPriority, gc_deferred
from threadline.engine.reading.sources import Sources
from threadline.engine.recording import rejected_log
from threadline.engine.recording.attempt import Attempt, Change, Isolation, Plans, Unfilled
from threadline.engine.recording.duplicates import fresh_among, sort_out
from threadline.engine.recording.identity import resolve, review_alias
from threadline.engine.recording.reactions import (
    AttemptReactions,
    TracedReactions,
    cascade,
    failure_message,
    look_first,
    note_fired,
)
from threadline.engine.recording.validation import (
    BEING_ERASED,
    FENCED,
    PROJECTION_FAILED,
    TOO_MANY_CHANGES,
    Checked,
    RecordRequest,
    UnrecordableEvents,
    ValidatedEvent,
    Validator,
)
from threadline.engine.recording.working_set import (
    PEOPLE_CACHE_BYTES,
    ConcurrencyConflict,
    ContentionTracker,
    PeopleCache,
    WorkingSet,
    assign,
)
from threadline.engine.shared import SharedValues
from threadline.engine.tracing import CallTrace, Tracing
from threadline.kernel.errors import (
    BeingErased,
    Conflict,
    EventDamaged,
    EventRejected,
    InvalidValue,
    LimitExceeded,
    ThreadlineError,
    Unavailable,
)
from threadline.kernel.event import Event, Receipt, Recorded
from threadline.kernel.identity import ALIAS
from threadline.kernel.policy import TIMER_FIRED, PolicyView
from threadline.kernel.store import Batch, Refusal, Store
from threadline.kernel.time import CLOCK_SKEW_MAX, Clock, believed_until

T = TypeVar("T")

CALL_EVENTS_MAX = 1_000
ATTEMPTS_MAX = 64
"""Attempts in a row that settle nothing, lost to other processes, before the call fails."""
PAUSE_SECONDS_MAX = 0.1

log = logging.getLogger("threadline.policies")


def refuse_erased(receipts: Iterable[Receipt]) -> None:
    """Raise `BeingErased` if one of these events names a person who is being erased.

    It is in no log, so its sender must send it again, with or without its neighbours, which are duplicates by then.
    """
    for receipt in receipts:
        if receipt.code == BEING_ERASED:
            raise BeingErased(receipt.message)


class _Call:
    """One call of `record`: its requests, and the settled receipts and refusals by position."""

    __slots__ = ("events", "isolation", "receipts", "refused", "requests", "trace")

    def __init__(self, checked: Sequence[Checked]) -> None:
        self.requests: list[RecordRequest] = []
        self.events: list[ValidatedEvent] = []
        self.receipts: dict[int, Receipt] = {}
        self.refused: dict[int, EventRejected] = {}
        self.isolation = Isolation(set(), set())
        self.trace: CallTrace | None = None
        for position, item in enumerate(checked):
            self.requests.append(item.request)
            if isinstance(item, ValidatedEvent):
                item.position = position
                self.events.append(item)
            else:
                self.refused[position] = item.error

    def unsettled(self) -> list[ValidatedEvent]:
        """The events for the next attempt."""
        if len(self.receipts.keys() | self.refused.keys()) == len(self.requests):
            return []
        return [
            event for event in self.events if event.position not in self.receipts and event.position not in self.refused
        ]

    @property
    def settled(self) -> int:
        """A measure of progress: it grows with each request that is settled or isolated."""
        return len(self.receipts) + len(self.refused) + sum(map(len, self.isolation))


class _Retries:
    """The attempts at one call."""

    __slots__ = ("_attempts", "_settled")

    def __init__(self) -> None:
        self._attempts = 0
        self._settled = 0

    def again(self, settled: int = 0) -> None:
        """Wait before the next attempt, with jitter: longer after each that settled nothing. ``settled`` measures the
        progress. Raises `Unavailable` after too many."""
        # An attempt that settled something was not lost to other writers.
        self._attempts, self._settled = (0 if settled > self._settled else self._attempts + 1), settled
        if self._attempts == ATTEMPTS_MAX:
            raise Unavailable("other writers keep changing the same people; try again")
        if self._attempts:
            time.sleep(random.uniform(0, min(0.001 * 2**self._attempts, PAUSE_SECONDS_MAX)))


def _isolate(error: UnrecordableEvents, isolation: Isolation, refused: dict[int, EventRejected]) -> None:
    """Isolate the requests that made an attempt void; reject those that were isolated already."""
    unfit = set(error.positions)
    assert unfit, "whatever is recorded here belongs to a request"
    if len(unfit) > 1 and not unfit <= isolation.alone:
        # One of a batch is unrecordable: with a batch for each, its neighbours are recorded.
        isolation.alone.update(unfit)
    elif error.code == TOO_MANY_CHANGES and not unfit <= isolation.unjoined:
        # The merge may be too large for a batch: then the merge is quarantined, and the event recorded.
        isolation.unjoined.update(unfit)
    else:
        refused.update({position: EventRejected(error.code, str(error)) for position in unfit})


class Recorder:
    """Records events. Thread-safe: calls are validated side by side, and worked on and committed one after the other.

    Callers that arrive while a call commits wait for the lock; surfaces with many callers should collect what
    waits and hand it over in one call (that is the group commit).
    """

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        clock: Clock,
        *,
        tracing: Tracing | None = None,
        recorded_until: int = 0,
        shared_refresh_seconds: float | None = 0.0,
        unfilled: Callable[[], Sequence[Unfilled]] = tuple,
        people_cache_bytes: int = PEOPLE_CACHE_BYTES,
    ) -> None:
        self._process = os.getpid()
        self.store = store
        self.catalogue = catalogue
        self.clock = clock
        self.recorded_until = recorded_until
        """The instant right after the newest ``recorded_at`` of this process; 0 before its first commit."""
        self.readers = ReaderPriority()
        self.shared = SharedValues(store, catalogue, clock, shared_refresh_seconds)
        self.sources = Sources(store)
        self._lock = threading.Lock()
        self._validator = Validator(
            catalogue.rules, catalogue.never_ahead, catalogue.event_types, catalogue.values_read
        )
        self._plans = Plans(catalogue, self.shared)
        self.people_cache = self._cache = PeopleCache(people_cache_bytes)
        self._contention = ContentionTracker(store, self._cache)
        self._unfilled = unfilled
        """What not everybody was looked at for yet."""
        self._is_filled = not catalogue.refreshes
        """Whether there is nothing of the kind, which stays so for the definitions of a process."""
        self.tracing = tracing
        """None: nothing is traced, and tracing costs nothing."""
        self.counts = Counts(catalogue.counters)
        self.policy_failures: dict[tuple[str, ...], int] = {}
        """(workspace, policy) -> how often it has raised about an event that this process recorded."""
        self.watchers: list[Callable[[Sequence[Batch] | None], None]] = []
        """Called with the batches of each commit before the next one is made; with None if it is unknown which went
        through."""

    @property
    def committing(self) -> threading.Lock:
        """Locked while a call is worked on and committed."""
        return self._lock

    @property
    def forked(self) -> bool:
        """Whether this is a copy of the process that opened the store."""
        return os.getpid() != self._process

    def refuse_forks(self) -> None:
        """Raise `Unavailable` in a copy of the process that opened the store.

        It has the locks and connections of its parent, but not its threads: it would wait for ever, or write over the
        parent's writes.
        """
        if os.getpid() != self._process:
            raise Unavailable(
                f"the store was opened by the process {self._process}, of which this one is a fork",
                hint="Open it in the process that uses it, after the fork.",
            )

    def now(self) -> int:
        """The clock, or the instant right after all that this process has recorded, whichever is later.

        What it recorded before its clock was set back counts no more: every read would be made on that day, with its
        streaks broken and its week's board empty.
        """
        now = self.clock()
        return max(now, believed_until(self.recorded_until, now, CLOCK_SKEW_MAX))

    def record(
        self, events: Sequence[Event], *, expected: int | None = None, cause: str = "", known: bool = False
    ) -> list[Receipt]:
        """Record events; one receipt each, in order. What is accepted is durable when this returns.

        ``expected`` is the position the events' person must be at (optimistic concurrency); None for any. ``cause`` is
        the event because of which Threadline itself records them. ``known``: they are about people who have been looked
        up, and name these by an identifier in its stored form; see `RecordRequest.known`. Raises `BeingErased` once all
        others are recorded.
        """
        receipts = self.record_requests([RecordRequest(event, cause, expected, (), known) for event in events])
        refuse_erased(receipts)
        return receipts

    def record_requests(self, requests: Sequence[RecordRequest]) -> list[Receipt]:
        """Record what `record` makes of events, each with its own receipt, in order.

        A rejected event is kept in the rejected log and never stops its neighbours. Raises `Unavailable`
        (with `StoreFull`, `StoreBusy`) when the store cannot take them; what was then not answered was not written,
        and sending the same events again is safe.
        """
        receipts: list[Receipt] = []
        for start in range(0, len(requests), CALL_EVENTS_MAX):
            with gc_deferred():
                call = self.readers.between(requests[start : start + CALL_EVENTS_MAX])
                checked = self._validator.check(call, self.clock())
                receipts += self.record_checked(checked)
        return receipts

    def check(self, events: Iterable[Event]) -> list[Checked]:
        """Validate events for `record_checked`, without the store and without a lock.

        Raises `InvalidValue` where the caller is at fault, such as for a workspace that cannot be one.
        """
        return self._validator.check(map(RecordRequest, events), self.clock())

    def fresh(self, checked: Sequence[Checked]) -> list[list[int]]:
        """The positions of each new payload among these events; an exact duplicate is not new."""
        return fresh_among(self.store, self.catalogue.rules, checked)

    def likely_person(self, event: ValidatedEvent) -> str:
        """The id of an event's person if it is cached, else the thread of its strongest identifier.

        A guess: it neither reads the store nor waits.
        """
        thread = event.names[0].thread
        return self._cache.owners.peek(thread) or thread

    def recent(self, id: str) -> Recorded | None:
        """An event of a person's tail by its id, if this process has recorded it lately."""
        return self._cache.events.peek(id)

    def record_checked(self, checked: Sequence[Checked]) -> list[Receipt]:
        """Record what `check` has made of requests, in one call. See `record`. Whoever makes many calls defers the
        collector, or has stopped it as a server does."""
        self.refuse_forks()
        call = _Call(checked)
        if self.tracing is not None:
            call.trace = self.tracing.call()
        with self._lock:
            receipts = self._record(call)
        if self.tracing is not None and call.trace is not None:
            recorded = [(event.id, event.event, event.request.cause) for event in call.events]
            self.tracing.recorded(call.trace, recorded, [receipts[event.position] for event in call.events])
        return receipts

    def _record(self, call: _Call) -> list[Receipt]:
        if call.events:
            call.receipts.update(self._attempt(call, call.events, certain=False))
            if events := call.unsettled():
                self._try_again(call, events)
        if call.refused:
            now = self.clock()
            unfit = {i: error for i, error in call.refused.items() if error.code not in (FENCED, BEING_ERASED)}
            entries = [rejected_log.entry_of(call.requests[i].event, e, now) for i, e in unfit.items()]
            rejected_log.keep(self.store, entries)
            for i, error in call.refused.items():
                if error.code == PROJECTION_FAILED:
                    self.counts.add(PROJECTION_ERRORS, call.requests[i].event.workspace)
                call.receipts[i] = Receipt(status="rejected", code=error.code, message=str(error))
        return list(map(call.receipts.__getitem__, range(len(call.requests))))

    def _try_again(self, call: _Call, events: Sequence[ValidatedEvent]) -> None:
        """Make attempts until every event is settled: after a lost race, or without what made an attempt void."""
        retries = _Retries()
        while events:
            retries.again(call.settled)
            call.receipts.update(self._attempt(call, events, certain=True))
            events = call.unsettled()

    # --- one attempt -----------------------------------------------------------------------

    def _begin(
        self, events: Iterable[ValidatedEvent], isolation: Isolation | None = None, *, cached: bool = True
    ) -> Attempt:
        """An attempt at these events; without ``cached`` it reads everything from the store."""
        self._plans.refresh({event.event.workspace for event in events})
        now = self.clock()
        people = WorkingSet(self.store, self.catalogue, self._cache if cached else PeopleCache(), self.readers.give)
        isolation = isolation or Isolation(set(), set())
        attempt = Attempt(self.store, self.catalogue, people, now, self._plans, isolation)
        attempt.counted = self.counts.by_type
        if not self._is_filled:
            attempt.unfilled = self._unfilled()
            self._is_filled = not attempt.unfilled
        return attempt

    def _attempt(self, call: _Call, events: Sequence[ValidatedEvent], *, certain: bool) -> dict[int, Receipt]:
        """The receipts that this attempt settles. Until it is ``certain`` which events are new, it rejects none of
        them."""
        attempt = self._begin(events, call.isolation)
        attempt.trace = call.trace
        try:
            groups = self._groups(attempt, call, events, certain=certain)
            contended = self._contention.contended(groups)
            if any(contended):
                if all(contended):
                    with self._contention.locked(set().union(*contended)):
                        # Begun again: after waiting, events are known no earlier than the lock was taken.
                        attempt = self._begin(events, call.isolation)
                        attempt.trace = call.trace
                        groups = self._groups(attempt, call, events, certain=certain)
                        return self._worked(attempt, groups, call, certain=certain)
                # Events of contended people, which may wait for other processes, get an attempt of their own.
                for group, people in zip(groups, contended, strict=True):
                    attempt.unsettled.update(event.id for event in group if people)
                groups = [group for group, people in zip(groups, contended, strict=True) if not people]
            return self._worked(attempt, groups, call, certain=certain)
        except BaseException:
            attempt.people.forget_all()
            raise

    def _groups(
        self, attempt: Attempt, call: _Call, events: Sequence[ValidatedEvent], *, certain: bool
    ) -> list[list[ValidatedEvent]]:
        fresh = self._sort_out(attempt, call, events, certain=certain)
        attempt.people.warm(fresh)
        return assign(fresh, attempt.people)

    def _sort_out(
        self, attempt: Attempt, call: _Call, events: Sequence[ValidatedEvent], *, certain: bool = True
    ) -> list[ValidatedEvent]:
        # Also for duplicates: a crash may have committed the event without its source row.
        sources = {(event.event.workspace, event.event.source) for event in events}
        if not sources <= self.sources.known:
            for put in self.sources.missing(sources):
                attempt.changes.commit_apart([put])
        return sort_out(attempt, events, call.refused, certain=certain)

    def _worked(
        self, attempt: Attempt, groups: Sequence[Sequence[ValidatedEvent]], call: _Call, *, certain: bool
    ) -> dict[int, Receipt]:
        readers = self.readers
        for group in groups:
            if readers.reads:
                readers.give()
            first = len(attempt.changes.sealed)
            try:
                _record_group(attempt, group)
            except ConcurrencyConflict:
                attempt.undo(first, group)
            except UnrecordableEvents as error:
                attempt.undo(first, group)
                if certain:
                    _isolate(error, call.isolation, call.refused)
        if readers.reads:
            readers.give()
        return self._commit(attempt, call)

    def _commit(self, attempt: Attempt, call: _Call) -> dict[int, Receipt]:
        began = call.trace.clock() if call.trace is not None else 0
        outcomes = self._committed(attempt)
        if call.trace is not None:
            call.trace.commit(began)
        conflicting: set[str] = set()
        lost: set[int] = set()
        for (change, _), refusal in zip(attempt.changes.sealed, outcomes, strict=False):
            if refusal is not None:
                lost.update(change.requests)
                conflicting |= change.ids
                self._refuse_fenced(change.requests, call)
        people = attempt.people
        if conflicting:
            attempt.unsettled.update(attempt.receipts[i].id for i in lost if i in attempt.receipts)
            people.forget(conflicting)
        changed = [person for id, person in people.touched.items() if id not in conflicting]
        people.keep(changed)
        self._contention.note(changed, conflicting)
        return attempt.answers()

    def _refuse_fenced(self, positions: Sequence[int], call: _Call) -> None:
        # A refused batch is tried again, unless a condition of the request itself no longer holds: a lost lease stays
        # lost, a deleted timer is gone.
        for position in positions:
            conditions = [w for w in call.requests[position].writes if w.expected is not None]
            items = self.store.get([c.key for c in conditions])
            for condition, item in zip(conditions, items, strict=True):
                if (item.version if item is not None else 0) != condition.expected:
                    message = f"another process was faster: {condition.key.table} {condition.key.partition} has changed"
                    call.refused[position] = EventRejected(FENCED, message)

    # --- besides events --------------------------------------------------------------------

    def rehearse(self, event: Event, look: Callable[[Recorded, PolicyView], T]) -> T:
        """What ``look`` returns for an event that is appended and folded like any other, and then forgotten.

        Raises `EventRejected` for what could not be recorded, and `InvalidValue` for what is recorded already.
        """
        call = _Call(self.check([event]))
        with self._lock:
            attempt = self._begin(call.events, cached=False)
            fresh = self._sort_out(attempt, call, call.events)
            attempt.people.warm(fresh)
            for error in call.refused.values():
                raise error
            if not fresh:
                raise InvalidValue("an event with this key is recorded already; name it by its id")
            try:
                return look(*_fold_only(attempt, fresh[0]))
            except (UnrecordableEvents, ConcurrencyConflict) as error:
                raise Unavailable(f"the event cannot be tried now: {error}") from None

    def change(self, work: Callable[[Attempt], T]) -> T:
        """Run ``work`` on an attempt of its own and commit what it changes: merges, splits and the like.

        Retried from the start after a lost race; an exception of ``work`` undoes everything.
        """
        self.refuse_forks()
        with self._lock:
            retries = _Retries()
            while True:
                # Without the cache: an operator's request is decided by the present state of the store.
                attempt = self._begin((), cached=False)
                try:
                    result = work(attempt)
                    attempt.changes.seal_open()
                    if not any(self._committed(attempt)):
                        return result
                except ConcurrencyConflict:
                    pass
                except UnrecordableEvents as error:
                    if error.code == BEING_ERASED:
                        raise BeingErased(str(error)) from error
                    hint = "Take some tags off first." if error.code == TOO_MANY_CHANGES else ""
                    raise LimitExceeded(str(error), hint=hint) from error
                finally:
                    self._forget(attempt)
                retries.again()

    def _forget(self, attempt: Attempt) -> None:
        """Drop the people whom an attempt has changed from the cache, which it did not use."""
        for id, person in attempt.people.touched.items():
            self._cache.people.forget(id)
            for thread in person.heads:
                self._cache.owners.forget(thread)

    def _committed(self, attempt: Attempt) -> list[Refusal | None]:
        """Commit and notify the watchers; returns the refusal, or None, of each batch."""
        batches = attempt.changes.batches()
        outcomes: list[Refusal | None] = []
        done: list[Batch] | None = None
        try:
            if batches:
                # Before the commit: a commit that raises may have gone through.
                self.recorded_until = max(self.recorded_until, attempt.now + 1)
                outcomes = self.store.commit(batches)
            done = [batch for batch, refusal in zip(batches, outcomes, strict=True) if refusal is None]
            for (change, _), refusal in zip(attempt.changes.sealed, outcomes, strict=False):
                if refusal is None and (change.failures or change.counted or attempt.quarantined):
                    self._note(change, attempt)
        finally:
            for watcher in self.watchers:
                watcher(done)
        return outcomes

    def _note(self, change: Change, attempt: Attempt) -> None:
        """Count what metrics count of a change that is committed, and log the policies that raised in it."""
        self.counts.note(change.counted)
        for join in attempt.quarantined & change.writes.keys():
            self.counts.add(IDENTITY_MERGES, join.partition, "quarantined")
        for cause, failure, error in change.failures:
            policy = failure.properties["policy"]
            key = (next(iter(change.people.values())).workspace, policy)
            self.policy_failures[key] = self.policy_failures.get(key, 0) + 1
            # The traceback of the first only: one for every event would flood the log.
            log.error(
                "policy_failed: %s, event %s",
                failure_message(failure),
                cause,
                exc_info=error if self.policy_failures[key] == 1 else None,
            )

    def forget_events(self, ids: Iterable[str]) -> None:
        """Drop events that were erased from the cache."""
        for id in ids:
            self._cache.events.forget(id)

    def forget_person(self, id: str, threads: Iterable[str]) -> None:
        """Drop a person who was erased from the cache."""
        with self._lock:
            self._cache.people.forget(id)
            for thread in threads:
                self._cache.owners.forget(thread)

    def clear_caches(self) -> None:
        """Drop the cache: the store was written past this recorder."""
        with self._lock:
            self._cache.clear()


def _record_group(attempt: Attempt, events: Sequence[ValidatedEvent]) -> None:
    """Record the events of one group in an attempt. Raises `ConcurrencyConflict` or `UnrecordableEvents`: then nothing
    of the group is to be committed."""
    for event in events:
        try:
            _record_event(attempt, event)
        except UnrecordableEvents as error:
            raise error if error.positions else UnrecordableEvents([event.position], error.code, str(error)) from error
        except Conflict as error:
            # The ids of consequences come from the event: another process has recorded it since this attempt read.
            raise ConcurrencyConflict(f"event {event.id} has joined two people already") from error
        except EventDamaged as error:
            # It needs an event that cannot be read. The rejected log keeps it until that is repaired; its neighbours
            # are recorded.
            raise UnrecordableEvents([event.position], error.code, str(error)) from error
        except (ThreadlineError, ConcurrencyConflict):
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            raise UnrecordableEvents([event.position], PROJECTION_FAILED, message) from error
    attempt.changes.seal_open()


def _record_event(attempt: Attempt, validated: ValidatedEvent) -> None:
    request = validated.request
    attempt.changes.position = validated.position
    person, thread = _person_of(attempt, validated)
    if request.expected is not None and request.expected != person.position:
        # Void, not only rejected: finding the person may have created, linked or joined people already.
        message = f"expected position {request.expected}, the person is at {person.position}; read and decide again"
        raise UnrecordableEvents([validated.position], "position_conflict", message)
    if validated.event.type == ALIAS:
        review_alias(attempt, person, validated)
    if attempt.unfilled:
        look_first(attempt, person, validated.event.type, validated.id)
    if validated.event.type == TIMER_FIRED:
        note_fired(person, thread, validated.event)
    plan = attempt.plans.of(person.workspace, validated.counts_as)
    recorded = attempt.append(person, thread, validated, plan)
    if plan.awaits == -1 or plan.awaits & attempt.folded[validated.id][1]:
        trace = attempt.trace
        reactions = AttemptReactions(attempt) if trace is None else TracedReactions(attempt, trace, validated.id)
        cascade(reactions, person, recorded)
    if validated.position in attempt.isolation.alone:
        attempt.changes.seal(attempt.changes.of(person))
    attempt.receipts[validated.position] = Receipt(
        status="accepted", id=validated.id, person=person.id, thread=thread, sequence=recorded.sequence
    )


def _person_of(attempt: Attempt, validated: ValidatedEvent) -> tuple[Person, str]:
    """The person and the thread of an event: nearly always one who has all of its identifiers."""
    names, owners = validated.names, attempt.people.owners
    person = owners.get(names[0].thread)
    if person is not None:
        for name in names:
            if owners.get(name.thread) is not person:
                break
        else:
            return person, names[0].thread
    return resolve(attempt, validated.event.workspace, names, validated.id, validated.event.why)


def _fold_only(attempt: Attempt, validated: ValidatedEvent) -> tuple[Recorded, ReactingPersonView]:
    """An event, appended and folded, and its person right after it. Policies are not asked."""
    event = validated.event
    person, thread = resolve(attempt, event.workspace, validated.names, validated.id, event.why)
    recorded = attempt.append(person, thread, validated, attempt.plans.of(event.workspace, validated.counts_as))
    return recorded, AttemptReactions(attempt).known(person, recorded)
