"""A person in bytes and back.

A person is stored in one of two forms. Small states stand whole in the person's item, which every commit writes. Larger
ones are a snapshot, an item of its own, and the person's item is a head: all but the states, with the ids of the events
since the snapshot, the tail. An event then writes itself and a small head; every few events the snapshot is written
anew. A head and its snapshot belong together by `snapshot_version`, the head's version when the snapshot was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import pack, unpack, unpack_event
from threadline.engine.folding.person import PERSON, VALUE_BYTES_MAX, Person, person_key, snapshot_key
from threadline.engine.folding.provisional import ProvisionalStates
from threadline.engine.folding.states import States
from threadline.kernel.errors import EventDamaged, StoreDamaged
from threadline.kernel.event import Identifier, Recorded
from threadline.kernel.store import Delete, Item, Key, LogEntry, Put, Store


def index_rows(person: Person, catalogue: Catalogue, only: Iterable[int] | None = None) -> dict[Key, bytes]:
    """The index rows of all projections, or of ``only`` some, by key."""
    values: dict[Key, bytes] = {}
    for index in catalogue.with_rows if only is None else only:
        rows = catalogue.projections[index].index.rows
        assert rows is not None
        for row in rows(person.states[index], person.workspace, person.id):
            values[Key(row.table, row.partition, row.sort)] = row.value or b"\x00"
    return values


_ALIAS, _WHOLE, _HEAD, _ERASING = 0, 1, 2, 3
"""The first element of a person's item: an alias leads to the survivor of a merge."""

WHOLE_BYTES_MAX = 1_000
"""States of up to so many bytes are written whole: reading a tail for them costs more than it saves."""
SNAPSHOT_BYTES_MAX = VALUE_BYTES_MAX // 2
"""Larger states are written whole as well, so that the event that makes a person too large is the one refused."""
TAIL_EVENTS_MAX = 16
"""Readers fold the tail, so it is short."""
TAIL_EVENT_BYTES = 250
"""One event of tail for so many bytes of states: a larger snapshot is written less often."""
TAIL_UNCACHED_MAX = 2
"""Of somebody who was not in the writer's cache: whoever comes seldom is read, and their tail folded, each time."""
TAIL_INTERIM_MAX = 100
"""The tail may be longer between two commits of one call."""
PAGE_PEOPLE = 200
_READINGS_MAX = 64
"""Reads of a head and its snapshot, where commits come between the two on a store without a common snapshot."""


class Erasing(NamedTuple):
    """What stands in the place of a person who is being erased, so that nobody adds to them."""

    erasure: str
    """The id of the erasure."""
    threads: list[str]
    """The person's threads, whose items still lead here."""


Found = Person | str | Erasing | None
"""What a person's item says: a person, the id of the survivor of a merge, or that they are being erased; None: there is
none."""

# --- writing ----------------------------------------------------------------------------------


def person_writes(person: Person, catalogue: Catalogue, *, interim: bool = False) -> list[Put]:
    """What a commit writes of a person, whose version it raises: a head, with a snapshot where one is due, or all.

    ``interim``: the same call goes on with this person in another commit, and then writes the snapshot.
    """
    key, version, begins = person_key(person.id), person.version, person.begins
    person.version = version + 1 if version else begins
    tail = person.tail
    most = TAIL_INTERIM_MAX if interim else tail_max(person.size)
    if tail is not None and len(tail) <= most and person.provisional is None:
        return [Put(key, _pack_head(person), version, begins)]
    packed = pack(person.states.to_pack())
    person.size, states = len(packed), msgspec.Raw(packed)
    person.states.repack(packed)
    if person.provisional is not None or not WHOLE_BYTES_MAX < person.size <= SNAPSHOT_BYTES_MAX:
        person.snapshot_version, person.tail = 0, None
        return [Put(key, _pack_whole(person, catalogue, states), version, begins)]
    person.snapshot_version, person.tail = person.version, []
    snapshot = pack((person.snapshot_version, person.latest, catalogue.layout, states))
    put = Put(snapshot_key(person.id), snapshot, person.snapshot_item)
    person.snapshot_item = None if person.snapshot_item is None else person.snapshot_item + 1
    return [Put(key, _pack_head(person), version, begins), put]


