"""The layout of the table: the keys of all kinds of items, the packed form of values and events.

| pk                       | sk                                   | item |
|--------------------------|--------------------------------------|------|
| ``i`` table NUL partition| sort                                 | an item of the port |
| ``f`` table NUL partition| sort                                 | its frame, if it has one; see `frames.py` |
| ``t`` thread             | occurred ``.`` position ``.`` place  | a page: events of one thread from one batch |
| ``e`` event id           | ``-``                                | where an event is, and its digest; unique |
| ``j`` shard              | position                             | the journal: which pages a call is about to commit |
| ``w``                    | ``-``                                | who writes to the journal now |

A page never changes; one of which events are erased is replaced by others, see `erasure.py`.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import ITEM_BYTES_MAX
from threadline.kernel.store import Key, LogEntry
from threadline.kernel.time import DAY, SECOND
from threadline.stores.compression import BODIES, VALUES, Compression

Attributes = dict[str, Any]
"""An item as DynamoDB's JSON writes it: name -> {type: value}. Bytes go out as they are and come back as base64."""

PK, SK = "pk", "sk"
VERSION, POSITION, EXPIRES, DIGEST, PAGE = "n", "p", "ttl", "d", "g"
ROW, DEFLATED, DIFFERENCE = "v", "z", "y"
"""What holds a value: the row of `compression.py`; deflated, as former versions wrote it; `difference.py`."""
FRAME = "f"
"""Which frame lies beside an item: the mark of the place of its making."""
DEAD = "x"
"""Marks a page that must never be written: its writer is expelled."""
ONLY = "-"

POSITION_BYTES = 12
JOURNAL_SHARDS = 4
"""A partition of a table takes 1,000 write units a second, so the journal has several."""
PAGE_SPAN = 7 * DAY
"""The most time between two events of a page: a search for an instant reads at most so far beyond."""
PAGE_BYTES_MAX = ITEM_BYTES_MAX
_LEVEL = 9
"""Of compression: units count bytes, and the time that it takes is little beside that of a call."""
_TABLE_BYTES_MAX = 1_000
_OFFSET = 1 << 63

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_unpack_events = msgspec.msgpack.Decoder(list[tuple[int, int, int, str, bytes, int, bytes]]).decode


class PageKey(NamedTuple):
    """Which page: its thread, the instant of its earliest event and the place of its making."""

    thread: str
    sort: str

    @property
    def pk(self) -> str:
        """The partition key."""
        return "t" + self.thread

    @property
    def position(self) -> str:
        """Of the journal's entry that names it."""
        return self.sort[17:41]

    @property
    def number(self) -> int:
        """Which batch of the entry it belongs to."""
        return int(self.sort.split(".")[2], 16)

    @property
    def ordinal(self) -> int:
        """Which page of the batch it is."""
        return int(self.sort.split(".")[3], 16)

    def sibling(self, thread: str, at: str, ordinal: int) -> PageKey:
        """Another page of the same batch; ``at`` as `time_text` writes it."""
        return PageKey(thread, f"{at}.{self.position}.{self.number:x}.{ordinal:x}")


