"""What users may declare about points and leaderboards, and how mistakes are told."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given

from tests.capabilities.asked import job
from tests.capabilities.points_stage import Stage, catalogue
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.leaderboards import read_boards
from threadline.capabilities.profile.points import read_points
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event
from threadline.kernel.time import DAY, HOUR
from threadline.testing import scenarios
from threadline.testing.projection_laws import LAWS


def problems(text: str) -> list[str]:
    """What is wrong with a file of definitions, one problem a line."""
    definitions = Definitions([("t.yaml", text)])
    read_points(definitions)
    read_boards(definitions)
    with pytest.raises(InvalidDefinition) as raised:
        definitions.refuse()
    return str(raised.value).splitlines()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("points: 7", "t.yaml:1: `points` must be false or a mapping"),
        ("points: {table: []}", "t.yaml:1: `points`: unknown key 'table'; did you mean 'tables'?"),
        ("points:\n  tables: 3", "t.yaml:2: `points`: `tables` must be a list of tables"),
        ("points:\n  tables:\n    - {earn: {a: 1}}", "t.yaml:3: `points`: `tables[0]` needs `version`"),
        ("points:\n  tables:\n    - {version: 1}", "t.yaml:3: `points`: version '1' is already taken"),
        (
            "points:\n  tables:\n    - {version: 2, from: soon}",
            "`tables[0].from` must be an instant, such as 2026-03-01T00:00:00Z: 'soon' is",
        ),
        (
            "points:\n  tables:\n    - {version: 2, from: 2026-02-01}\n    - {version: 3, from: 2026-01-01}",
            "t.yaml:4: `points`: table '3' begins before table '2'; put them in order",
        ),
        (
            "points:\n  tables: [{version: 2, earn: {a: -1}}]",
            "t.yaml:2: `points`: `tables[0].earn.a` must be a whole number",
        ),
        ("points:\n  tables: [{version: 2, earn: {a: 1.5}}]", "`tables[0].earn.a` must be false, a whole number"),
        (
            "points:\n  tables: [{version: 2, earn: {a: 2000000000}}]",
            "`tables[0].earn.a` must be a whole number from 1 to 1,000,000,000",
        ),
        ("points:\n  tables: [{version: 2, earn: {a: false}}]", "'a' earns nothing before table '2'; remove the line"),
        (
            "points:\n  tables: [{version: 2, earn: {a: {per_day: 1}}}]",
            "t.yaml:2: `points`: `tables[0].earn.a` needs `points`",
        ),
        ("points:\n  tables: [{version: 2, earn: {a: {points: 1, per_dy: 1}}}]", "did you mean 'per_day'?"),
        ("points:\n  tables: [{version: 2, earn: {a: {points: 1, cooldown: 9d}}}]", "must be a duration of at most 2d"),
        ("points:\n  tables: [{version: 2, earn: {points_spent: 1}}]", "'points_spent' is Threadline's own"),
        ("points:\n  tables: [{version: 2, earn: {threadline.x: 1}}]", "'threadline.x' is Threadline's own"),
        ("points:\n  tables: [{version: 2, earn: {TOOL_USE: 1}}]", "'TOOL_USE' earns by 'tool_used' already"),
        (
            "points:\n  multipliers: [{by: streaks.daily.current, from: 7}]",
            "`multipliers[0]` needs `times`: the largest that applies counts",
        ),
        (
            "points:\n  multipliers: [{by: streaks, from: 7, times: 2}]",
            "`multipliers[0].by` must be the path of a number like streaks.daily.current",
        ),
        ("points:\n  multipliers: [{by: a.b, from: 7, times: 0}]", "`multipliers[0].times` must be a decimal above 0"),
        (
            "points: {expires_after: never}",
            "`points`: `expires_after` must be a duration of at most 9y, such as 1y: 'never' is",
        ),
        ("points: {back: 30d}", "t.yaml:1: `points`: `back` must be a duration of at most 8d"),
        ("leaderboards: {Top: {score: points.earned}}", "'Top' is not a valid leaderboard name"),
        ("leaderboards: {top: {scores: points.earned}}", "unknown key 'scores'; did you mean 'score'?"),
        ("leaderboards:\n  top: {}", "t.yaml:2: leaderboard 'top' needs `score`: the number that is ranked"),
        ("leaderboards: {top: {score: points.spent}}", "points are ranked by points.earned or by points.balance"),
        ("leaderboards: {top: {score: features}}", "`score` names no number"),
        ("leaderboards: {top: {score: points.earned, periods: [year]}}", "`periods[0]` cannot be 'year'"),
        ("leaderboards: {top: {score: points.balance, periods: day}}", "only points.earned has periods"),
        ("leaderboards: {top: {score: points.earned, per: tag}}", "for tags write `tags: [vip]`"),
        (
            "leaderboards: {top: {score: points.earned, periods: [day, week, month, all], tags: [a, b, c, d]}}",
            "35 rows",
        ),
        ("points: false\nleaderboards: {top: {score: points.earned}}", "ranks points, which are switched off"),
    ],
)
def test_a_mistake_is_told_where_it_stands(text: str, problem: str) -> None:
    assert any(problem in each for each in problems(text)), problems(text)


def test_every_mistake_is_told_at_once() -> None:
    text = "points:\n  spike: 3\n  tables:\n    - {version: 2, earn: {a: x, b: {points: 0}}}\n  back: ever"
    assert [each.partition(" ")[0] for each in problems(text)] == ["t.yaml:2:", "t.yaml:4:", "t.yaml:4:", "t.yaml:5:"]


def test_points_are_declared_once() -> None:
    definitions = Definitions([("a.yaml", "points: {back: 1d}"), ("b.yaml", "points: {back: 2d}")])
    read_points(definitions)
    with pytest.raises(InvalidDefinition, match=r"b\.yaml:1: `points\.back` is already declared at a\.yaml:1"):
        definitions.refuse()


def test_a_board_of_what_does_not_exist_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidDefinition, match=r"test\.yaml:2: features has no 'monetary_totl"):
        catalogue("leaderboards:\n  top: {score: features.monetary_totl}", "leaderboards")


def test_tables_are_laid_over_each_other() -> None:
    text = """
