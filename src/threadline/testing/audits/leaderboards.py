"""Who must stand where on a leaderboard: everybody's score from the events, in the words of docs/leaderboards.md.

A score of points is summed from all that the threads hold, because what an event earned was decided when it arrived;
a streak, a feature, a region or a tag is what the auditor says of the person.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from threadline.testing.audits.points import Line, points
from threadline.testing.audits.segments import Tree, segments
from threadline.testing.audits.sent_events import DAY

Audited = tuple[str, Mapping[str, Any], list[Line]]
"""A person: a name, what `threadline.testing.auditor.audit` says, all their events as `audits.points` wants them."""

_EPOCH = dt.date(1970, 1, 1)


def standings(
    people: Iterable[Audited],
    score: str,
    now: int,
    *,
    period: str = "all",
    at: int | None = None,
    scope: str = "",
    declared: Mapping[str, Tree] = {},
) -> set[tuple[int, str, float]]:
    """Rank, name and score of all who are on a board at an instant. ``at`` lies in the period that is asked for.

    ``declared`` is the section `segments`, where the scope may be one.
    """
    scores: dict[str, Fraction] = {}
    for name, picture, lines in people:
        asked = _period(period, now if at is None else at)
        within = [line for line in lines if _period(period, line["occurred_at"]) == asked]
        reached = _score(score, picture, within, now) if _belongs(picture, scope, declared) else Fraction(0)
        if reached:
            scores[name] = reached
    return {(1 + sum(other > own for other in scores.values()), name, float(own)) for name, own in scores.items()}


def _belongs(picture: Mapping[str, Any], scope: str, declared: Mapping[str, Tree]) -> bool:
    kind, _, value = scope.partition("=")
    if not scope:
        return True
    if kind == "segment":
        return segments(picture, declared)[value]
    return value in picture["tags"] if kind == "tag" else picture["traits"].get(kind) == value


def _score(score: str, picture: Mapping[str, Any], lines: list[Line], now: int) -> Fraction:
    kind, name, *rest = score.split(".")
    if kind == "points":
        return Fraction(max(points(lines, now)[name], 0))
    value = picture["features"][name][0] if kind == "features" else picture[kind][rest[0]]
    return Fraction(0) if value is None else Fraction(str(value))


def _period(period: str, at: int) -> str:
    """The day, the Monday of the week or the month of an instant in UTC; the same for every instant if it is all."""
    day = _EPOCH + dt.timedelta(days=at // DAY)
    if period == "week":
        day -= dt.timedelta(days=day.weekday())
    return {"day": day.isoformat(), "week": day.isoformat(), "month": day.isoformat()[:7], "all": "all"}[period]
