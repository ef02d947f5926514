"""The outbox: effects that are due are sent, and the outcome of each is an event in its person's thread."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from msgspec.structs import replace

from threadline.engine.delivery.access import EngineAccess
from threadline.engine.delivery.dead_letters import dead_letter_put
from threadline.engine.delivery.outcomes import identifier_of, internal, settle
from threadline.engine.delivery.retry_schedule import RETRY_SECONDS_FIRST, Retry, fate_of
from threadline.engine.folding.packing import pack, time_key
from threadline.engine.recording.validation import RecordRequest
from threadline.engine.scheduled import pack_effect, pending_effect, unrecorded_key
from threadline.kernel.event import Identifier
from threadline.kernel.limits import LOGGED_EVENT_BYTES_MAX
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.rejected import as_text, writable
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_RETRIED, Outcome, Queue, Sender
from threadline.kernel.store import Batch, Check, Delete, Item, Put
from threadline.kernel.time import format_time

log = logging.getLogger("threadline.work")


class Able(NamedTuple):
    """An effect and an identifier of the thread that its outcome goes to."""

    one: PendingEffect
    identifier: Identifier


def left_of(items: Sequence[Item], able: Sequence[Able]) -> list[Item]:
    """The items that belong to none of these."""
    keys = {each.one.item.key for each in able}
    return [item for item in items if item.key not in keys]


class Sent(NamedTuple):
    """The result of sending some effects."""

    settled: int
    """How many are done, dead letters, or due again."""
    outcomes: list[Outcome]
    unable: list[Item]
    """Not sent: no sender for them in this process, or no person has their thread."""


class Outbox:
    """Sends effects of one queue, and settles their outcomes."""

    def __init__(self, engine: EngineAccess, senders: Mapping[str, Sender], queue: Queue) -> None:
        self._engine = engine
        self._senders = senders
        self.queue = queue
        self._threads = ThreadPoolExecutor(queue.at_once, f"threadline-{queue.name}") if queue.at_once > 1 else None

    def able(self, items: Sequence[Item]) -> list[Able]:
        """The effects whose thread has a person, so that their outcome can be recorded."""
        found = []
        for one in map(pending_effect, items):
            identifier = identifier_of(self._engine.reader, one.thread)
            if identifier is not None:
                found.append(Able(one, identifier))
        return found

    def has_sender(self, item: Item) -> bool:
        """Whether it can be sent from here."""
        return pending_effect(item).effect.kind in self._senders

    def send(self, items: Sequence[Item], check: Check) -> Sent:
        """Send these at the same time. What has no sender here stays due: a process that has it will take it."""
        able = [each for each in self.able(items) if each.one.effect.kind in self._senders]
        if len(able) > 1 and self._threads is not None:
            outcomes = list(self._threads.map(self._sent, able))
        else:
            outcomes = [self._sent(each) for each in able]
        settled = self.settle(list(zip(able, outcomes, strict=True)), check)
        return Sent(settled, outcomes, left_of(items, able))

    def settle(self, done: Sequence[tuple[Able, Outcome]], check: Check) -> int:
        """Record outcomes, each in the commit that removes its effect; returns how many are.

        An effect whose outcome cannot be recorded becomes a dead letter without it: left in the outbox, it would be
        sent again and again.
        """
        settled = settle(self._engine.recorder, [self._request(each, outcome, check) for each, outcome in done])
        batches = [self._unrecorded(*done[place], why, check) for place, why in settled.unfit]
        refusals = self._engine.store.commit(batches) if batches else []
        return settled.done + refusals.count(None)

    def close(self) -> None:
        """Stop the threads that send."""
        if self._threads is not None:
            self._threads.shutdown()

    def _sent(self, able: Able) -> Outcome:
        one = able.one
        try:
            return _writable(self._senders[one.effect.kind].send(one.effect, one.id, one.thread))
        except Exception as error:  # noqa: BLE001 — a sender that breaks must not stop the others, nor lose its effect
            failure = {"error": f"{type(error).__name__}: {error}"[:500]}
            return Outcome(type=EFFECT_RETRIED, properties=failure, retry_after_seconds=RETRY_SECONDS_FIRST)

    def _request(self, able: Able, outcome: Outcome, check: Check) -> RecordRequest:
        one = able.one
        now = self._engine.clock()
        type, extra, put = self._fate(one, outcome, now)
        properties = {
            "effect": one.id, "kind": one.effect.kind, "policy": one.policy, "cause": one.cause, **outcome.properties,
            **extra,
        }  # fmt: skip
        event = internal(one.workspace, able.identifier, type, f"{one.id}/{one.attempts}", now, properties)
        gone = Delete(one.item.key, one.item.version)
        return RecordRequest(event, one.cause, None, (gone, *put, check), known=True)

    def _unrecorded(self, able: Able, outcome: Outcome, why: str, check: Check) -> Batch:
        one = able.one
        why = f"what came of it could not be recorded: {why}"
        log.error("effect %s of workspace %s is a dead letter: %s", one.id, one.workspace, why)
        last = {"outcome": outcome.type, **outcome.properties}
        gone = Delete(one.item.key, one.item.version)
        noted = Put(unrecorded_key(one.workspace, one.id), b"-")
        dead_letter = dead_letter_put(one, self.queue.name, why, last, self._engine.clock())
        return Batch(writes=[gone, dead_letter, noted, check])

    def _fate(self, one: PendingEffect, outcome: Outcome, now: int) -> tuple[str, dict[str, Any], tuple[Put, ...]]:
        """The type of the event, its further properties, and the writes."""
        if outcome.retry_after_seconds is None and not outcome.parked:
            return outcome.type, {}, ()
        tried = one._replace(attempts=one.attempts + 1)
        fate = fate_of(self.queue, one, outcome, now)
        if not isinstance(fate, Retry):
            dead_letter = dead_letter_put(tried, self.queue.name, fate.why, outcome.properties, now)
            return EFFECT_PARKED, {"why": fate.why}, (dead_letter,)
        key = one.item.key._replace(sort=f"{time_key(fate.at)}.{one.id}")
        return EFFECT_RETRIED, {"retry_at": format_time(fate.at)}, (Put(key, pack_effect(tried), 0),)


def _writable(outcome: Outcome) -> Outcome:
    """The outcome; where no store could hold it, its text, cut.

    It must be settled like any other: were it lost, its effect would be sent again and again.
    """
    try:
        if len(pack((outcome.type, outcome.properties, outcome.parked))) <= LOGGED_EVENT_BYTES_MAX:
            return outcome
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    return replace(
        outcome, type=writable(outcome.type), parked=writable(outcome.parked), properties={"told": as_text(outcome)}
    )
