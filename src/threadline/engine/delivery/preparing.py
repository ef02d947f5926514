"""What an effect needs before it is sent: its policy still wants it, and the preparation of its kind says with what."""

from __future__ import annotations

from threadline.engine.delivery.access import EngineAccess
from threadline.engine.delivery.retry_schedule import RETRY_SECONDS_FIRST
from threadline.engine.folding.person import Person
from threadline.kernel.errors import Unavailable
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.preparation import Postponed, Prepared
from threadline.kernel.sender import EFFECT_RETRIED, EFFECT_WITHDRAWN, Outcome


def prepare(engine: EngineAccess, one: PendingEffect, person: Person, now: int) -> Prepared | Postponed | Outcome:
    """What becomes of an effect right before it is sent, with its person as of now."""
    policy = engine.catalogue.policy(one.policy)
    withdrawn = None if policy is None else policy.withdrawn
    preparation = engine.catalogue.preparations.get(one.effect.kind)
    guard = engine.catalogue.guards.get(one.policy)
    if withdrawn is None and preparation is None and guard is None:
        return Prepared(data=one.effect.data)
    try:
        why = guard.allow(engine, one) if guard is not None else ""
        if isinstance(why, Postponed):
            return why
        view = engine.reader.as_of(person, now)
        why = why or (withdrawn(one, view) if withdrawn is not None else "")
        if why:
            return Outcome(type=EFFECT_WITHDRAWN, properties={"why": why, "data": one.effect.data})
        return Prepared(data=one.effect.data) if preparation is None else preparation.prepare(engine, view, one)
    except Unavailable:
        raise  # the store is away: that is no attempt
    except Exception as error:  # noqa: BLE001 — an effect that cannot be prepared must not stop the others, nor be lost
        return failed(error)


def failed(error: Exception) -> Outcome:
    """Nothing was sent because of an error, and it is tried again."""
    failure = {"error": f"{type(error).__name__}: {error}"[:500]}
    return Outcome(type=EFFECT_RETRIED, properties=failure, retry_after_seconds=RETRY_SECONDS_FIRST)
