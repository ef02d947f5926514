"""Every flipped bit of a log entry is noticed; an entry of an earlier version is compared with its event."""

from __future__ import annotations

import random

import msgspec
import pytest

from tests.laws import staging
from threadline.engine.folding.packing import check_entry, checked_event, encode_event, payload_digest, unpack_event
from threadline.kernel.errors import EventDamaged
from threadline.kernel.store import LogEntry, feed_pages

NUMBERS = ("sequence", "occurred_at", "digest")
TEXTS = ("thread", "type", "id")


def entry() -> LogEntry:
    """An entry as this version writes it."""
    on = staging.engine()
    on.recorder.record([staging.event("page", {"user_id": "ada"}, "k-é", staging.NOW, properties={"n": "f-1-5"})])
    return next(each.entry for each in feed_pages(on.store) if each.entry.type == "page")


def of_earlier_version(recorded: LogEntry, **changes: object) -> LogEntry:
    """The same without a checksum, with changes of its event after it was recorded; it came over a wire."""
    event = msgspec.structs.replace(unpack_event(recorded).event, source_type="external")
    changed = msgspec.structs.replace(event, **changes)
    return recorded._replace(digest=payload_digest(event), body=b'[%b,1,""]' % encode_event(changed))


def flipped(data: bytes, bit: int) -> bytes:
    """These bytes with one bit changed."""
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def test_no_flipped_bit_of_body_or_columns_goes_unnoticed() -> None:
    whole = entry()
    assert check_entry(whole) == ""
    damaged = [whole._replace(body=flipped(whole.body, bit)) for bit in range(8 * len(whole.body))]
    for name in NUMBERS:
        damaged += [whole._replace(**{name: getattr(whole, name) ^ 1 << bit}) for bit in range(63)]
    for name in TEXTS:
        text = getattr(whole, name).encode()
        damaged += [whole._replace(**{name: flipped(text, bit).decode("latin-1")}) for bit in range(8 * len(text))]
    assert [each for each in damaged if not check_entry(each)] == []


def test_bytes_exchanged_between_two_entries_are_noticed(seed: int) -> None:
    whole, drawn = entry(), random.Random(seed)
    for _ in range(200):
        one, other = (drawn.randrange(len(whole.body)) for _ in range(2))
        body = bytearray(whole.body)
        body[one], body[other] = body[other], body[one]
        assert (check_entry(whole._replace(body=bytes(body))) == "") == (bytes(body) == whole.body)


@pytest.mark.parametrize(
    "changes", [{}, {"properties": {"n": "f-1-7"}}, {"key": "k2"}, {"type": "pagf"}, {"occurred_at": 1}]
)
def test_an_entry_without_checksum_is_compared_with_its_event(changes: dict[str, object]) -> None:
    assert bool(check_entry(of_earlier_version(entry(), **changes))) == bool(changes)


def test_a_damaged_event_names_itself_and_its_place() -> None:
    damaged = entry()._replace(body=b"[]")
    with pytest.raises(EventDamaged, match=rf"event {damaged.id} \(at position 7 of the log\) is damaged") as refused:
        checked_event(damaged, "7")
    assert (refused.value.code, refused.value.id) == ("store_damaged", damaged.id)
    with pytest.raises(EventDamaged, match=f"number {damaged.sequence} of thread {damaged.thread}"):
        unpack_event(damaged)
