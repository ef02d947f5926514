"""What an operator would look at first, looked at: what waits, the clock, damage, checksums, size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from threadline.engine.damage import DamagedEvents
from threadline.engine.delivery.administration import Delivery
from threadline.engine.delivery.feed_consumer import consumers
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import check_entry, unpack_event
from threadline.engine.maintenance.definition_changes import Maintenance
from threadline.engine.maintenance.scrub import scrubbed
from threadline.engine.maintenance.verification import unchecked_items
from threadline.engine.recording.working_set import PeopleCache
from threadline.kernel.counted import counted
from threadline.kernel.finding import Finding
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.outbox import Backlog, QueueState
from threadline.kernel.store import Store, is_erased
from threadline.kernel.time import CLOCK_SKEW_MAX, MINUTE, format_time

WAITING_MAX = 15 * MINUTE


class Doctor:
    """Looks at a store while it is used. It reads, and changes nothing."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        delivery: Delivery,
        maintenance: Maintenance,
        damage: DamagedEvents,
        cache: PeopleCache,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._delivery_of = delivery
        self._maintenance = maintenance
        self._damaged = damage
        self._cache = cache

    def findings(self, now: int) -> Sequence[Finding]:
        """Everything that was looked at, in the order in which an operator reads it."""
        stats = self._store.stats()
        return [*self._states(), *self._delivery(now), *self._clock(stats, now), *self._damage(), *self._size(stats)]

    def _states(self) -> Iterator[Finding]:
        """What is older than the definitions."""
        if stale := self._maintenance.stale():
            seen = f"older than the definitions: {', '.join(stale)}; run `threadline apply`"
            yield Finding(
                "states",
                "note",
                seen,
                "Some of what is known of people was computed by earlier definitions.",
                to_do="Run `threadline apply`.",
            )

    def _delivery(self, now: int) -> Iterator[Finding]:
        """What waits for too long, or may have happened."""
        backlog = self._delivery_of.backlog()
        waiting = sum(queue.waiting for queue in backlog.queues)
        sentence = "What is to leave leaves." if waiting else "Nothing waits to leave."
        yield Finding("outbox", "ok", f"{counted(waiting, 'effect waits', 'effects wait')}", sentence)
        yield from _waiting(backlog, now)
        for name, until in self._delivery_of.unbelieved_leases(now).items():
            seen = (
                f"{name} is leased until {format_time(until)}, by a clock that was ahead; nobody waits for it that long"
            )
            yield Finding(
                "lease",
                "note",
                seen,
                "A process with a wrong clock has reserved work for a time that is far ahead.",
                to_do="Set the clocks of all processes by one time server.",
            )
        for consumer in consumers(self._store):
            if consumer.behind_since and (consumer.state.failures or now - consumer.behind_since > WAITING_MAX):
                since = format_time(consumer.behind_since)
                seen = f"{consumer.name} is at position {consumer.state.position:,}, behind since {since}"
                yield Finding(
                    "feed",
                    "note",
                    "; ".join(filter(None, [seen, consumer.state.problem])),
                    f"What {consumer.name} makes of events is behind.",
                    consumer.behind_since,
                    "See that a server or a worker runs; the problem beside says what it waits for.",
                )
        unknown = {_called(queue): queue.unknown for queue in backlog.queues if queue.unknown}
        if unknown:
            seen = ", ".join(f"{counted(number, 'effect')} of {name}" for name, number in unknown.items())
            yield Finding(
                "effects",
                "note",
                f"{seen} may have happened; `threadline effects unknown` lists them",
                "Of some messages nobody knows whether they went out.",
                to_do="Decide about each in the outbox: it happened, send it again, or give up.",
            )

    def _clock(self, stats: Mapping[str, int], now: int) -> Iterator[Finding]:
        """Whether the clock was set back while the newest events were recorded, or is behind them."""
        recorded = self._recorded_lately(stats)
        for before, after in pairwise(recorded):
            if before - after > CLOCK_SKEW_MAX:
                seen = f"set back from {format_time(before)} to {format_time(after)}; docs/time.md says what follows"
                yield Finding(
                    "clock",
                    "note",
                    seen,
                    "The clock was set back while events were recorded.",
                    after,
                    "Let a time server keep the clock; it must not jump.",
                )
        if recorded:
            ahead = recorded[-1] > now + MINUTE
            seen = f"recorded at {format_time(recorded[-1])}"
            if ahead:
                seen += ", which is still to come by this clock; one of the two clocks is wrong"
            wrong = "The newest event lies ahead of this clock: one of two clocks is wrong."
            yield Finding(
                "last event",
                "fault" if ahead else "ok",
                seen,
                wrong if ahead else "Events arrive, and are dated as they should be.",
                to_do="Compare the clocks of the processes that record." if ahead else "",
            )

    def _damage(self) -> Iterator[Finding]:
        """Damaged events that somebody has met, when the store was last read through, and what would go unnoticed."""
        known = self._damaged.known()
        if known:
            ids = ", ".join(sorted(known)[:3])
            yield Finding(
                "events",
                "fault",
                f"{counted(len(known), 'event')} damaged ({ids}); `threadline repair --from BACKUP`",
                "Events in the store are damaged and cannot be read.",
                to_do="Take them from a back-up: `threadline repair --from BACKUP`.",
            )
        if note := unchecked_items(self._store):
            yield Finding("checksums", "note", note, "Damage to some of the store would go unnoticed.", to_do=note)
        done = scrubbed(self._store)
        last, problems = done.last, [problem for problem in (done.now.problem, done.last.problem) if problem]
        if not last.done_at:
            seen = f"not complete yet; {counted(done.now.entries, 'event')} read" if done.now.began_at else "none yet"
        else:
            seen = (
                f"complete at {format_time(last.done_at)}: {counted(last.entries, 'event')}, {last.damaged:,} damaged"
            )
        if differing := done.now.differing or last.differing:
            problems.append(f"{counted(differing, 'person differs', 'people differ')} from a fold of the log")
        is_read = "The store was read through, and is sound." if last.done_at else "The store is being read through."
        yield Finding(
            "scrub",
            "fault" if problems else "ok",
            "; ".join([seen, *problems]),
            "Reading the store through has met damage." if problems else is_read,
            last.done_at if problems else 0,
            "Run `threadline verify`; it says what is damaged, and `threadline repair` mends it." if problems else "",
        )

    def _recorded_lately(self, stats: Mapping[str, int]) -> list[int]:
        """When the newest events were recorded, in their order; those that are erased or damaged are left out."""
        entries = stats.get("log_entries", 0)
        if not entries:
            return []  # DynamoDB does not count its log, and reads it from the beginning only
        newest = [
            feed_entry.entry for feed_entry in self._store.feed(str(max(0, entries - PAGE_ITEMS_MAX)), PAGE_ITEMS_MAX)
        ]
        return [unpack_event(entry).recorded_at for entry in newest if not (is_erased(entry) or check_entry(entry))]

    def _size(self, stats: Mapping[str, int]) -> Iterator[Finding]:
        catalogue = self._catalogue
        yield Finding(
            "catalogue",
            "ok",
            f"{len(catalogue.projections)} projections, {len(catalogue.operations)} operations",
            "The definitions in force can be read.",
        )
        yield Finding(
            "size",
            "ok",
            f"{stats.get('file_bytes', 0):,} bytes, {counted(stats.get('log_entries', 0), 'event')}",
            "So large is the store.",
        )
        if looked_up := self._cache.hits + self._cache.misses:
            share = f"{self._cache.hits / looked_up:.0%} of the people that commits named"
            yield Finding(
                "cache",
                "ok",
                f"{share} were in memory, of {self._cache.bytes_max // 1_000_000} MB at most",
                "People who are written about are in memory.",
            )


