"""What the five source designs would write to DynamoDB and read from it for the same events, by their own tables.

Only their DynamoDB tables are counted, not the relational databases, queues and caches beside them. Where a design
leaves something open, the cheaper reading is taken: an index that serves look-ups alone projects its keys only, reads
are eventually consistent, and what a design does not keep costs it nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from threadline.kernel.event import Event
from threadline.kernel.time import DAY, format_time
from threadline.testing.world import segment_message

KIB = 1_024
UUID = "00000000-0000-4000-8000-000000000000"
Attributes = dict[str, Any]


class Units(NamedTuple):
    """Capacity, in request units of on-demand tables."""

    write: float = 0.0
    read: float = 0.0

    def __add__(self, other: object) -> Units:
        """Both together."""
        assert isinstance(other, Units)
        return Units(self.write + other.write, self.read + other.read)


def value_bytes(value: Any) -> int:
    """The size of a value as DynamoDB counts it; source: its developer guide, "Item sizes and formats"."""
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, int | float):
        return math.ceil(len(f"{abs(value):.15g}".replace(".", "")) / 2) + 1 + (value < 0)
    if isinstance(value, dict):
        return 3 + sum(1 + len(name.encode()) + value_bytes(each) for name, each in value.items())
    return 3 + sum(1 + value_bytes(each) for each in value)


def item_bytes(item: Attributes) -> int:
    """The size of an item: names and values."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def write_units(item: Attributes) -> float:
    """What it costs to write an item outside a transaction."""
    return math.ceil(item_bytes(item) / KIB)


def read_units(size: int = 0) -> float:
    """What it costs to read so many bytes from one partition, eventually consistent."""
    return 0.5 * max(1, math.ceil(size / (4 * KIB)))


def lead_events(events: Iterable[Event], features: Iterable[str]) -> Units:
    """Seed 0: tables event (two indexes), memory and feature, each read and written by a function of its own."""
    feature = {"lead_organization_id": UUID, "features": dict.fromkeys(features, 1234.5), "computed_at": format_time(0)}
    total = Units()
    for event in events:
        message = segment_message(event)
        at = format_time(event.occurred_at)
        keys = {"lead_organization_id": UUID, "occurred_at#id": f"{at}#{UUID}"}
        item = {
            **keys,
            "source_type": event.source_type,
            "source": event.source,
            "event_type": event.type,
            "payload": {**event.properties, **event.context},
            "raw_payload": msgspec.json.encode(message).decode(),
            "external_event_id": event.key,
            "received_at": at,
            "event_type#occurred_at": f"{event.type}#{at}",
        }
        by_key = {**keys, "source": event.source, "external_event_id": event.key}
        # Features are reckoned from the events that the index by type finds, so it has to hold their payloads.
        total += Units(write_units(item) + write_units(by_key) + write_units(item), read_units())
        if event.type in _REMEMBERED:
            total += Units(1, read_units())
        total += Units(write_units(feature), read_units(item_bytes(feature)) + read_units())
    return total


_REMEMBERED = frozenset(
    {
        "conversation_ended",
        "discount_requested",
        "identify",
        "interest_detected",
        "product_asked",
        "purchase_completed",
        "purchase_refunded",
        "sentiment_detected",
        "subscription_created",
    }
)
"""Types from which something is remembered of a person."""


def streaks(events: Iterable[Event], features: Iterable[str]) -> Units:
    """Seed 1: UserStreaks with its leaderboard, BPEvents with its index, DailyActivity."""
    days: set[tuple[str, int]] = set()
    total = Units()
    for event in events:
        # BPEvents and IdempotencyIndex, UserStreaks, DailyActivity; before them the look-up and the streak.
        total += Units(4, read_units() + read_units())
        day = (str(event.identifiers[0]), event.occurred_at // DAY)
        if day not in days:
            days.add(day)
            total += Units(2)  # the leaderboard is sorted by the streak: its old entry goes, the new one comes
    return total


def event_store(events: Iterable[Event], features: Iterable[str]) -> Units:
    """Seed 2: one table of events, an index by stream and one by idempotency key; decisions are kept elsewhere."""
    total = Units()
    for event in events:
        at = format_time(event.occurred_at)
        keys = {"PK": f"evt_{UUID}", "SK": f"EVENT#{UUID}#00000000000000000042"}
        item = {
            **keys,
            "GSI1PK": UUID,
            "GSI1SK": 42,
            "GSI2PK": event.key,
            "EventType": event.type,
            "Payload": event.properties,
            "Metadata": event.context,
            "OccurredAt": at,
            "IngestedAt": at,
            "SchemaVersion": 1,
        }
        by_key = {**keys, "GSI2PK": event.key}
        total += Units(2 * write_units(item) + write_units(by_key), 2 * read_units())
    return total


def action_queue(events: Iterable[Event], features: Iterable[str]) -> Units:
    """Seed 3: a queue in a table, scanned, queried by actor and emptied; the summaries are kept elsewhere."""
    total = Units()
    for event in events:
        item = {
            "Actor": f"1|{UUID}",
            "OccurredAt": format_time(event.occurred_at),
            "ActorValue": UUID,
            "ActorTypeId": 1,
            "ActionId": UUID,
            "ApplicationId": event.source,
            "Topic": event.type,
            "ActorClaims": event.context,
            "ScopeTopic": "category",
            "ScopeValue": str(event.properties.get("category", "")),
        }
        share = 0.5 * item_bytes(item) / (4 * KIB)  # many in one scan, and again in one query
        total += Units(2 * write_units(item), 2 * share)
    return total


def mailing(events: Iterable[Event], features: Iterable[str]) -> Units:
    """Seed 4: profiles, the log of sent mails, engagement events with two indexes, counters; no other event."""
    total = Units()
    for event in events:
        if event.type.startswith("campaign_"):
            total += Units(1 + 1 + 1 + 1)  # EVT, TemplateIndex, SequenceIndex, COUNTERS
        if event.type == "campaign_delivered":
            total += Units(1, read_units())  # SENT, after a look whether it was sent
        if event.type == "identify":
            total += Units(1, read_units())
    return total


DESIGNS: dict[str, Callable[[Iterable[Event], Iterable[str]], Units]] = {
    "events, memory, features (0)": lead_events,
    "streaks and points (1)": streaks,
    "events and rules (2)": event_store,
    "content interest (3)": action_queue,
    "mailing (4)": mailing,
}
"""What each is for, and how to reckon it."""
