"""Sessions and paths against a reckoner that walks through every person's events one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random
from statistics import quantiles

import pytest

from threadline.app import open_engine
from threadline.capabilities.ask.analytics.operations.paths import Paths, PathsParams
from threadline.capabilities.ask.analytics.operations.paths import paths as paths_operation
from threadline.capabilities.ask.analytics.operations.sessions import Sessions, SessionsParams
from threadline.capabilities.ask.analytics.operations.sessions import sessions as sessions_operation
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, MINUTE, SECOND, format_time, parse_time
from threadline.settings import Settings

START = parse_time("2026-01-01T00:00:00Z")
NOW = START + 12 * DAY + 5 * SECOND
Lived = list[tuple[str, int, str, str]]
"""(person, instant, type, plan), in the order in which they are recorded."""


def lived(seed: int) -> Lived:
    """Many of one instant, pauses of just a gap, sessions over midnight and up to the end of the time."""
    random = Random(seed)
    return [
        (
            f"p{random.randrange(9)}",
            START + random.randrange(13) * DAY - random.randrange(6) * 30 * MINUTE + random.choice([0, 0, 0, 1]),
            random.choice(["viewed", "viewed", "carted", "bought", "o'neill"]),
            random.choice(["", "free", "pro"]),
        )
        for _ in range(300)
    ]


def opened(events: Lived) -> Engine:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    engine.recorder.record(
        [
            Event(
                type=t,
                identifiers=(Identifier("user_id", who),),
                occurred_at=at,
                key=str(n),
                source="shop",
                properties={"plan": plan} if plan else {},
            )
            for n, (who, at, t, plan) in enumerate(events)
        ]
    )
    return engine


def visits(events: Lived, gap: int) -> Iterator[Lived]:
    """Each session's events in their order."""
    for person in sorted({each[0] for each in events}):
        own = sorted((each for each in events if each[0] == person), key=lambda each: each[1])
        visit: Lived = []
        for each in own:
            if visit and each[1] - visit[-1][1] >= gap:
                yield visit
                visit = []
            visit.append(each)
        yield visit


def day_of(at: int) -> date:
    return datetime.fromtimestamp(at // SECOND, UTC).date()


def quantile(values: list[float], share: float) -> float:
    if not values:
        return 0.0
    return values[0] if len(values) == 1 else quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("by", "per", "span"), [("", "day", False), ("plan", "week", False), ("plan", "day", True)])
def test_sessions_are_those_of_walking_through_every_pause(seed: int, by: str, per: str, span: bool) -> None:
    events = [each for each in lived(seed) if each[1] <= NOW]
    engine = opened(events)
    start, stop = (START + 2 * DAY, START + 6 * DAY) if span else (START - 9 * DAY, NOW + 1)
    range_ = {"start": format_time(start), "stop": format_time(stop)} if span else {}
    params = SessionsParams(by=by, per=per, **range_)  # type: ignore[arg-type]
    result: Sessions = sessions_operation.run(Context(engine, "default", NOW), params)
    engine.close()
    groups: dict[tuple[str, str], list[Lived]] = defaultdict(list)
    for visit in visits(events, 30 * MINUTE):
        if start <= visit[0][1] < stop:
            day = day_of(visit[0][1])
            first = day - timedelta(days=day.weekday()) if per == "week" else day
            groups[first.isoformat(), visit[0][3] if by else ""].append(visit)
    begins, ends = min(key[0] for key in groups), max(key[0] for key in groups)
    step = timedelta(days=7 if per == "week" else 1)
    periods = [date.fromisoformat(begins)]
    while periods[-1].isoformat() < ends:
        periods.append(periods[-1] + step)
    keys = [(period.isoformat(), value) for value in sorted({key[1] for key in groups}) for period in periods]
    expected = [(*key, *figures(groups[key])) for key in sorted(keys)]
    rows = [
        (row.period, row.value, row.sessions, row.people, row.events, row.bounced, row.seconds_p50, row.seconds_p95)
        for row in result.rows
    ]
    assert [row[:6] for row in rows] == [row[:6] for row in expected]
    assert [tuple(each or 0.0 for each in row[6:]) for row in rows] == [
        pytest.approx(row[6:], abs=1e-5) for row in expected
    ]
    assert all((row.seconds_p50 is None) == (row.seconds_p95 is None) == (row.sessions == 0) for row in result.rows)
    whole = figures([visit for found in groups.values() for visit in found])
    assert (result.all.sessions, result.all.people, result.all.events, result.all.bounced) == whole[:4]
    assert result.all.seconds_p95 == pytest.approx(whole[5], abs=1e-5)
    assert any(not row.complete for row in result.rows) == bool(result.notes) == (not span)


