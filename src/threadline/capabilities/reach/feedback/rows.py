"""Index rows of mails and of what became of them, by template, by journey or broadcast, and by the provider's id."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from threadline.capabilities.reach.feedback.events import (
    COUNTED,
    FETCHES,
    MAIL_FETCHED,
    MAIL_SENT,
    MAIL_SKIPPED,
    SOURCE,
)
from threadline.kernel.event import Event, Recorded
from threadline.kernel.ids import short_hash
from threadline.kernel.projection import Row
from threadline.kernel.store import Key, Range, Store, following_items
from threadline.kernel.time import newest_first_key

LISTED = COUNTED | FETCHES
"""The types of events that have rows."""
TABLE = "mail_event"
PROVIDER_TABLE = "mail_provider_id"
SHARDS = "0123456789abcdef"
"""The first digits of events' ids. What became of one template's mails lies in so many partitions, the newest first."""
NAME_LENGTH_MAX = 200
_TEXT_LENGTH_MAX = 320

Subject = Literal["template", "journey", "broadcast"]
SUBJECTS: tuple[Subject, ...] = ("template", "journey", "broadcast")


class MailRow(msgspec.Struct, frozen=True, array_like=True):
    """What a row says of an event."""

    type: str
    at: int
    thread: str
    message: str
    address: str = ""
    template: str = ""
    step: str = ""
    arm: str = ""
    machine: bool = False
    why: str = ""
    link: str = ""
    bounce: str = ""
    reason: str = ""
    fetch: str = ""
    """Of a fetch: ``opened`` or ``clicked``."""
    count: int = 1
    """Of a fetch: how many there were."""
    decided: bool = False
    """Of a click: that it is a person's was decided before it was recorded."""


class Found(NamedTuple):
    """A row, and the cursor after it."""

    cursor: str
    event: str
    """The id of the event."""
    row: MailRow


_decode = msgspec.msgpack.Decoder(MailRow).decode


def event_rows(recorded: Recorded) -> Iterable[Row]:
    """The rows of an event: one for each thing that its mail was sent for, and of a sent one the provider's id."""
    event = recorded.event
    get = event.properties.get
    message = get("message")
    if event.type not in LISTED or not isinstance(message, str) or not 0 < len(message) < 100:
        return
    if get("test") is True:
        return
    fetch, count = _fetch(event)
    if event.type in FETCHES and not fetch:
        return
    row = MailRow(
        type=event.type,
        at=event.occurred_at,
        thread=recorded.thread,
        message=message,
        address=_text(get("address")),
        template=_text(get("template")),
        step=_text(get("step")),
        arm=_text(get("arm")),
        machine=get("machine") is True,
        why=_text(get("why")),
        link=_text(get("link"), 2_000),
        bounce=_text(get("bounce")),
        reason=_text(get("reason")) if event.type == MAIL_SKIPPED else "",
        fetch=fetch,
        count=count,
        decided=event.source != SOURCE,
    )
    value = msgspec.msgpack.encode(row)
    sort = f"{newest_first_key(event.occurred_at)}.{recorded.id}"
    for subject in SUBJECTS:
        name = get(subject)
        if isinstance(name, str) and 0 < len(name) <= NAME_LENGTH_MAX:
            yield Row(TABLE, partition(event.workspace, subject, name, recorded.id[0]), sort, value)
    # Only SES names mails by ids of its own; for others the row would be a write for nothing.
    provider_id = get("provider_id") if event.type == MAIL_SENT and get("provider") == "ses" else None
    if isinstance(provider_id, str) and 0 < len(provider_id) <= NAME_LENGTH_MAX:
        yield Row(*_provider_key(event.workspace, provider_id), message.encode())


def _fetch(event: Event) -> tuple[str, int]:
    """What a fetch was of and how often, where a row has to say so; one that is decided about later needs none."""
    fetch, count = event.properties.get("fetch"), event.properties.get("count", 1)
    counts = type(count) is int and count > 0 and (event.type != MAIL_FETCHED or "count" in event.properties)
    return (fetch, count) if event.type in FETCHES and fetch in ("opened", "clicked") and counts else ("", 1)


def partition(workspace: str, subject: Subject, name: str, shard: str) -> str:
    """The partition of what became of these mails, of the events whose ids begin with this digit."""
    return f"{workspace}/{subject}/{name}/{shard}"


def rows_of(
    store: Store,
    workspace: str,
    subject: Subject,
    name: str,
    start: int | None,
    stop: int | None,
    cursor: str = "",
    size: int = 1_000,
) -> Iterator[Found]:
    """What became of these mails in a range of time, the newest first, behind a cursor."""
    first = cursor or ("" if stop is None else newest_first_key(stop - 1))
    last = None if start is None else newest_first_key(start - 1)
    ranges = [Range(TABLE, partition(workspace, subject, name, shard), first, last, size) for shard in SHARDS]
    shards = map(partial(following_items, store), ranges, store.ranges(ranges))
    for item in heapq.merge(*shards, key=lambda item: item.key.sort):
        yield Found(item.key.sort, item.key.sort.partition(".")[2], _decode(item.value))


def message_of(store: Store, workspace: str, provider_id: str) -> str:
    """The mail to which a provider has given this id; empty if there is none."""
    item = store.get([_provider_key(workspace, provider_id)])[0]
    return item.value.decode() if item is not None else ""


def _provider_key(workspace: str, provider_id: str) -> Key:
    # By a hash: the ids of one provider begin alike, and one partition would take every write.
    return Key(PROVIDER_TABLE, f"{workspace}/{short_hash(provider_id)[:2]}", provider_id)


def _text(value: Any, most: int = _TEXT_LENGTH_MAX) -> str:
    return value[:most] if isinstance(value, str) else str(value) if type(value) is int else ""
