"""Values of this moment for the metrics: what waits, for how long, what is damaged, and how large the store is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from threadline.engine.delivery.feed_consumer import consumers
from threadline.engine.engine import Engine
from threadline.engine.maintenance.scrub import scrubbed
from threadline.kernel.outbox import QueueState
from threadline.kernel.time import SECOND

Gauges = dict[str, tuple[str, float | Mapping[str, float]]]
"""Name -> (meaning, value, or values by queue; those of `feed_consumer_` by consumer)."""

NO_QUEUE = "-"
"""Label of effects that are in no queue."""
_OF_STORE = {
    "log_entries": ("log_position", "Events in the log."),
    "file_bytes": ("store_file_bytes", "Size of the store's file."),
    "wal_bytes": ("store_wal_bytes", "Size of its write-ahead log."),
}


def gauges(engine: Engine) -> Gauges:
    """Those of the store, of its damage, of the outbox by queue, and of the clock. It reads the store."""
    stats, now = engine.store.stats(), engine.clock()
    result: Gauges = {
        shown: (meaning, float(stats[name])) for name, (shown, meaning) in _OF_STORE.items() if name in stats
    }
    backlog = engine.delivery.backlog()

    def by_queue(value: Callable[[QueueState], float]) -> Mapping[str, float]:
        return {queue.queue.name or NO_QUEUE: float(value(queue)) for queue in backlog.queues}

    def seconds(since: int | None) -> float:
        return 0.0 if since is None else max(0, now - since) / SECOND

    result["effects_waiting"] = ("Effects in a queue, counted to 1,000.", by_queue(lambda queue: queue.waiting))
    result["effects_retried"] = ("Of these, those that were tried.", by_queue(lambda queue: queue.retried))
    result["effects_parked"] = ("Effects that were given up on, to 1,000.", by_queue(lambda queue: queue.parked))
    result["effects_unknown"] = ("Effects that may have happened, to 1,000.", by_queue(lambda queue: queue.unknown))
    result["effects_oldest_seconds"] = (
        "How long ago the effect that has waited longest was first due.",
        by_queue(lambda queue: seconds(queue.since)),
    )
    result["effects_resting"] = (
        "1 while a queue is left alone or stopped.",
        by_queue(lambda queue: bool(queue.circuit.stopped_at) or queue.circuit.rests_at(now)),
    )
    result["outbox_depth"] = ("Effects that wait for a destination, to 1,000.", by_queue(lambda queue: queue.waiting))
    result["oldest_undelivered_seconds"] = result["effects_oldest_seconds"]
    result["due_queue_depth"] = ("Timers and jobs that are due.", float(backlog.timers + backlog.jobs))
    result["timers_oldest_seconds"] = ("How long ago the first timer was due.", seconds(backlog.oldest_timer))
    result["jobs_waiting"] = ("Jobs that are due, counted to 1,000.", float(backlog.jobs))
    result["jobs_oldest_seconds"] = ("How long ago the first job was due.", seconds(backlog.oldest_job))
    result["feed_waiting"] = (
        "1 while the feed waits for a writer that may still commit.",
        float(engine.log.feed_waits()),
    )
    ahead = max(0, engine.recorder.recorded_until - 1 - now) / SECOND
    result["clock_set_back_seconds"] = ("How far the newest event of this process is ahead of its clock.", ahead)
    cache = engine.recorder.people_cache
    result["people_cache_bytes_max"] = ("Memory for people who stay between commits.", float(cache.bytes_max))
    result["people_cache_hits_total"] = ("How often a commit named somebody who was there.", float(cache.hits))
    result["people_cache_misses_total"] = (
        "How often somebody was read from the store for a commit.",
        float(cache.misses),
    )
    return result | _consumers(engine, now, stats.get("log_entries")) | _damage(engine)


def _consumers(engine: Engine, now: int, entries: int | None) -> Gauges:
    """How far whatever derives from the log has got. People and their features are committed with the event itself;
    only what other systems get comes later."""
    known = consumers(engine.store)
    positions = {consumer.name: float(consumer.state.position) for consumer in known}
    behind = {
        consumer.name: max(0, now - consumer.behind_since) / SECOND if consumer.behind_since else 0.0
        for consumer in known
    }
    people = {} if entries is None else {"people": float(entries)}
    queues = [behind[name] for name in behind if name.startswith("queue:")]
    return {
        "feed_consumer_position": ("Events handed over.", positions),
        "feed_consumer_behind_seconds": ("How long ago the first event was recorded that it has not got.", behind),
        "feed_consumer_failures": (
            "Attempts at its next page that failed in a row.",
            {consumer.name: float(consumer.state.failures) for consumer in known},
        ),
        "projection_position": ("Events that people's states, and each consumer, have taken in.", people | positions),
        "projection_lag_seconds": ("How long ago the first was recorded that they lack.", {"people": 0.0} | behind),
        "feature_staleness_seconds": ("The same of the queue that is furthest behind.", max(queues, default=0.0)),
    }


def _damage(engine: Engine) -> Gauges:
    done = scrubbed(engine.store)
    last = done.last
    return {
        "damaged_events": ("Events known to be damaged, counted to 1,000.", float(len(engine.damage.known()))),
        "damaged_events_met": ("How often this server has met a damaged event.", float(engine.damage.met)),
        "scrub_completed_time_seconds": ("When the whole store was last read and checked.", last.done_at / SECOND),
        "scrub_damaged_events": ("Damaged events that the last complete scrub has found.", float(last.damaged)),
        "scrub_people_differing": ("People whom it found to differ from a fold of the log.", float(last.differing)),
        "scrub_entries_read": ("Events that the present scrub has read.", float(done.now.entries)),
    }
