"""Whether an effect that failed is tried again, and when; what is not becomes a dead letter."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from threadline.kernel.outbox import PendingEffect
from threadline.kernel.sender import Outcome, Queue
from threadline.kernel.time import SECOND

RETRY_SECONDS_FIRST = 5.0
RETRY_SECONDS_MAX = 3_600.0
_DOUBLINGS_MAX = 20


class Retry(NamedTuple):
    """The effect is due again at this instant."""

    at: int


class GiveUp(NamedTuple):
    """The effect becomes a dead letter, for this reason."""

    why: str


def fate_of(queue: Queue, effect: PendingEffect, outcome: Outcome, now: int) -> Retry | GiveUp:
    """What follows from an attempt that failed: the sender gives up, the queue's time is over, or another attempt."""
    if outcome.parked:
        return GiveUp(outcome.parked)
    attempts = effect.attempts - effect.began
    at = now + int(wait_seconds(queue, effect.id, attempts, outcome.retry_after_seconds or 0.0) * SECOND)
    if queue.give_up_seconds is not None and at - effect.since > queue.give_up_seconds * SECOND:
        return GiveUp(f"given up on after {attempts + 1} attempts")
    return Retry(at)


def is_too_old(queue: Queue, effect: PendingEffect, now: int) -> bool:
    """Whether an effect that is not sent while its queue is left alone has waited longer than the queue allows."""
    return queue.give_up_seconds is not None and now - effect.since > queue.give_up_seconds * SECOND


def wait_seconds(queue: Queue, id: str, attempts: int, least: float) -> float:
    """The wait before the next attempt: doubled with each, up to a bound, as is what the receiver asks for.

    In queues it is between half and all of that, by a hash of effect and attempt, so that what failed together does not
    come back together.
    """
    wait: float = min(RETRY_SECONDS_FIRST * 2.0 ** min(attempts, _DOUBLINGS_MAX), RETRY_SECONDS_MAX)
    if queue.name:
        wait *= 0.5 + crc32(f"{id}/{attempts}".encode()) / 2**33
    return max(min(least, RETRY_SECONDS_MAX), wait)
