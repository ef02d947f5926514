"""A real history replayed: the interests of every author are what DuckDB computes from the raw file alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tests import activity
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.interests.declared import declare
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.time import format_time, parse_time
from threadline.stores.memory import MemoryStore

INSTANTS = ("2026-08-21T00:00:00Z", "2021-01-01T12:00:00Z", "2018-06-15T00:00:00Z", "2014-05-20T18:30:00Z")

DECLARED = """
interests:
  events:
    commit_authored: {topic: commit, scopes: {folder: topic}}
"""

ACTIONS = """
CREATE TEMP TABLE actions AS
    SELECT email_key AS who, coalesce(topic, '') AS value, author_time::TIMESTAMPTZ AS instant,
           date_diff('day', DATE '1970-01-01', (author_time::TIMESTAMPTZ AT TIME ZONE 'UTC')::DATE)::INT AS day
    FROM read_csv(?, all_varchar = true);
"""
KNOWN = """
WITH told AS (SELECT *, min(day) OVER (PARTITION BY who) AS first,
                     dense_rank() OVER (PARTITION BY who ORDER BY day // 28 DESC) AS block
              FROM actions WHERE instant < $now::TIMESTAMPTZ),
     kept AS (SELECT *, date_diff('day', DATE '1970-01-01', ($now::TIMESTAMPTZ AT TIME ZONE 'UTC')::DATE)::INT AS today
              FROM told WHERE block <= 16)
"""
PERIODS = f"""{KNOWN},
     aged AS (SELECT *, (today - first) // 30 - (day - first) // 30 AS age, 29 - (today - first) % 30 AS remaining
              FROM kept),
     newest AS (SELECT *, dense_rank() OVER (PARTITION BY who ORDER BY age) AS place FROM aged),
     weighed AS (SELECT *, CASE WHEN age = 0 THEN 1.0
                           ELSE round(greatest(0.1, remaining / 30.0) * power(0.1, age - 1), 2) END AS weight
                 FROM newest WHERE place <= 2)
SELECT who, value, round(sum(weight), 2) FROM weighed GROUP BY who, value HAVING round(sum(weight), 2) > 0;
"""
DECAY = f"""{KNOWN}
SELECT who, value, sum(power(2.0, (day - today) / $days)) FROM kept GROUP BY who, value;
"""
SUMMARY = """
WITH told AS (SELECT *, min(day) OVER (PARTITION BY who) AS first FROM actions)
SELECT who, value, first + (day - first) // 30 * 30 AS starts, count(*), epoch_us(min(instant)), epoch_us(max(instant))
FROM told GROUP BY who, value, starts;
"""


@pytest.fixture(scope="module")
def raw() -> duckdb.DuckDBPyConnection:
    """The raw file in DuckDB, read without any code of ours."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(ACTIONS, [str(activity.FILE)])
    assert connection.execute("SELECT count(*), count(DISTINCT who) FROM actions").fetchone() == (7_679, 1_078)
    return connection


@pytest.fixture(scope="module")
def replayed() -> Iterator[Engine]:
    """All commits, recorded in the order in which they became known, a quarter of them late."""
    clock = activity.Clock()
    made = Catalogue(declare(Definitions([("threadline.yaml", DECLARED)])), rules())
    engine = Engine(MemoryStore(), made, clock)
    activity.replay(engine, clock, activity.commits())
    clock.now = parse_time(INSTANTS[0])
    yield engine
    engine.close()


def asked(engine: Engine, name: str, who: str, **params: Any) -> Any:
    operation = next(each for each in engine.catalogue.operations if each.name == name)
    context = Context(engine, "default", engine.clock())
    return operation.run(context, operation.params(id=f"user_id:{who}", **params))


def rankings(engine: Engine, instant: str, **params: Any) -> dict[tuple[str, str], float]:
    found = {}
    for person in engine.reader.all_people("default"):
        (identifier,) = person.identifiers.values()
        for topic in asked(
            engine, "interests_of", identifier.value, as_of=instant, known="now", limit=10_000, **params
        ).topics:
            assert not topic.capped
            weights = [value.weight for value in topic.values]
            assert weights == sorted(weights, reverse=True)
            found.update({(identifier.value, value.value): value.weight for value in topic.values})
    return found


@pytest.mark.parametrize("instant", INSTANTS)
def test_every_ranking_by_periods_is_what_the_raw_file_says(
    raw: duckdb.DuckDBPyConnection, replayed: Engine, instant: str
) -> None:
    rows = raw.execute(PERIODS, {"now": instant}).fetchall()
    expected = {(who, value): float(weight) for who, value, weight in rows}
    assert rankings(replayed, instant) == expected
    assert len(expected) > 5, "not a comparison of nothing with nothing"


@pytest.mark.parametrize("days", [7, 90, 1_000])
@pytest.mark.parametrize("instant", INSTANTS[1:])
def test_every_decayed_ranking_is_what_the_raw_file_says(
    raw: duckdb.DuckDBPyConnection, replayed: Engine, instant: str, days: int
) -> None:
    rows = raw.execute(DECAY, {"now": instant, "days": float(days)}).fetchall()
    expected = {(who, value): weight for who, value, weight in rows if weight >= 0.000_000_5}
    found = rankings(replayed, instant, half_life=f"{days}d")
    assert found.keys() == expected.keys()
    assert all(abs(found[key] - weight) <= 0.000_000_6 for key, weight in expected.items())
    assert len(expected) > 20


def test_every_summary_is_what_the_raw_file_says(raw: duckdb.DuckDBPyConnection, replayed: Engine) -> None:
    day = 86_400_000_000
    expected = {
        (who, value, format_time(starts * day)): (count, format_time(first), format_time(last))
        for who, value, starts, count, first, last in raw.execute(SUMMARY).fetchall()
    }
    found = {}
    for person in replayed.reader.all_people("default"):
        (identifier,) = person.identifiers.values()
        told = asked(replayed, "interests_summary", identifier.value, limit=100_000)
        assert not told.more
        for row in told.rows:
            assert (row.topic, row.scope, row.application) == ("commit", "folder" if row.value else "", "")
            found[identifier.value, row.value, row.period_starts_at] = (row.total, row.first_at, row.last_at)
    assert found == expected
    assert len(expected) > 2_000
