"""Dispatch: what is due happens once. Timers become events; outbox items go to senders and their outcome comes back."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from threadline.engine.engine import Engine
from threadline.engine.packing import pack, time_key, unpack
from threadline.engine.screen import Request
from threadline.engine.wishes import OUTBOX, SHARDS, TIMER
from threadline.kernel.event import Event, Identifier
from threadline.kernel.policy import TIMER_FIRED, Effect
from threadline.kernel.sender import Outcome, Sender
from threadline.kernel.store import Batch, Check, Delete, Item, Key, Put
from threadline.kernel.time import SECOND

LEASE = "lease"
EFFECT_RETRIED = "threadline.effect_retried"
"""Type of the event that says an effect did not happen yet and when it is tried again."""

_KNOWN = ("duplicate", "conflict")
RETRY_SECONDS_FIRST = 5.0
RETRY_SECONDS_MAX = 3_600.0


class Dispatcher:
    """Works off what is due. Any number may run on one store: each shard is worked by the holder of its lease.

    The version of the lease item is the fencing token: every commit of a dispatcher is conditional on it, so one
    that was paused past its lease can commit nothing any more, whatever it believes.
    """

    def __init__(
        self, engine: Engine, senders: Mapping[str, Sender], owner: str, *, lease_seconds: float = 30.0, page: int = 100
    ) -> None:
        self.engine = engine
        self.senders = senders
        self.owner = owner
        self.lease = int(lease_seconds * SECOND)
        self.page = page
        self._held: dict[str, tuple[int, int]] = {}
        """Lease name -> (fencing token, until when)."""
        first = crc32(owner.encode()) % SHARDS
        # Everybody begins at another shard, so that those who start together do not run for the same leases.
        self._shards = [(first + number) % SHARDS for number in range(SHARDS)]

    def run_once(self) -> int:
        """Work off what is due now, at most a page per shard; answers how many items were settled."""
        settled = 0
        for table, work in ((TIMER, self._fire), (OUTBOX, self._send)):
            for shard in self._shards:
                stop = time_key(self.engine.clock() + 1)
                due = self.engine.store.query(table, f"{shard:02d}", stop=stop, limit=self.page)
                crowded = len(due) == self.page
                if due and (check := self._acquire(f"{table}/{shard:02d}", crowded)) is not None:
                    settled += work(due, check)
        return settled

    def run(self, stopping: threading.Event, *, idle_seconds: float = 1.0) -> None:
        """Work until told to stop; between rounds with nothing due it sleeps ``idle_seconds``.

        In the end it gives its leases back, so that others need not wait for them to run out.
        """
        while not stopping.is_set():
            if self.run_once() == 0:
                stopping.wait(idle_seconds)
        for name in list(self._held):
            self._let_go(name)

    # --- leases ----------------------------------------------------------------------------

    def _acquire(self, name: str, crowded: bool = False) -> Check | None:
        """The condition that holds while the lease is ours, or None while another holds it."""
        now = self.engine.clock()
        key = Key(LEASE, name)
        held = self._held.get(name)
        if held is not None and now < held[1] - self.lease // 2:
            return Check(key, held[0])
        if held is not None and crowded:
            # Not renewed but given back: where more is due than one process can do, others get their turn.
            self._let_go(name)
            return None
        item = self.engine.store.get([key])[0]
        if item is not None:
            owner, until = unpack(item.value)
            if owner != self.owner and until > now:
                self._held.pop(name, None)
                return None
        version = item.version if item is not None else 0
        until = now + self.lease
        if self.engine.store.commit([Batch(writes=[Put(key, pack((self.owner, until)), version)])])[0] is not None:
            return None
        self._held[name] = (version + 1, until)
        return Check(key, version + 1)

    def _let_go(self, name: str) -> None:
        token, _ = self._held.pop(name)
        # If another has it by now, this is refused, as it should be.
        self.engine.store.commit([Batch(writes=[Put(Key(LEASE, name), pack((self.owner, 0)), token)])])

    # --- timers ----------------------------------------------------------------------------

    def _fire(self, due: list[Item], check: Check) -> int:
        requests = []
        for item in due:
            workspace, thread, policy, key, data = unpack(item.value)
            identifier = self._identifier(thread)
            if identifier is None:
                continue
            properties = {"policy": policy, "key": key, "data": data}
            event = _internal(workspace, identifier, TIMER_FIRED, item.key.sort, _due_of(item), properties)
            requests.append(Request(event, "", None, (Delete(item.key, item.version), check)))
        return self._settle(requests)

    def _settle(self, requests: list[Request]) -> int:
        """Record what came of items that were due; answers how many are off the table."""
        receipts = self.engine.recorder.record(requests)
        # Its event is in the log already: nothing is recorded again, but the item must go, or it would be due for ever.
        again = [each for each, receipt in zip(requests, receipts, strict=True) if receipt.status in _KNOWN]
        refusals = self.engine.store.commit([Batch(writes=each.writes) for each in again]) if again else []
        return sum(receipt.status == "accepted" for receipt in receipts) + refusals.count(None)

    def _identifier(self, thread: str) -> Identifier | None:
        person = self.engine.asker.by_thread(thread)
        return None if person is None else person.identifiers[thread]

    # --- effects ---------------------------------------------------------------------------

    def _send(self, due: list[Item], check: Check) -> int:
        settled = 0
        for item in due:
            workspace, thread, policy, cause, attempts, (kind, key, due_at, data) = unpack(item.value)
            sender = self.senders.get(kind)
            identifier = self._identifier(thread)
            if sender is None or identifier is None:
                continue  # it stays due: a process that has this sender will take it
            fresh = self._acquire(check.key.partition)
            if fresh is None:
                break
            effect = Effect(kind=kind, key=key, due_at=due_at, data=data)
            id = item.key.sort.partition(".")[2]
            outcome = _sent(sender, effect, id, thread)
            writes = self._settling(item, outcome, attempts)
            type = outcome.type if outcome.retry_after_seconds is None else EFFECT_RETRIED
            properties = {"effect": id, "kind": kind, "policy": policy, "cause": cause, **outcome.properties}
            event = _internal(workspace, identifier, type, f"{id}/{attempts}", self.engine.clock(), properties)
            settled += self._settle([Request(event, cause, None, (*writes, fresh))])
        return settled

    def _settling(self, item: Item, outcome: Outcome, attempts: int) -> tuple[Put | Delete, ...]:
        gone = Delete(item.key, item.version)
        if outcome.retry_after_seconds is None:
            return (gone,)
        wait = max(outcome.retry_after_seconds, min(RETRY_SECONDS_FIRST * 2**attempts, RETRY_SECONDS_MAX))
        at = self.engine.clock() + int(wait * SECOND)
        key = item.key._replace(sort=f"{time_key(at)}.{item.key.sort.partition('.')[2]}")
        content = unpack(item.value)
        content[4] = attempts + 1
        return (gone, Put(key, pack(content), 0))


def _sent(sender: Sender, effect: Effect, id: str, thread: str) -> Outcome:
    try:
        return sender.send(effect, id, thread)
    except Exception as error:  # noqa: BLE001 — a sender that breaks must not stop the others, nor lose its effect
        failure = {"error": f"{type(error).__name__}: {error}"[:500]}
        return Outcome(type=EFFECT_RETRIED, properties=failure, retry_after_seconds=RETRY_SECONDS_FIRST)


def _due_of(item: Item) -> int:
    return int(item.key.sort.partition(".")[0], 16) - (1 << 62)


def _internal(
    workspace: str, identifier: Identifier, type: str, key: str, at: int, properties: dict[str, Any]
) -> Event:
    return Event(
        type=type,
        identifiers=(identifier,),
        occurred_at=at,
        key=key,
        source="threadline.dispatch",
        source_type="internal",
        workspace=workspace,
        properties=properties,
    )
