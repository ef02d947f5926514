"""Dispatch: what is due happens once. Timers become events, effects go to senders, jobs get on page by page."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol
from zlib import crc32

from threadline.engine.delivery.access import EngineAccess
from threadline.engine.delivery.alone import Alone
from threadline.engine.delivery.backoff import Backoff
from threadline.engine.delivery.circuit import queues_to_work
from threadline.engine.delivery.destination import DestinationWorker
from threadline.engine.delivery.job_worker import JobWorker
from threadline.engine.delivery.leases import LEASE_SECONDS, Leases
from threadline.engine.delivery.outbox import Outbox
from threadline.engine.delivery.outcomes import internal, settle
from threadline.engine.delivery.put_off import effect_is_believed
from threadline.engine.reading.person_reader import readable
from threadline.engine.recording.validation import RecordRequest
from threadline.engine.scheduled import (
    OUTBOX,
    SHARDS,
    TIMER,
    due_of,
    moved,
    pack_effect,
    pending_effect,
    pending_timer,
)
from threadline.kernel.policy import TIMER_FIRED
from threadline.kernel.sender import Queue, Sender
from threadline.kernel.store import Batch, Check, Delete, Item, Put
from threadline.kernel.why import TIME

_OTHERS = Queue("")
"""All effects that are in no queue."""
_NEVER = threading.Event()

log = logging.getLogger("threadline.work")


class Background(Protocol):
    """What goes on beside delivery, a step at a time, in a thread of its own."""

    def start(self, stopping: threading.Event) -> None:
        """Take a step if it is time for one; called in every round."""
        ...

    def step(self) -> int:
        """Take a step in this thread, if there is one that others wait for; how much was done."""
        ...

    def finish(self) -> None:
        """Wait for the step that is being taken."""
        ...


class Dispatcher:
    """Carries out what is due. Any number may run on one store, each on the shards and queues that it has leased."""

    def __init__(
        self,
        engine: EngineAccess,
        senders: Mapping[str, Sender],
        owner: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        page: int = 100,
        background: Sequence[Background] = (),
    ) -> None:
        self.engine = engine
        self.background = background
        self.senders = senders
        self.owner = owner
        self.lease_seconds = lease_seconds
        self.page = page
        self._leases = self._new_leases()
        self._alone = Alone(engine.store, self._leases, page)
        self._outbox = Outbox(engine, senders, _OTHERS)
        self._queues: list[DestinationWorker] | None = None
        self._jobs = JobWorker(engine, self._new_leases())
        self._backoff = Backoff(engine.store, engine.clock, {OUTBOX: effect_is_believed})
        self._lacking: set[str] = set()
        """Policies that are not in force here, and whose timers wait for them."""
        first = crc32(owner.encode()) % SHARDS
        # Each begins at another shard, so that processes that start together do not compete for the same leases.
        self._shards = [(first + number) % SHARDS for number in range(SHARDS)]

    def run_once(self) -> int:
        """Carry out what is due now, at most a page per shard, queue, job and consumer of the feed.

        Returns how many items and pages it was.
        """
        settled = self._work_shards() + sum(queue.send_due(_NEVER) for queue in self._all_queues())
        return settled + self._jobs.work_due() + sum(consumer.step() for consumer in self.background)

    def run(self, stopping: threading.Event, *, idle_seconds: float = 1.0) -> None:
        """Work until ``stopping`` is set; between rounds with nothing due it sleeps ``idle_seconds``.

        Queues and jobs are worked in threads of their own. In the end it gives its leases back.
        """
        while not stopping.is_set():
            for queue in self._all_queues():
                queue.start(stopping)
            self._jobs.start(stopping)
            for consumer in self.background:
                consumer.start(stopping)
            if self._work_shards() == 0:
                stopping.wait(idle_seconds)
        # A mail that is being made may take seconds; nothing has left, so it is due again.
        self.engine.confined.close()
        self.let_go()

    def let_go(self) -> None:
        """Wait for what is under way and give all leases back, so that others need not wait for them to run out."""
        for queue in self._all_queues():
            queue.finish()
        self._jobs.finish()
        for consumer in self.background:
            consumer.finish()
        self._leases.let_go()

    def _work_shards(self) -> int:
        settled = 0
        for table, work in ((TIMER, self._fire), (OUTBOX, self._send)):
            for shard in self._shards:
                due = self._backoff.due(table, f"{shard:02d}", self.page)
                crowded = len(due) == self.page
                if due and (check := self._leases.acquire(f"{table}/{shard:02d}", crowded)) is not None:
                    settled += work(due, check)
        return settled

    def _cannot_fire(self, item: Item, why: str) -> None:
        # It may have gone since it was read: with its person, who was erased meanwhile.
        if self._backoff.rest(item) == 1 and self.engine.store.get([item.key])[0] == item:
            log.error("timer %s is due and cannot fire: %s", item.key.sort, why)

    def _leave_to_policy(self, item: Item, policy: str) -> None:
        self._backoff.rest(item)
        if policy not in self._lacking:
            self._lacking.add(policy)
            log.warning("timers of the policy %s wait: it is not in force here", policy)

    def _all_queues(self) -> list[DestinationWorker]:
        if self._queues is None:
            queues = queues_to_work(self.engine.store, self.engine.catalogue.queues)
            self._queues = [
                DestinationWorker(self.engine, self.senders, queue, self._new_leases(), self.page) for queue in queues
            ]
        return self._queues

    def _new_leases(self) -> Leases:
        return Leases(self.engine.store, self.engine.clock, self.owner, self.lease_seconds)

    def _fire(self, due: list[Item], check: Check) -> int:
        timers, requests = [], []
        waiting = [pending_timer(item) for item in due]
        people = readable(self.engine.reader, [timer.thread for timer in waiting])
        for item, timer in zip(due, waiting, strict=True):
            if self.engine.catalogue.policy(timer.policy) is None:
                # Fired, it would be gone, and what waits for it would wait for ever: its policy may come back, and
                # another process may have it.
                self._leave_to_policy(item, timer.policy)
                continue
            person = people.get(timer.thread)
            if person is None:
                if self.engine.reader.lookup.erasure_of(timer.thread):
                    self._backoff.rest(item)  # it goes with the rest of its person
                else:
                    self._cannot_fire(item, "nobody who can be read has its thread")
                continue
            named = person.identifiers[timer.thread]
            event = internal(timer.workspace, named, TIMER_FIRED, item.key.sort, due_of(item), timer.fired, TIME)
            timers.append(item)
            requests.append(RecordRequest(event, writes=(Delete(item.key, item.version), check), known=True))
        settled = settle(self.engine.recorder, requests)
        for position, why in settled.unfit:
            self._cannot_fire(timers[position], why)
        return settled.done

    def _send(self, due: list[Item], check: Check) -> int:
        settled = 0
        for item in due:
            fresh = self._leases.acquire(check.key.partition)
            if fresh is None:
                break
            if self._moved(item, fresh):
                settled += 1
                continue
            alone = self._alone.next(fresh.key.partition) if self._outbox.is_prepared([item]) else None
            sent = self._outbox.send([item], fresh, alone)
            settled += sent.settled
            if sent.settled < len(sent.outcomes):
                self._leases.doubt(check.key.partition)
            for unable in sent.unable:
                # No sender or person here; a process that has them will take it.
                self._backoff.rest(unable)
        return settled

    def _moved(self, item: Item, check: Check) -> bool:
        """Whether an effect was moved into its queue, which is declared by now: that may claim, or be stopped."""
        pending = pending_effect(item)
        if pending.effect.queue not in self.engine.catalogue.queues:
            return False
        into = moved(pending, self.engine.catalogue.queues, pending.effect.queue)
        batch = Batch(writes=[Delete(item.key, item.version), Put(into.item.key, pack_effect(into), 0), check])
        return self.engine.store.commit([batch])[0] is None