points:
  tables:
    - {version: a, earn: {tool_used: 8, quiz: {points: 2, per_day: 3, also: [QUIZ]}}}
    - {version: b, from: 2026-01-01, earn: {quiz: 4, result_shared: false}}
    - {version: c, from: 2026-02-01, earn: {quiz: {points: 5}, app_opened: {points: 2, per_day: 2}}}
"""
    points = read_points(Definitions([("t.yaml", text)]))
    assert points is not None
    shipped, first, second, third = points.tables
    assert (shipped.version, shipped.by_type["TOOL_USE"].points) == ("1", 5)
    assert first.by_type["TOOL_USE"].points == 8  # a plain number changes nothing but the points
    assert (second.by_type["QUIZ"].points, second.by_type["QUIZ"].per_day) == (4, 3)
    assert (third.by_type["QUIZ"].points, third.by_type["QUIZ"].per_day) == (5, None)
    assert third.by_type["DAILY_OPEN"].per_day == 2
    assert "result_shared" in first.rules
    assert "result_shared" not in second.rules
    assert points.table(first.starts_at or 0).version == "a"  # of two tables from one instant the later one


DECLARED = """
timezone: America/Sao_Paulo
points: {expires_after: 30d}
leaderboards:
  points: {score: points.earned, periods: [day, week, month, all], per: plan, tags: [vip]}
  purse: {score: points.balance}
  spent: {score: features.monetary_total}
"""
LAWFUL = [
    projection
    for projection in catalogue(DECLARED, "leaderboards").projections
    if projection.name in ("points", "leaderboards")
]


@pytest.mark.parametrize("projection", LAWFUL, ids=lambda each: each.name)
@given(history=scenarios.histories(people=1, count_max=60), random=scenarios.randoms)
def test_the_laws_hold_in_another_zone_and_with_boards(
    projection: object, history: list[Event], random: Random
) -> None:
    for law in LAWS:
        law(projection, scenarios.recorded(history), random)  # type: ignore[arg-type]


def test_operations_are_there_even_without_a_board() -> None:
    stage = Stage("", "leaderboards")
    assert stage.ask("leaderboards_list") == {"timezone": "UTC", "week_starts_on": "monday", "boards": []}
    assert "leaderboards" not in stage.engine.catalogue.index
    assert job(stage, "leaderboards_refresh") == {"people": 0}


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        ("streaks.dayly.current", "streaks has no 'dayly.current'; did you mean 'daily'?"),
        ("features.monetary_totl", "features has no 'monetary_totl.value'; did you mean 'monetary_total'?"),
        ("pionts.earned", "nothing is known under 'pionts'; did you mean 'points'?"),
    ],
)
def test_a_multiplier_by_what_nobody_tells_is_refused_with_its_place(by: str, problem: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        catalogue(f"points:\n  multipliers:\n    - {{by: {by}, from: 2, times: 2}}\n", "streaks")
    assert str(raised.value) == f"test.yaml:3: {problem}"


def test_declared_points_are_told() -> None:
    told = Stage("points: {back: 2d, multipliers: [{by: points.earned, from: 3, times: 1.50}], expires_after: 1y}").ask(
        "points_tables"
    )
    assert (told["back"], told["expires_after"], told["events_per_hour"]) == ("2d", "1y", 100)
    assert told["multipliers"] == [{"by": "points.earned", "from": "3", "times": "1.50"}]
    assert told["back"] != f"{2 * DAY // HOUR}h"
