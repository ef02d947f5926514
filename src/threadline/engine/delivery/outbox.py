"""The outbox: due effects are prepared, claimed and sent, and the outcome of each is an event of its person."""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from threadline.engine.delivery.access import EngineAccess
from threadline.engine.delivery.alone import ENDED_OFTEN, Alone
from threadline.engine.delivery.attempts import TRIM_EVERY, trim
from threadline.engine.delivery.claims import Wanted, claim, wanted
from threadline.engine.delivery.dead_letters import dead_letter_puts
from threadline.engine.delivery.outcomes import settle
from threadline.engine.delivery.preparing import failed, prepare
from threadline.engine.delivery.settling import fitting, request_of, resolve
from threadline.engine.delivery.unknown import unknown_effect
from threadline.engine.folding.person import Person
from threadline.engine.interpreter import gc_deferred
from threadline.engine.reading.person_reader import readable
from threadline.engine.scheduled import pending_effect, postponed_key, postponed_writes, unrecorded_key
from threadline.kernel.errors import Unavailable
from threadline.kernel.event import Identifier
from threadline.kernel.outbox import Claim, PendingEffect
from threadline.kernel.preparation import Answer, Postponed, Prepared
from threadline.kernel.sender import (
    EFFECT_PARKED,
    EFFECT_UNKNOWN,
    POSTPONED_SECONDS_MAX,
    Outcome,
    Queue,
    Sender,
)
from threadline.kernel.store import Batch, Check, Delete, Item, Put
from threadline.kernel.time import SECOND

CLAIMER_GONE = "its claim has no outcome: the process that claimed it was stopped before or after sending it"
POSTPONED_SECONDS_MIN = 1

log = logging.getLogger("threadline.work")


WaveKey = tuple[str, str]
"""The same for effects of which only one can be prepared at a time: the person and the kind."""


class Able(NamedTuple):
    """An effect, the person of its thread, and the identifier that its outcome goes to."""

    pending: PendingEffect
    identifier: Identifier
    person: Person


class Ready(NamedTuple):
    """An effect that is to be sent."""

    able: Able
    prepared: Prepared


class Done(NamedTuple):
    """An effect and its outcome, which is recorded only while this holds."""

    able: Able
    outcome: Outcome
    check: Check | None
    """None for what this process has claimed: nobody else sends it, whoever has the lease by now."""


def left_of(items: Sequence[Item], able: Iterable[Able]) -> list[Item]:
    """The items that belong to none of these."""
    keys = {effect.pending.item.key for effect in able}
    return [item for item in items if item.key not in keys]


class Sent(NamedTuple):
    """The result of sending some effects."""

    settled: int
    """How many are done, dead letters, unknown, or due again."""
    outcomes: list[Outcome]
    """What came of those that were sent."""
    unable: list[Item]
    """Not sent: no sender for them in this process, or no person has their thread."""


