"""What users declare: streaks, and the calendar by which they are computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import (
    Given,
    Named,
    NotWritten,
    Problems,
    Single,
    choice,
    duration,
    listed,
    name_of,
    one_or_many,
    parsed,
    struct,
    whole,
)
from threadline.capabilities.profile.features.definition import ANY, TIMEZONE, Chosen, Source, content_hash
from threadline.capabilities.profile.points.events import OWN, POINTS_ADJUSTED, POINTS_SPEND_REQUESTED
from threadline.capabilities.profile.streaks.events import OURS
from threadline.kernel.calendar import day_of, time_of_day
from threadline.kernel.limits import (
    AMNESTY_DAYS_MAX,
    STREAK_GRACE_MAX_SECONDS,
    STREAK_MILESTONES_MAX,
    STREAK_TIMES_MAX,
    STREAKS_MAX,
)
from threadline.kernel.time import SECOND

Cadence = Literal["day", "week", "month"]
Counting = Literal["days", "events"]
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_MADE_OF_POINTS = OWN - {POINTS_SPEND_REQUESTED, POINTS_ADJUSTED}
"""Emitted by points; callers send the other two."""
_DAYS_OF = {"day": 1, "week": 7, "month": 28}
"""How many days every period of a cadence has at least."""
_GRACE = duration(1, STREAK_GRACE_MAX_SECONDS * SECOND, "3h")
_MILESTONES = one_or_many(whole(), most=STREAK_MILESTONES_MAX).then(lambda lengths: tuple(sorted(set(lengths))))
_DATE = parsed(day_of, "a local date such as 2026-03-01", pattern=r"^\d{4}-\d\d-\d\d$", examples=["2026-03-01"])
# YAML 1.1 reads 04:00 without quotes as a number to the base of 60; it is meant as written.
_TIME_OF_DAY = parsed(
    time_of_day, "a time of day, such as 04:00", (str, int), pattern=r"^\d\d:\d\d$", examples=["04:00"]
)
_WEEKDAY = choice(WEEKDAYS).then(WEEKDAYS.index)


class Active(Chosen, frozen=True, kw_only=True):
    """Which events say that the person was active, or did what a streak counts."""

    def problems(self, written: Collection[str]) -> Problems:
        """Beside those of the types, that what Threadline makes never counts."""
        yield from super().problems(written)
        for type in self.events:
            if type in OURS or type in _MADE_OF_POINTS:
                yield "events", f"{type!r} is nothing that a person does and never counts; name what they do"


class Freezes(msgspec.Struct, frozen=True, kw_only=True):
    """How missed periods are forgiven."""

    start: Annotated[int, Meta(ge=1, title="Held at first", description="How many are held at first.")] = 0
    every: Annotated[
        int, Meta(ge=1, title="One more after", description="One more for so many periods done in a row.")
    ] = 0
    """0: none are earned."""
    max: Annotated[
        int,
        Meta(ge=1, title="Most that are held", description="How many may be held.", examples=["{every: 7, max: 2}"]),
    ]
    """0: there are none."""

    def problems(self, written: Collection[str]) -> Problems:
        """What the numbers cannot be together."""
        if self.start > self.max:
            yield "start", f"`start` is more than `max`, {self.max}, which may be held"


class Streak(Active, frozen=True, kw_only=True):
    """Periods in a row in which the person was active often enough."""

    name: Given
    description: str = ""
    cadence: Cadence = "day"
    times: Annotated[int, Meta(ge=1, le=STREAK_TIMES_MAX, description="How often in each period.")] = 1
    counting: Annotated[Counting | None, Meta(description="What `times` counts: days with an event, or events.")] = None
    grace: Annotated[
        int, _GRACE, Meta(title="Late events", description="How late an event may be and count for the period before.")
    ] = 0
    freezes: Freezes = Freezes(max=0)
    milestones: Annotated[tuple[int, ...], _MILESTONES, Meta(description="Lengths that become an event.")] = ()
    place: Given = ""

    def __post_init__(self) -> None:
        if self.counting is None:
            usual = "events" if self.cadence == "day" and self.times > 1 else "days"
            msgspec.structs.force_setattr(self, "counting", usual)

    @cached_property
    def source(self) -> Source | None:
        """Which events count; None: whatever counts as activity."""
        return self.source_of() if self.events else None

    def problems(self, written: Collection[str]) -> Problems:
        """What the fields cannot be together."""
        if self.events:
            yield from super().problems(written)
        else:
            for key in ("except", "where"):
                if key in written:
                    yield key, f"`{key}` goes with `events`; without it all activity counts"
        if self.counting == "days" and self.times > (most := _DAYS_OF[self.cadence]):
            cure = "count events instead: `counting: events`"
            yield "times", f"a {self.cadence} has at most {most} days to count; {cure}"


class Amnesty(msgspec.Struct, frozen=True, kw_only=True):
    """Local days, both included, that nobody has missed."""

    first: Annotated[int, _DATE, Meta(description="A local date.")] = msgspec.field(name="from")
    last: Annotated[int, _DATE, Meta(description="A local date, included.")] = msgspec.field(name="to")
    reason: str = ""
    streaks: Annotated[
        tuple[str, ...], one_or_many(name_of("streak")), Meta(description="Whose; all where it is absent.")
    ] = ()
    place: Given = ""

    def problems(self, written: Collection[str]) -> Problems:
        """What the days cannot be together."""
        if not 0 <= self.last - self.first < AMNESTY_DAYS_MAX:
            yield "", f"an amnesty is 1 to {AMNESTY_DAYS_MAX} days long, from its first day to its last"


_AMNESTY = listed(struct(Amnesty), wanted="a list, such as `- {from: 2026-03-01, to: 2026-03-02}`")


class Calendar(msgspec.Struct, frozen=True, kw_only=True):
    """How days are counted, for all streaks alike; weeks also for leaderboards and analyses."""

    active: Annotated[Source, struct(Active).then(Active.source_of)] = Source(())
    """Which events say that the person was active."""
    timezone: NotWritten[str] = "UTC"
    """The zone of a person who has named none."""
    day_start: Annotated[int, _TIME_OF_DAY, Meta(description="When a day begins.")] = 0
    """Microseconds after midnight."""
    week_start: Annotated[int, _WEEKDAY] = msgspec.field(default=0, name="week_starts_on")
    """The weekday on which a week begins, 0 is Monday."""
    amnesty: Annotated[tuple[Amnesty, ...], _AMNESTY] = ()


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

    def version(self, streak: Streak) -> str:
        """A short hash of what decides how long a run of a streak is, and which of its lengths are milestones."""
        calendar = self.calendar
        days = [calendar.active, calendar.timezone, calendar.day_start, calendar.week_start]
        days += [[amnesty.first, amnesty.last, sorted(amnesty.streaks)] for amnesty in calendar.amnesty]
        shape = [self.tally(streak), streak.cadence, streak.times, streak.counting, streak.grace, streak.freezes]
        return content_hash([days, shape, streak.milestones])

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


PACKAGE = "threadline.capabilities.profile.streaks"
STREAKS = Named(
    "streaks",
    "streak",
    struct(Streak),
    "Streaks by name; false leaves out one that ships.",
    "weekly_run",
    most=STREAKS_MAX,
    ships=PACKAGE,
)
CALENDAR = Single("calendar", struct(Calendar), frozenset({"streaks", "leaderboards"}))
STREAKS_SECTION, CALENDAR_SECTION = STREAKS.declared, CALENDAR.declared
KIND = STREAKS.kind


def week_start(definitions: Definitions) -> int:
    """The weekday on which weeks begin, 0 is Monday."""
    return _calendar(definitions).week_start


def read_streaks(definitions: Definitions) -> StreakSet:
    """The shipped streaks with what these definitions declare. Problems are noted in them, not raised."""
    declared = STREAKS.read(definitions)
    return StreakSet(tuple(declared.values.values()), _calendar(definitions))


def _calendar(definitions: Definitions) -> Calendar:
    shipped = CALENDAR.read(Definitions.shipped(PACKAGE), Calendar())
    shipped = msgspec.structs.replace(shipped, timezone=TIMEZONE.read(definitions, "UTC"))
    return CALENDAR.read(definitions, shipped, struct(Calendar, shipped))
