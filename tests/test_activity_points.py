"""A real history replayed: the points of every author are what DuckDB computes from the raw file alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tests import activity
from tests.capabilities.points_stage import catalogue
from threadline.engine.engine import Engine
from threadline.kernel.time import parse_time
from threadline.stores.memory import MemoryStore

LAST = "2026-08-21T00:00:00Z"
"""After the last commit of the file."""

DEFINITIONS = """
points:
  events_per_hour: {per_hour}
  tables:
    - version: commits
      earn: {{commit_authored: {{points: 3, per_day: {per_day}}}}}
    - version: later
      from: 2019-01-01T00:00:00Z
      earn: {{commit_authored: {{points: 5, per_day: {per_day}}}}}
"""
LIMITS = {"a cap per day": (2, 100_000, "day"), "a limit per hour": (100_000, 3, "hour")}
"""One at a time: what is left of a day after its hours would depend on more than one count in SQL can say."""

TOLD = """
CREATE TEMP TABLE told AS
    SELECT email_key AS who, commit_key AS key, author_time::TIMESTAMPTZ AS done,
           greatest(author_time::TIMESTAMPTZ, commit_time::TIMESTAMPTZ) AS known
    FROM read_csv(?, all_varchar = true);
"""
EARNED = """
WITH counted AS (
        SELECT *, row_number() OVER (PARTITION BY who, date_trunc(?, done) ORDER BY known, key) AS place
        FROM told WHERE known - done < INTERVAL 7 DAYS
     ),
     awarded AS (
        SELECT who, done::DATE AS day, CASE WHEN done < TIMESTAMPTZ '2019-01-01 00:00:00Z' THEN 3 ELSE 5 END AS points
        FROM counted WHERE place <= ?
     )
SELECT who, day, sum(points)::INT FROM awarded GROUP BY who, day;
"""


@pytest.fixture(scope="module")
def raw() -> duckdb.DuckDBPyConnection:
    """The raw file in DuckDB, read without any code of ours."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(TOLD, [str(activity.FILE)])
    return connection


@pytest.fixture(scope="module", params=list(LIMITS))
def replayed(request: pytest.FixtureRequest) -> Iterator[tuple[str, Engine]]:
    """All commits, each recorded at the instant at which it became known."""
    per_day, per_hour, _ = LIMITS[request.param]
    clock = activity.Clock()
    engine = Engine(MemoryStore(), catalogue(DEFINITIONS.format(per_day=per_day, per_hour=per_hour)), clock)
    activity.replay(engine, clock, activity.commits(), size=1)
    yield request.param, engine
    engine.close()


def everybody(engine: Engine) -> Iterator[tuple[str, dict[str, Any]]]:
    for person in engine.reader.all_people("default"):
        (identifier,) = person.identifiers.values()
        yield identifier.value, engine.reader.views(person, parse_time(LAST), names=["points"])["points"]


def test_everybodys_points_are_what_the_raw_file_says(
    raw: duckdb.DuckDBPyConnection, replayed: tuple[str, Engine]
) -> None:
    name, engine = replayed
    per_day, per_hour, bucket = LIMITS[name]
    days: dict[str, dict[str, int]] = {}
    for who, day, points in raw.execute(EARNED, [bucket, min(per_day, per_hour)]).fetchall():
        days.setdefault(who, {})[day.isoformat()] = points
    people = 0
    for who, view in everybody(engine):
        expected = days.pop(who, {})
        assert (view["earned"], view["balance"]) == (sum(expected.values()),) * 2, who
        assert {day["day"]: day["earned"] for day in view["days"]}.items() <= expected.items(), who
        assert (max(expected, default=None)) == (view["days"][0]["day"] if view["days"] else None)
        people += 1
    assert days == {}
    assert people == 1_078
    told = raw.execute("SELECT count(*), count(*) FILTER (WHERE known - done >= INTERVAL 7 DAYS) FROM told").fetchone()
    # Both limits and the seven days must have left something out, or this compares less than it says.
    assert told is not None
    assert told[1] > 100
    earning = sum(each.entry.type == "points_earned" for each in _feed(engine))
    assert earning < told[0] - told[1]


def _feed(engine: Engine) -> Iterator[Any]:
    cursor = ""
    while page := engine.log.feed(cursor):
        yield from page
        cursor = page[-1].cursor
