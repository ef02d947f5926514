"""What can be declared about leaderboards: what is ranked, over which periods, and among whom."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import (
    NAMES,
    NUMBER_FIELD,
    Given,
    Named,
    Problems,
    choice,
    described,
    name_of,
    naming,
    one_or_many,
    struct,
    text,
)
from threadline.capabilities.profile.features.definition import number_path
from threadline.capabilities.profile.points import read_points
from threadline.capabilities.profile.streaks.definition import WEEKDAYS, week_start
from threadline.kernel.calendar import Calendar, day_text, month_of, month_text
from threadline.kernel.limits import BOARD_ROWS_PER_PERSON_MAX
from threadline.kernel.names import TAG, TRAIT
from threadline.kernel.policy import Read

ALL: Final = "all"
STORED_PERIODS = {"day": 2, "week": 2, "month": 2, ALL: 1}
"""How many of each period are kept in rows, counted back from the person's newest; older ones are read from the log."""


def _unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


_TAGS = one_or_many(naming(TAG, text(most=100))).then(_unique)
_PERIODS = one_or_many(choice(STORED_PERIODS)).then(
    lambda periods: tuple(period for period in STORED_PERIODS if period in periods)
)
_SCORE = described(text().then(number_path), **{NAMES: NUMBER_FIELD})
_SCORES = ["points.earned", "points.balance", "streaks.daily.current", "features.monetary_total"]


class BoardDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One leaderboard."""

    name: Given
    path: Annotated[tuple[str, ...], _SCORE, Meta(description="The number that is ranked.", examples=_SCORES)] = (
        msgspec.field(name="score")
    )
    """What is ranked: points.earned, points.balance, or where a number stands in the views."""
    periods: Annotated[tuple[str, ...], _PERIODS] = (ALL,)
    per: Annotated[
        str,
        naming(TRAIT, text()),
        Meta(description="A trait: everybody is ranked among those with the same value, too."),
    ] = ""
    tags: Annotated[tuple[str, ...], _TAGS, Meta(description="Boards of their own.")] = ()
    segments: Annotated[
        tuple[str, ...],
        one_or_many(name_of("segment")).then(_unique),
        Meta(description="Declared segments: their members are ranked among themselves, too."),
    ] = ()
    description: str = ""
    place: Given = ""

    @property
    def of_ledger(self) -> bool:
        """Whether its scores are sums of the ledger of points; others are told by the policy."""
        return self.path[0] == "points"

    @property
    def reads(self) -> tuple[Read, ...]:
        """The part of a view that is ranked; nothing where the ledger is."""
        return () if self.of_ledger else (Read(self.path[0], self.path[1:], self.place),)

    @property
    def expiring(self) -> bool:
        """Whether a score ends by itself."""
        return self.path[0] == "streaks" and self.path[-1] == "current"

    @property
    def rows_max(self) -> int:
        """How many rows it may keep of one person."""
        return sum(STORED_PERIODS[period] for period in self.periods) * (
            1 + bool(self.per) + len(self.tags) + len(self.segments)
        )

    def problems(self, written: Collection[str]) -> Problems:
        """What the fields cannot be together."""
        if self.of_ledger and self.path[1:] not in (("earned",), ("balance",)):
            yield "score", "points are ranked by points.earned or by points.balance"
        elif len(self.path) < 2 or not all(self.path):
            yield "score", "`score` names no number; write it like features.monetary_total"
        elif self.path != ("points", "earned") and self.periods != (ALL,):
            yield "periods", "only points.earned has periods; the others rank current values"
        if self.per == "tag":
            yield "per", "`per` names a trait; for tags write `tags: [vip]`"
        if self.segments and self.per == "segment":
            yield "per", "a trait called 'segment' and `segments` cannot be told apart; keep one"


@dataclass(frozen=True, slots=True)
class Boards:
    """Everything that is declared."""

    boards: tuple[BoardDefinition, ...]
    timezone: str = "UTC"
    week_start: int = 0
    """The weekday on which a week begins, 0 is Monday."""

    @property
    def calendar(self) -> Calendar:
        """The days, weeks and months of all boards."""
        return Calendar(self.timezone, self.week_start)

    @property
    def _days(self) -> str:
        return f"{self.timezone} {WEEKDAYS[self.week_start]}" if self.week_start else self.timezone

    @property
    def fingerprint(self) -> str:
        """A hash of whatever decides rows and state."""
        # What is not declared is left out, so that a store written before there was any of it need not be refreshed.
        parts = ((b.name, b.path, b.periods, b.per, b.tags, *([b.segments] if b.segments else [])) for b in self.boards)
        return _hash(self._days, *map(repr, parts))

    def key(self, board: BoardDefinition) -> str:
        """The name of a board's rows: with what its scores are, so that those of another definition are not met."""
        return f"{board.name}.{_hash(self._days, '.'.join(board.path))}"


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class Period:
    """A day, a week or a month of the calendar, or all time."""

    kind: str
    number: int

    @property
    def text(self) -> str:
        """As it is told and as rows name it: 2026-03-01, 2026-02-23 (the first day of a week), 2026-03, all."""
        if self.kind == ALL:
            return ALL
        return month_text(self.number) if self.kind == "month" else day_text(self.number)

    @property
    def row_name(self) -> str:
        """The same with its kind, for the first day of a week is a day and names a week."""
        return ALL if self.kind == ALL else f"{self.kind} {self.text}"

    def bounds(self, calendar: Calendar) -> tuple[int | None, int | None]:
        """Its first instant and the first after it; None for no bound."""
        if self.kind == ALL:
            return None, None
        if self.kind == "month":
            return calendar.start_of_month(self.number), calendar.start_of_month(self.number + 1)
        return calendar.start(self.number), calendar.start(self.number + (7 if self.kind == "week" else 1))