def figures(found: list[Lived]) -> tuple[float, ...]:
    """Sessions, people, events, bounced and two quantiles of their length."""
    lengths = sorted((visit[-1][1] - visit[0][1]) / SECOND for visit in found)
    people = {visit[0][0] for visit in found}
    bounced = sum(len(visit) == 1 for visit in found)
    counts = (len(found), len(people), sum(map(len, found)), bounced)
    return (*counts, quantile(lengths, 0.5), quantile(lengths, 0.95))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("start_at", "direction", "by", "span"),
    [
        ("*", "after", "", False),
        ("carted", "after", "", True),
        ("bought", "before", "", False),
        ("*", "after", "plan", True),
    ],
)
def test_paths_are_those_of_walking_through_every_session(
    seed: int, start_at: str, direction: str, by: str, span: bool
) -> None:
    events = lived(seed)
    engine = opened(events)
    start, stop = (START + 2 * DAY, START + 6 * DAY) if span else (START - 9 * DAY, NOW + 9 * DAY)
    range_ = {"start": format_time(start), "stop": format_time(stop)} if span else {}
    params = PathsParams(start_at=start_at, direction=direction, depth=3, by=by, most=50, **range_)  # type: ignore[arg-type]
    result: Paths = paths_operation.run(Context(engine, "default", NOW), params)
    engine.close()
    expected: Counter[tuple[int, str, str]] = Counter()
    count = 0
    for visit in visits([each for each in events if each[3] or not by], 30 * MINUTE):
        ordered = visit if direction == "after" else visit[::-1]
        at = [n for n, e in enumerate(ordered) if start_at in ("*", e[2]) and start <= e[1] < stop]
        if at:
            count += 1
            names = [each[3] if by else each[2] for each in ordered[at[0] :]]
            for step, name in enumerate(names[:3]):
                expected[step, name, names[step + 1] if step + 1 < len(names) else ""] += 1
    assert {(row.step, row.source, row.target): row.ways for row in result.rows} == expected
    assert result.ways == count > 0
    for row in result.rows:
        whole = sum(ways for (step, source, _), ways in expected.items() if (step, source) == (row.step, row.source))
        assert row.share == row.ways / whole


def test_rarer_events_are_one_node_and_no_way_is_lost() -> None:
    engine = opened(lived(1))
    context = Context(engine, "default", NOW)
    whole: Paths = paths_operation.run(context, PathsParams(most=50))
    few: Paths = paths_operation.run(context, PathsParams(most=1))
    engine.close()
    for step in range(4):
        assert len({row.source for row in few.rows if row.step == step}) == 2
        assert sum(r.ways for r in few.rows if r.step == step) == sum(r.ways for r in whole.rows if r.step == step)


def test_of_an_empty_log_there_are_no_sessions_and_no_paths() -> None:
    engine = opened([])
    context = Context(engine, "default", NOW)
    sessions: Sessions = sessions_operation.run(context, SessionsParams())
    paths: Paths = paths_operation.run(context, PathsParams())
    assert (sessions.rows, sessions.all.sessions, sessions.all.seconds_p50) == ([], 0, None)
    assert (paths.rows, paths.ways) == ([], 0)
    with pytest.raises(InvalidValue) as caught:
        paths_operation.run(context, PathsParams(by="features.x"))
    assert caught.value.param == "by"
    engine.close()
