"""Conditions in SQL: the answer of the one language of conditions, event by event, whatever properties hold."""

from __future__ import annotations

import json
from typing import Any

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.conditions_drawn import traits, trees
from threadline.capabilities.ask.analytics.conditions_sql import condition_sql, conditions_of
from threadline.testing.audits.segments import satisfied

UNEVEN = str(2**53 + 1)
"""A number that no DOUBLE is: numbers are compared as DOUBLE in SQL, which docs/analytics.md says."""
_CONNECTION = duckdb.connect()
_CONNECTION.execute("LOAD json")
_CONNECTION.execute("SET TimeZone = 'UTC'")


def _about_properties(tree: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(tree).replace('"traits.', '"event.properties.'))
    return plain


@given(trees, st.lists(traits, min_size=1, max_size=8))
def test_an_event_passes_in_sql_if_and_only_if_it_passes_the_conditions(
    tree: dict[str, Any], held: list[dict[str, Any]]
) -> None:
    held = [fields for fields in held if UNEVEN not in json.dumps([tree, fields])]
    sql = condition_sql(conditions_of(_about_properties(tree), "where"))
    rows = [(number, json.dumps(fields)) for number, fields in enumerate(held)]
    _CONNECTION.execute("CREATE OR REPLACE TABLE events (number BIGINT, properties VARCHAR)")
    if rows:
        _CONNECTION.executemany("INSERT INTO events VALUES (?, ?)", rows)
    found = _CONNECTION.execute(f"SELECT {sql} FROM events ORDER BY number").fetchall()
    assert [passes for (passes,) in found] == [satisfied(tree, {"traits": fields}) for fields in held]
