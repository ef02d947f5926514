"""What functions do that are woken: work on what is due until nothing is, then ask to be woken for what comes next."""

from __future__ import annotations

import time
from typing import NamedTuple

from threadline.engine.delivery.feed_consumer import FeedWorker, consumer_state
from threadline.engine.delivery.next_due import next_due
from threadline.kernel.time import MINUTE, SECOND
from threadline.surfaces.lambda_.runtime import Runtime
from threadline.surfaces.lambda_.schedules import WakeUps

LINGER = 5 * SECOND
"""What is due within so long is waited for: the second attempt at a webhook would otherwise come a minute later."""
STUCK = 5 * MINUTE
"""After which what is due, and could not be done now, is looked at again: no sender for it, or a lease of another."""


class Worked(NamedTuple):
    """What an invocation has done."""

    done: int
    """Items and pages that were carried out."""
    wake_at: int | None
    """When the function has to be woken; None: nothing waits."""
    is_in_time: bool
    """Whether there was time for everything that was due."""


def work(runtime: Runtime, until: float, *, thorough: bool = True) -> Worked:
    """Carry out what is due, for as long as `time.monotonic` is before ``until``; then give all leases back.

    Twice at the same time is the same as once, and so is late: what is due is taken under a lease, and is there until
    it is done. ``thorough``: also look for standing jobs that are not there, and what a clock that was ahead put off.
    """
    done = 0
    try:
        while True:
            first, now = _next(runtime), runtime.engine.clock()
            is_due = first is not None and first <= now
            # The usual wake-up is for the feed alone. It must not cost a query of every shard twice.
            worked = runtime.dispatcher.run_once() if is_due or thorough else _feed(runtime, until)
            done += worked
            if time.monotonic() >= until:
                return Worked(done, now, False)
            if is_due and not worked:
                following = _next(runtime, now)
                return Worked(done, now + STUCK if following is None else min(following, now + STUCK), True)
            if thorough or is_due:
                thorough = False
            elif first is None or first > runtime.engine.clock() + LINGER:
                return Worked(done, first, True)
            else:
                time.sleep(max(0.0, min((first - now) / SECOND, until - time.monotonic())))
    finally:
        runtime.dispatcher.let_go()


def _feed(runtime: Runtime, until: float) -> int:
    """Hand over the feed up to its end; of how many entries."""
    done = 0
    while time.monotonic() < until and (worked := sum(consumer.step() for consumer in runtime.dispatcher.background)):
        done += worked
    return done


def feed_consumers(runtime: Runtime) -> set[str]:
    """The names of the consumers of the feed that this deployment has."""
    return {consumer.name for consumer in runtime.dispatcher.background if isinstance(consumer, FeedWorker)}


def _next(runtime: Runtime, after: int | None = None) -> int | None:
    """The next instant for which anything waits: what is due, or a consumer whose page has failed."""
    store = runtime.engine.store
    retries = (consumer_state(store, name) for name in feed_consumers(runtime))
    instants = [state.retry_at for state in retries if state.failures and (after is None or state.retry_at > after)]
    due = next_due(store, runtime.engine.catalogue.queues, after)
    return min(instants if due is None else [*instants, due], default=None)


def work_and_wake(runtime: Runtime, wake_ups: WakeUps, until: float, *, thorough: bool = True) -> Worked:
    """The same, and the wake-up for what comes next. Raises what says why that cannot be made."""
    worked = work(runtime, until, thorough=thorough)
    if worked.wake_at is not None:
        wake_ups.wake_at(worked.wake_at, runtime.engine.clock())
    return worked
