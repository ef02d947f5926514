"""Analyses against SQL that shares no line with theirs, on three real histories: orders, commits, visits of a web site.

The reference reads the raw files, not the log, and works by pairs and lists where the analyses work by windows and
sorted joins. THREADLINE_TEST_WEBLOGS names the access log (10,000 lines in Apache's combined form, gzip), which is not
ours to copy; without it that history is drawn, with the same shape.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple

import pytest

import threadline
from tests.activity import commits
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, SECOND, parse_duration, parse_time
from threadline.surfaces.cli.demo.history import orders

duckdb = pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.slow

LINE = re.compile(r'(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+)[^"]*" (\d{3}) (\S+)')
ROWS_MAX = 10**6 if os.environ.get("THREADLINE_TEST_WEBLOGS") else 4_000
"""The reference compares each event of a person with each other one: half of the rows are a quarter of the work."""
Row = tuple[str, int, str, str, float]
"""(person, instant, kind, channel, worth)."""


class History(NamedTuple):
    """A history, and what is asked of it."""

    rows: list[Row]
    steps: tuple[str, ...]
    """Kinds."""
    window: str
    gap: str
    half_life: str


def shop_orders() -> list[Row]:
    """Orders of one to three CDs, of more, and large ones; the channel is how many CDs."""
    kinds = ("small", "middle", "large")
    return [
        (
            order.customer,
            parse_time(f"{order.day}T00:00:00Z"),
            kinds[(order.dollars > 20) + (order.dollars > 50)],
            str(order.cds),
            order.dollars,
        )
        for order in orders()
    ]


def authored() -> list[Row]:
    return [
        (each.email, parse_time(each.authored), each.topic or "none", each.repo, float(each.files))
        for each in commits()[-ROWS_MAX:]
    ]


def visits() -> list[Row]:
    path = os.environ.get("THREADLINE_TEST_WEBLOGS")
    if path is None:
        return drawn()
    found = []
    folders = ("blog", "images", "presentations", "style", "favicon")
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            address, at, _, target, _, size = LINE.match(line).groups()  # type: ignore[union-attr]
            moment = round(datetime.strptime(at, "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC).timestamp()) * SECOND
            kind = next((each for each in folders if each in target), "page")
            found.append((address, moment, kind, target[:100], float(size) if size != "-" else 0.0))
    return found


def drawn() -> list[Row]:
    """Four days of visitors, few of whom come often; several requests of one second."""
    random, rows = Random(5), []
    start = parse_time("2015-05-17T00:00:00Z")
    for _ in range(min(10_000, ROWS_MAX)):
        person = f"10.0.0.{min(int(random.paretovariate(0.7)), 1_700)}"
        kind = random.choice(["page", "page", "blog", "images", "style", "favicon", "presentations"])
        at = start + random.randrange(4 * DAY // SECOND) * SECOND
        rows.append((person, at, kind, f"/{kind}/{random.randrange(9)}", float(random.randrange(90_000))))
    return rows


HISTORIES = {
    "orders": lambda: History(shop_orders(), ("small", "middle", "large", "small", "small"), "90d", "20d", "14d"),
    "commits": lambda: History(authored(), ("src", "tests", "docs", "src", "tests"), "7d", "2h", "1d"),
    "visits": lambda: History(visits(), ("page", "style", "images", "blog", "page"), "1d", "30m", "6h"),
}


class Asked(NamedTuple):
    """A history in a store, and its raw rows beside it."""

    shop: threadline.Threadline
    history: History
    raw: Any

    def rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.raw.execute(sql, values or None).fetchall()
        return found


@pytest.fixture(scope="module", params=HISTORIES)
def asked(request: pytest.FixtureRequest) -> Iterator[Asked]:
    history = HISTORIES[request.param]()
    now = max(at for _, at, *_ in history.rows) + 3 * DAY
    raw = duckdb.connect()
    columns = zip(*((*row, n) for n, row in enumerate(history.rows)), strict=True)
    names = ("person", "us", "kind", "channel", "worth", "n")
    raw.register("given", pyarrow.table(dict(zip(names, map(list, columns), strict=True))))
    raw.execute("CREATE TABLE raw AS SELECT *, row_number() OVER (ORDER BY us, n) AS o FROM given")
    with threadline.open("memory:", clock=lambda: now) as shop:
        events = [
            Event(
                type="did",
                identifiers=(Identifier("user_id", person),),
                occurred_at=at,
                key=str(n),
                source="history",
                properties={"kind": kind, "channel": channel, "worth": worth},
            )
            for n, (person, at, kind, channel, worth) in enumerate(history.rows)
        ]
        for start in range(0, len(events), 1_000):
            assert {each.status for each in shop.record(events[start : start + 1_000])} == {"accepted"}
        yield Asked(shop, history, raw)
    raw.close()


def step(kind: str) -> str:
    return f'{{"event": "did", "where": {{"kind": "{kind}"}}}}'


def test_a_funnel_of_five_steps(asked: Asked) -> None:
    history, window = asked.history, parse_duration(asked.history.window)
    answer = asked.shop.analytics.funnel(steps=[step(each) for each in history.steps], window=history.window)
    # From every entry the earliest chain: if any is in time, that one is.
    chains = ["c1 AS (SELECT person, o AS entry, us AS began, o, us FROM raw WHERE kind = $k1)"]
    chains += [
        f"c{n} AS (SELECT c.person, c.entry, c.began, min(r.o) AS o, min(r.us) AS us FROM c{n - 1} c JOIN raw r "
        f"ON r.person = c.person AND r.o > c.o AND r.us <= c.began + $window AND r.kind = $k{n} GROUP BY ALL)"
        for n in range(2, 6)
    ]
    # Of the first event that ends a chain, the chain with the latest entry.
    sums = [
        f"SELECT {n}, count(*), median(took) FROM (SELECT person, (min(us) - max(began)) / 1e6 AS took FROM c{n} "
        f"WHERE o = (SELECT min(o) FROM c{n} x WHERE x.person = c{n}.person) GROUP BY person)"
        for n in range(1, 6)
    ]
    kinds = {f"k{n}": kind for n, kind in enumerate(history.steps, 1)}
    expected = asked.rows(f"WITH {', '.join(chains)} {' UNION ALL '.join(sums)} ORDER BY 1", window=window, **kinds)
    assert [(row.step, row.people) for row in answer.rows] == [row[:2] for row in expected]
    assert answer.rows[1].people > 10
    for row, (_, _, took) in zip(answer.rows[1:], expected[1:], strict=True):
        assert row.seconds_p50 == (None if took is None else pytest.approx(took))


@pytest.mark.parametrize("kind", ["bounded", "rolling"])
def test_retention_by_week(asked: Asked, kind: Any) -> None:
    returning = asked.history.steps[0]
    answer = asked.shop.analytics.retention(returning=step(returning), per="week", periods=6, kind=kind)
    # Days since 1970 began on a Thursday: weeks from Monday are whole numbers of (day + 3) / 7.
    week = f"((us // {DAY}) + 3) // 7"
    there = "=" if kind == "bounded" else ">="
    expected = asked.rows(
        f"WITH firsts AS (SELECT person, min(us) AS began FROM raw GROUP BY person), "
        f"cohorts AS (SELECT person, began, (began // {DAY} + 3) // 7 AS cohort FROM firsts) "
        f"SELECT cohort, p, (SELECT count(*) FROM cohorts s WHERE s.cohort = c.cohort), "
        f"(SELECT count(*) FROM cohorts s "
        f"WHERE s.cohort = c.cohort AND EXISTS (FROM raw r WHERE r.person = s.person AND r.kind = $kind "
        f"AND r.us >= s.began AND {week.replace('us', 'r.us')} - s.cohort {there} p)) "
        f"FROM (SELECT DISTINCT cohort FROM cohorts) c, range(7) t(p) ORDER BY 1, 2",
        kind=returning,
    )
    now = asked.shop.engine.clock() // DAY
    shown = {(row.cohort, row.period): (row.size, row.people, row.complete) for row in answer.rows}
    begun = [each for each in expected if (each[0] + each[1]) * 7 - 3 <= now]
    assert len(shown) == len(begun) > 2
    for cohort, period, size, people in begun:
        monday = datetime.fromtimestamp((cohort * 7 - 3) * 86_400, UTC).date().isoformat()
        is_over = (cohort + period + 1) * 7 - 3 <= now
        assert shown[monday, period] == (size, people, is_over)


def test_sessions(asked: Asked) -> None:
    gap = parse_duration(asked.history.gap)
    answer = asked.shop.analytics.sessions(gap=asked.history.gap, per="month")
    (expected,) = asked.rows(
        "WITH starts AS (SELECT person, o, us FROM raw r WHERE NOT EXISTS (FROM raw b WHERE b.person = r.person "
        "AND b.o < r.o AND b.us > r.us - $gap)), "
        "sessions AS (SELECT s.person, s.o, s.us, count(*) AS events, max(r.us) AS last FROM starts s JOIN raw r "
        "ON r.person = s.person AND r.o >= s.o AND NOT EXISTS (FROM starts t WHERE t.person = s.person AND t.o > s.o "
        "AND t.o <= r.o) GROUP BY ALL) "
        "SELECT count(*), count(DISTINCT person), sum(events)::BIGINT, count(*) FILTER (events = 1), "
        "median((last - us) / 1e6) FROM sessions",
        gap=gap,
    )
    found = answer.all
    assert (found.sessions, found.people, found.events, found.bounced) == expected[:4]
    assert found.seconds_p50 == pytest.approx(expected[4])
    assert sum(row.sessions for row in answer.rows) == found.sessions > 100


def test_paths(asked: Asked) -> None:
    gap, begin = parse_duration(asked.history.gap), asked.history.steps[0]
    answer = asked.shop.analytics.paths(start_at=step(begin), by="kind", gap=asked.history.gap, depth=3, most=50)
    expected = asked.rows(
        "WITH cut AS (SELECT person, list(kind ORDER BY o) AS kinds, list(us ORDER BY o) AS ats "
        "FROM raw GROUP BY person), "
        "ends AS (SELECT person, kinds, [0] || list_filter(range(1, len(ats)), lambda i: ats[i + 1] - ats[i] >= $gap) "
        "|| [len(ats)] AS cuts FROM cut), "
        "runs AS (SELECT person, kinds[cuts[i] + 1 : cuts[i + 1]] AS run FROM ends, unnest(range(1, len(cuts))) t(i)), "
        "ways AS (SELECT run[list_position(run, $begin) :] || [''] AS way FROM runs WHERE list_contains(run, $begin)) "
        "SELECT s, way[s + 1], way[s + 2], count(*) FROM ways, range(3) t(s) WHERE len(way) > s + 1 GROUP BY ALL",
        gap=gap,
        begin=begin,
    )
    assert {(row.step, row.source, row.target): row.ways for row in answer.rows} == {
        each[:3]: each[3] for each in expected
    }
    assert len(answer.rows) > 8


def test_attribution(asked: Asked) -> None:
    history = asked.history
    answer = asked.shop.analytics.attribution(
        event=step(history.steps[1]),
        channel="kind",
        window=history.window,
        half_life=history.half_life,
        value="worth",
        touches=f'{{"event": "did", "where": {{"kind": {{"not_equals": "{history.steps[1]}"}}}}}}',
        most=50,
    )
    expected = asked.rows(
        "WITH ways AS (SELECT c.n, c.worth, list(t.kind ORDER BY t.o) AS kinds, list(t.us ORDER BY t.o) AS ats "
        "FROM raw c "
        "JOIN raw t ON t.person = c.person AND t.kind <> c.kind AND t.us BETWEEN c.us - $window AND c.us "
        "AND (t.us < c.us OR t.n < c.n) WHERE c.kind = $kind GROUP BY ALL), "
        "places AS (SELECT *, len(kinds) AS k, list_transform(ats, lambda a: 0.5 ** ((ats[-1] - a) / $half)) AS fresh "
        "FROM ways), "
        "each AS (SELECT kinds[i] AS channel, worth, i, k, fresh[i] / list_sum(fresh) AS decay "
        "FROM places, unnest(range(1, k + 1)) t(i)) "
        "SELECT channel, sum(worth) FILTER (i = 1), sum(worth) FILTER (i = k), sum(worth / k), "
        "sum(worth * CASE k WHEN 1 THEN 1 WHEN 2 THEN 0.5 ELSE if(i IN (1, k), 0.4, 0.2 / (k - 2)) END), "
        "sum(worth * decay) FROM each GROUP BY channel",
        window=parse_duration(history.window),
        kind=history.steps[1],
        half=parse_duration(history.half_life),
    )
    shown = {row.channel: row for row in answer.rows if row.touches}
    assert set(shown) == {each[0] for each in expected}
    assert len(shown) > 1
    for channel, *credits in expected:
        row = shown[channel]
        found = (row.first, row.last, row.linear, row.position, row.decay)
        assert found == tuple(pytest.approx(each or 0.0, rel=1e-9, abs=1e-6) for each in credits)
    for model in ("first", "last", "linear", "position", "decay", "markov"):
        assert sum(getattr(row, model) for row in answer.rows) == pytest.approx(answer.credited)


def test_recency_frequency_money(asked: Asked) -> None:
    answer = asked.shop.analytics.rfm(event="did", value="worth", most=20)
    expected = asked.rows(
        "WITH p AS (SELECT person, max(us) AS latest, count(*) AS often, sum(worth ORDER BY n) AS spent FROM raw "
        "GROUP BY person), total AS (SELECT count(*) AS n FROM p), "
        "scored AS (SELECT p.*, 1 + 5 * (SELECT count(*) FROM p b WHERE b.latest < p.latest) // n AS r, "
        "1 + 5 * (SELECT count(*) FROM p b WHERE b.often < p.often) // n AS f, "
        "1 + 5 * (SELECT count(*) FROM p b WHERE b.spent < p.spent) // n AS m FROM p, total) "
        "SELECT r, f, count(*), sum(often)::BIGINT, sum(spent), avg(m) FROM scored GROUP BY r, f"
    )
    shown = {(row.recency, row.frequency): row for row in answer.rows}
    assert len(shown) == len(expected) > 5
    for recency, frequency, people, often, spent, money in expected:
        row = shown[recency, frequency]
        assert (row.people, row.purchases) == (people, often)
        assert (row.value, row.monetary) == (pytest.approx(spent), pytest.approx(money))
    assert len(answer.people) == 20
