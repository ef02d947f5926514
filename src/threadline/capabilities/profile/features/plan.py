"""What a state has to keep for a set of features: slots, each shared by all features that read the same of events.

The state is ``{slot name: [computed_at, newest, tally?, buckets…]}``: the newest instant at which an event of the slot
was recorded, the newest at which one occurred, the lifetime tally if a feature needs one, and one list of buckets
for each width of bucket that the windows of the slot ask for. Beside them stands what a slot could not read, see
`unread.py`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from threadline.capabilities.foundation.conditions import Path
from threadline.capabilities.profile.features.cells import (
    CURRENCIES_MAX,
    PARTS,
    Entry,
    Series,
    TallyLayout,
    bucket_width,
    tally_layout,
)
from threadline.capabilities.profile.features.definition import (
    ANY,
    Feature,
    FeatureSet,
    Feed,
    Source,
    ValueKind,
    content_hash,
)
from threadline.capabilities.profile.features.unread import COUNTED, count_unread, merged_unread, unread_name
from threadline.capabilities.profile.features.values import dig, read_key, read_scalar, week_hour
from threadline.kernel.event import Event, Recorded
from threadline.kernel.fixed import read_currency, to_fixed
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import DISTINCT_VALUES_MAX, WINDOW_BUCKET_ENTRIES_MAX

LAYOUT = 6
"""Grows when the form of the state changes, or what is folded into it, so that older states are folded again."""

_NAME_LENGTH = 3
_BOUNDS = [LAYOUT, DISTINCT_VALUES_MAX, WINDOW_BUCKET_ENTRIES_MAX, CURRENCIES_MAX, PARTS]

_CELLS: dict[str, tuple[str, ...]] = {
    "count": ("n",),
    "sum": ("sum",),
    "average": ("n", "sum"),
    "min": ("min",),
    "max": ("max",),
    "first": ("first",),
    "last": ("last",),
    "distinct": ("keys",),
    # Whether and when the newest event was stands at the head of the slot.
    "any": (),
    "days_since": (),
    "preferred_hour": ("hours",),
    "preferred_day": ("days",),
}
_MONEY_CELLS = {"sum": ("money",), "average": ("money",), "min": ("range",), "max": ("range",)}

READERS: dict[ValueKind, Callable[[Any], Any]] = {
    "number": to_fixed,
    "money": to_fixed,
    "scalar": read_scalar,
    "nullable": read_scalar,
    "key": read_key,
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One list in the state, and how events get into it."""

    name: str
    source: Source
    kind: ValueKind
    currency: Path
    cells: tuple[str, ...]
    lifetime: bool
    """Whether there is a tally of everything, at index 2."""
    series: tuple[Series, ...]
    timezone: str

    @property
    def clocked(self) -> bool:
        """Whether entries carry the local hour of the week."""
        return "hours" in self.cells or "days" in self.cells

    @property
    def types(self) -> frozenset[str]:
        """The event types that can come in; empty: any."""
        types = frozenset(feed.type for feed in self.source.feeds)
        return frozenset() if ANY in types else types

    @property
    def tally_layout(self) -> TallyLayout:
        """The cells as operations."""
        return tally_layout(self.cells)

    @property
    def series_at(self) -> int:
        """Index of the first list of buckets."""
        return 3 if self.lifetime else 2

    @property
    def layout(self) -> dict[str, Any]:
        """All that decides its state."""
        return {
            "name": self.name,
            "source": self.source,
            "kind": self.kind,
            "currency": self.currency,
            "cells": self.cells,
            "lifetime": self.lifetime,
            "series": [(series.width, series.span) for series in self.series],
        }

    def feed(self, event_type: str) -> Feed | None:
        """The feed through which events of this type come in, None if they do not."""
        if event_type.startswith(SYSTEM_PREFIX) or event_type in self.source.excluded:
            return None
        return next((feed for feed in self.source.feeds if feed.type in (event_type, ANY)), None)

    def entry(self, recorded: Recorded) -> Entry | None:
        """What the event hands to this slot; None if it does not feed it."""
        feed = self.feed(recorded.event.type)
        return None if feed is None else self.entry_through(feed, recorded)

    def entry_through(self, feed: Feed, recorded: Recorded) -> Entry | None:
        """As `entry`, of an event that comes in through this feed."""
        event = recorded.event
        if not _takes(feed, event):
            return None
        if self.kind == "none":
            at = event.occurred_at
            return [at, week_hour(event.context, at, self.timezone)] if self.clocked else at
        value = READERS[self.kind](dig(event, feed.path))
        return None if value is None and self.kind != "nullable" else self._valued(recorded, event, value, feed.sign)

    def count_unread(self, state: dict[str, Any], recorded: Recorded) -> bool:
        """Count the value of an event that gives no entry, in place; answers whether there was one."""
        event = recorded.event
        feed = self.feed(event.type) if self.kind in COUNTED else None
        if feed is None or not _takes(feed, event):
            return False
        return count_unread(state, self.name, recorded.recorded_at, event.occurred_at, dig(event, feed.path))

    def _valued(self, recorded: Recorded, event: Event, value: Any, sign: int) -> Entry:
        if self.kind in ("scalar", "nullable"):
            return [event.occurred_at, recorded.id, value]
        if self.kind == "money":
            return [event.occurred_at, sign * value, read_currency(dig(event, self.currency))]
        return [event.occurred_at, sign * value if self.kind == "number" else value]

    def open(self, recorded_at: int, occurred_at: int, entry: Entry) -> list[Any]:
        """The slot's first state."""
        slot_state: list[Any] = [recorded_at, occurred_at]
        if self.lifetime:
            slot_state.append(self.tally_layout.start(entry))
        for series in self.series:
            buckets: list[Any] = []
            series.push(buckets, occurred_at, entry, occurred_at)
            slot_state.append(buckets)
        return slot_state

    def add(self, slot_state: list[Any], recorded_at: int, occurred_at: int, entry: Entry) -> None:
        """Add an entry to the slot's state, in place."""
        slot_state[0] = max(slot_state[0], recorded_at)
        slot_state[1] = max(slot_state[1], occurred_at)
        if self.lifetime:
            self.tally_layout.absorb(slot_state[2], entry)
        for at, series in enumerate(self.series, self.series_at):
            series.push(slot_state[at], occurred_at, entry, slot_state[1])

    def merge(self, first: list[Any], second: list[Any]) -> list[Any]:
        """The slot's state of the union of the events of two states; it may change and reuse both."""
        newest = max(first[1], second[1])
        merged: list[Any] = [max(first[0], second[0]), newest]
        if self.lifetime:
            merged.append(self.tally_layout.total((first[2], second[2])))
        for at, series in enumerate(self.series, self.series_at):
            merged.append(series.merge(first[at], second[at], newest))
        return merged


