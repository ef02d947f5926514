"""A whole store moved into another one: copied in steps that can be resumed, followed, and verified at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from threading import Event
from typing import Any, NamedTuple, TypeVar

import msgspec

from threadline.engine.damage import DAMAGED, Damage
from threadline.engine.definition_history import CONTENT, DECLARED
from threadline.engine.delivery.leases import LEASE
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import check_entry
from threadline.engine.folding.person import PERSON, SNAPSHOT, snapshot_key
from threadline.engine.folding.person_packing import pages_of_people
from threadline.engine.maintenance.applying import APPLIED
from threadline.engine.maintenance.dump import Fingerprint, dump_lines, fingerprint
from threadline.engine.maintenance.marks import MARKS
from threadline.engine.maintenance.person_keys import keys_of_people
from threadline.engine.maintenance.scrub import SCRUB
from threadline.kernel.errors import Conflict, EventDamaged, StoreDamaged
from threadline.kernel.limits import BATCH_BYTES_MAX, BATCH_WRITES_MAX
from threadline.kernel.store import (
    ERASED_DIGEST,
    Batch,
    Delete,
    FeedEntry,
    Item,
    Key,
    LogEntry,
    Put,
    Store,
    feed_pages,
    is_erased,
    scan_pages,
)
from threadline.kernel.typed import prepared


def erased_alike(source: Store, target: Store) -> Iterator[FeedEntry]:
    """The whole feed of the source; what of it is erased, and is not in the target, is erased there on the way."""
    cursor, count = "", 0
    while page := source.feed(cursor):
        cursor = page[-1].cursor
        gone = [feed_entry.entry.id for feed_entry in page if is_erased(feed_entry.entry)]
        known = target.seen(gone) if gone else {}
        if there := [id for id, digest in known.items() if digest != ERASED_DIGEST]:
            count += target.erase(there)
        yield from page
    if count:
        target.purge()


MOVE = "move"
NOT_MOVED = {
    MOVE: "how far a move has come is the target's own",
    LEASE: "a lease is held by a process that works on the source",
    "cache": "a cache belongs to one store",
    "health": "a probe writes it again every second",
    SCRUB: "how far a scrub has come is the store's own",
    DAMAGED: "an event that is damaged here may be whole there",
}
"""Table -> why it stays where it is."""

_OPENED = {MARKS, APPLIED, DECLARED, CONTENT}
"""What is written where a store is opened: its index rows are complete and these versions of rules are declared. Where
nobody is yet it says nothing, and is levelled with the rest."""

ROUNDS_MAX = 5
"""Times the two are brought level before a source that keeps changing is taken to have a writer."""

SETTLING_SECONDS = 1.0
SETTLING_ROUNDS_MAX = 30
"""Times a feed is looked at again before events that are not in it are taken to be missing."""

_STATE = Key(MOVE, "state")
_PAGE = 500

T = TypeVar("T")
Progress = Callable[[str, int], None]
"""Called with what is being done and how many more of it are done."""


class _Stopped(Exception):
    """A follower was told to stop."""


@prepared
class Checkpoint(msgspec.Struct, frozen=True):
    """How far a move has come. It is kept in the target, and written after what was copied."""

    source: str
    cursor: str = ""
    """Up to where the source's feed has been copied."""
    after: tuple[str, str, str] | None = None
    """The key of the last item of the first copy; None before the first."""
    copied: bool = False
    """Whether the first copy of the items is complete."""
    done: bool = False


class Moved(NamedTuple):
    """The result of a move, equal in both stores."""

    events: int
    items: int
    cursor: str
    """The position of the source's feed at which the two were compared."""
    dump: Fingerprint
    """Of the lines of the canonical dump."""


