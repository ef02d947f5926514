"""Boards of periods that rows no longer hold, and of instants: everybody's score recomputed from the log."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from threadline.capabilities.profile.leaderboards.definition import ALL, BoardDefinition, Period
from threadline.capabilities.profile.leaderboards.policy import measured
from threadline.capabilities.profile.leaderboards.projection import region_of
from threadline.capabilities.profile.points.events import POINTS_EARNED, amount_of
from threadline.capabilities.profile.points.ledger import DAYS_MAX
from threadline.kernel.calendar import Calendar, day_text
from threadline.kernel.fixed import SCALE
from threadline.kernel.operation import Context
from threadline.kernel.ports import Person
from threadline.kernel.ranking import Place


def everybody(
    context: Context, board: BoardDefinition, period: Period, at: int, scope: str, calendar: Calendar
) -> Iterator[tuple[Any, int]]:
    """Each person of a workspace with their score, which is 0 for who is not of the scope. Reads everyone."""
    for person in context.engine.reader.all_people(context.workspace):
        yield person, score_of(context, board, period, at, scope, calendar, person)


def score_of(
    context: Context,
    board: BoardDefinition,
    period: Period,
    at: int,
    scope: str,
    calendar: Calendar,
    person: Person,
) -> int:
    """A person's score of then, in millionths; 0 for who is not of the scope."""
    # A period's points count for the region of today, as they do in rows; an instant is shown with its own regions.
    then = at if period.kind == ALL else context.now
    if scope and not _is_of(context, board, person, then, scope):
        return 0
    if board.path == ("points", "earned"):
        return SCALE * _earned(context, person, period, at, calendar)
    view = context.engine.reader.views(person, at, names=[board.path[0]]).get(board.path[0])
    return measured(board, view).score


def _is_of(context: Context, board: BoardDefinition, person: Person, at: int, scope: str) -> bool:
    kind, _, value = scope.partition("=")
    if kind == "segment" and board.segments:
        return value in context.engine.reader.views(person, at, names=["segments"]).get("segments", {})
    profile = context.engine.reader.views(person, at, names=["profile"])["profile"]
    return value in profile["tags"] if kind == "tag" else region_of(profile["traits"].get(kind)) == value


def _earned(context: Context, person: Person, period: Period, at: int, calendar: Calendar) -> int:
    start, stop = period.bounds(calendar)
    if start is not None and calendar.day(start) > calendar.day(context.now) - DAYS_MAX:
        # The days of the ledger are in the person's state still: no need to read the log.
        first, last = day_text(calendar.day(start)), day_text(calendar.day((stop or 0) - 1))
        days = context.engine.reader.views(person, context.now, names=["points"])["points"]["days"]
        return sum(day["earned"] for day in days if first <= day["day"] <= last)
    stop = at if stop is None else stop
    earned = context.engine.reader.all_events(
        person, types=frozenset({POINTS_EARNED}), start=start, stop=stop, counting=True
    )
    return sum(amount_of(recorded.event) or 0 for recorded in earned)


class RecomputedBoard:
    """A board of long ago: everybody is read, and how many have which score is all that is kept of most of them."""

    def __init__(self, scores: Iterator[tuple[Any, int]], *wanted: Nearest) -> None:
        self.total = self.read = 0
        self._counts: dict[int, int] = {}
        for person, score in scores:
            self.read += 1
            if score:
                self.total += 1
                self._counts[score] = self._counts.get(score, 0) + 1
                for nearest in wanted:
                    nearest.take(Place(score, person.id, None))

    def above(self, score: int) -> int:
        """How many have more than a score."""
        return sum(count for other, count in self._counts.items() if other > score)


class Nearest:
    """The first places after one, or the last before it, of places that come in any order; without one the very first.

    No more than ``limit`` are held.
    """

    def __init__(self, limit: int, place: Place | None = None, *, before: bool = False) -> None:
        self._limit = limit
        self._from = None if place is None else _order(place)
        self._sign = -1 if before else 1
        self._heap: list[tuple[tuple[int, ...], Place]] = []
        """The farthest one stands first."""

    def take(self, place: Place) -> None:
        """Hold a place if it is one of the nearest so far."""
        order = _order(place)
        if self._from is not None and not (order < self._from if self._sign < 0 else order > self._from):
            return
        entry = (tuple(-self._sign * part for part in order), place)
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
        elif self._heap and entry > self._heap[0]:
            heapq.heapreplace(self._heap, entry)

    @property
    def places(self) -> list[Place]:
        """Those that are held, the best first."""
        return sorted((place for _, place in self._heap), key=_order)


def _order(place: Place) -> tuple[int, ...]:
    """As places sort in rows: by falling score, then by id."""
    return (-place.score, int(place.person, 16))
