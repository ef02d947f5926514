"""Everybody refolded: on this core or on several, with flat memory, writing only what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Protocol

import msgspec

from threadline.engine.child_process import start
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import pack, unpack
from threadline.engine.folding.person import PERSON, Person
from threadline.engine.folding.person_packing import PAGE_PEOPLE, pack_person, people_of
from threadline.engine.folding.refold import EventOnlooker, fold_events, person_entries, person_events, read_ahead
from threadline.engine.folding.states import States
from threadline.engine.interpreter import gc_deferred
from threadline.engine.maintenance.index_integrity import RowCheck, RowFault, mend
from threadline.engine.maintenance.indexes import write_changed_rows
from threadline.engine.maintenance.marks import PEOPLE, mark
from threadline.engine.maintenance.thread_tally import ThreadTally
from threadline.kernel.errors import StoreDamaged, ThreadlineError, Unavailable
from threadline.kernel.event import Recorded
from threadline.kernel.projection import State
from threadline.kernel.store import Batch, Item, Key, LogEntry, Put, Store

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
    unreadable: tuple[str, ...] = ()
    """What keeps people from being folded, a line for each of them: such as an event that is damaged."""
    stale: frozenset[str] = frozenset()
    """Ids of those among the ``differing`` whose states are of other definitions than those in force."""
    tally: ThreadTally | None = None
    """What events there are in the threads of everybody who could be folded."""


class Compared(NamedTuple):
    """A person as stored, compared with what their events make of them."""

    item: Item
    fresh: bytes | None
    """The whole person as folded anew, as `person.pack_person` gives it; None if the stored one says the same."""
    events: int
    is_stale: bool
    """Whether states were stored for other definitions than those in force."""
    unreadable: str = ""
    """Why the person could not be folded, if that is so."""

    @property
    def differs(self) -> bool:
        """Whether the two say different things; the order in which dicts were filled says nothing."""
        return self.fresh is not None


class Onlooker(EventOnlooker, Protocol):
    """Who looks on while people are folded anew, so that nothing has to be read a second time."""

    def counted(self, events: Iterator[Recorded]) -> Iterator[Recorded]:
        """The same events of a person, whatever their types; it is called before these are folded."""
        ...

    def look(self, people: Sequence[tuple[Item, Person]]) -> None:
        """The people of a page, folded anew, with the items of which they were; all their events were shown."""
        ...


class Chunk(NamedTuple):
    """Some people refolded, and those of them who differ from what is stored."""

    people: int
    events: int
    differing: Differing
    stale: list[str]
    rows: int
    """Index rows that are as they should be."""
    rows_amiss: list[RowFault]
    unreadable: list[str]
    tally: ThreadTally


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
    stale: list[str] = []
    amiss: list[RowFault] = []
    unreadable: list[str] = []
    tally = ThreadTally()
    for chunk in chunks:
        unreadable += chunk.unreadable
        tally.absorb(chunk.tally)
        people += chunk.people
        events += chunk.events
        rows += chunk.rows
        amiss += chunk.rows_amiss
        differing += [item.key.partition for item, _ in chunk.differing]
        stale += chunk.stale
        if write:
            if chunk.differing:
                written += len(chunk.differing) - len(write_refolded(store, chunk.differing))
            mend(store, catalogue, chunk.rows_amiss)
        progress(chunk.people)
    if not unreadable:  # which rows such people ask for is not known
        unasked = list(RowCheck(store, catalogue).unasked(rows))
        if write:
            mend(store, catalogue, unasked)
            write_changed_rows(store, catalogue)
            mark(store, catalogue, PEOPLE)
        amiss += unasked
    return Refolded(people, events, tuple(differing), written, tuple(amiss), tuple(unreadable), frozenset(stale), tally)


def _chunks(store: Store, catalogue: Catalogue, shard: int, shards: int) -> Iterator[Chunk]:
    check = RowCheck(store, catalogue)
    people = events = 0
    differing: Differing = []
    stale: list[str] = []
    unreadable: list[str] = []
    for comparison in refold_shard(store, catalogue, shard, shards, check):
        people, events = people + 1, events + comparison.events
        if comparison.unreadable:
            unreadable.append(f"{comparison.item.key.partition}: {comparison.unreadable}")
        if comparison.fresh is not None:
            differing.append((comparison.item, comparison.fresh))
            stale += [comparison.item.key.partition] if comparison.is_stale else []
        if people == CHUNK_PEOPLE:
            yield Chunk(people, events, differing, stale, *check.result(), unreadable, check.tallied())
            people, events, differing, stale, unreadable = 0, 0, [], [], []
    if people:
        yield Chunk(people, events, differing, stale, *check.result(), unreadable, check.tallied())


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
        with gc_deferred():
            done = compared(store, catalogue, items, onlooker)
        yield from done


def compared(
    store: Store, catalogue: Catalogue, items: Sequence[Item], onlooker: Onlooker | None = None
) -> list[Compared]:
    """The people of these items, as stored and folded anew."""
    stored = {item.key.partition: item for item in items}
    everybody, done = _readable(store, catalogue, items)
    people = []
    for person, ahead in read_ahead(store, everybody):
        entries = person_entries(store, person, ahead)
        events = person_events(store, person, entries)
        events = events if onlooker is None else onlooker.counted(events)
        item, is_stale = stored[person.id], bool(person.stale)
        try:
            differs = _fold_anew(catalogue, person, entries, events, onlooker)
            fresh = pack_person(person, catalogue) if differs else None
        except (StoreDamaged, msgspec.MsgspecError, UnicodeDecodeError) as error:
            done.append(Compared(item, None, person.position, is_stale, str(error)))
            continue
        done.append(Compared(item, fresh, person.position, is_stale))
        people.append((item, person))
    if onlooker is not None:
        onlooker.look(people)
    return done


def _readable(store: Store, catalogue: Catalogue, items: Sequence[Item]) -> tuple[list[Person], list[Compared]]:
    """The people of these items, and the items of which none can be made."""
    try:
        return [person for person in people_of(store, catalogue, items) if isinstance(person, Person)], []
    except StoreDamaged as error:
        if len(items) == 1:
            return [], [Compared(items[0], None, 0, False, str(error))]
    parts = [_readable(store, catalogue, [item]) for item in items]
    return [person for people, _ in parts for person in people], [
        comparison for _, unread in parts for comparison in unread
    ]


def _fold_anew(
    catalogue: Catalogue,
    person: Person,
    entries: Sequence[LogEntry] | None,
    events: Iterator[Recorded],
    onlooker: EventOnlooker | None,
) -> bool:
    """Replace a person's states by the fold of all their events; answers whether that changes anything."""
    stored, states, differs = person.states, catalogue.empty(), bool(person.stale)
    if entries is not None and _ends_with_tail(entries, person):
        # What is stored is the snapshot with the tail folded in: if the snapshot is right, so is what follows.
        settled = islice(events, len(entries) - len(person.tail or ()))
        latest = fold_events(catalogue, settled, states, onlooker=onlooker)
        differs = differs or _differ(states, stored.values)
        if person.tail:
            latest = max(latest, fold_events(catalogue, events, states, onlooker=onlooker))
    else:
        latest = fold_events(catalogue, events, states, onlooker=onlooker)
        differs = differs or _differ(states, stored.to_pack())
    differs = differs or latest != person.latest
    person.states, person.latest, person.provisional, person.tail = States(catalogue, states), latest, None, None
    person.stale = ()
    return differs


