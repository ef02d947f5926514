"""Boards of periods that rows no longer hold, and of instants: everybody's score reckoned again from the log."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from threadline.capabilities.leaderboards.definition import ALL, BoardDefinition, Period
from threadline.capabilities.leaderboards.policy import measured
from threadline.capabilities.points.calendar import Calendar, day_text
from threadline.capabilities.points.events import POINTS_EARNED, amount_of, is_trusted
from threadline.capabilities.points.ledger import DAYS_KEPT
from threadline.kernel.fixed import SCALE
from threadline.kernel.limits import EVENTS_PAGE_MAX
from threadline.kernel.operation import Context
from threadline.kernel.ranking import Place


def everybody(
    context: Context, board: BoardDefinition, period: Period, at: int, scope: str, calendar: Calendar
) -> Iterator[tuple[Any, int]]:
    """Each person of a workspace with their score, which is 0 for who is not of the scope. Reads everyone."""
    kind, _, value = scope.partition("=")
    # A period's points count for the region of today, as they do in rows; an instant is shown with its own regions.
    then = at if period.kind == ALL else context.now
    for person in context.engine.all_people(context.workspace):
        if scope and not _is_of(context, person, then, kind, value):
            yield person, 0
        elif board.path == ("points", "earned"):
            yield person, SCALE * _earned(context, person, period, at, calendar)
        else:
            view = context.engine.views(person, at, names=[board.path[0]]).get(board.path[0])
            yield person, measured(board, view).score


def _is_of(context: Context, person: Any, at: int, kind: str, value: str) -> bool:
    profile = context.engine.views(person, at, names=["profile"])["profile"]
    return value in profile["tags"] if kind == "tag" else str(profile["traits"].get(kind)) == value


def _earned(context: Context, person: Any, period: Period, at: int, calendar: Calendar) -> int:
    start, stop = period.bounds(calendar)
    if start is not None and calendar.day(start) > calendar.day(context.now) - DAYS_KEPT:
        # The days of the ledger are in the person's state still: no need to read the log.
        first, last = day_text(calendar.day(start)), day_text(calendar.day((stop or 0) - 1))
        days = context.engine.views(person, context.now, names=["points"])["points"]["days"]
        return sum(day["earned"] for day in days if first <= day["day"] <= last)
    stop = at if stop is None else stop
    total, after = 0, None
    while True:
        page = context.engine.events(
            person, start=start, stop=stop, types=frozenset({POINTS_EARNED}), after=after, limit=EVENTS_PAGE_MAX
        )
        total += sum(amount_of(each.event) or 0 for each in page if is_trusted(each.event))
        if len(page) < EVENTS_PAGE_MAX:
            return total
        after = (page[-1].event.occurred_at, page[-1].id)


class Past:
    """A board of long ago, as far as it was asked for: everybody is read, and no more than the best is kept."""

    def __init__(self, scores: Iterator[tuple[Any, int]], limit: int, person: str = "") -> None:
        heap: list[tuple[int, tuple[int, ...], Place]] = []
        self.total = self.read = 0
        self.mine: int | None = None
        """The score of ``person``."""
        counts: dict[int, int] = {}
        for each, score in scores:
            self.read += 1
            if not score:
                continue
            self.total += 1
            counts[score] = counts.get(score, 0) + 1
            if each.id == person:
                self.mine = score
            # The worst of those kept stands first: by score, then by id from the end of the alphabet.
            entry = (score, tuple(-ord(sign) for sign in each.id), Place(score, each.id, None))
            if len(heap) < limit:
                heapq.heappush(heap, entry)
            elif entry > heap[0]:
                heapq.heapreplace(heap, entry)
        self.best = [place for *_, place in sorted(heap, reverse=True)]
        self.above = sum(count for score, count in counts.items() if self.mine is not None and score > self.mine)