def period_of(kind: str, day: int, calendar: Calendar) -> Period:
    """The period of a kind in which a day lies. Weeks go by the number of their first day."""
    if kind == "week":
        return Period(kind, calendar.week(day))
    if kind == "month":
        return Period(kind, month_of(day))
    return Period(kind, day if kind == "day" else 0)


def is_stored(period: Period, today: int, calendar: Calendar) -> bool:
    """Whether everybody's score of a period stands in rows on a day."""
    if period.kind == ALL:
        return True
    newest = period_of(period.kind, today, calendar).number
    return period.number > newest - span_of(period.kind)


def span_of(kind: str) -> int:
    """How far apart, in numbers of periods, the newest and the first that is no longer kept are."""
    return STORED_PERIODS[kind] * 7 if kind == "week" else STORED_PERIODS[kind]


LEADERBOARDS = Named("leaderboards", "leaderboard", struct(BoardDefinition), "Leaderboards by name.", "top_buyers")
LEADERBOARDS_SECTION = LEADERBOARDS.declared
KIND = LEADERBOARDS.kind


def read_boards(definitions: Definitions) -> Boards:
    """The boards that are declared; problems are noted in the definitions, not raised."""
    boards = tuple(LEADERBOARDS.read(definitions).values.values())
    points = read_points(definitions) if boards else None
    for board in boards:
        if board.of_ledger and points is None:
            definitions.problems.append(
                f"{board.place}: leaderboard {board.name!r} ranks points, which are switched off"
            )
    rows = sum(board.rows_max for board in boards)
    if rows > BOARD_ROWS_PER_PERSON_MAX:
        definitions.problems.append(
            f"{boards[0].place}: the leaderboards may keep {rows} rows of one person, "
            f"at most {BOARD_ROWS_PER_PERSON_MAX} are allowed; days, weeks and months take 2 each, all time 1, "
            "and all of them again for `per`, for every tag and every segment: leave out what nobody looks at"
        )
    weekday = week_start(definitions) if any("week" in board.periods for board in boards) else 0
    return Boards(boards, "UTC" if points is None else points.timezone, weekday)