def _takes(feed: Feed, event: Event) -> bool:
    # What Threadline put into the thread is nothing the person did.
    return feed.where.test(event) and (feed.type != ANY or event.is_activity)


@dataclass(frozen=True, slots=True)
class Plan:
    """The slots of a feature set, and for each feature read from events its slot."""

    slots: tuple[Slot, ...]
    slot_of: dict[str, Slot]
    timezone: str

    @property
    def handles(self) -> frozenset[str] | None:
        """The types that feed any slot; None for every type."""
        types = {feed.type for slot in self.slots for feed in slot.source.feeds}
        return None if ANY in types else frozenset(types)

    def merge(self, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
        """The state of the union of two people's events. It may change and reuse both."""
        for slot in self.slots:
            slot_state, theirs = first.get(slot.name), second.get(slot.name)
            if theirs is not None:
                first[slot.name] = theirs if slot_state is None else slot.merge(slot_state, theirs)
            name = unread_name(slot.name)
            if name in second:
                first[name] = merged_unread(first.get(name), second[name])
        return first

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides the state, so that a change of a description folds nothing again."""
        return content_hash([_BOUNDS, self.timezone, [slot.layout for slot in self.slots]])

    @property
    def shapes(self) -> dict[str, str]:
        """What shapes each slot, and what could not be read for it, see `Projection.carries`: to declare another
        feature leaves the others as they are."""
        hashes = {slot.name: content_hash([_BOUNDS, self.timezone, slot.layout], 16) for slot in self.slots}
        return hashes | {unread_name(name): shape for name, shape in hashes.items()}


_Identity = tuple[Source, ValueKind, Path]


def make_plan(features: FeatureSet) -> Plan:
    """The fewest slots that serve these features."""
    # Grouped by hash, for to Python a condition on 1 equals one on true.
    groups: dict[str, list[Feature]] = {}
    identities: dict[str, _Identity] = {}
    for feature in features.features:
        if feature.source is not None:
            identity = (_canonical(feature.source, feature.reads), feature.reads, feature.currency)
            digest = content_hash(identity, 16)
            identities[digest] = identity
            groups.setdefault(digest, []).append(feature)
    slots: list[Slot] = []
    slot_of: dict[str, Slot] = {}
    for name, digest in _named(groups):
        slot = _slot(name, identities[digest], groups[digest], features.timezone)
        slots.append(slot)
        slot_of.update((feature.name, slot) for feature in groups[digest])
    return Plan(tuple(slots), slot_of, features.timezone)


def _canonical(source: Source, kind: ValueKind) -> Source:
    """The source without what its kind of value never looks at, so that more features share a slot."""
    feeds = (
        Feed(
            feed.type,
            () if kind == "none" else feed.path,
            feed.sign if kind in ("number", "money") else 1,
            feed.where,
        )
        for feed in source.feeds
    )
    return Source(tuple(sorted(feeds, key=lambda feed: feed.type)), tuple(sorted(source.excluded)))


def _named(digests: Iterable[str]) -> list[tuple[str, str]]:
    """Short names that follow from what a slot is, so that declaring another feature renames none."""
    named: dict[str, str] = {}
    for digest in sorted(digests):
        text = base64.b32encode(bytes.fromhex(digest)).decode().lower()
        length = _NAME_LENGTH
        while text[:length] in named:
            length += 1
        named[text[:length]] = digest
    return sorted(named.items())


def _slot(name: str, identity: _Identity, features: list[Feature], timezone: str) -> Slot:
    source, kind, currency = identity
    of_aggregate = {**_CELLS, **(_MONEY_CELLS if kind == "money" else {})}
    cells = tuple(sorted({cell for feature in features for cell in of_aggregate[feature.aggregate]}))
    windows: dict[int, set[int]] = {}
    for feature in features:
        if feature.window is not None and of_aggregate[feature.aggregate]:
            windows.setdefault(bucket_width(feature.window), set()).add(feature.window)
    timed = kind == "none" and not {"hours", "days"} & set(cells)
    series = tuple(
        Series(width, max(sizes), tuple(sorted(sizes)), tally_layout(cells), timed)
        for width, sizes in sorted(windows.items())
    )
    lifetime = any(feature.window is None and of_aggregate[feature.aggregate] for feature in features)
    return Slot(name, source, kind, currency, cells, lifetime, series, timezone)
