"""A store of each kind with something in every region of it, and one bit of it flipped.

What a reader can see is read through the port, all of it and in every way, and compared with what the same calls gave
before. Nothing of that is shared with `verify`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.laws import staging
from tests.laws.staging import NOW, event
from threadline.engine.engine import Engine
from threadline.engine.maintenance.verification import verify
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.store import Batch, Delete, FeedEntry, Item, Key, LogEntry, Put, Span, Store
from threadline.kernel.time import HOUR

LONG = 6_000
"""Characters of a value that no page of a store holds."""
EXTRA = "extra"
"""A table beside those of the engine."""


class Flip(NamedTuple):
    """A flipped bit, and where it is, in words."""

    where: str
    outcome: str
    """``unchanged`` for readers, ``noticed`` by verify, or ``unnoticed``."""
    detail: str = ""


# --- what is in the stores ----------------------------------------------------------------------


def fill(store: Store, random: Random, people: int = 12) -> None:
    """Events of several people, short and long, joins, tags, timers and items, and some that are gone again."""
    on = staging.engine(store, clock=staging.ticking())
    for number in range(people):
        who = {"user_id": f"u{number}"}
        calls = [
            event("identify", {**who, "anonymous_id": f"a{number}"}, f"i{number}", properties={"name": f"N {number}"})
        ]
        calls += [
            event(
                "page",
                who,
                f"p{number}-{at}",
                NOW - at * HOUR,
                properties={"n": f"f-{number}-{at}"},
                source_type="external",
            )
            for at in range(random.randrange(2, 6))
        ]
        note = "".join(random.choices("abcdefghij ", k=LONG))
        calls.append(event("note", who, f"n{number}", NOW - 9 * HOUR, properties={"text": note}))
        on.recorder.record(calls)
    puts = [
        Put(Key(EXTRA, f"p{number % 3}", f"s{number:03}"), random.randbytes(random.choice([3, 40, LONG])), 0)
        for number in range(30)
    ]
    assert store.commit([Batch(writes=[put]) for put in puts]) == [None] * len(puts)
    assert store.commit([Batch(writes=[Delete(put.key) for put in puts[::3]])]) == [None]


# --- what readers see ---------------------------------------------------------------------------


class Seen(NamedTuple):
    """All that the port gives."""

    feed: list[FeedEntry]
    tables: list[str]
    items: dict[Key, Item]
    by_key: list[Item | None]
    by_partition: list[list[Item]]
    by_id: dict[str, LogEntry]
    one_by_one: list[dict[str, LogEntry]]
    digests: dict[str, int]
    by_thread: dict[str, list[LogEntry]]
    by_type: dict[str, list[LogEntry]]


def see(store: Store, before: Seen | None = None) -> Seen:
    """Everything of a store; by the keys, ids and threads of ``before``, or its own."""
    feed = list(_feed(store))
    tables = store.tables()
    items = {item.key: item for table in tables for item in _scan(store, table)}
    known = before or Seen(feed, tables, items, [], [], {}, [], {}, {}, {})
    ids = [each.entry.id for each in known.feed]
    threads = sorted({each.entry.thread for each in known.feed})
    types = frozenset({min(each.entry.type for each in known.feed)})
    partitions = sorted({key[:2] for key in known.items})
    return Seen(
        feed,
        tables,
        items,
        store.get(list(known.items)),
        [store.query(*each, limit=1_000) for each in partitions],
        store.find(ids),
        [store.find([id]) for id in ids],
        store.seen(ids),
        store.histories(threads),
        store.spans(threads, Span(types=types)),
    )


def _feed(store: Store) -> Iterator[FeedEntry]:
    cursor = ""
    while page := store.feed(cursor, 100):
        yield from page
        cursor = page[-1].cursor


def _scan(store: Store, table: str) -> Iterator[Item]:
    after: Key | None = None
    while page := store.scan(table, after=after, limit=100):
        yield from page
        after = page[-1].key


def classify(where: str, before: Seen, opened: Callable[[], Store], catalogue: Any) -> Flip:
    """What became of a flip: whether readers see anything else, and whether verify says so.

    Only errors of Threadline's own count as a word about damage; any other is a fault of the program.
    """
    changed = noticed = ""
    try:
        store = opened()
    except ThreadlineError as error:
        return Flip(where, "noticed", f"it is not opened: {error}")
    try:
        try:
            changed = _difference(before, see(store, before))
        except ThreadlineError as error:
            changed = str(error)
        try:
            on = _Reading(store, catalogue, lambda: NOW)
            found = verify(on)
            noticed = "" if found.is_whole else "verify"
        except ThreadlineError as error:
            noticed = str(error)
    finally:
        store.close()
    if noticed:
        return Flip(where, "noticed", changed)
    return Flip(where, "unnoticed" if changed else "unchanged", changed)


class _Reading(Engine):
    """An engine that does not write where it is opened; the store may be open for reading only."""


def _difference(before: Seen, now: Seen) -> str:
    return next(
        (f"{name} differs" for name, one, other in zip(Seen._fields, before, now, strict=True) if one != other), ""
    )


# --- flipping -----------------------------------------------------------------------------------


def flip_file(path: Path, random: Random) -> str:
    """Flip one bit of a file; where."""
    at, bit = random.randrange(path.stat().st_size), random.randrange(8)
    return flip_at(path, at, bit)


def flip_at(path: Path, at: int, bit: int) -> str:
    """Flip one bit of a file; where."""
    with path.open("r+b") as file:
        file.seek(at)
        old = file.read(1)[0]
        file.seek(at)
        file.write(bytes([old ^ 1 << bit]))
        file.flush()
        os.fsync(file.fileno())
    return f"{path.name}: byte {at} bit {bit}"


def flip_bytes(data: bytes, random: Random) -> bytes:
    """The same with one bit flipped."""
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def flip_entry(entry: LogEntry, random: Random) -> LogEntry:
    """The entry with one bit of one of its fields flipped."""
    name = random.choice(LogEntry._fields)
    value = getattr(entry, name)
    if isinstance(value, int):
        return entry._replace(**{name: value ^ 1 << random.randrange(63)})
    if isinstance(value, bytes):
        return entry._replace(body=flip_bytes(value, random))
    if name == "type":
        return entry._replace(type=flip_bytes(value.encode(), random).decode("latin-1"))
    return entry._replace(**{name: flip_bytes(bytes.fromhex(value), random).hex()})
