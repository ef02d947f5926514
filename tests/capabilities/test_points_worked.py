"""The worked tables of docs/worked/points.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.capabilities.points_stage import Stage
from threadline.kernel.time import DAY, SECOND, parse_time

PAGE = (Path(__file__).parents[2] / "docs/points.md").read_text(encoding="utf-8")
WORKED = (Path(__file__).parents[2] / "docs/worked/points.md").read_text(encoding="utf-8")


def tables(title: str) -> list[list[str]]:
    """The rows of the table under a heading, without its head."""
    section = f"{PAGE}{WORKED}".split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


def definitions() -> str:
    """The declaration that the page shows first."""
    return re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]


def test_two_weeks() -> None:
    rows = tables("Two weeks")
    assert len(rows) == 19
    stage = Stage(definitions(), "streaks")
    earned = 0
    for occurred_at, told_at, type, earns, why in rows:
        at = parse_time(occurred_at)
        stage.now = parse_time(told_at) if told_at else at
        stage.tell(type, at=at)
        before, earned = earned, stage.points()["earned"]
        assert earned - before == int(earns), f"{occurred_at} {type}: {why}"


def test_a_purse() -> None:
    rows = tables("A purse")
    assert len(rows) == 17
    stage = Stage("points: {expires_after: 30d}")
    for number, (at, step, points, answer, balance, earned) in enumerate(rows):
        stage.now = parse_time(at)
        if step == "earn":
            assert points == "15"
            stage.tell("result_shared")
        elif step == "spend":
            told = stage.ask("points_spend", id="user_id:ada", points=int(points), request=f"{number}")
            assert told["status"] == answer, at
        elif step == "adjust":
            stage.ask("points_adjust", id="user_id:ada", points=int(points), request=f"{number}", reason="worked")
        view = stage.points()
        assert (view["balance"], view["earned"]) == (int(balance), int(earned)), at


SHIPPED = tables("What earns")[:4]


@pytest.mark.parametrize(("event", "also", "points", "limit"), SHIPPED, ids=[row[0] for row in SHIPPED])
def test_the_table_that_ships_is_the_one_in_the_docs(event: str, also: str, points: str, limit: str) -> None:
    stage = Stage()
    [table] = stage.ask("points_tables")["tables"]
    rule = next(rule for rule in table["rules"] if f"`{rule['name']}`" == event)
    assert [f"`{type}`" for type in rule["types"]] == [event, *also.split(", ")]
    assert rule["points"] == int(points)
    assert rule["per_day"] == (1 if limit else None)
    assert len(table["rules"]) == len(SHIPPED)


def test_points_of_march_are_gone_when_april_of_the_next_year_begins() -> None:
    stage = Stage("points: {expires_after: 1y}")
    stage.now = parse_time("2026-03-17T00:00:00Z")
    stage.tell("tool_used")
    assert stage.points()["expires_next"]["at"].startswith("2027-04-01T00:00:00")
    stage.now = parse_time("2027-04-01T00:00:00Z") - SECOND
    assert stage.points()["balance"] == 5
    stage.now += DAY
    assert stage.points()["balance"] == 0