class Move:
    """Moves everything that ``source`` holds into ``target``, which must be empty or hold the same move begun earlier.

    Items keep their values and begin with new versions: a version is only ever compared with one that was read from
    the same store. Log entries are copied as they are, in the order of the feed. ``name`` says what the source is, for
    whoever resumes. Raises `Conflict` where going on would mix two stores, and when the source does not hold still.
    """

    def __init__(
        self,
        source: Store,
        target: Store,
        catalogue: Catalogue,
        name: str,
        progress: Progress = lambda what, done: None,
    ) -> None:
        self.source = source
        self.target = target
        self.catalogue = catalogue
        self.progress = progress
        self._stopping = Event()
        self._people_gone = False
        """Whether people were deleted in the target who are not in the source any more."""
        self._uncarried: set[str] = set()
        """Threads with events that were copied after the people they belong to were read."""
        self.checkpoint = self._begun(name)

    def _begun(self, name: str) -> Checkpoint:
        item = self.target.get([_STATE])[0]
        if item is None:
            if set(self.target.tables()) - set(NOT_MOVED) - _OPENED or self.target.feed(limit=1):
                raise Conflict("the target holds data of its own", hint="Name an empty store.")
            # Before anything else, so that whatever is there later is known to be of this move.
            begun = Checkpoint(name)
            if self.target.commit([Batch(writes=[Put(_STATE, msgspec.json.encode(begun), 0)])]) != [None]:
                raise Conflict("another process has begun a move there at this moment")
            return begun
        checkpoint = _checkpoint(item)
        if checkpoint.done:
            raise Conflict(
                f"{checkpoint.source} has been moved there already, and may have been written to since",
                hint="To move it again, name an empty store.",
            )
        if checkpoint.source != name:
            raise Conflict(
                f"a move of {checkpoint.source} into it was begun", hint="Finish it, or name an empty store."
            )
        return checkpoint

    # --- the steps ----------------------------------------------------------------------------

    def run(self) -> Moved:
        """Copy what is missing, bring both level, verify, and close the move. The source must have no writer."""
        self.copy()
        for _ in range(ROUNDS_MAX):
            if self.level() + self.copy_log() == 0:
                moved = self.verified()
                if moved is not None and not self.source.feed(self.checkpoint.cursor, 1):
                    self._commit([], done=True)
                    return moved
        raise Conflict(
            "the source is being written to", hint="Stop what writes to it and run this again: it goes on from here."
        )

    def follow(
        self, stopping: Event, seconds: Callable[[], float], *, idle_seconds: float = 0.5, level_seconds: float = 60.0
    ) -> None:
        """Copy, then keep up with a source that goes on being written to, until told to stop.

        New events and the people they belong to follow within ``idle_seconds``, all else every ``level_seconds``.
        """
        self._stopping = stopping
        with suppress(_Stopped):
            self.copy()
            self._people_gone = True  # perhaps: they may have gone before they were copied
            level_at = float("-inf")
            while not stopping.is_set():
                events = self.keep_up()
                if seconds() >= level_at:
                    self.level(self.keep_up)
                    level_at = seconds() + level_seconds
                elif not events:
                    stopping.wait(idle_seconds)

    def keep_up(self) -> int:
        """Copy new events, with the people they belong to; answers how many events that were."""
        events = self.copy_log()
        while self._uncarried:
            threads, self._uncarried = self._uncarried, set()
            self.carry(threads)
        return events

    def copy(self) -> None:
        """The first copy: the log as far as it goes, then every item."""
        self.copy_log()
        if self.checkpoint.copied:
            return
        after = Key(*self.checkpoint.after) if self.checkpoint.after else None
        for table in self._tables(self.source):
            if table != SNAPSHOT and (after is None or table >= after.table):
                self._copy_table(table, after if after is not None and table == after.table else None)
        self._commit([], copied=True)

    def _copy_table(self, table: str, after: Key | None) -> None:
        while page := self.source.scan(table, after=after, limit=_PAGE):
            after = page[-1].key
            self._commit_items([Put(item.key, item.value) for item in self._together(page)], after=after)
            self.progress("items", len(page))

    def copy_log(self) -> int:
        """Copy what the feed has beyond the checkpoint; answers how many events that were."""
        return sum(map(len, self.log_pages()))

    def log_pages(self) -> Iterator[Sequence[LogEntry]]:
        """The same page by page, each as soon as it is in the target."""
        while page := self.source.feed(self.checkpoint.cursor, _PAGE):
            entries = [feed_entry.entry for feed_entry in page]
            # An earlier attempt may have got further than its checkpoint.
            known = self.target.seen([entry.id for entry in entries])
            remaining = [entry for entry in entries if not is_erased(entry)]
            if any(known.get(entry.id, entry.digest) != entry.digest for entry in remaining):
                raise Conflict("the target has an event of the source's with another payload; it is no copy of it")
            self._commit([], [entry for entry in entries if entry.id not in known], cursor=page[-1].cursor)
            self._uncarried.update(entry.thread for entry in remaining)
            self.progress("events", len(page))
            yield entries

    def level(self, between: Callable[[], object] = lambda: None) -> int:
        """Compare every item of both stores and let the target have the source's; answers how many differed.

        ``between`` is called after each page, for there may be very many.
        """
        differing = sum(self.level_table(table, between) for table in self._tables(self.source, self.target))
        if self._people_gone:
            # Only an erasure takes a person away, and the feed does not come again to events that were copied.
            self._people_gone = False
            for _ in erased_alike(self.source, self.target):
                pass
        return differing

    def level_table(self, table: str, between: Callable[[], object] = lambda: None) -> int:
        """The same for one table."""
        differing = 0
        # A snapshot is copied with the head that it belongs to, as both are at one instant.
        for page in map(self._together, _pages(self.source, table) if table != SNAPSHOT else ()):
            stored = self.target.get([item.key for item in page])
            puts = [Put(s.key, s.value) for s, t in zip(page, stored, strict=True) if t is None or t.value != s.value]
            differing += self._commit_items(puts)
            self.progress("items compared", len(page))
            between()
        for page in _pages(self.target, table):
            stored = self.source.get([item.key for item in page])
            gone = [Delete(t.key) for t, s in zip(page, stored, strict=True) if s is None]
            self._people_gone |= bool(gone) and table == PERSON
            differing += self._commit(gone)
            between()
        return differing

    def carry(self, threads: set[str]) -> None:
        """Bring the people of these threads up to date, so that a shadow is right soon where it is looked at.

        What belongs to nobody, such as the outbox, waits for `level`.
        """
        keys = keys_of_people((self.source, self.target), self.catalogue, threads)
        self._commit_items(
            [
                Delete(key) if item is None else Put(key, item.value)
                for key, item in zip(keys, self.source.get(keys), strict=True)
            ]
        )

    def _commit_items(self, writes: Sequence[Put | Delete], **progress: Any) -> int:
        """Write items that were read just now; before them the events that were committed by then, for the item of a
        person names events of the log."""
        if writes:
            self.copy_log()
        return self._commit(writes, **progress)

    def verified(self) -> Moved | None:
        """Compare the whole logs and what both stores know of everybody. None if the source's log has gone on since.
        Raises `Conflict` if they differ, `EventDamaged` for an event of the source that is not as it was written."""
        ours = fingerprint(
            self._with_progress("events verified", map(_entry_bytes, erased_alike(self.source, self.target)))
        )
        try:
            theirs = fingerprint(self._with_progress("events verified", map(_entry_bytes, self._copied(ours.number))))
        except EventDamaged as error:
            raise Conflict(f"the copy is not equal: in it, {error}", hint=error.hint) from None
        dumps = [self._dumped(store) for store in (self.source, self.target)]
        if ours != theirs or dumps[0] != dumps[1]:
            if self._goes_on(ours.number):
                return None
            raise Conflict(
                f"the copy is not equal: {theirs.number:,} of {ours.number:,} events, "
                f"{dumps[1].number:,} of {dumps[0].number:,} lines of the canonical dump",
                hint="Stop whatever writes to either of them, and run this again.",
            )
        items = sum(1 for table in self._tables(self.target) for _ in scan_pages(self.target, table))
        return Moved(ours.number, items, self.checkpoint.cursor, dumps[0])

    def _dumped(self, store: Store) -> Fingerprint:
        """The canonical dump; of nothing where people name events that have not been copied."""
        try:
            return fingerprint(
                self._with_progress("lines verified", map(str.encode, dump_lines(store, self.catalogue)))
            )
        except StoreDamaged:
            if store is self.source:
                raise
            return Fingerprint(0, 0)

    def _together(self, page: Sequence[Item]) -> Sequence[Item]:
        """The items of a page; people as they are now, each with the snapshot of the same instant."""
        if page[0].key.table != PERSON:
            return page
        keys = [key for item in page for key in (item.key, snapshot_key(item.key.partition))]
        return [item for item in self.source.get(keys) if item is not None]

    # --- parts --------------------------------------------------------------------------------

    def _goes_on(self, count: int) -> bool:
        """Whether the source's feed goes on, after a while if it has told of ``count`` events only and people have
        more: a store may hold back what comes after the last word of a writer that was killed."""
        known = sum(person.position for _, person in pages_of_people(self.source, self.catalogue))
        rounds = SETTLING_ROUNDS_MAX if known > count else 0
        while not (goes_on := bool(self.source.feed(self.checkpoint.cursor, 1))) and rounds:
            rounds -= 1
            Event().wait(SETTLING_SECONDS)
        return goes_on

    def _copied(self, count: int) -> Iterator[FeedEntry]:
        """The target's feed. Where a move died, a store may hold back what comes after its last write for a while."""
        cursor, rounds = "", SETTLING_ROUNDS_MAX
        while True:
            for page in feed_pages(self.target, cursor):
                cursor, count = page.cursor, count - 1
                yield page
            if count <= 0 or not rounds:
                return
            rounds -= 1
            Event().wait(SETTLING_SECONDS)

    def _with_progress(self, what: str, contents: Iterable[bytes]) -> Iterator[bytes]:
        for number, content in enumerate(contents, 1):
            yield content
            if number % _PAGE == 0:
                self.progress(what, _PAGE)

    def _tables(self, *stores: Store) -> list[str]:
        return sorted({table for store in stores for table in store.tables()} - set(NOT_MOVED))

    def _commit(self, writes: Sequence[Put | Delete], events: Sequence[LogEntry] = (), **progress: Any) -> int:
        """Write to the target, as few batches as its limits allow, and after them how far the move has come."""
        if self._stopping.is_set():
            raise _Stopped
        batches = [Batch(writes=part) for part in _parts(writes, BATCH_WRITES_MAX, _write_bytes)]
        self._write([*batches, *map(Batch, _parts(events, BATCH_WRITES_MAX // 2, _event_bytes))])
        if progress:
            # In a call of its own: a store may commit side by side what has nothing in common, and die in the middle.
            self.checkpoint = msgspec.structs.replace(self.checkpoint, **progress)
            self._write([Batch(writes=[Put(_STATE, msgspec.json.encode(self.checkpoint))])])
        return len(writes)

    def _write(self, batches: Sequence[Batch]) -> None:
        if batches and any(refusal is not None for refusal in self.target.commit(batches)):
            raise Conflict("another process writes to the target", hint="Stop it, and run this again.")


def refuse_unfinished(store: Store) -> None:
    """Raise `Conflict` for the target of a move that is not complete: whoever wrote to it would write to half a store,
    and send what the source sends."""
    item = store.get([_STATE])[0]
    if item is not None and not (begun := _checkpoint(item)).done:
        raise Conflict(
            f"this store is a copy of {begun.source} that is not complete; until it is, it can be read only",
            hint="Stop what writes to the source, then run `threadline move` from there to here: it goes on from "
            "where it was.",
        )


def _checkpoint(item: Item) -> Checkpoint:
    return msgspec.json.decode(item.value, type=Checkpoint)


def _entry_bytes(feed_entry: FeedEntry) -> bytes:
    if why := check_entry(feed_entry.entry):
        raise Damage(feed_entry, why).error
    return msgspec.msgpack.encode(feed_entry.entry)


def _pages(store: Store, table: str) -> Iterator[list[Item]]:
    after: Key | None = None
    while page := store.scan(table, after=after, limit=_PAGE):
        yield page
        after = page[-1].key


def _parts(items: Sequence[T], count_max: int, size: Callable[[T], int]) -> Iterator[list[T]]:
    """The same in lists that fit in a batch."""
    part: list[T] = []
    room = BATCH_BYTES_MAX
    for item in items:
        room -= size(item)
        if part and (room < 0 or len(part) == count_max):
            yield part
            part, room = [], BATCH_BYTES_MAX - size(item)
        part.append(item)
    if part:
        yield part


def _write_bytes(write: Put | Delete) -> int:
    return sum(len(part.encode()) for part in write.key) + (len(write.value) if isinstance(write, Put) else 0)


def _event_bytes(entry: LogEntry) -> int:
    return len(entry.body) + len(entry.type.encode()) + 64
