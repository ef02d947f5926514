"""What can be declared about leaderboards: what is ranked, over which periods, and among whom."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from threadline.capabilities.points.calendar import Calendar, day_text, month_of, month_text, week_of

ALL: Final = "all"
KEPT = {"day": 2, "week": 2, "month": 2, ALL: 1}
"""How many of each period are kept in rows, counted back from the person's newest; older ones are read from the log."""


@dataclass(frozen=True, slots=True)
class BoardDefinition:
    """One leaderboard."""

    name: str
    path: tuple[str, ...]
    """What is ranked: points.earned, points.balance, or where a number stands in the views."""
    periods: tuple[str, ...] = (ALL,)
    per: str = ""
    """A trait; everybody with the same value is ranked among themselves as well."""
    tags: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    """Segments whose members are ranked among themselves as well."""
    description: str = ""
    place: str = ""

    @property
    def of_ledger(self) -> bool:
        """Whether its scores are sums of the ledger of points; others are told by the policy."""
        return self.path[0] == "points"

    @property
    def expiring(self) -> bool:
        """Whether a score ends by itself."""
        return self.path[0] == "streaks" and self.path[-1] == "current"

    @property
    def rows_max(self) -> int:
        """How many rows it may keep of one person."""
        return sum(KEPT[period] for period in self.periods) * (1 + bool(self.per) + len(self.tags) + len(self.segments))


@dataclass(frozen=True, slots=True)
class Boards:
    """Everything that is declared."""

    boards: tuple[BoardDefinition, ...]
    timezone: str = "UTC"

    @property
    def fingerprint(self) -> str:
        """A hash of whatever decides rows and state."""
        # What is not declared is left out, so that a store written before there was any of it need not be refreshed.
        found = ((b.name, b.path, b.periods, b.per, b.tags, *([b.segments] if b.segments else [])) for b in self.boards)
        return _hash(self.timezone, *map(repr, found))

    def key(self, board: BoardDefinition) -> str:
        """The name of a board's rows: with what its scores are, so that those of another definition are not met."""
        return f"{board.name}.{_hash(self.timezone, '.'.join(board.path))}"


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class Period:
    """A day, a week or a month of the calendar, or all time."""

    kind: str
    number: int

    @property
    def text(self) -> str:
        """As it is told and as rows name it: 2026-03-01, 2026-02-23 (the Monday of a week), 2026-03, all."""
        if self.kind == ALL:
            return ALL
        return month_text(self.number) if self.kind == "month" else day_text(self.number)

    @property
    def row_name(self) -> str:
        """The same with its kind, for a Monday is a day and names a week."""
        return ALL if self.kind == ALL else f"{self.kind} {self.text}"

    def bounds(self, calendar: Calendar) -> tuple[int | None, int | None]:
        """Its first instant and the first after it; None for no bound."""
        if self.kind == ALL:
            return None, None
        if self.kind == "month":
            return calendar.start_of_month(self.number), calendar.start_of_month(self.number + 1)
        return calendar.start(self.number), calendar.start(self.number + (7 if self.kind == "week" else 1))


def period_of(kind: str, day: int) -> Period:
    """The period of a kind in which a day lies. Weeks go by the number of their Monday."""
    if kind == "week":
        return Period(kind, week_of(day))
    if kind == "month":
        return Period(kind, month_of(day))
    return Period(kind, day if kind == "day" else 0)


def is_kept(period: Period, today: int) -> bool:
    """Whether everybody's score of a period stands in rows on a day."""
    if period.kind == ALL:
        return True
    newest = period_of(period.kind, today).number
    return period.number > newest - span_of(period.kind)


def span_of(kind: str) -> int:
    """How far apart, in numbers of periods, the newest and the first that is no longer kept are."""
    return KEPT[kind] * 7 if kind == "week" else KEPT[kind]