def _ends_with_tail(entries: Sequence[LogEntry], person: Person) -> bool:
    """Whether the events since the person's snapshot are the last of these, in this order."""
    tail = person.tail
    if tail is None:
        # Whole states have no tail; of a snapshot of another layout only the states know it.
        return not person.snapshot_version
    # As text: an id that is damaged may be no number.
    return [entry.id for entry in entries[len(entries) - len(tail) :]] == [id.hex() for id in tail]


def _differ(fresh: list[State], stored: list[Any]) -> bool:
    """Whether states say other things than stored ones; the order in which dicts were filled says nothing."""
    if pack(fresh) == pack(stored):
        return False
    pairs = ((pack(new), pack(old)) for new, old in zip(fresh, stored, strict=True))
    return any(new != old and unpack(new) != unpack(old) for new, old in pairs)


def write_refolded(store: Store, changed: Sequence[tuple[Item, bytes]]) -> list[str]:
    """Replace items by their refolded bytes; answers the ids of people that changed meanwhile."""
    refusals = store.commit([Batch(writes=[Put(item.key, data, item.version)]) for item, data in changed])
    return [item.key.partition for (item, _), refusal in zip(changed, refusals, strict=True) if refusal is not None]


def _from_processes(opener: Callable[[], Parts], jobs: int) -> Iterator[Chunk]:
    ends: list[Connection] = []
    workers = []
    for shard in range(jobs):
        worker, end = start(partial(_work, opener, shard, jobs))
        ends.append(end)
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
