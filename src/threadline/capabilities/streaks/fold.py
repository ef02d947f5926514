"""The fold: each event that counts goes into the day's record and into the sets that streaks are computed from."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from threadline.capabilities.conditions import Where
from threadline.capabilities.features.definition import ANY, Source
from threadline.capabilities.streaks import days, told
from threadline.capabilities.streaks.civil import first_day, period_of
from threadline.capabilities.streaks.definition import StreakSet, Tally, counts
from threadline.capabilities.streaks.events import OURS
from threadline.capabilities.streaks.state import State
from threadline.capabilities.streaks.whereabouts import CHANGES, NEWEST, empty_head, enter, settled
from threadline.kernel.event import Event, Recorded
from threadline.kernel.projection import Fold

HEAD = "head"

DAYS_PER_PART = 32
RECORDED_PARTS_MAX = 13
"""Parts of 32 days for which records are kept: more than 400 days up to the newest. The sets reach back for life."""

RECORD_SIZE = 3
"""A day's record is [day, first event, events]; records of a part follow each other in the order of days."""


class _Feed(NamedTuple):
    """A tally that events of one type go into."""

    conditions: Where
    part: str
    tally: Tally
    slot: int
    """The place of its first set in `NEWEST`; the set for the first hours of a unit is the next."""


class Counted(NamedTuple):
    """What events of one type count for."""

    active: Where | None
    """The conditions for counting as activity; None: they never do."""
    feeds: tuple[_Feed, ...]
    conditional: bool


class Plan:
    """How events are folded under these declarations."""

    def __init__(self, streaks: StreakSet) -> None:
        self.streaks = streaks
        self.calendar = streaks.calendar
        self.slots = 2 * len(streaks.tallies)
        """Two sets of each tally: all of a unit, or what comes after its grace, and what falls into that."""

    def counted(self, type: str) -> Counted:
        """What events of a type count for."""
        active = _conditions(self.calendar.active, type)
        feeds = []
        for place, tally in enumerate(self.streaks.tallies):
            conditions = _conditions(tally.source, type)
            if conditions is not None:
                feeds.append(_Feed(conditions, f"t{place}", tally, 2 * place))
        return Counted(active, tuple(feeds), bool(active) or any(feed.conditions for feed in feeds))

    def compile(self, type: str) -> Fold | None:
        """The fold for events of one type; None if they count for nothing."""
        if type in OURS:
            return partial(told.fold, self.streaks)
        counted = self.counted(type)
        if counted.active is None and not counted.feeds:
            return None
        return partial(self._fold, counted)

    def fold(self, state: State, recorded: Recorded) -> State | None:
        """The same for events of any type."""
        fold = self.compile(recorded.event.type)
        return None if fold is None else fold(state, recorded)

    def _fold(self, counted: Counted, state: State, recorded: Recorded) -> State | None:
        event = recorded.event
        # What Threadline made of an event is not a second thing that the person did.
        if event.source_type == "internal":
            return None
        active, feeds, conditional = counted
        if conditional:
            if active is not None and not active.test(event):
                active = None
            feeds = tuple(feed for feed in feeds if feed.conditions.test(event))
            if active is None and not feeds:
                return None
        head = state.get(HEAD)
        if head is None:
            head = state[HEAD] = empty_head(self.slots)
        calendar, changes = self.calendar, [*head[CHANGES]]
        day, into = enter(head, event, calendar.timezone, calendar.day_start)
        touched = state if head[CHANGES] != changes else None
        if active is not None:
            _note(state, day, event.occurred_at)
        newest = head[NEWEST]
        for feed in feeds:
            # Most events find their day in the set already.
            is_known = newest[feed.slot] == day and feed.tally.unit == "day" and not feed.tally.grace
            if not is_known and self._tally(feed, state, newest, day, into):
                touched = state
        return touched

    def _tally(self, feed: _Feed, state: State, newest: list[int | None], day: int, into: int) -> bool:
        """Put a day into the sets of a tally; answers whether one has changed."""
        tally, week_start = feed.tally, self.calendar.week_start
        unit = period_of(tally.unit, day, week_start)
        early = 0 <= into < tally.grace and day == first_day(tally.unit, unit, week_start)
        slot = feed.slot + early
        if newest[slot] == unit:
            return False
        sets = state.get(feed.part)
        if sets is None:
            sets = state[feed.part] = [[] for _ in range(tally.sets)]
        levels = sets[tally.levels :] if early else sets[: tally.levels]
        if levels[0] and levels[0][-1] - unit >= days.SPAN_MAX:
            return False
        touched = any(days.add(level, unit) for level in levels)
        # What is too old for the first level is too old for all of them, whenever they were reached.
        for level in levels[1:]:
            days.forget(level, levels[0][-1] - days.SPAN_MAX)
        newest[slot] = levels[-1][-1] if levels[-1] else None
        return touched

    def in_place(self, state: State, recorded: Recorded) -> bool:
        """Whether a late event may be folded as it is; see whereabouts.py."""
        event = recorded.event
        if event.type in OURS or event.source_type == "internal":
            return True
        head = state.get(HEAD)
        return head is None or not self.counts(event) or settled(head, event)

    def is_active(self, event: Event) -> bool:
        """Whether an event says that the person was active."""
        active = _conditions(self.calendar.active, event.type)
        return active is not None and event.source_type != "internal" and active.test(event)

    def counts(self, event: Event) -> bool:
        """Whether an event counts for anything here."""
        if event.source_type == "internal" or event.type in OURS:
            return False
        feeds = self.counted(event.type).feeds
        return self.is_active(event) or any(feed.conditions.test(event) for feed in feeds)


def _conditions(source: Source, type: str) -> Where | None:
    if not counts(source, type):
        return None
    return next(feed.where for feed in source.feeds if feed.type in (type, ANY))


def _note(state: State, day: int, at: int) -> None:
    """Count an event in its day's record."""
    number = day // DAYS_PER_PART
    name = f"d{number}"
    records = state.get(name)
    if records is None:
        records = _new_part(state, number)
        if records is None:
            return
    place = len(records) - RECORD_SIZE
    while place >= 0 and records[place] > day:
        place -= RECORD_SIZE
    if place >= 0 and records[place] == day:
        records[place + 2] += 1
        records[place + 1] = min(records[place + 1], at)
    else:
        place += RECORD_SIZE
        records[place:place] = (day, at, 1)


def _new_part(state: State, number: int) -> list[int] | None:
    """A part for records of these 32 days; None if they are too far back to be kept."""
    numbers = [int(name[1:]) for name in state if name[0] == "d"]
    oldest = max(number, max(numbers, default=number)) - RECORDED_PARTS_MAX + 1
    for old in numbers:
        if old < oldest:
            del state[f"d{old}"]
    if number < oldest:
        return None
    records: list[int] = []
    state[f"d{number}"] = records
    return records