def _called(queue: QueueState) -> str:
    """A queue in a sentence, with its name for commands where it is called otherwise."""
    name, title = queue.queue.name or "no queue", queue.queue.title
    return f"{title} ({name})" if title else name


def _waiting(backlog: Backlog, now: int) -> Iterator[Finding]:
    """What has waited for too long."""
    for queue in backlog.queues:
        if queue.waits_since(now) > WAITING_MAX:
            state = "it is stopped" if queue.circuit.stopped_at else f"{queue.retried} of them were tried"
            name, since = _called(queue), now - queue.waits_since(now)
            seen = f"{counted(queue.waiting, 'effect')} of {name}, the first since"
            stopped = bool(queue.circuit.stopped_at)
            yield Finding(
                "waiting",
                "note",
                f"{seen} {format_time(since)}; {state}",
                f"What is to go to {name} has waited for too long.",
                since,
                "Start it again in Webhooks." if stopped else "Look at its last deliveries, or at the outbox.",
            )
    for what, due in (("timer", backlog.oldest_timer), ("job", backlog.oldest_job)):
        if due is not None and now - due > WAITING_MAX:
            yield Finding(
                "waiting",
                "note",
                f"a {what} is due since {format_time(due)}; does a server or a worker run?",
                f"A {what} is overdue: nobody carries out what is due.",
                due,
                "Start `threadline serve` or `threadline work`; their log says why where one runs.",
            )
