"""One destination: its queue is sent, backs off while the destination fails, and stops when it is gone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from threadline.engine.delivery.access import EngineAccess
from threadline.engine.delivery.alone import Alone
from threadline.engine.delivery.backoff import Backoff
from threadline.engine.delivery.circuit import Circuit, StoredCircuit, change_circuit, circuit_of
from threadline.engine.delivery.leases import Leases
from threadline.engine.delivery.outbox import Outbox, WaveKey
from threadline.engine.delivery.pace import Pace
from threadline.engine.delivery.put_off import effect_is_believed
from threadline.engine.delivery.retry_schedule import is_too_old
from threadline.engine.delivery.settling import resolve
from threadline.engine.delivery.unknown import over, put_off, unknown_since
from threadline.engine.scheduled import OUTBOX, pending_effect, queue_partition
from threadline.kernel.errors import Unavailable
from threadline.kernel.outbox import UnknownEffect
from threadline.kernel.sender import EFFECT_RETRIED, Outcome, Queue, Sender
from threadline.kernel.store import Check, Item, beyond
from threadline.kernel.time import SECOND, time_key

FAILED_SECONDS = 10.0

log = logging.getLogger("threadline.work")


class DestinationWorker:
    """Sends the queue of one destination, in a thread of its own while something is due."""

    def __init__(
        self, engine: EngineAccess, senders: Mapping[str, Sender], queue: Queue, leases: Leases, page: int
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._leases = leases
        self._page = page
        self._outbox = Outbox(engine, senders, queue)
        self._alone = Alone(engine.store, leases, page)
        self._backoff = Backoff(engine.store, engine.clock, {OUTBOX: effect_is_believed})
        self._looked_at = ""
        """During a back-off: how far the queue was searched for effects that are too old."""
        self._circuit = Circuit(queue, engine.clock)
        self._pace = Pace(queue, engine.clock)
        self._thread: threading.Thread | None = None

    def start(self, stopping: threading.Event) -> None:
        """Start the thread if something is due and it is not running; it ends when nothing is due."""
        if self._thread is not None and self._thread.is_alive():
            return
        if self._backoff.due(*self._where, 1) or self._over(1):
            name = f"threadline-queue-{self._queue.name}"
            self._thread = threading.Thread(target=self._run, args=(stopping,), name=name, daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Wait for the effects being sent, and give the lease back."""
        if self._thread is not None:
            self._thread.join()
        self._outbox.close()
        self._leases.let_go()

    def _run(self, stopping: threading.Event) -> None:
        try:
            while not stopping.is_set() and (self.send_due(stopping) or self._pace.wait_seconds):
                stopping.wait(self._pace.wait_seconds)
        except Unavailable as error:  # what is due stays due; a store that is full or away now may not be in a while
            if not stopping.is_set():
                log.warning("what is due in queue %s waits: %s", self._queue.name, error)
            stopping.wait(FAILED_SECONDS)
        except Exception:
            log.exception("queue %s failed; it goes on in a while", self._queue.name)
            stopping.wait(FAILED_SECONDS)

    def send_due(self, stopping: threading.Event) -> int:
        """Send what is due now, at most a page; returns how many effects were settled."""
        settled = self._resolve_over()
        due = self._sendable(self._backoff.due(*self._where, self._page))
        check = self._leases.acquire(self._lease) if due else None
        if check is None:
            return settled
        stored = circuit_of(self._engine.store, self._queue.name)
        if stored.state.stopped_at:
            return settled + self._give_up(due, check, f"nothing is sent there any more: {stored.state.why}")
        now = self._engine.clock()
        if stored.state.rests_at(now):
            return settled + self._give_up(self._too_old(now), check, "given up on while the place was left alone")
        return settled + self._send(due, stored, stopping)

    def _send(self, due: Sequence[Item], stored: StoredCircuit, stopping: threading.Event) -> int:
        """Send these, as many at once as may be, while nobody else has the lease or changes the circuit."""
        settled = start = 0
        behind: set[WaveKey] = set()
        while start < len(due) and (room := self._pace.room):
            check = None if stopping.is_set() else self._leases.acquire(self._lease)
            if check is None or (start and circuit_of(self._engine.store, self._queue.name) != stored):
                break  # an operator has stopped or started it meanwhile
            alone = self._alone.next(self._lease) if self._outbox.is_prepared(due[start : start + room]) else None
            # After a back-off one effect is sent, to test whether the destination is well.
            stop = start + (1 if stored.state.rests or alone is not None else room)
            sent = self._outbox.send(due[start:stop], check, alone, behind)
            start = stop
            settled += sent.settled
            if sent.settled < len(sent.outcomes):
                # Another process may have the lease, whose clock is ahead: it sends the same.
                self._leases.doubt(self._lease)
            self._pace.note(len(sent.outcomes))
            self._rest(sent.unable)
            circuit = self._circuit.after(stored.state, sent.outcomes)
            if circuit != stored.state:
                # If refused, another process has changed it: its state is read before anything else is sent.
                change_circuit(self._engine.store, self._queue.name, circuit, stored.version, check)
                break
        return settled

    def _over(self, limit: int) -> list[UnknownEffect]:
        """Unknown effects for which the time is over that the queue gives them."""
        if not self._queue.claims or self._queue.unknown == "wait":
            return []
        until = self._engine.clock() - int(self._queue.unknown_seconds * SECOND)
        return over(self._engine.store, self._queue.name, until, limit)

    def _resolve_over(self) -> int:
        if self._queue.claims and self._queue.unknown != "wait":
            now = self._engine.clock()
            for unknown in put_off(self._engine.store, self._queue.name, now, self._page):
                unknown_since(self._engine.store, unknown, now)
        again = Outcome(type=EFFECT_RETRIED, properties={"why": "unknown for too long"}, retry_after_seconds=0.0)
        outcome = again if self._queue.unknown == "send_again" else None
        recorder, reader = self._engine.recorder, self._engine.reader
        by = f"queue {self._queue.name}: {self._queue.unknown}"
        return sum(resolve(recorder, reader, unknown, outcome, by) for unknown in self._over(self._page))

    @property
    def _where(self) -> tuple[str, str]:
        return OUTBOX, queue_partition(self._queue.name)

    @property
    def _lease(self) -> str:
        return "/".join(self._where)

    def _sendable(self, due: Sequence[Item]) -> list[Item]:
        """The items that have a sender here. For others no lease is taken: a process that has the sender needs it."""
        self._rest([item for item in due if not self._outbox.has_sender(item)])
        return [item for item in due if self._outbox.has_sender(item)]

    def _too_old(self, now: int) -> list[Item]:
        """The effects of one page that are too old; the next call continues with the next page.

        An effect that was tried is due later than one that never was: the oldest need not come first.
        """
        if self._queue.give_up_seconds is None:
            return []
        stop = time_key(now + 1)
        items = self._engine.store.query(*self._where, start=self._looked_at, stop=stop, limit=self._page)
        self._looked_at = beyond(items[-1].key.sort) if len(items) == self._page else ""
        return [item for item in items if is_too_old(self._queue, pending_effect(item), now)]

    def _give_up(self, items: Sequence[Item], check: Check, why: str) -> int:
        sent = self._outbox.give_up(items, check, why)
        self._rest(sent.unable)
        return sent.settled

    def _rest(self, items: Sequence[Item]) -> None:
        for item in items:
            self._backoff.rest(item)
