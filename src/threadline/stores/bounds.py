"""Checks that every store makes before it writes, so that the narrowest store's limits hold on all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from threadline.kernel.errors import InvalidValue, LimitExceeded
from threadline.kernel.limits import (
    BATCH_BYTES_MAX,
    BATCH_WRITES_MAX,
    ERASED_IDS_MAX,
    ITEM_BEGINS_MAX,
    ITEM_BYTES_MAX,
    KEY_BYTES_MAX,
    PAGE_ITEMS_MAX,
)
from threadline.kernel.store import ERASED_THREAD, Batch, Key, LogEntry, Put, erased

_ID_LENGTH = 32
_is_hex = re.compile(r"[0-9a-f]+").fullmatch
_EVENT_KEYS_MAX = 2 * _ID_LENGTH + KEY_BYTES_MAX
"""Length of id, thread and type of an event together, bytes."""
_INTEGER_START, _INTEGER_END = -(2**63), 2**63


def check_batches(batches: Sequence[Batch]) -> None:
    """Raise `LimitExceeded` or `InvalidValue` if a store could not hold one of these batches."""
    longest = _check_entries([entry for batch in batches for entry in batch.events])
    for index, (events, writes, builds_on) in enumerate(batches):
        assert not builds_on or 0 <= min(builds_on) <= max(builds_on) < index, "a batch builds on earlier ones only"
        count = 2 * len(events) + len(writes)
        if count > BATCH_WRITES_MAX:
            raise LimitExceeded(f"a batch has {count} writes (an event counts as two); at most {BATCH_WRITES_MAX} fit")
        items = 0
        for write in writes:
            if isinstance(write, Put):
                items += _item_bytes(write.key, write.value)
                if not 1 <= write.begins <= ITEM_BEGINS_MAX:
                    raise InvalidValue(f"an item's version must begin between 1 and {ITEM_BEGINS_MAX:,}")
            else:
                items += _item_bytes(write.key, b"")
        if len(writes) > 1 and len({write.key for write in writes}) != len(writes):
            # Which of two writes of one item a condition would see differs between stores, so none may try.
            raise InvalidValue("a batch names the same item twice; fold its writes into one")
        if items + len(events) * (_EVENT_KEYS_MAX + longest) > BATCH_BYTES_MAX:
            size = items + sum(map(_event_bytes, events))
            if size > BATCH_BYTES_MAX:
                raise LimitExceeded(f"a batch has {size:,} bytes; at most {BATCH_BYTES_MAX:,} fit")


def _check_entries(entries: Sequence[LogEntry]) -> int:
    """Raise `LimitExceeded` or `InvalidValue` for an event that no store would keep: column by column, as it is the
    rule that every event is fit. Returns the length of the longest body."""
    if not entries:
        return 0
    threads, sequences, instants, types, ids, digests, bodies = zip(*entries, strict=True)
    numbers = (*sequences, *instants, *digests)
    if ERASED_THREAD in threads:
        wrong = [entry.id for entry in entries if entry.thread == ERASED_THREAD and entry != erased(entry.id)]
        if wrong:
            raise InvalidValue(f"event {wrong[0]} is in the thread of erased events, but has a content")
        types = tuple(entry.type for entry in entries if entry.thread != ERASED_THREAD)
    for type in set(types):
        _name_bytes(type, "event type")
    longest = max(map(len, bodies))
    if (
        set(map(len, ids + threads)) != {_ID_LENGTH}
        or not _is_hex("".join(ids + threads))
        or not _INTEGER_START <= min(numbers) <= max(numbers) < _INTEGER_END
        or longest > ITEM_BYTES_MAX - _EVENT_KEYS_MAX
    ):
        for entry in entries:
            _event_bytes(entry)
    return longest


def check_erase(ids: Sequence[str]) -> None:
    """Raise `LimitExceeded` for more ids than one call may erase."""
    if len(ids) > ERASED_IDS_MAX:
        raise LimitExceeded(f"{len(ids)} events are to be erased at once; at most {ERASED_IDS_MAX:,} can be")


def check_page(limit: int) -> None:
    """Raise `LimitExceeded` for a page size that no store would serve."""
    if not 1 <= limit <= PAGE_ITEMS_MAX:
        raise LimitExceeded(f"a page of {limit} was asked for; it must be between 1 and {PAGE_ITEMS_MAX}")


def check_shard(shard: int, shards: int) -> None:
    """Raise `InvalidValue` for a shard that is not one of so many."""
    if not 0 <= shard < shards:
        raise InvalidValue(f"there is no shard {shard} of {shards}; shards count from 0")


def text_bytes(text: str) -> int:
    """The length of a text in UTF-8. Raises `InvalidValue` for half a surrogate pair, which UTF-8 cannot hold."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidValue(f"{text!r:.80} is not Unicode text: it holds half a surrogate pair") from None


@lru_cache(maxsize=4_096)
def _name_bytes(text: str, part: str) -> int:
    """The length of a table's name or an event type, of which there are few."""
    return _part_bytes(text, part)


def _part_bytes(text: str, part: str) -> int:
    size = len(text) if text.isascii() else text_bytes(text)
    if not 0 < size <= KEY_BYTES_MAX:
        raise LimitExceeded(f"the {part} {text!r:.80} has {size:,} bytes; it must have between 1 and {KEY_BYTES_MAX:,}")
    return size


def _item_bytes(key: Key, value: bytes) -> int:
    table, partition, sort = key
    if sort == "-" and len(partition) == _ID_LENGTH and partition.isascii():
        size = len(value) + _name_bytes(table, "table") + _ID_LENGTH + 1
    else:
        size = (
            len(value) + _name_bytes(table, "table") + _part_bytes(partition, "partition") + _part_bytes(sort, "sort")
        )
    if size > ITEM_BYTES_MAX:
        raise LimitExceeded(f"the item {'/'.join(key)!r:.200} has {size:,} bytes; at most {ITEM_BYTES_MAX:,} fit")
    return size


def _event_bytes(entry: LogEntry) -> int:
    thread, sequence, occurred_at, type, id, digest, body = entry
    if not (len(id) == len(thread) == _ID_LENGTH and _is_hex(id) and _is_hex(thread)):
        raise InvalidValue(f"event {id!r:.80}: its id and its thread must each be 32 lower-case hex digits")
    if not (
        _INTEGER_START <= sequence < _INTEGER_END
        and _INTEGER_START <= occurred_at < _INTEGER_END
        and _INTEGER_START <= digest < _INTEGER_END
    ):
        raise InvalidValue(f"event {id}: sequence, occurred_at and digest must each fit in 64 signed bits")
    size = len(body) + len(id) + len(thread) + (_name_bytes(type, "event type") if thread != ERASED_THREAD else 0)
    if size > ITEM_BYTES_MAX:
        raise LimitExceeded(f"event {id} has {size:,} bytes; at most {ITEM_BYTES_MAX:,} fit")
    return size
