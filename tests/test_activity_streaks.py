"""A real history replayed: the streaks of every author are what DuckDB computes from the raw file alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tests import activity
from threadline.app import catalogue
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.time import DAY, format_time, parse_time
from threadline.stores.memory import MemoryStore

LAST = "2026-08-21T00:00:00Z"
"""After the last commit of the file."""

INSTANTS = (LAST, "2021-04-06T12:00:00Z", "2019-12-10T00:00:00Z", "2015-02-11T20:30:00Z")
"""Instants at which everybody's streaks are read."""

DAYS = """
CREATE TEMP TABLE authored AS
    SELECT email_key AS who, commit_key, author_time AS told, author_time::TIMESTAMPTZ AS moment,
           substr(author_time, 1, 10)::DATE AS day,
           (substr(author_time, -6, 1) || '1')::INT
               * (substr(author_time, -5, 2)::INT * 60 + substr(author_time, -2, 2)::INT) AS ahead
    FROM read_csv(?, all_varchar = true);
"""
RUNS = """
WITH known AS (SELECT * FROM authored WHERE moment < ?::TIMESTAMPTZ),
     days AS (SELECT DISTINCT who, day FROM known),
     islands AS (SELECT who, day, day - (row_number() OVER (PARTITION BY who ORDER BY day))::INT AS island FROM days),
     runs AS (SELECT who, min(day) AS first, max(day) AS last, count(*) AS length FROM islands GROUP BY who, island),
     zones AS (SELECT who, arg_max(ahead, (moment, told)) AS ahead FROM known GROUP BY who),
     today AS (SELECT who, ((?::TIMESTAMPTZ AT TIME ZONE 'UTC') + to_minutes(ahead))::DATE AS day FROM zones)
SELECT runs.who, max(length), max(last), count(*),
       coalesce(max(length) FILTER (WHERE last >= today.day - 1), 0),
       coalesce(bool_or(last = today.day - 1), false)
FROM runs JOIN today USING (who) GROUP BY runs.who;
"""


@pytest.fixture(scope="module")
def raw() -> duckdb.DuckDBPyConnection:
    """The raw file in DuckDB, read without any code of ours. The local day is what the author's clock showed."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(DAYS, [str(activity.FILE)])
    assert connection.execute("SELECT count(*), count(DISTINCT who) FROM authored").fetchone() == (7_679, 1_078)
    return connection


@pytest.fixture(scope="module")
def replayed() -> Iterator[Engine]:
    """All commits, recorded in the order in which they became known, a quarter of them late."""
    clock = activity.Clock()
    engine = Engine(MemoryStore(), catalogue(), clock)
    activity.replay(engine, clock, activity.commits())
    clock.now = parse_time(LAST)
    yield engine
    engine.close()


def everybody(engine: Engine) -> Iterator[tuple[str, Any]]:
    for person in engine.reader.all_people("default"):
        (identifier,) = person.identifiers.values()
        yield identifier.value, person


@pytest.mark.parametrize("instant", INSTANTS)
def test_every_streak_is_what_the_raw_file_says(raw: duckdb.DuckDBPyConnection, replayed: Engine, instant: str) -> None:
    expected = {row[0]: row[1:] for row in raw.execute(RUNS, [instant, instant]).fetchall()}
    now, seen = parse_time(instant), set[tuple[int, int]]()
    for who, person in everybody(replayed):
        daily = replayed.reader.views(person, now, names=["streaks"])["streaks"]["daily"]
        runs = len(daily["history"]) + (daily["run"] is not None)
        longest, last, count, current, at_risk = expected.pop(who, (0, None, 0, 0, False))
        assert daily["longest"] == longest, who
        assert daily["last_active_on"] == (last and last.isoformat()), who
        assert (daily["current"], daily["at_risk"]) == (current, at_risk), who
        # The view shows twenty runs that have ended.
        assert runs == min(count, 20 + (daily["run"] is not None)), who
        seen.add((longest, current))
    assert expected == {}
    # Not a comparison of nothing with nothing.
    assert {longest for longest, _ in seen} >= {1, 2, 3}
    assert max(current for _, current in seen) > 0


def test_every_recorded_day_is_what_the_raw_file_says(raw: duckdb.DuckDBPyConnection, replayed: Engine) -> None:
    """The last 384 days of everybody: how many commits on each, and when the first of them was."""
    told = raw.execute("SELECT who, day, count(*), epoch_us(min(moment)) FROM authored GROUP BY who, day").fetchall()
    expected = {(who, day.isoformat()): (count, first) for who, day, count, first in told}
    [operation] = [each for each in replayed.catalogue.operations if each.name == "streaks_days"]
    days = 0
    for who, person in everybody(replayed):
        stop = parse_time(f"{max(day for each, day in expected if each == who)}T00:00:00Z") + DAY
        start = format_time(stop - 384 * DAY)[:10]
        params = operation.params(id=person.id, start=start, stop=format_time(stop)[:10])
        answer = operation.run(Context(replayed, "default", parse_time(LAST)), params)
        found = {(who, each.date): (each.events, parse_time(each.first_at)) for each in answer.days}
        assert found == {key: value for key, value in expected.items() if key[0] == who and key[1] >= start}
        days += len(found)
    assert days > 1_500


def test_it_is_all_there_again_after_a_refold(replayed: Engine) -> None:
    before = [
        (who, replayed.reader.views(person, parse_time(LAST), names=["streaks"])) for who, person in everybody(replayed)
    ]
    assert refold_everybody(replayed.store, replayed.catalogue).events >= 7_679
    after = [
        (who, replayed.reader.views(person, parse_time(LAST), names=["streaks"])) for who, person in everybody(replayed)
    ]
    assert after == before
