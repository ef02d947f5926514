"""What tests of leaderboards share: boards that are declared, and how they are asked."""

from __future__ import annotations

from typing import Any

from tests.capabilities.points_stage import Stage
from threadline.kernel.time import DAY

BOARDS = """
points: {tables: [{version: 2, earn: {tool_used: 3}}]}
leaderboards:
  points: {score: points.earned, periods: [day, week, month, all], per: country, tags: [vip]}
  purse: {score: points.balance}
"""
STREAKS = """
leaderboards:
  streak: {score: streaks.daily.current, per: country}
  longest: {score: streaks.daily.longest}
"""
FEATURES = """
features:
  uses_3d: {aggregate: count, events: tool_used, window: 3d}
  spent: {aggregate: sum, events: purchase_completed, of: total}
leaderboards:
  busy: {score: features.uses_3d}
  spenders: {score: features.spent}
"""


def staged(definitions: str, **more: Any) -> Stage:
    return Stage(definitions, "streaks", "leaderboards", **more)


def board(stage: Stage, name: str, limit: int = 1_000, **params: Any) -> list[tuple[int, str, float]]:
    """Rank, identifier and score of the first places."""
    found = stage.ask("leaderboards_top", name=name, limit=limit, **params)
    return [(each["rank"], each["identifiers"][0], each["score"]) for each in found["places"]]


def standing(stage: Stage, who: str, name: str, **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = stage.ask("leaderboards_standing", id=f"user_id:{who}", name=name, **params)
    return found


def competition(scores: dict[str, int]) -> set[tuple[int, str, int]]:
    """Ranks as in sport: 1 and how many have more."""
    return {(1 + sum(o > s for o in scores.values()), name, s) for name, s in scores.items() if s}


def text(kind: str, at: int) -> str:
    """The period of an instant in UTC, computed from its date alone."""
    import datetime as dt

    day = dt.date(1970, 1, 1) + dt.timedelta(days=at // DAY)
    week = day - dt.timedelta(days=day.weekday())
    return {"day": day.isoformat(), "week": week.isoformat(), "month": day.isoformat()[:7], "all": "all"}[kind]
