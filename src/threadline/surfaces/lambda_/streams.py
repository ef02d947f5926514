"""The function behind the stream of a DynamoDB table: a wake-up, after which the log's own feed is read.

What a record says is not looked at. The journal of the store decides what was committed and in which order, and each
consumer of the feed has its cursor there; so a record that comes twice, late, out of a shard that was split, or not at
all, changes nothing but when the consumers hear of it. One that comes while a writer is still at work is waited for.
"""

from __future__ import annotations

import time
from typing import Any

from threadline.engine.delivery.feed_consumer import ConsumerStatus, consumers
from threadline.surfaces.lambda_.runtime import Runtime, deadline, open_early, runtime
from threadline.surfaces.lambda_.scheduler import wake_ups
from threadline.surfaces.lambda_.schedules import WakeUps
from threadline.surfaces.lambda_.working import feed_consumers, work_and_wake

PAUSE_SECONDS = 0.25
"""Between two looks at a feed that waits for a writer, or at a consumer that another process has."""

Body = dict[str, Any]


def follow(runtime: Runtime, wake_ups: WakeUps, event: Body, until: float) -> Body:
    """Do what is due and hand over the feed up to its end; the whole batch has failed if there is no time for that."""
    while True:
        worked = work_and_wake(runtime, wake_ups, until, thorough=runtime.is_new)
        runtime.is_new = False
        waits = _lag(runtime)
        if not waits and worked.is_in_time:
            return {"batchItemFailures": []}
        if time.monotonic() + PAUSE_SECONDS > until:
            return _failed(event)
        time.sleep(PAUSE_SECONDS)


def _lag(runtime: Runtime) -> bool:
    """Whether a consumer has not got everything. One whose page fails is woken when it is time to try it again."""
    ours = feed_consumers(runtime)
    known = {consumer.name: consumer for consumer in consumers(runtime.engine.store)} if ours else {}
    return any(_lags(runtime, known.get(name)) for name in ours)


def _lags(runtime: Runtime, consumer: ConsumerStatus | None) -> bool:
    store = runtime.engine.store
    if consumer is None:
        return bool(store.feed("", 1)) or store.feed_waits("")
    if consumer.state.failures:
        return False
    return consumer.behind_since is not None or store.feed_waits(consumer.state.cursor)


def _failed(event: Body) -> Body:
    """Lambda hands everything from the first record on over again; with an empty name all of it as well."""
    first: Body = next(iter(event.get("Records", ())), {})
    return {"batchItemFailures": [{"itemIdentifier": first.get("dynamodb", {}).get("SequenceNumber", "")}]}


def handler(event: Body, context: Any = None) -> Body:
    """The function of an event source mapping with `ReportBatchItemFailures`."""
    try:
        runtime().follow()
        return follow(runtime(), wake_ups(), event, deadline(context))
    finally:
        runtime().rest()


open_early()
