"""What users declare: streaks, and the calendar by which they are computed, as plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from threadline.capabilities.features.definition import ANY, Source, content_hash
from threadline.capabilities.streaks.events import OURS

CADENCES = ("day", "week", "month")
Cadence = Literal["day", "week", "month"]

COUNTINGS = ("days", "events")
Counting = Literal["days", "events"]

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class Freezes:
    """How missed periods are forgiven: ``start`` held at first, one more for each ``every`` periods done in a row."""

    start: int = 0
    every: int = 0
    """0: none are earned."""
    max: int = 0
    """How many may be held; 0: there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """One declared streak: a period is done when the person was active in it often enough."""

    name: str
    source: Source | None = None
    """Which events count; None: whatever counts as activity."""
    cadence: Cadence = "day"
    times: int = 1
    """How often in each period."""
    counting: Counting = "days"
    """What `times` counts: days with an event, or events."""
    grace: int = 0
    """How long after the end of a period an event may still count for it, microseconds."""
    freezes: Freezes = Freezes()
    milestones: tuple[int, ...] = ()
    description: str = ""
    place: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Amnesty:
    """Local days, both included, that nobody has missed; ``streaks`` names whose, none for all."""

    first: int
    last: int
    streaks: tuple[str, ...] = ()
    place: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """How days are counted, for all streaks alike."""

    active: Source
    """Which events say that the person was active."""
    timezone: str = "UTC"
    """The zone of a person who has named none."""
    day_start: int = 0
    """When a day begins, microseconds after midnight."""
    week_start: int = 0
    """The weekday on which a week begins, 0 is Monday."""
    amnesty: tuple[Amnesty, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """What the state keeps for streaks that count alike: the days, or periods, with so many events.

    Level n holds the days or periods with at least n events, so that counting up to a bound needs sets only and
    does not depend on any order.
    """

    source: Source
    unit: Cadence = "day"
    levels: int = 1
    grace: int = 0
    """With a grace, what falls into the first ``grace`` of a unit is kept apart, in sets of its own: twice as many, so
    that after as much as one may ask for was given to the unit before there is still enough for its own."""

    @property
    def sets(self) -> int:
        """How many sets the state keeps."""
        return self.levels * (3 if self.grace else 1)


@dataclass(frozen=True)
class StreakSet:
    """All streaks in force."""

    streaks: tuple[Streak, ...]
    calendar: Calendar

    @cached_property
    def by_name(self) -> Mapping[str, Streak]:
        """The streaks by name."""
        return {streak.name: streak for streak in self.streaks}

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """What the state has to keep, each once, however many streaks read it."""
        return tuple(dict.fromkeys(self.tally(streak) for streak in self.streaks))

    def tally(self, streak: Streak) -> Tally:
        """What a streak is computed from."""
        source = streak.source or self.calendar.active
        if streak.counting == "days":
            return Tally(source, grace=streak.grace)
        return Tally(source, streak.cadence, streak.times, streak.grace)

    @cached_property
    def parts(self) -> Mapping[str, tuple[str, Tally]]:
        """By streak: the part of the state that holds its tally, and the tally."""
        tallies = {streak.name: self.tally(streak) for streak in self.streaks}
        return {name: (f"t{self.tallies.index(tally)}", tally) for name, tally in tallies.items()}

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of what shapes the state. What only shapes the view, such as freezes, is not part of it."""
        calendar = self.calendar
        shape = [calendar.active, calendar.timezone, calendar.day_start, calendar.week_start, self.tallies]
        return content_hash([shape, sorted(self.by_name)])


def counts(source: Source, type: str) -> bool:
    """Whether a source takes events of this type, conditions aside."""
    if type in OURS:
        return False
    return any(feed.type == type or (feed.type == ANY and type not in source.excluded) for feed in source.feeds)
