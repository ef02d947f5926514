"""What goes wrong, how often, and at which calls of the store port; and the trace of all that happened."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any

from tests.simulator.schedule import Schedule
from threadline.kernel.errors import StoreBusy, StoreFull, Unavailable
from threadline.kernel.store import Batch, FeedEntry, Item, Key, LogEntry, Range, Refusal, Span, Store
from threadline.stores.dynamodb.commit import chains

KINDS = {
    "crash": 0.004,
    "away": 0.002,
    "busy": 0.01,
    "answer lost": 0.01,
    "torn": 0.01,
    "lagging": 0.3,
    "pause": 0.004,
    "skew": 0.3,
    "leap": 0.1,
}
"""Kind of fault -> how often it happens where it can, when a seed wants it often."""


class Crash(BaseException):
    """The process dies here; no handler of errors sees it."""


class Faults:
    """The faults of one seed. It has a few kinds in earnest, the others seldom or never: where everything fails nothing
    gets far."""

    def __init__(self, random: Random, without: Sequence[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self.are_over = False
        self._random = random
        scale = {kind: random.choice((0.0, 0.2, 1.0, 2.0)) for kind in KINDS}
        self._chances = {kind: 0.0 if kind in without else KINDS[kind] * scale[kind] for kind in KINDS}
        if "crash" not in without:
            self._chances["crash"] = KINDS["crash"] * random.choice((0.5, 1.0, 2.0))

    def happens(self, kind: str) -> bool:
        """Whether it happens now."""
        drawn = self._random.random()  # in any case, so that fewer kinds of faults leave the other draws alone
        if self.are_over or drawn >= self._chances[kind]:
            return False
        self.counts[kind] += 1
        return True

    def part(self, batches: Sequence[Batch]) -> Sequence[Batch]:
        """Of a commit what goes through when it breaks off: the first batches, or some that have nothing in common
        with the others, as in a store that commits such side by side."""
        if len(batches) == 1:
            return () if self._random.random() < 0.5 else batches
        if self._random.random() < 0.5:
            return batches[: self._random.randrange(len(batches) + 1)]
        apart = chains(batches, range(len(batches)))
        chosen = sorted(n for chain in apart if self._random.random() < 0.5 for n in chain)
        places = {number: place for place, number in enumerate(chosen)}
        return [batches[n]._replace(builds_on=[places[each] for each in batches[n].builds_on]) for n in chosen]


class Trace:
    """A hash of everything that happened, to compare two runs of one seed."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def note(self, *words: str) -> None:
        """Something happened."""
        self._hash.update("\0".join(words).encode("utf-8", "surrogatepass"))

    def note_commit(self, batches: Sequence[Batch], outcomes: Sequence[Refusal | None]) -> None:
        """A commit, with all that it wrote."""
        for batch, outcome in zip(batches, outcomes, strict=True):
            self.note(repr(outcome))
            for entry in batch.events:
                self.note(entry.id)
                self._hash.update(entry.body)
            for write in batch.writes:
                self.note(*write.key, str(write.expected))
                self._hash.update(getattr(write, "value", b""))

    def digest(self) -> str:
        """The hash so far."""
        return self._hash.hexdigest()


class Port:
    """The store as one process sees it, for one life: every call is where something may happen."""

    def __init__(self, store: Store, process: str, schedule: Schedule, faults: Faults, trace: Trace) -> None:
        self.is_dead = False
        self.calls = 0
        self._store = store
        self._process = process
        self._schedule = schedule
        self._faults = faults
        self._trace = trace

    def happen(self, where: str) -> None:
        """Somewhere this process may be overtaken, paused, cut off from the store, or die."""
        self._check()
        if self._faults.happens("pause"):
            self._schedule.sleep(400)
        self._schedule.point()
        self._check()
        self.calls += 1
        self._trace.note(self._process, where)
        self.may_die()

    def may_die(self) -> None:
        """Die here, if that is what happens."""
        if self._faults.happens("crash"):
            self.die()

    def die(self) -> None:
        """Die here."""
        self.is_dead = True
        self._trace.note("crash")
        raise Crash

    def _check(self) -> None:
        if self.is_dead:  # what runs on while the stack unwinds must not reach the world any more
            raise Crash

    def _reading(self, where: str) -> None:
        self.happen(where)
        if self._faults.happens("away"):
            self._trace.note("away")
            raise Unavailable("the store is away")

    # --- the port ---------------------------------------------------------------------------

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`."""
        self._reading("commit")
        if self._faults.happens("busy"):
            self._trace.note("busy")
            raise (StoreBusy if len(batches) % 2 else StoreFull)("nothing was written")
        if self._faults.happens("torn"):
            part = self._faults.part(batches)
            self._trace.note_commit(part, self._store.commit(part) if part else [])
            raise Unavailable("the store went away, and some of it may be committed")
        outcomes = self._store.commit(batches)
        self._trace.note_commit(batches, outcomes)
        if self._faults.happens("answer lost"):
            raise Unavailable("the store went away, and all of it is committed")
        self.may_die()
        return outcomes

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store.get`."""
        self._reading("get")
        return self._store.get(keys)

    def query(
        self,
        table: str,
        partition: str,
        start: str = "",
        stop: str | None = None,
        limit: int = 1_000,
        reverse: bool = False,
    ) -> list[Item]:
        """See `Store.query`."""
        self._reading("query")
        return self._store.query(table, partition, start, stop, limit, reverse)

    def ranges(self, ranges: Sequence[Range]) -> list[list[Item]]:
        """See `Store.ranges`."""
        self._reading("ranges")
        return self._store.ranges(ranges)

    def scan(
        self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000
    ) -> list[Item]:
        """See `Store.scan`."""
        self._reading("scan")
        return self._store.scan(table, shard, shards, after, limit)

    def seen(self, ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """See `Store.seen`; without ``certain`` some of it may not be visible yet."""
        self._reading("seen")
        found = self._store.seen(ids)
        return found if certain else {id: it for id, it in found.items() if not self._faults.happens("lagging")}

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        self._reading("find")
        return self._store.find(ids)

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """See `Store.spans`."""
        self._reading("spans")
        return self._store.spans(threads, span)

    def histories(
        self, threads: Sequence[str], wanted: Callable[[str], bool] | None = None
    ) -> dict[str, list[LogEntry]]:
        """See `Store.histories`."""
        self._reading("histories")
        return self._store.histories(threads, wanted)

    def feed_end(self) -> str:
        """See `Store.feed_end`."""
        self._reading("feed")
        return self._store.feed_end()

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """See `Store.feed`."""
        self._reading("feed")
        return self._store.feed(cursor, limit)

    def advisory_lock(self, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """See `Store.advisory_lock`; it may be left out, because it keeps nobody from anything."""
        return nullcontext()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
