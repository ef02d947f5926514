"""Who came to which step, along which arrow, and where people left, against a walk through everybody's events."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from tests.capabilities.journeys_stage import Stage
from tests.capabilities.test_journeys_worked import WELCOME
from threadline.app import open_engine
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.settings import Settings

SINGLE = {"event.1", "also"}
"""Mails on other events, which are no steps."""
BRANCHED = WELCOME.replace(
    "    exit_on",
    "    reentry: always\n"
    "    events: [{event: asked, send: answer}, {id: also, event: praised, send: hug}]\n    exit_on",
).replace(
    "      - id: end\n",
    "      - if: {field: journey.variables.plan, equals: gone}\n        then: [{exit: not_wanted}]\n      - id: end\n",
)
KINDS = ["signed_up", "signed_up", "purchase", "closed_account", "asked", "praised"]
PEOPLE = [f"p{number}" for number in range(8)]


def lived(seed: int, folder: Path) -> Stage:
    """People who enter, buy, close their accounts and enter again, as they like."""
    random, stage, file = Random(seed), Stage(BRANCHED), folder / "threadline.yaml"
    file.write_text(BRANCHED)
    stage.engine = open_engine("memory:", Settings(), lambda: stage.now, file)
    for who in PEOPLE:
        stage.tell("identify", user_id=who, properties={"name": who})
    for _ in range(50):
        stage.until(stage.now + random.randrange(1, 40) * HOUR)
        who, type = random.choice(PEOPLE), random.choice(KINDS)
        if type == "purchase":
            stage.tell("purchase_completed", user_id=who, properties={"total": 5, "currency": "EUR"})
        else:
            stage.tell(type, user_id=who, properties={"plan": random.choice(["pro", "free", "gone"])})
    stage.until(stage.now + DAY)
    return stage


@pytest.mark.parametrize("seed", range(3))
def test_the_flow_is_what_a_walk_through_the_runs_counts(seed: int, tmp_path: Path) -> None:
    stage = lived(seed, tmp_path)
    runs: dict[tuple[str, str], list[dict[str, object]]] = {}
    for who in PEOPLE:
        for told in stage.told(who):
            runs.setdefault((who, told["run"]), []).append(told)
    reached, arrows, left, ended = (
        Counter[str](),
        Counter[tuple[str, str]](),
        Counter[tuple[str, str]](),
        Counter[str](),
    )
    for told in runs.values():
        way = [step for each in told for step in each.get("path") or () if step not in SINGLE]
        waited = [str(each["step"]) for each in told if each.get("step")]
        reason = str(told[-1].get("reason") or "")
        ended[reason] += 1
        if reason == "completed":
            way.append("")
        elif not reason or told[-1].get("interrupted"):
            way.append(waited[-1])
        if reason not in ("", "completed"):
            left[way[-1], reason] += 1
        reached.update(set(way))
        arrows.update(set(pairwise(way)))
    assert any(step in SINGLE for told in runs.values() for each in told for step in each.get("path") or ())
    flow = stage.ask("analytics_journey", journey="welcome")
    assert {each["step"]: each["reached"] for each in flow["steps"]} == {k: v for k, v in reached.items() if k}
    assert {(each["step"], each["next"]): each["runs"] for each in flow["arrows"]} == dict(arrows)
    assert {(e["step"], reason): n for e in flow["steps"] for reason, n in e["reasons"].items()} == dict(left)
    assert (flow["entered"], flow["completed"], flow["under_way"]) == (len(runs), ended["completed"], ended[""])
    assert flow["left"] == sum(left.values()) > 0
    assert {reason for _, reason in left} <= {"exit_on", "not_wanted"}


def test_the_range_of_time_is_that_of_the_entries(tmp_path: Path) -> None:
    stage = lived(1, tmp_path)
    half = format_time(stage.now - 30 * DAY)
    parts = [stage.ask("analytics_journey", journey="welcome", **{side: half}) for side in ("start", "stop")]
    assert sum(each["entered"] for each in parts) == stage.ask("analytics_journey", journey="welcome")["entered"]
    assert all(each["entered"] for each in parts)


def test_a_journey_that_nobody_entered_is_all_zeros(tmp_path: Path) -> None:
    stage, file = Stage(BRANCHED), tmp_path / "threadline.yaml"
    file.write_text(BRANCHED)
    stage.engine = open_engine("memory:", Settings(), lambda: stage.now, file)
    flow = stage.ask("analytics_journey", journey="welcome")
    assert (flow["entered"], flow["completed"], flow["left"], flow["steps"], flow["arrows"]) == (0, 0, 0, [], [])


def test_a_journey_says_where_each_step_leads_and_where_its_ways_meet() -> None:
    shown = Stage(BRANCHED).ask("journeys_show", name="welcome")
    steps = {each["step"]: each for each in shown["steps"]}
    assert shown["entered_by"] == "signed up"
    assert [(way["to"], way["when"]) for way in steps["bought"]["ways"]] == [
        ("bought.then.1", "yes"),
        ("bought.else.1", "no"),
    ]
    assert {each["kind"] for each in steps.values()} == {"send", "wait", "choice", "if", "exit"}
    assert (steps["bought"]["joins"], steps["bought.then.1"]["ways"]) == ("4", [{"to": "4", "when": ""}])
    assert steps["4.then.1"]["ways"] == [{"to": "", "when": ""}]
