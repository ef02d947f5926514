"""What the state has to hold under some declarations: the sources of events that count, and the tallies of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from threadline.capabilities.foundation.conditions import Where
from threadline.capabilities.profile.features.definition import ANY, Source
from threadline.capabilities.profile.streaks.definition import StreakSet, Tally, counts
from threadline.capabilities.profile.streaks.state import COUNTS, EARLY, LATE
from threadline.kernel.calendar import first_day, period_of
from threadline.kernel.event import Event, Recorded


class TallyColumns(NamedTuple):
    """A tally, the part of the state that holds its sets, and where its counts stand among those of a group."""

    part: str
    tally: Tally
    column: int
    early: int
    """The column of the events in the first hours of a unit; -1 without a grace."""


class Columns(NamedTuple):
    """The columns that an event counts in."""

    numbers: tuple[int, ...]
    places: tuple[int, ...]
    """The same in a group."""
    once: tuple[int, ...]
    """The counts of one such event."""
    shows: bool
    """Whether more than the first event of a day shows."""


class Plan:
    """The declarations, and the columns of counts that follow from them; the first column is activity."""

    def __init__(self, streaks: StreakSet) -> None:
        self.streaks = streaks
        self.calendar = streaks.calendar
        self.day_start = streaks.calendar.day_start
        self.sources = list(dict.fromkeys([self.calendar.active, *(tally.source for tally in streaks.tallies)]))
        graced = [tally for tally in streaks.tallies if tally.grace]
        self.tallies = tuple(
            TallyColumns(
                f"t{index}",
                tally,
                self.sources.index(tally.source),
                len(self.sources) + graced.index(tally) if tally.grace else -1,
            )
            for index, tally in enumerate(streaks.tallies)
        )
        self.others = tuple(
            columns for columns in self.tallies if columns.tally.sets > 1 or columns.tally.unit != "day"
        )
        self.of_days = tuple((columns.part, columns.column) for columns in self.tallies if columns not in self.others)
        """Part and column of the tallies that are one set of days."""
        self.width = len(self.sources) + len(graced)
        """How many columns there are."""
        self.counting = frozenset(other.column for other in self.others if other.tally.levels > 1 or other.tally.grace)
        """The columns of which more than the first event of a day shows."""

    def conditions(self, type: str) -> list[tuple[int, Where]]:
        """The columns that events of a type count in, each with the conditions that the event has to meet."""
        pairs = ((column, _conditions(source, type)) for column, source in enumerate(self.sources))
        return [(column, where) for column, where in pairs if where is not None]

    def columns_of(self, numbers: Iterable[int]) -> Columns:
        """These columns."""
        listed = tuple(numbers)
        once = tuple(int(column in listed) for column in range(len(self.sources)))
        return Columns(listed, tuple(COUNTS + number for number in listed), once, not self.counting.isdisjoint(listed))

    def is_early(self, tally: Tally, day: int, into: int) -> bool:
        """Whether an event so far into a local day lies in the first hours of a unit, for which a grace is declared."""
        week_start = self.calendar.week_start
        unit = period_of(tally.unit, day, week_start)
        return 0 <= into < tally.grace and day == first_day(tally.unit, unit, week_start)

    def is_active(self, event: Event) -> bool:
        """Whether an event says that the person was active."""
        return _counts_for(event, self.sources[:1])

    def counts(self, event: Event) -> bool:
        """Whether an event counts for anything here."""
        return _counts_for(event, self.sources)


def is_alone(recorded: Recorded) -> bool:
    """Whether an event became known too late, or lies too far ahead, to have a part in where the person was."""
    return not -EARLY <= recorded.recorded_at - recorded.event.occurred_at <= LATE


def _counts_for(event: Event, sources: Iterable[Source]) -> bool:
    if not event.is_activity:
        return False
    return any((where := _conditions(source, event.type)) is not None and where.test(event) for source in sources)


def _conditions(source: Source, type: str) -> Where | None:
    if not counts(source, type):
        return None
    return next(feed.where for feed in source.feeds if feed.type in (type, ANY))
