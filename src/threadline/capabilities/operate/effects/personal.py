"""What the store has of a person about messages to other systems, and about what time will bring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.kernel.outbox import PendingEffect
from threadline.kernel.personal import PersonFile, Subject, joined, shown_events, shown_time
from threadline.kernel.sender import (
    EFFECT_DONE,
    EFFECT_PARKED,
    EFFECT_PRINTED,
    EFFECT_REDRIVEN,
    EFFECT_RETRIED,
    EFFECT_UNKNOWN,
    EFFECT_WITHDRAWN,
)


def _pending(subject: Subject) -> Iterator[dict[str, Any]]:
    for pending in subject.engine.delivery.waiting(subject.person.heads):
        yield {"status": "waiting", **_shown(pending)}
    for letter in subject.dead_letters():
        yield {"status": "given up", "why": letter.why, "last": letter.outcome, **_shown(letter.pending)}
    for unknown in subject.unknown_effects():
        yield {"status": "unknown", "why": unknown.why, **_shown(unknown.pending)}


def _shown(pending: PendingEffect) -> dict[str, Any]:
    noted = {} if pending.claim is None else pending.claim.properties
    return {
        "id": pending.id,
        "kind": pending.effect.kind,
        "queue": pending.effect.queue,
        "policy": pending.policy,
        "cause": pending.cause,
        "attempts": pending.attempts,
        "since": shown_time(pending.since),
        "data": pending.effect.data,
        "noted": noted,
    }


def _timers(subject: Subject) -> Iterator[dict[str, Any]]:
    for timer in subject.engine.delivery.timers(subject.person.timers):
        yield {**timer, "due_at": shown_time(timer["due_at"])}


_OUTCOMES = (
    EFFECT_DONE,
    EFFECT_PRINTED,
    EFFECT_RETRIED,
    EFFECT_PARKED,
    EFFECT_REDRIVEN,
    EFFECT_WITHDRAWN,
    EFFECT_UNKNOWN,
)


def _attempts(subject: Subject) -> Iterator[dict[str, Any]]:
    for attempt in subject.engine.delivery.attempts_of(subject.person.heads):
        sent = attempt.exchange
        yield {
            "at": shown_time(attempt.at),
            "url": sent.url,
            "body": sent.body,
            "status": sent.status,
            "answer": sent.answer,
        }


DELIVERIES_FILE = PersonFile(
    "deliveries",
    "Calls of other systems",
    "Calls of the last two weeks that told other systems something about you: what was sent, and what they answered.",
    _attempts,
)
EFFECTS_FILE = PersonFile(
    "effects",
    "Messages to other systems",
    "Messages about you that were sent to other systems, or are to be: the address, what was sent, and how it ended.",
    joined(_pending, shown_events(*_OUTCOMES)),
)
TIMERS_FILE = PersonFile(
    "timers",
    "What is due later",
    "When something is looked at again because of you, such as the end of a streak.",
    _timers,
)
