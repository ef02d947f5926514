"""Lanes at work: a queue is worked off, left alone while its destination fails, stopped when that wants no more."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from threadline.engine.delivery.access import EngineAccess
from threadline.engine.delivery.backoff import Backoff
from threadline.engine.delivery.circuit import Circuit, change_circuit, circuit_of
from threadline.engine.delivery.leases import Leases
from threadline.engine.delivery.outbox import Outbox, left_of
from threadline.engine.delivery.retry_schedule import is_too_old
from threadline.engine.folding.packing import time_key
from threadline.engine.scheduled import OUTBOX, lane_partition, pending_effect
from threadline.kernel.errors import Unavailable
from threadline.kernel.sender import EFFECT_PARKED, Lane, Outcome, Sender
from threadline.kernel.store import Check, Item, beyond

FAILED_SECONDS = 10.0

log = logging.getLogger("threadline.work")


class DestinationWorker:
    """Works on one lane, in a thread of its own while something is due in it."""

    def __init__(
        self, engine: EngineAccess, senders: Mapping[str, Sender], lane: Lane, leases: Leases, page: int
    ) -> None:
        self._engine = engine
        self._lane = lane
        self._leases = leases
        self._page = page
        self._outbox = Outbox(engine, senders, lane)
        self._backoff = Backoff(engine.store, engine.clock)
        self._looked_at = ""
        """While the place is left alone: up to where it was looked for what has grown too old."""
        self._circuit = Circuit(lane, engine.clock)
        self._thread: threading.Thread | None = None

    def start(self, stopping: threading.Event) -> None:
        """Work until nothing is due, beside the caller; nothing happens if that is so, or if it works already."""
        if (self._thread is None or not self._thread.is_alive()) and self._backoff.due(*self._where, 1):
            name = f"threadline-lane-{self._lane.name}"
            self._thread = threading.Thread(target=self._run, args=(stopping,), name=name, daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Wait for what is being sent, and give the lease back."""
        if self._thread is not None:
            self._thread.join()
        self._outbox.close()
        self._leases.let_go()

    def _run(self, stopping: threading.Event) -> None:
        try:
            while not stopping.is_set() and self.turn(stopping):
                pass
        except Unavailable as error:  # what is due stays due; a store that is full or away now may not be in a while
            log.warning("what is due in lane %s waits for the store: %s", self._lane.name, error)
            stopping.wait(FAILED_SECONDS)
        except Exception:
            log.exception("lane %s failed; it goes on in a while", self._lane.name)
            stopping.wait(FAILED_SECONDS)

    def turn(self, stopping: threading.Event) -> int:
        """Work off what is due now, at most a page; answers how many effects were settled."""
        due = self._sendable(self._backoff.due(*self._where, self._page))
        check = self._leases.acquire(self._lease) if due else None
        if check is None:
            return 0
        stored = circuit_of(self._engine.store, self._lane.name)
        if stored.state.stopped_at:
            return self._give_up(due, check, f"nothing is sent there any more: {stored.state.why}")
        now = self._engine.clock()
        if stored.state.rest_until > now:
            return self._give_up(self._too_old(now), check, "given up on while the place was left alone")
        # After a rest a single one is sent, to see whether the place is well.
        at_once = 1 if stored.state.rests else self._lane.at_once
        settled = 0
        for start in range(0, len(due), at_once):
            check = None if stopping.is_set() else self._leases.acquire(self._lease)
            if check is None or (start and circuit_of(self._engine.store, self._lane.name) != stored):
                break  # somebody has stopped it, or started it again
            sent = self._outbox.send(due[start : start + at_once], check)
            settled += sent.settled
            self._rest(sent.unable)
            circuit = self._circuit.after(stored.state, sent.outcomes)
            if circuit != stored.state:
                # If it is refused, somebody else has changed it, and that is read before anything else is sent.
                change_circuit(self._engine.store, self._lane.name, circuit, stored.version, check)
                break
        return settled

    @property
    def _where(self) -> tuple[str, str]:
        return OUTBOX, lane_partition(self._lane.name)

    @property
    def _lease(self) -> str:
        return "/".join(self._where)

    def _sendable(self, due: Sequence[Item]) -> list[Item]:
        """Those that have a sender here; for the others no lease is taken, which a process that has it needs."""
        self._rest([item for item in due if not self._outbox.has_sender(item)])
        return [item for item in due if self._outbox.has_sender(item)]

    def _too_old(self, now: int) -> list[Item]:
        """What is to be given up on, of one page; the next turn looks at the page behind it.

        What was tried is due later than what never was: the oldest need not stand in front.
        """
        if self._lane.give_up_seconds is None:
            return []
        stop = time_key(now + 1)
        items = self._engine.store.query(*self._where, start=self._looked_at, stop=stop, limit=self._page)
        self._looked_at = beyond(items[-1].key.sort) if len(items) == self._page else ""
        return [item for item in items if is_too_old(self._lane, pending_effect(item), now)]

    def _give_up(self, items: Sequence[Item], check: Check, why: str) -> int:
        outcome = Outcome(type=EFFECT_PARKED, parked=why)
        able = self._outbox.able(items)
        self._rest(left_of(items, able))
        return self._outbox.settle([(each, outcome) for each in able], check)

    def _rest(self, items: Sequence[Item]) -> None:
        for item in items:
            self._backoff.rest(item)
