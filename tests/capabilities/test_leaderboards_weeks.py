"""Boards by week in a zone, with weeks from any day, against a plain sum by the clock on the wall."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest

import threadline
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.leaderboards.definition import read_boards
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, HOUR, SECOND, format_time, parse_time

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ROME = ZoneInfo("Europe/Rome")
DECLARED = """
timezone: Europe/Rome
leaderboards: {weekly: {score: points.earned, periods: [day, week, month]}}
"""


def week(at: int, weekday: int) -> date:
    day = datetime.fromtimestamp(at // SECOND, ROME).date()
    return day - timedelta(days=(day.weekday() - weekday) % 7)


@pytest.mark.parametrize("weekday", [0, 2, 6])
def test_a_board_by_week_sums_what_was_earned_from_the_declared_day_on(tmp_path: Path, seed: int, weekday: int) -> None:
    random, start = Random(seed), parse_time("2026-03-10T00:00:00Z")
    now = start + 25 * DAY + HOUR
    earned = [
        (f"p{random.randrange(6)}", start + random.randrange(25 * 24) * HOUR, random.randrange(1, 9))
        for _ in range(200)
    ]
    (tmp_path / "threadline.yaml").write_text(f"{DECLARED}calendar: {{week_starts_on: {WEEKDAYS[weekday]}}}\n")
    with threadline.open(tmp_path / "shop.db", clock=lambda: now) as shop:
        shop.engine.recorder.record(
            [
                Event(
                    type="points_earned",
                    identifiers=(Identifier("user_id", who),),
                    occurred_at=at,
                    key=str(number),
                    source="rules",
                    source_type="internal",
                    properties={"points": points},
                )
                for number, (who, at, points) in enumerate(earned)
            ]
        )
        assert shop.leaderboards.list().week_starts_on == WEEKDAYS[weekday]
        for ago in range(4):
            # The last two weeks are kept in rows, those before are read from the log.
            asked = None if ago == 0 else format_time(now - ago * 7 * DAY)
            answer = shop.leaderboards.top("weekly", period="week", at=asked)
            first = week(now - ago * 7 * DAY, weekday)
            sums = Counter[str]()
            for who, at, points in earned:
                if week(at, weekday) == first:
                    sums[f"user_id:{who}"] += points
            assert answer.period == first.isoformat()
            assert {each.identifiers[0]: each.score for each in answer.places} == dict(sums), (ago, answer.period)


def test_the_first_day_of_a_week_shapes_boards_by_week_alone() -> None:
    def fingerprint(period: str, day: str) -> str:
        board = f"leaderboards: {{p: {{score: points.earned, periods: [{period}]}}}}"
        text = f"{board}\ncalendar: {{week_starts_on: {day}}}"
        return read_boards(Definitions([("threadline.yaml", text)])).fingerprint

    assert len({fingerprint("week", day) for day in WEEKDAYS}) == 7
    assert len({fingerprint("day", day) for day in WEEKDAYS}) == 1
