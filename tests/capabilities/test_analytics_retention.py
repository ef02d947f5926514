"""Retention against a reckoner that goes through every person's days one by one, with the calendar of Python."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest

from threadline.app import open_engine
from threadline.capabilities.ask.analytics.operations.retention import Retention, RetentionParams, retention
from threadline.engine.context import Context
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, SECOND, parse_time
from threadline.settings import Settings

START = parse_time("2025-12-20T00:00:00Z")
NOW = START + 70 * DAY + 5 * SECOND
Lived = list[tuple[str, int, str]]


def lived(seed: int) -> Lived:
    """(person, instant, type): some at the last microsecond of a day, some in the future of the question."""
    random = Random(seed)
    return [
        (
            f"p{random.randrange(14)}",
            START + random.randrange(70) * DAY + random.choice([0, 1, DAY // 2, DAY - 1]),
            random.choice(["joined", "bought", "viewed"]),
        )
        for _ in range(150)
    ]


def begins(day: date, per: str) -> date:
    """The first day of a period."""
    return {"day": day, "week": day - timedelta(days=day.weekday()), "month": day.replace(day=1)}[per]


def after(first: date, per: str) -> date:
    """The first day of the next period."""
    return begins(first + timedelta(days={"day": 1, "week": 7, "month": 32}[per]), per)


def day_of(at: int) -> date:
    return datetime.fromtimestamp(at // SECOND, UTC).date()


def reckoned(events: Lived, per: str, periods: int, kind: str, first: str, returning: str) -> list[tuple[object, ...]]:
    """(cohort, size, period, people, complete), walking from period to period."""
    today = day_of(NOW)
    size: Counter[date] = Counter()
    there: Counter[tuple[date, int]] = Counter()
    for person in {who for who, _, _ in events}:
        entries = [at for who, at, type_ in events if who == person and first in (type_, "*")]
        if not entries:
            continue
        cohort = begins(day_of(min(entries)), per)
        size[cohort] += 1
        days = [day_of(at) for who, at, t in events if who == person and returning in (t, "*") and at >= min(entries)]
        begin = cohort
        for period in range(periods + 1):
            end = after(begin, per)
            there[cohort, period] += any(day >= begin and (kind == "rolling" or day < end) for day in days)
            begin = end
    rows: list[tuple[object, ...]] = []
    for cohort in sorted(size):
        begin = cohort
        for period in range(periods + 1):
            if begin <= today:
                complete = after(begin, per) <= today
                rows.append((cohort.isoformat(), size[cohort], period, there[cohort, period], complete))
            begin = after(begin, per)
    return rows


def asked(events: Lived, params: RetentionParams) -> Retention:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    try:
        engine.recorder.record(
            [
                Event(type=t, identifiers=(Identifier("user_id", who),), occurred_at=at, key=str(n), source="shop")
                for n, (who, at, t) in enumerate(events)
            ]
        )
        result: Retention = retention.run(Context(engine, "default", NOW), params)
        return result
    finally:
        engine.close()


@pytest.mark.parametrize("kind", ["bounded", "rolling"])
@pytest.mark.parametrize(("per", "periods"), [("day", 20), ("week", 12), ("month", 3)])
def test_retention_is_what_walking_from_period_to_period_counts(kind: str, per: str, periods: int) -> None:
    for seed, first, returning in ((1, "*", "*"), (2, "joined", "bought")):
        events = lived(seed)
        params = RetentionParams(first=first, returning=returning, per=per, periods=periods, kind=kind)  # type: ignore[arg-type]
        found = asked(events, params)
        rows = [(row.cohort, row.size, row.period, row.people, row.complete) for row in found.rows]
        assert rows == reckoned(events, per, periods, kind, first, returning)
        assert all(row.share == row.people / row.size for row in found.rows)
        assert any(not row.complete for row in found.rows) == bool(found.notes)


def test_a_range_chooses_cohorts_by_the_first_event_ever() -> None:
    events = [("old", START, "viewed"), ("old", START + 8 * DAY, "viewed"), ("new", START + 9 * DAY, "viewed")]
    found = asked(events, RetentionParams(start="2025-12-28T00:00:00Z", per="week", periods=1))
    assert {(row.cohort, row.size) for row in found.rows} == {("2025-12-29", 1)}
