"""Everybody refolded: on this core or on several, with flat memory, writing only what differs."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import PAGE_PEOPLE, PERSON, Person, lasting, pack_person, people_of
from threadline.engine.folding.refold import Onlooker, read_ahead, refold_person
from threadline.engine.gc_deferred import seldom_collected
from threadline.engine.maintenance.index_integrity import RowCheck, RowFault, mend
from threadline.engine.maintenance.indexes import write_changed_rows
from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.kernel.store import Batch, Item, Key, Put, Store

CHUNK_PEOPLE = 500
Parts = tuple[Store, Catalogue]
Differing = list[tuple[Item, bytes]]


class Refolded(NamedTuple):
    """The result of a refold of everybody."""

    people: int
    events: int
    differing: tuple[str, ...]
    """Ids of people whose stored states were not the fold of their events."""
    written: int
    rows_amiss: tuple[RowFault, ...]
    """Index rows that were not those that people's states and their events ask for, and threads that lead astray."""


class Compared(NamedTuple):
    """A person as stored and as folded anew."""

    item: Item
    stored: bytes
    fresh: bytes
    """The whole person, as `person.pack_person` gives it."""
    events: int
    is_stale: bool
    """Whether states were stored for other definitions than those in force."""

    @property
    def differs(self) -> bool:
        """Whether the two say different things; the order in which dicts were filled says nothing."""
        same = self.stored == self.fresh or lasting(self.stored) == lasting(self.fresh)
        return self.is_stale or not same


class Chunk(NamedTuple):
    """Some people refolded, and those of them who differ from what is stored."""

    people: int
    events: int
    differing: Differing
    rows: int
    """Index rows that are as they should be."""
    rows_amiss: list[RowFault]


def refold_everybody(
    store: Store,
    catalogue: Catalogue,
    *,
    write: bool = True,
    jobs: int = 1,
    opener: Callable[[], Parts] | None = None,
    progress: Callable[[int], None] = lambda people: None,
) -> Refolded:
    """Derive every person's states again from the log; with ``write`` replace those that differ, and write index rows
    anew that are amiss or of projections that have changed.

    ``jobs`` processes share the work; each opens the store for reading by ``opener``, which must be picklable.
    This process alone writes. A person who changed meanwhile is left as they are: their state is newer.
    ``progress`` is told of each number of people done.
    """
    if jobs > 1:
        assert opener is not None, "several processes each open the store for themselves"
        chunks = _from_processes(opener, jobs)
    else:
        chunks = _chunks(store, catalogue, 0, 1)
    people = events = written = rows = 0
    differing: list[str] = []
    amiss: list[RowFault] = []
    for chunk in chunks:
        people += chunk.people
        events += chunk.events
        rows += chunk.rows
        amiss += chunk.rows_amiss
        differing += [item.key.partition for item, _ in chunk.differing]
        if write:
            if chunk.differing:
                written += len(chunk.differing) - len(write_refolded(store, chunk.differing))
            mend(store, catalogue, chunk.rows_amiss)
        progress(chunk.people)
    unasked = list(RowCheck(store, catalogue).unasked(rows))
    if write:
        mend(store, catalogue, unasked)
        write_changed_rows(store, catalogue)
    amiss += unasked
    return Refolded(people, events, tuple(differing), written, tuple(amiss))


def _chunks(store: Store, catalogue: Catalogue, shard: int, shards: int) -> Iterator[Chunk]:
    check = RowCheck(store, catalogue)
    people = events = 0
    differing: Differing = []
    for one in refold_shard(store, catalogue, shard, shards, check):
        people, events = people + 1, events + one.events
        if one.differs:
            differing.append((one.item, one.fresh))
        if people == CHUNK_PEOPLE:
            yield Chunk(people, events, differing, *check.told())
            people, events, differing = 0, 0, []
    if people:
        yield Chunk(people, events, differing, *check.told())


def refold_shard(
    store: Store,
    catalogue: Catalogue,
    shard: int = 0,
    shards: int = 1,
    onlooker: Onlooker | None = None,
) -> Iterator[Compared]:
    """Every person of one shard, as stored and folded anew. Writes nothing."""
    after: Key | None = None
    while items := store.scan(PERSON, shard, shards, after, PAGE_PEOPLE):
        after = items[-1].key
        held = {item.key.partition: item for item in items}
        done = []
        people = []
        with seldom_collected():
            everybody = [each for each in people_of(store, catalogue, items, tails=True) if isinstance(each, Person)]
            for person, ahead in read_ahead(store, everybody):
                item, stale = held[person.id], bool(person.stale)
                stored = pack_person(person, catalogue)
                refold_person(store, catalogue, person, ahead=ahead, onlooker=onlooker)
                done.append(Compared(item, stored, pack_person(person, catalogue), person.position, stale))
                people.append((item, person))
            if onlooker is not None:
                onlooker.look(people)
        yield from done


def write_refolded(store: Store, changed: Sequence[tuple[Item, bytes]]) -> list[str]:
    """Replace items by their refolded bytes; answers the ids of people that changed meanwhile."""
    refusals = store.commit([Batch(writes=[Put(item.key, data, item.version)]) for item, data in changed])
    return [item.key.partition for (item, _), refusal in zip(changed, refusals, strict=True) if refusal is not None]


def _from_processes(opener: Callable[[], Parts], jobs: int) -> Iterator[Chunk]:
    # Spawned, not forked: this process has threads and an open store, and a copy of neither would work.
    context = multiprocessing.get_context("spawn")
    ends: list[Connection] = []
    workers = []
    for shard in range(jobs):
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=partial(_work, opener, shard, jobs, theirs), daemon=True)
        with _without_interrupts():
            worker.start()
        theirs.close()
        ends.append(ours)
        workers.append(worker)
    try:
        while ends:
            for ready in wait(ends):
                assert isinstance(ready, Connection)
                try:
                    chunk = ready.recv()
                except EOFError:
                    raise Unavailable("a process of the refold ended before its work was done") from None
                if isinstance(chunk, ThreadlineError):
                    raise chunk
                if chunk is None:
                    ends.remove(ready)
                else:
                    yield chunk
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started here is deaf to Ctrl-C, which reaches every process of a terminal: we end it, and say so once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(opener: Callable[[], Parts], shard: int, shards: int, results: Connection) -> None:
    with suppress(BrokenPipeError):  # it was killed: nobody waits for this any more
        try:
            store, catalogue = opener()
            try:
                for chunk in _chunks(store, catalogue, shard, shards):
                    results.send(chunk)
            finally:
                store.close()
            results.send(None)
        except ThreadlineError as error:
            results.send(error)
