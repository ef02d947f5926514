"""Days, weeks and months of a zone, in every analysis that counts by them, against a walk by the clock on the wall."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import threadline
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import SECOND, format_time

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
PLACES = {
    # A day of 23 hours, and one of 25.
    "Europe/Rome": [datetime(2026, 3, 29, 12, tzinfo=UTC), datetime(2026, 10, 25, 12, tzinfo=UTC)],
    # Clocks leap over midnight, and go back over it.
    "Asia/Beirut": [datetime(2026, 3, 28, 22, tzinfo=UTC), datetime(2026, 10, 24, 21, tzinfo=UTC)],
    "America/Sao_Paulo": [datetime(2018, 11, 4, 3, tzinfo=UTC), datetime(2018, 2, 18, 2, tzinfo=UTC)],
    # Half an hour of summer time; no summer time, and an odd offset; a day that never was.
    "Australia/Lord_Howe": [datetime(2026, 4, 4, 15, tzinfo=UTC)],
    "Asia/Kathmandu": [datetime(2026, 7, 1, 18, 15, tzinfo=UTC)],
    "Pacific/Apia": [datetime(2011, 12, 30, 10, tzinfo=UTC)],
}
Lived = list[tuple[str, int, str, float]]
"""(person, instant, type, total), in the order in which they are recorded."""


def instant(moment: datetime) -> int:
    return round(moment.timestamp()) * SECOND


def lived(random: Random, around: datetime, zone: str) -> Lived:
    """Two months around a change of clocks; many at its hour, at midnights and a microsecond before."""
    clock, found = ZoneInfo(zone), []
    for _ in range(160):
        near = instant(around) + random.randrange(-12, 12) * 1_800 * SECOND
        noon = around + timedelta(days=random.randrange(-30, 30))
        midnight = instant(noon.astimezone(clock).replace(hour=0, minute=0, second=0))
        at = random.choice([near, midnight]) + random.choice([-1, 0, 0, 1])
        found.append((f"p{random.randrange(9)}", at, random.choice(["viewed", "bought"]), float(random.randrange(9))))
    return found


@contextmanager
def opened(
    events: Lived, now: int, folder: Path | None = None, definitions: str = ""
) -> Iterator[threadline.Threadline]:
    where = "memory:" if folder is None else folder / "shop.db"
    if folder is not None:
        (folder / "threadline.yaml").write_text(definitions)
    with threadline.open(where, clock=lambda: now) as shop:
        shop.record(
            Event(
                type=type,
                identifiers=(Identifier("user_id", who),),
                occurred_at=at,
                key=str(number),
                source="shop",
                properties={"total": total},
            )
            for number, (who, at, type, total) in enumerate(events)
        )
        yield shop


def day(at: int, zone: str) -> date:
    return datetime.fromtimestamp(at // SECOND, ZoneInfo(zone)).date()


def first_day(day: date, per: str, weekday: str) -> date:
    if per == "week":
        return day - timedelta(days=(day.weekday() - WEEKDAYS.index(weekday)) % 7)
    return day.replace(day=1) if per == "month" else day


def after(first: date, per: str, count: int) -> date:
    if per != "month":
        return first + timedelta(days=count * (7 if per == "week" else 1))
    months = first.year * 12 + first.month - 1 + count
    return date(months // 12, months % 12 + 1, 1)


def between(first: date, last: date, per: str) -> Iterable[date]:
    while first <= last:
        yield first
        first = after(first, per, 1)


CASES = [(zone, around) for zone, moments in PLACES.items() for around in moments]


@pytest.mark.parametrize("per", ["day", "week", "month"])
@pytest.mark.parametrize(("zone", "around"), CASES)
def test_a_trend_and_sessions_by_days_of_a_zone_are_those_of_the_clock_on_the_wall(
    zone: str, around: datetime, per: Any, seed: int
) -> None:
    random = Random(f"{seed} {zone} {around} {per}")
    now, weekday = instant(around) + random.randrange(0, 86_400) * SECOND, random.choice(WEEKDAYS)
    events = [each for each in lived(random, around, zone) if each[1] <= now]
    with opened(events, now) as shop:
        trend = shop.analytics.trend(per=per, timezone=zone, week_starts_on=weekday)  # type: ignore[arg-type]
        sessions = shop.analytics.sessions(
            per=per,
            timezone=zone,
            week_starts_on=weekday,
            gap="30m",  # type: ignore[arg-type]
        )
    counted, people = Counter[date](), defaultdict[date, set[str]](set)
    for who, at, *_ in events:
        period = first_day(day(at, zone), per, weekday)
        counted[period] += 1
        people[period].add(who)
    today = day(now, zone)
    expected = [
        (period.isoformat(), counted[period], len(people[period]), after(period, per, 1) <= today)
        for period in between(min(counted), max(counted), per)
    ]
    assert [(row.period, row.events, row.people, row.complete) for row in trend.rows] == expected
    assert (trend.timezone, trend.week_starts_on) == (zone, weekday)
    begun = Counter[str]()
    for who in {each[0] for each in events}:
        own = sorted(at for other, at, *_ in events if other == who)
        starts = [
            at for before, at in zip([None, *own], own, strict=False) if before is None or at - before >= 1_800 * SECOND
        ]
        begun.update(first_day(day(at, zone), per, weekday).isoformat() for at in starts)
    assert {row.period: row.sessions for row in sessions.rows if row.sessions} == dict(begun)
    assert [row.complete for row in sessions.rows] == [
        after(date.fromisoformat(row.period), per, 1) <= today for row in sessions.rows
    ]


@pytest.mark.parametrize("per", ["day", "week", "month"])
@pytest.mark.parametrize(("zone", "around"), CASES)
def test_cohorts_by_days_of_a_zone_are_those_of_the_clock_on_the_wall(
    zone: str, around: datetime, per: Any, seed: int
) -> None:
    random = Random(f"{seed} {zone} {around} {per}")
    now, weekday = instant(around) + random.randrange(0, 9 * 86_400) * SECOND, random.choice(WEEKDAYS)
    events = [each for each in lived(random, around, zone) if each[1] <= now]
    with opened(events, now) as shop:
        asked: dict[str, Any] = {"per": per, "periods": 5, "timezone": zone, "week_starts_on": weekday}
        retention = shop.analytics.retention(**asked)
        cohorts = shop.analytics.cohorts(event="bought", value="total", **asked)
    entered = {who: min(at for other, at, *_ in events if other == who) for who, *_ in events}
    cohort = {who: first_day(day(at, zone), per, weekday) for who, at in entered.items()}
    today = day(now, zone)
    expected, spent = [], []
    for first in sorted(set(cohort.values())):
        for number in range(6):
            period = after(first, per, number)
            if period > today:
                continue
            inside = [
                each
                for each in events
                if cohort[each[0]] == first and first_day(day(each[1], zone), per, weekday) == period
            ]
            is_over = after(period, per, 1) <= today
            expected.append((first.isoformat(), number, len({each[0] for each in inside}), is_over))
            bought = [each for each in inside if each[2] == "bought"]
            spent.append((first.isoformat(), number, len(bought), sum(each[3] for each in bought), is_over))
    assert [(row.cohort, row.period, row.people, row.complete) for row in retention.rows] == expected
    assert [(row.cohort, row.period, row.events, row.value, row.complete) for row in cohorts.rows] == spent


@pytest.mark.parametrize(("zone", "around"), CASES)
def test_today_begins_at_midnight_of_the_zone_and_stands_beside_the_same_time_of_the_day_before(
    zone: str, around: datetime, seed: int
) -> None:
    random, clock = Random(f"{seed} {zone} {around}"), ZoneInfo(zone)
    for _ in range(4):
        now = (
            instant(around)
            + random.randrange(-2, 3) * 12 * 3_600 * SECOND
            + random.randrange(3_600) * SECOND
            + SECOND // 2
        )
        events = [each for each in lived(random, around, zone) if each[1] <= now]
        with opened(events, now) as shop:
            found = shop.analytics.today(timezone=zone)
        local = datetime.fromtimestamp(now // SECOND, clock)
        same_time = instant((local - timedelta(days=1)).replace(fold=0)) + now % SECOND
        today = [each for each in events if day(each[1], zone) == local.date()]
        # By the instants, since a clock that goes back over midnight shows yesterday again.
        begins = min((each[1] for each in today), default=now)
        before = [
            each for each in events if day(each[1], zone) == local.date() - timedelta(days=1) and each[1] <= same_time
        ]
        assert {row.type: (row.today, row.before) for row in found.rows if row.today or row.before} == {
            type: (sum(e[2] == type for e in today), sum(e[2] == type for e in before))
            for type in {each[2] for each in [*today, *before]}
        }, (format_time(now), format_time(begins))


def test_without_a_zone_the_declared_one_holds_and_weeks_begin_as_the_calendar_says(tmp_path: Path) -> None:
    around = datetime(2026, 3, 29, 12, tzinfo=UTC)
    events = lived(Random(1), around, "Europe/Rome")
    declared = "timezone: Europe/Rome\ncalendar: {week_starts_on: sunday}\n"
    with opened(events, instant(around + timedelta(days=40)), tmp_path, declared) as shop:
        named = shop.analytics.trend(per="week", timezone="Europe/Rome", week_starts_on="sunday")
        assert shop.analytics.trend(per="week") == named
        assert {date.fromisoformat(row.period).weekday() for row in named.rows} == {6}
        utc = shop.analytics.trend(per="week", timezone="UTC", week_starts_on="monday")
        assert utc.rows != named.rows
        assert (utc.timezone, utc.week_starts_on) == ("UTC", "monday")
        assert shop.analytics.today().timezone == "Europe/Rome"


@pytest.mark.parametrize("zone", ["Rome", "localtime", "europe/rome", "+02:00", "'; DROP"])
def test_what_is_no_zone_is_refused_with_an_example(zone: str) -> None:
    with opened([], 0) as shop, pytest.raises(InvalidValue, match="is no zone; write an IANA name") as refused:
        shop.analytics.trend(timezone=zone)
    assert refused.value.param == "timezone"