class Place(NamedTuple):
    """Where the pages of one batch are made: in the journal's entry at ``position``, as its batch ``number``."""

    position: str
    number: int

    @property
    def text(self) -> str:
        """Unique for ever."""
        return f"{self.position}.{self.number:x}"

    @property
    def mark(self) -> Attributes:
        """The same in fewer bytes: what every item keeps of the batch that wrote it last."""
        number = self.number.to_bytes(self.number.bit_length() // 8 + 1, "big")
        return {"B": b64encode(bytes.fromhex(self.position) + number).decode()}

    def page(self, thread: str, occurred_at: int, count: int) -> PageKey:
        """The key of the batch's page ``count``, which starts with an event at this instant."""
        return PageKey(thread, f"{time_text(occurred_at)}.{self.text}.{count:x}")


# --- items of the port ----------------------------------------------------------------------


def table_prefix(table: str) -> str:
    """What the partition keys of a table's items begin with."""
    if "\0" in table or len(table.encode()) > _TABLE_BYTES_MAX:
        message = f"the table {table!r:.80} must have at most {_TABLE_BYTES_MAX} bytes and no NUL on DynamoDB"
        raise InvalidValue(message, hint="a key has 2,048 bytes there, for the table and the partition together")
    return f"i{table}\0"


def item_key(key: Key) -> Attributes:
    """The primary key of an item of the port."""
    return {PK: {"S": table_prefix(key.table) + key.partition}, SK: {"S": key.sort}}


def frame_key(key: Key) -> Attributes:
    """The primary key of the frame of an item of the port."""
    return {PK: {"S": "f" + item_key(key)[PK]["S"][1:]}, SK: {"S": key.sort}}


def key_of(item: Attributes) -> Key:
    """The port's key of an item that was read, or of the item whose frame it is."""
    table, _, partition = item[PK]["S"][1:].partition("\0")
    return Key(table, partition, item[SK]["S"])


def position_of(item: Attributes) -> str:
    """The journal's position of the batch that wrote an item last."""
    return b64decode(item[POSITION]["B"])[:POSITION_BYTES].hex()


def version_of(item: Attributes) -> int:
    """The version of an item that was read; of a frame, the version that it was made with."""
    return int(item[VERSION]["N"])


def has_expired(item: Attributes, now: int) -> bool:
    """Whether an item counts as absent: DynamoDB takes what has expired away days later."""
    expires = item.get(EXPIRES)
    return expires is not None and int(expires["N"]) * SECOND <= now


_values, _pages = Compression(VALUES, _LEVEL), Compression(BODIES, _LEVEL)


def packed(value: bytes, compression: Compression = _values) -> Attributes:
    """A value as the one attribute that holds it: compressed where that is shorter, because units count bytes."""
    [row] = compression.compressed([value])
    return {ROW: {"B": row}}


def content(item: Attributes, compression: Compression = _values) -> bytes:
    """The value of `packed`. Raises ValueError for one that is not as it was written."""
    if DEFLATED in item:
        try:
            return zlib.decompress(b64decode(item[DEFLATED]["B"]), -15)
        except zlib.error as error:
            raise ValueError(str(error)) from None
    [value] = compression.restored([b64decode(item[ROW]["B"])])
    return value


# --- events ---------------------------------------------------------------------------------


def time_text(at: int) -> str:
    """An instant, or any number of 64 signed bits, as text that sorts like it."""
    return f"{min(max(at, -_OFFSET), _OFFSET - 1) + _OFFSET:016x}"


def id_key(id: str) -> Attributes:
    """The primary key of the item that says where an event is."""
    return {PK: {"S": "e" + id}, SK: {"S": ONLY}}


def id_item(event: LogEntry, page: PageKey) -> Attributes:
    """The item that says where an event is."""
    return {**id_key(event.id), DIGEST: {"N": str(event.digest)}, PAGE: {"S": f"{page.thread}/{page.sort}"}}


def page_of(item: Attributes) -> PageKey:
    """Where the event of an id's item is."""
    thread, _, sort = item[PAGE]["S"].partition("/")
    return PageKey(thread, sort)


def page_key(key: PageKey) -> Attributes:
    """The primary key of a page."""
    return {PK: {"S": key.pk}, SK: {"S": key.sort}}


def page_name(item: Attributes) -> PageKey:
    """The key of a page that was read."""
    return PageKey(item[PK]["S"][1:], item[SK]["S"])


def pages(events: Sequence[LogEntry], place: Place) -> list[tuple[PageKey, list[tuple[int, LogEntry]]]]:
    """The events of a batch on pages: of one thread each, near in time, small enough for an item.

    With each event goes its number in the batch, so that the feed can tell them in that order.
    """
    ordered = sorted(enumerate(events), key=lambda pair: (pair[1].thread, pair[1].occurred_at, pair[1].sequence))
    made: list[tuple[PageKey, list[tuple[int, LogEntry]]]] = []
    for thread, group in groupby(ordered, key=lambda pair: pair[1].thread):
        for chunk in _chunks(group):
            made.append((place.page(thread, chunk[0][1].occurred_at, len(made)), chunk))
    return made


def _chunks(group: Iterable[tuple[int, LogEntry]]) -> Iterable[list[tuple[int, LogEntry]]]:
    chunk: list[tuple[int, LogEntry]] = []
    size = 0
    for number, entry in group:
        more = len(entry.body) + len(entry.type.encode()) + 64
        if chunk and (size + more > PAGE_BYTES_MAX or entry.occurred_at - chunk[0][1].occurred_at > PAGE_SPAN):
            yield chunk
            chunk, size = [], 0
        chunk.append((number, entry))
        size += more
    if chunk:
        yield chunk


def pack_page(chunk: Sequence[tuple[int, LogEntry]]) -> Attributes:
    """The attribute that holds the events of a page."""
    return packed(
        _pack([(n, e.sequence, e.occurred_at, e.type, bytes.fromhex(e.id), e.digest, e.body) for n, e in chunk]), _pages
    )


def unpack_page(item: Attributes) -> list[tuple[int, LogEntry]]:
    """The events of a page with their numbers in the batch; none for a page that must not be."""
    if DEAD in item:
        return []
    thread = item[PK]["S"][1:]
    try:
        events = _unpack_events(content(item, _pages))
    except (msgspec.MsgspecError, ValueError, KeyError):
        # One entry that cannot be read stands for the page, so that the pages around it can.
        return [(0, LogEntry(thread, 0, int(item[SK]["S"][:16], 16) - _OFFSET, "", "", 0, b"?"))]
    return [
        (number, LogEntry(thread, sequence, at, type, id.hex(), digest, body))
        for number, sequence, at, type, id, digest, body in events
    ]


# --- the journal ----------------------------------------------------------------------------


def journal_pk(writer: str) -> str:
    """The partition in which a writer keeps its journal."""
    return f"j{int(writer, 16) % JOURNAL_SHARDS}"


def journal_key(position: str) -> Attributes:
    """The primary key of the journal's entry at a position."""
    return {PK: {"S": journal_pk(position[16:])}, SK: {"S": position}}


def journal_pks() -> list[str]:
    """All partitions of the journal."""
    return [f"j{shard}" for shard in range(JOURNAL_SHARDS)]


def pack_journal(batches: Sequence[Sequence[PageKey]]) -> Attributes:
    """The pages of each batch of a call; what follows from the position is left out of their keys."""
    return packed(
        _pack([[(bytes.fromhex(key.thread), bytes.fromhex(key.sort[:16])) for key in keys] for keys in batches])
    )


def unpack_journal(item: Attributes) -> list[list[PageKey]]:
    """The pages of each batch that an entry of the journal names."""
    position = item[SK]["S"]
    return [
        [
            PageKey(thread.hex(), f"{at.hex()}.{position}.{number:x}.{count:x}")
            for count, (thread, at) in enumerate(keys)
        ]
        for number, keys in enumerate(_unpack(content(item)))
    ]