class Outbox:
    """Sends effects of one queue, and settles their outcomes. Not thread-safe: each worker has its own."""

    def __init__(self, engine: EngineAccess, senders: Mapping[str, Sender], queue: Queue) -> None:
        self._engine = engine
        self._senders = senders
        self.queue = queue
        self._threads = ThreadPoolExecutor(queue.at_once, f"threadline-{queue.name}") if queue.at_once > 1 else None
        self._unsent: set[str] = set()
        """Tokens of claims whose commit failed: they may have gone through, but nothing was sent."""
        self._untrimmed: Counter[str] = Counter()
        """By workspace, attempts since those beyond the bounds were taken away."""
        self._unsettled: list[Done] = []
        """What was sent under a claim while the store could not take the outcome."""

    def able(self, items: Sequence[Item]) -> list[Able]:
        """The effects whose thread has a person, so that their outcome can be recorded."""
        effects = [pending_effect(item) for item in items]
        people = readable(self._engine.reader, [effect.thread for effect in effects])
        return [
            Able(effect, person.identifiers[effect.thread], person)
            for effect in effects
            if (person := people.get(effect.thread)) is not None
        ]

    def has_sender(self, item: Item) -> bool:
        """Whether it can be sent from here."""
        return pending_effect(item).effect.kind in self._senders

    def is_prepared(self, items: Sequence[Item]) -> bool:
        """Whether any of these needs something before it is sent."""
        return any(pending_effect(item).effect.kind in self._engine.catalogue.preparations for item in items)

    def send(
        self, items: Sequence[Item], check: Check, alone: Alone | None = None, behind: set[WaveKey] | None = None
    ) -> Sent:
        """Send these at the same time. What has no sender here stays due: a process that has it will take it.

        ``alone``: there is one, which is noted while it is prepared. ``behind``: of whom something has stayed due that
        comes before these; theirs stays due as well.
        """
        if self._unsettled:
            return Sent(self._settle_sent(()), [], [])
        able = [effect for effect in self.able(items) if effect.pending.effect.kind in self._senders]
        with gc_deferred():  # a mail is thousands of objects that are gone a moment later
            ready, done, settled = self._prepared(able, check, alone, set() if behind is None else behind)
        claimed, taken = self._claimed(ready, check)
        if len(claimed) > 1 and self._threads is not None:
            outcomes = list(self._threads.map(self._sent, claimed))
        else:
            outcomes = [self._sent(prepared) for prepared in claimed]
        for (effect, _), outcome in zip(claimed, outcomes, strict=True):
            done.append(Done(effect, outcome, check if effect.pending.claim is None else None))
        settled += self._settle_sent([*done, *taken])
        return Sent(settled, outcomes, left_of(items, able))

    def give_up(self, items: Sequence[Item], check: Check, why: str) -> Sent:
        """Make these dead letters, without sending them."""
        able = self.able(items)
        outcome = Outcome(type=EFFECT_PARKED, parked=why)
        done = [Done(effect, self._left(effect.pending) or outcome, check) for effect in able]
        return Sent(self._settle(done), [], left_of(items, able))

    def close(self) -> None:
        """Stop the threads that send, after a last attempt to settle what was sent."""
        if self._unsettled:
            with suppress(Unavailable):
                self._settle_sent(())
        if self._threads is not None:
            self._threads.shutdown()

    def _left(self, pending: PendingEffect) -> Outcome | None:
        """The outcome of an effect that is found claimed; None if nobody can have sent it."""
        if pending.claim is None or pending.claim.token in self._unsent:
            return None
        return Outcome(type=EFFECT_UNKNOWN, properties={"why": CLAIMER_GONE})

    def _prepared(
        self, able: Sequence[Able], check: Check, alone: Alone | None, behind: set[WaveKey]
    ) -> tuple[list[Ready], list[Done], int]:
        """What is to be sent, what has an outcome without that, and how many were postponed."""
        ready: list[Ready] = []
        done, later, waiting = [], [], []
        for effect in able:
            left = self._left(effect.pending)
            if left is None and alone is not None and alone.has_ended_many(effect.pending, check):
                left = Outcome(type=EFFECT_PARKED, parked=ENDED_OFTEN)
            if left is not None:
                done.append(Done(effect, left, check))
            elif self._wave_key(effect) not in behind:
                waiting.append(effect)
        now = self._engine.recorder.now()
        while waiting:
            wave: dict[WaveKey, Able] = {}
            for effect in waiting:
                wave.setdefault(self._wave_key(effect), effect)
            answers = self._answers(list(wave.values()), check, alone, now)
            sent = set()
            for wave_key, effect in wave.items():
                made = answers[effect.pending.id]
                if isinstance(made, Prepared):
                    ready.append(Ready(effect, made))
                    sent.add(wave_key)
                elif isinstance(made, Outcome):
                    done.append(Done(effect, fitting(made), check))
                else:
                    later.append(self._postponed(effect.pending, made, check))
            # Others of the same people stay due: what they are prepared with must hold what comes of these.
            waiting = [effect for effect in waiting if effect.pending.id not in answers]
            behind |= sent.intersection(map(self._wave_key, waiting))
            waiting = [effect for effect in waiting if self._wave_key(effect) not in sent]
        return ready, done, self._engine.store.commit(later).count(None) if later else 0

    def _answers(self, wave: Sequence[Able], check: Check, alone: Alone | None, now: int) -> Mapping[str, Answer]:
        asked = [(effect.pending, effect.person) for effect in wave]
        if alone is None:
            return prepare(self._engine, asked, now)
        with alone.noted(asked[0][0], check):
            return prepare(self._engine, asked, now)

    def _wave_key(self, effect: Able) -> WaveKey:
        """The same for effects of which only one can be prepared at a time."""
        kind = effect.pending.effect.kind
        return (effect.person.id if kind in self._engine.catalogue.preparations else effect.pending.id), kind

    def _postponed(self, pending: PendingEffect, made: Postponed, check: Check) -> Batch:
        now = self._engine.clock()
        until = min(max(made.until, now + POSTPONED_SECONDS_MIN * SECOND), now + POSTPONED_SECONDS_MAX * SECOND)
        return Batch(writes=[*postponed_writes(pending, until), check])

    def _claimed(self, ready: Sequence[Ready], check: Check) -> tuple[list[Ready], list[Done]]:
        """What may be sent, and what may not because another effect has claimed the same key."""
        free = [candidate for candidate in ready if not self.queue.claims and not candidate.prepared.claims]
        claims, done = [], []
        for candidate in ready:
            if self.queue.claims or candidate.prepared.claims:
                want = self._wanted(candidate)
                if isinstance(want, Outcome):
                    done.append(Done(candidate.able, want, check))
                else:
                    claims.append((candidate, want))
        if not claims:
            return free, done
        tokens = {want.pending.claim.token for _, want in claims if want.pending.claim is not None}
        self._unsent |= tokens
        results = claim(self._engine.store, [want for _, want in claims], check)
        self._unsent -= tokens
        for (candidate, _), result in zip(claims, results, strict=True):
            if isinstance(result, PendingEffect):
                free.append(Ready(candidate.able._replace(pending=result), candidate.prepared))
            elif result == "taken":
                done.append(Done(candidate.able, fitting(candidate.prepared.taken), check))
        return free, done

    def _wanted(self, ready: Ready) -> Wanted | Outcome:
        """The claim on an effect, or the outcome where there can be none."""
        noted = fitting(ready.prepared.done)
        claimed = Claim(secrets.token_hex(8), self._engine.clock(), noted.type, noted.properties)
        try:
            return wanted(ready.able.pending._replace(claim=claimed), ready.prepared.claims)
        except Exception as error:  # noqa: BLE001 — a preparation with a mistake must not stop the others
            return failed(error)

    def _sent(self, ready: Ready) -> Outcome:
        pending, recorder = ready.able.pending, self._engine.recorder
        if recorder.tracing is None:
            outcome = self._send_one(ready)
        else:
            with recorder.tracing.sending(pending, self.queue.name) as note:
                outcome = note(self._send_one(ready))
        recorder.counts.sent(pending.workspace, pending.effect.kind, outcome)
        return outcome

    def _send_one(self, ready: Ready) -> Outcome:
        pending = ready.able.pending
        try:
            effect = replace(pending.effect, data=ready.prepared.data)
            return fitting(self._senders[effect.kind].send(effect, pending.id, pending.thread))
        except Exception as error:  # noqa: BLE001 — a sender that breaks must not stop the others, nor lose its effect
            if pending.claim is None:
                return failed(error)
            why = f"{type(error).__name__}: {error}"[:500]
            return Outcome(type=EFFECT_UNKNOWN, properties={"why": why}, destination="failing")

    def _settle_sent(self, done: Sequence[Done]) -> int:
        """Settle what was sent, and what could not be settled before. If the store is away, it is remembered."""
        done = [*self._unsettled, *done]
        self._unsettled = [item for item in done if item.check is None]
        settled = self._settle(done)
        self._unsettled = []
        return settled

    def _settle(self, done: Sequence[Done]) -> int:
        """Record outcomes, each in the commit that removes its effect; returns how many are.

        An effect whose outcome cannot be recorded becomes a dead letter without it: left in the outbox, it would be
        sent again and again.
        """
        now = self._engine.clock()
        requests = [
            request_of(self.queue, item.able.pending, item.able.identifier, item.outcome, now, _gone(item))
            for item in done
        ]
        settled = settle(self._engine.recorder, requests)
        late = sum(self._resolved(done[position]) for position in settled.conflicting)
        batches = [self._unrecorded(done[position], why) for position, why in settled.unfit]
        refusals = self._engine.store.commit(batches) if batches else []
        self._trim(done, now)
        return settled.done + late + refusals.count(None)

    def _trim(self, done: Sequence[Done], now: int) -> None:
        """Take away attempts that are beyond the bounds, now and then."""
        shown = {item.able.pending.workspace for item in done if item.outcome.exchange is not None}
        for workspace in shown:
            self._untrimmed[workspace] += len(done)
            if self._untrimmed[workspace] >= TRIM_EVERY:
                self._untrimmed[workspace] = 0
                with suppress(Unavailable):
                    trim(self._engine.store, workspace, now)

    def _resolved(self, done: Done) -> bool:
        """Settle what this process has sent, after another has found its claim and made it unknown."""
        pending = done.able.pending
        if done.check is not None or pending.claim is None or done.outcome.type == EFFECT_UNKNOWN:
            return False
        unknown = unknown_effect(self._engine.store, pending.workspace, pending.id)
        if unknown is None or unknown.pending.claim is None or unknown.pending.claim.token != pending.claim.token:
            return False
        return resolve(self._engine.recorder, self._engine.reader, unknown, done.outcome, "its sender")

    def _unrecorded(self, done: Done, why: str) -> Batch:
        pending = done.able.pending
        why = f"what came of it could not be recorded: {why}"
        log.error("effect %s of workspace %s is a dead letter: %s", pending.id, pending.workspace, why)
        last = {"outcome": done.outcome.type, **done.outcome.properties}
        noted = Put(unrecorded_key(pending.workspace, pending.id), b"-")
        dead_letter = dead_letter_puts(pending, self.queue.name, why, last, self._engine.clock())
        return Batch(writes=[*_gone(done), *dead_letter, noted])


def _gone(done: Done) -> tuple[Delete | Check, ...]:
    """What takes the effect out of the outbox, as long as it is still ours."""
    pending = done.able.pending
    gone: tuple[Delete | Check, ...] = (Delete(pending.item.key, pending.item.version),)
    if pending.postponed:
        gone += (Delete(postponed_key(pending.workspace, pending.id)),)
    return gone if done.check is None else (*gone, done.check)