def tail_max(size: int) -> int:
    """How many events may follow a snapshot of so many bytes."""
    return min(TAIL_EVENTS_MAX, size // TAIL_EVENT_BYTES)


def alias_writes(merged: Person, survivor: str) -> list[Put | Delete]:
    """What a commit writes of a person who was merged into another."""
    alias = Put(person_key(merged.id), pack((_ALIAS, survivor)), merged.version)
    return [alias, Delete(snapshot_key(merged.id))] if merged.snapshot_item != 0 else [alias]


def erasing_writes(person: Person, erasure: str) -> list[Put | Delete]:
    """What a commit writes of a person who is being erased from then on."""
    marker = Put(person_key(person.id), pack((_ERASING, erasure, sorted(person.heads))), person.version)
    return [marker, Delete(snapshot_key(person.id))] if person.snapshot_item != 0 else [marker]


class _Whole(msgspec.Struct, array_like=True, gc=False):
    """A person's item with the states in it, field after field."""

    kind: int
    workspace: str
    created_at: int
    threads: list[str]
    heads: list[int]
    identifiers: list[Identifier]
    never_merge: list[str]
    timers: msgspec.Raw
    latest: tuple[int, str]
    layout: str
    states: list[msgspec.Raw]
    provisional: tuple[tuple[int, str], int, list[msgspec.Raw]] | None = None


class _Described(msgspec.Struct, array_like=True, gc=False):
    """What few events change of a person."""

    workspace: str
    created_at: int
    threads: list[str]
    identifiers: list[Identifier]
    never_merge: list[str]


class _Head(msgspec.Struct, array_like=True, gc=False):
    """A person's item whose states are in the snapshot that was written with version ``snapshot_version``."""

    kind: int
    described: msgspec.Raw
    heads: list[int]
    timers: msgspec.Raw
    latest: tuple[int, str]
    snapshot_version: int
    tail: bytes
    """The ids of the events since, 16 bytes each."""
    size: int


class _Snapshot(msgspec.Struct, array_like=True, gc=False):
    """The states of a person, with the newest event in them."""

    version: int
    latest: tuple[int, str]
    layout: str
    states: list[msgspec.Raw]


_whole = msgspec.msgpack.Decoder(_Whole).decode
_head = msgspec.msgpack.Decoder(_Head).decode
_decode_described = msgspec.msgpack.Decoder(_Described).decode
_snapshot = msgspec.msgpack.Decoder(_Snapshot).decode
_ALIAS_START = b"\x92" + pack(_ALIAS)
_HEAD_START = b"\x98" + pack(_HEAD)
_ERASING_START = b"\x93" + pack(_ERASING)
"""First bytes of the MessagePack arrays that are not a whole person."""


def _pack_head(person: Person) -> bytes:
    return pack(
        (
            _HEAD,
            person.described(),
            list(person.heads.values()),
            person.packed_timers(),
            person.latest,
            person.snapshot_version,
            b"".join(person.tail or ()),
            person.size,
        )
    )


def _fields(person: Person) -> tuple[Any, ...]:
    heads = person.heads
    return (
        _WHOLE,
        person.workspace,
        person.created_at,
        list(heads),
        list(heads.values()),
        [person.identifiers[thread] for thread in heads],
        person.never_merge,
        person.packed_timers(),
        person.latest,
    )


def pack_person(person: Person, catalogue: Catalogue) -> bytes:
    """A person with all states, whichever form the store has: what two copies of a person are compared by."""
    return _pack_whole(person, catalogue, person.states.to_pack())


def _pack_whole(person: Person, catalogue: Catalogue, states: Any) -> bytes:
    fields = (*_fields(person), catalogue.layout, states)
    if person.provisional is not None:
        packed = pack((*fields, person.provisional.to_pack()))
        if len(packed) <= VALUE_BYTES_MAX:
            return packed
    return pack(fields)


# --- reading ----------------------------------------------------------------------------------


def read_people(store: Store, catalogue: Catalogue, ids: Iterable[str]) -> list[Found]:
    """The people under these ids, in one read where nobody else writes."""
    chosen = list(ids)
    items = store.get([*map(person_key, chosen), *map(snapshot_key, chosen)]) if chosen else []
    people = assembled(store, catalogue, items[: len(chosen)], items[len(chosen) :])
    for person, snapshot in zip(people, items[len(chosen) :], strict=True):
        if snapshot is None and isinstance(person, Person) and not person.snapshot_version:
            person.snapshot_item = 0
    return people


def people_of(store: Store, catalogue: Catalogue, items: Iterable[Item]) -> list[Found]:
    """What these items say; None for an item that is gone meanwhile."""
    chosen = list(items)
    keys = [snapshot_key(item.key.partition) for item in chosen if item.value.startswith(_HEAD_START)]
    snapshots = {item.key.partition: item for item in (store.get(keys) if keys else ()) if item is not None}
    return assembled(store, catalogue, chosen, [snapshots.get(item.key.partition) for item in chosen])


def pages_of_people(store: Store, catalogue: Catalogue) -> Iterator[tuple[Item, Person]]:
    """All people with their items, in the order of a scan, page by page."""
    after: Key | None = None
    while items := store.scan(PERSON, after=after, limit=PAGE_PEOPLE):
        after = items[-1].key
        for item, person in zip(items, people_of(store, catalogue, items), strict=True):
            if isinstance(person, Person):
                yield item, person


def assembled(
    store: Store, catalogue: Catalogue, items: Sequence[Item | None], snapshots: Sequence[Item | None]
) -> list[Found]:
    """The people of these items and the snapshots read with them, which are read again where a commit came between."""
    people: list[Found] = []
    tails = _Tails(store)
    for item, snapshot in zip(items, snapshots, strict=True):
        for _ in range(_READINGS_MAX):
            try:
                person = None if item is None else _person_of(catalogue, item, snapshot, tails)
            except (msgspec.MsgspecError, ValueError) as error:
                where = "" if item is None else item.key.partition
                raise StoreDamaged(f"the item of person {where} cannot be read: {error}") from None
            if item is None or person is not None:
                break
            item, snapshot = store.get([item.key, snapshot_key(item.key.partition)])
        else:
            raise StoreDamaged(f"the snapshot of person {item.key.partition if item else ''} is not that of its head")
        people.append(person)
    return people


def erasing(item: Item | None) -> Erasing | None:
    """The marker in the place of a person who is being erased; None if their item is no such marker."""
    return Erasing(*unpack(item.value)[1:]) if item is not None and item.value.startswith(_ERASING_START) else None


def _person_of(catalogue: Catalogue, item: Item, packed: Item | None, tails: _Tails) -> Found:
    """The person of an item and a snapshot; None if the two do not belong together."""
    value = item.value
    if value.startswith(_ALIAS_START):
        return str(unpack(value)[1])
    if (marker := erasing(item)) is not None:
        return marker
    if not value.startswith(_HEAD_START):
        whole = _whole(value)
        person = _made(item, whole, whole, catalogue, whole.layout, whole.states)
        person.latest, person.size = whole.latest, len(value)
        person.snapshot_item = None if packed is None else packed.version
        if whole.provisional is not None and not person.stale and whole.layout == catalogue.layout:
            latest, until, states = whole.provisional
            person.provisional = ProvisionalStates(States(catalogue, list(states)), latest, until)
        return person
    head = _head(value)
    snapshot = None if packed is None else _snapshot(packed.value)
    if snapshot is None or snapshot.version != head.snapshot_version:
        return None
    described = _decode_described(head.described)
    person = _made(item, described, head, catalogue, snapshot.layout, snapshot.states)
    person.keep_described(head.described)
    person.latest, person.size, person.snapshot_version = head.latest, head.size, head.snapshot_version
    person.snapshot_item = None if packed is None else packed.version
    tail = [head.tail[at : at + 16] for at in range(0, len(head.tail), 16)]
    # Of another layout: the stored states are older than those folded again now, so all are written.
    person.tail = tail if snapshot.layout == catalogue.layout else None
    if tail:
        person.states.follow(tails.of([id.hex() for id in tail]))
    return person


class _Tails:
    """The tails of people who are read together: once the first is needed, all are read in one read of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids: list[str] = []
        self._entries: dict[str, LogEntry] | None = None

    def of(self, ids: Sequence[str]) -> Callable[[], Sequence[Recorded]]:
        """Add a person's tail; the answer reads its events."""
        self._ids += ids
        return partial(self._read, ids)

    def _read(self, ids: Sequence[str]) -> list[Recorded]:
        entries = self._entries
        if entries is None:
            entries = self._entries = self._store.find(self._ids)
        missing = [id for id in ids if id not in entries]
        if missing:
            raise EventDamaged(missing[0], "", 0, "a person's item names it, and it is not in the log under this id")
        return [unpack_event(entries[id]) for id in ids]


def _made(
    item: Item,
    described: _Whole | _Described,
    counted: _Whole | _Head,
    catalogue: Catalogue,
    layout: str,
    packed: list[msgspec.Raw],
) -> Person:
    values: list[Any] = packed
    stale: tuple[int, ...] = ()
    if layout != catalogue.layout:
        values, stale = _relaid(layout, packed, catalogue)
    person = Person(item.key.partition, described.workspace, described.created_at, States(catalogue, values))
    person.version = item.version
    person.heads = dict(zip(described.threads, counted.heads, strict=True))
    person.identifiers = dict(zip(described.threads, described.identifiers, strict=True))
    person.never_merge, person.stale = described.never_merge, stale
    person.keep_packed_timers(counted.timers)
    return person


def _relaid(layout: str, packed: list[msgspec.Raw], catalogue: Catalogue) -> tuple[list[Any], tuple[int, ...]]:
    """States of another layout put in the order of this one; those of another version are empty and named as stale."""
    known = dict(zip(layout.split(), packed, strict=True))
    values: list[Any] = [known.get(name) for name in catalogue.layout.split()]
    stale = tuple(index for index, state in enumerate(values) if state is None)
    for index in stale:
        values[index] = catalogue.projections[index].empty()
    return values, stale
