"""Drafts: checked as files are, placed to the column, and counted on people without leaving a trace."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.capabilities.asked import Asked
from tests.capabilities.test_definitions_mistakes import MISTAKES
from tests.console.stage import HOSTILE
from threadline.app import catalogue
from threadline.capabilities.foundation.events.sample import Sample
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.time import SECOND

IN_FORCE = """
segments:
  big: {when: {field: features.monetary_total, greater_than: 50}}
  lasting: {when: {field: segments.big.since, exists: true}}
features:
  clicks: {aggregate: count, events: clicked}
rules:
  large: {conditions: {field: event.properties.total, greater_than: 30}}
rule_sets:
  shop: {events: [purchase_completed], rules: [large]}
"""
PURCHASES = [(n, total) for n in range(120) for total in random.Random(n).choices(range(40), k=n % 5)]


@cache
def in_force() -> Catalogue:
    return Asked(definitions=IN_FORCE).engine.catalogue


@pytest.fixture
def asked() -> Asked:
    made = Asked(catalogue=in_force())
    for n, total in PURCHASES:
        made.tell("purchase_completed", user_id=f"u{n}", properties={"total": total, "currency": "EUR"})
    return made


def check(asked: Asked, text: str, **single: str) -> dict[str, Any]:
    answer: dict[str, Any] = asked.ask("definitions_check", text=text, **single)
    assert answer["valid"] == (not answer["problems"])
    return answer


def lines(problems: list[dict[str, Any]]) -> set[str]:
    joined = ("; ".join(each[name] for name in ("message", "hint") if each[name]) for each in problems)
    return {f"{each['line']}: {text}" for each, text in zip(problems, joined, strict=True)}


# --- checking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("section", sorted(MISTAKES.keys() - {"identifiers"}))
def test_a_mistake_is_told_as_the_start_of_a_process_tells_it(section: str, tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(MISTAKES[section])
    with pytest.raises(InvalidDefinition) as raised:
        catalogue([file])
    expected = {line.removeprefix(f"{file}:") for line in str(raised.value).splitlines()}
    assert lines(check(Asked(definitions="segments: {}"), MISTAKES[section])["problems"]) == expected


@pytest.mark.parametrize(
    ("text", "line", "begins"),
    [
        ("segments:\n  a:\n    wen: 3\n", 3, "wen"),
        ("segments:\n  a: {when: {field: features.monetary_total, greter_than: 1}}\n", 2, "greter_than"),
        ("features:\n  a:\n    aggregate: cuont\n    events: click\n", 3, "aggregate"),
        ("segments:\n  Big: {}\n", 2, "Big"),
        ("\n\nsegmens: {}\n", 3, "segmens"),
        ("journeys:\n  a:\n    trigger: {event: x}\n    steps: [{wiat: 1d}]\n", 4, "{wiat"),
        ("rules:\n  a: {conditions: {field: features.nothing, exists: true}}\n", 2, "field"),
    ],
)
def test_a_problem_stands_at_the_line_and_column_of_the_key(asked: Asked, text: str, line: int, begins: str) -> None:
    first = check(asked, text)["problems"][0]
    assert (first["file"], first["line"]) == ("", line)
    assert text.split("\n")[line - 1][first["column"] - 1 :].startswith(begins)


def test_a_single_definition_has_the_same_problems_at_lines_of_its_own(asked: Asked) -> None:
    inner = "when:\n  all:\n    - {field: features.monetary_totl, exists: true}\nextra: 1\n"
    whole = "segments:\n  new:\n" + "".join(f"    {line}\n" for line in inner.splitlines())
    single = check(asked, inner, section="segments", name="new")
    assert lines(single["problems"]) == {
        f"{int(line) - 2}: {text}"
        for line, text in (each.split(": ", 1) for each in lines(check(asked, whole)["problems"]))
    }
    assert single["defines"] == {"segments": ["new"]}


def test_a_draft_stands_in_the_place_of_its_name_beside_all_others(asked: Asked) -> None:
    assert check(asked, "when: {field: tags, exists: true}", section="segments", name="big")["valid"]
    circle = check(asked, "when: {field: segments.lasting.since, exists: true}", section="segments", name="big")
    assert "depend on each other in a circle: " in circle["problems"][0]["message"]
    unknown = check(asked, "rule_sets: {shop: {events: [paid], rules: [larg]}}")
    assert unknown["problems"][0]["hint"] == "did you mean 'large'?"


def test_what_breaks_a_definition_in_force_is_told_with_its_file(asked: Asked) -> None:
    other = Asked(
        definitions="features: {f: {aggregate: count, events: x}}\n"
        "leaderboards: {top: {score: features.f, periods: [all]}}\n"
    )
    broken = check(other, "{aggregate: last, events: x, of: note}", section="features", name="f")
    assert all(each["file"] == "threadline.yaml" for each in broken["problems"])
    follow = check(asked, "wen: 1", section="segments", name="big")
    assert [each["file"] for each in follow["problems"]] == [""], "what reads it is not wrong because of that as well"


def test_a_misspelt_type_and_a_rule_that_nothing_asks_are_warnings(asked: Asked) -> None:
    feature = check(asked, "{aggregate: count, events: purchase_completd}", section="features", name="f")
    assert feature["valid"]
    assert feature["warnings"][0]["hint"] == "did you mean 'purchase_completed'?"
    rule = "conditions: {field: event.properties.total, exists: true}"
    assert "in no rule set" in check(asked, rule, section="rules", name="lone")["warnings"][0]["message"]
    assert check(asked, rule, section="rules", name="large")["warnings"] == []


def test_a_rule_of_a_set_that_was_written_by_an_operation_is_asked() -> None:
    asked = Asked(definitions="segments: {}")
    asked.ask("rule_sets_write", name="paid", events=["paid"], rules=["lone"])
    rule = "conditions: {field: event.properties.total, exists: true}"
    assert check(asked, rule, section="rules", name="lone")["warnings"] == []


def test_what_is_no_definition_is_a_problem_and_never_an_error(asked: Asked, seed: int) -> None:
    for number, text in enumerate(HOSTILE, seed):
        single = ({}, {"section": "segments", "name": text[:200]}, {"section": "rules", "name": "a"})[number % 3]
        answer = check(asked, text, **single)
        assert all(each["line"] <= text.count("\n") + 2 for each in answer["problems"] if not each["file"])
    bomb = "a: &a [x]\n" + "".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 9))
    assert not check(asked, bomb.replace("*b0", "*a"), section="segments", name="bomb")["valid"]
    with pytest.raises(InvalidValue):
        check(asked, "a: 1", name="x")


def test_sections_that_only_a_start_reads_are_told_as_such(asked: Asked) -> None:
    answer = check(asked, "settings: {port: 1}\nidentifiers: {no: {priority: high}}\n")
    assert [each["line"] for each in answer["warnings"]] == [1, 2]


# --- segments ----------------------------------------------------------------------------------


def totals() -> Counter[str]:
    found: Counter[str] = Counter()
    for n, total in PURCHASES:
        found[f"user_id:u{n}"] += total
    return found


def test_a_preview_counts_whom_the_purchases_give(asked: Asked) -> None:
    answer = asked.ask("segments_preview", text="when: {field: features.monetary_total, less_than: 60}", name="big")
    after = {who for who, total in totals().items() if total < 60}
    before = {who for who, total in totals().items() if total > 50}
    counts = {name: answer[name]["people"] for name in ("members", "entering", "leaving")}
    assert counts == {"members": len(after), "entering": len(after - before), "leaving": len(before - after)}
    assert answer["exact"]
    assert answer["people_read"] == len(totals())
    assert answer["members"]["low"] == answer["members"]["high"] == len(after)
    assert len(answer["samples"]) == 10
    assert {each["identifiers"][0] for each in answer["samples"]} <= after
    assert [each["name"] for each in asked.ask("segments_list")["segments"]] == ["big", "lasting"]


def test_a_preview_of_a_wrong_segment_is_refused_with_its_problems(asked: Asked) -> None:
    with pytest.raises(InvalidDefinition, match=r"draft\.yaml:1: .*did you mean 'when'"):
        asked.ask("segments_preview", text="wen: 1")


def test_a_preview_whose_time_is_up_says_so_and_bounds_the_truth() -> None:
    asked = Asked(definitions="segments: {}")
    for n in range(900):
        asked.tell("visited", user_id=f"u{n}", properties={})
        if n % 3 == 0:
            asked.tell("people_tagged", user_id=f"u{n}", properties={"tag": "third"})
    ticking = iter(range(10**9))
    asked.engine.recorder.clock = lambda: asked.now + next(ticking) * SECOND
    answer = asked.ask("segments_preview", text="when: {field: activity.events, greater_than: 1}", seconds=1)
    assert not answer["exact"]
    assert answer["people_read"] < 900
    assert answer["members"]["low"] <= 300 <= answer["members"]["high"]


def test_the_bounds_of_an_estimate_hold_the_truth_95_times_of_100() -> None:
    drawn = random.Random(7)
    for truth, share in ((3, 0.3), (50, 0.1), (1_000, 0.02), (400, 0.9)):
        held = 0
        for _ in range(800):
            seen = sum(drawn.random() < share for _ in range(truth))
            estimate = Sample(100, share).estimate(seen)
            held += estimate.low <= truth <= estimate.high
        assert held >= 0.93 * 800, (truth, share, held)


# --- features ----------------------------------------------------------------------------------


def test_a_feature_that_is_not_in_force_is_reckoned_from_the_events(asked: Asked) -> None:
    answer = asked.ask("features_preview", text="{aggregate: sum, events: purchase_completed, of: total}", name="spent")
    values = sorted(totals().values())
    assert answer["exact"]
    assert answer["changed"] is None
    assert answer["failures"] == {}
    assert (answer["least"], answer["most"]) == (values[0], values[-1])
    assert answer["mean"] == pytest.approx(sum(values) / len(values))
    half = len(values) // 2
    assert answer["median"] == (values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2)
    for each in answer["bins"]:
        assert each["people"] == sum(each["low"] <= value < each["high"] for value in values)
    assert sum(each["people"] for each in answer["bins"]) == len(values) == answer["valued"]["people"]
    assert "spent" not in {each["name"] for each in asked.ask("features_list")["features"]}


def test_a_feature_in_force_is_compared_with_its_draft(asked: Asked) -> None:
    answer = asked.ask("features_preview", text="{aggregate: count, events: purchase_completed}", name="clicks")
    counts = Counter(f"u{n}" for n, _ in PURCHASES)
    assert answer["changed"]["people"] == len(counts), "nobody has clicked, and all of them have bought"
    by_value = Counter(counts.values())
    assert {each["low"]: each["people"] for each in answer["bins"] if each["people"]} == by_value
    assert {each["low"]: each["people_now"] for each in answer["bins"] if each["people_now"]} == {0: len(counts)}


def test_a_text_is_counted_by_its_values(asked: Asked) -> None:
    answer = asked.ask("features_preview", text="{aggregate: last, events: purchase_completed, of: currency}")
    assert [(each["value"], each["people"]) for each in answer["bins"]] == [("EUR", len(totals()))]


# --- sizes -------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_lists_of_members(asked: Asked) -> None:
    answer = asked.ask("segments_sizes")["segments"]
    expected = sum(total > 50 for total in totals().values())
    listed = [len(asked.ask("segments_members", name=name, limit=1_000)["members"]) for name in ("big", "lasting")]
    assert [(each["name"], each["members"]) for each in answer] == list(zip(("big", "lasting"), listed, strict=True))
    assert listed[0] == expected
    assert all(each["exact"] for each in answer)
    assert asked.ask("segments_sizes", name="big")["segments"] == answer[:1]


# --- the fields of a condition -------------------------------------------------------------------


def fields_of(asked: Asked, **params: Any) -> dict[Any, dict[str, Any]]:
    listed = asked.ask("definitions_fields", **params)["fields"]
    return {each["field"] if isinstance(each["field"], str) else tuple(each["field"]): each for each in listed}


def test_fields_have_types_and_samples_of_what_people_have_as_conditions_read_it() -> None:
    asked = Asked(catalogue=in_force())
    traits = {
        "plan": "pro",
        "age": 3,
        "spent": "80.00",
        "vip": True,
        "renewal": "2026-05-01",
        "a.b": 1,
        "deep": {"x": [1]},
    }
    asked.tell("identify", user_id="ada", properties=traits)
    asked.tell("clicked", user_id="ada", properties={"page": "home", "": 1, "list": [{"x": 1}]})
    found = fields_of(asked, events=True)
    types = {
        "traits.plan": ("text", ["pro"]),
        "traits.age": ("number", [3]),
        "traits.spent": ("number", ["80.00"]),
        "traits.vip": ("flag", [True]),
        "traits.renewal": ("time", ["2026-05-01"]),
        ("traits", "a.b"): ("number", [1]),
        "days_since.traits.renewal": ("number", []),
        "days_until.traits.renewal": ("number", []),
        "traits.deep.x": ("list", [1]),
        "tags": ("list", []),
        "features.clicks": ("number", [0, 1]),
        "segments.big.since": ("time", []),
        "days_since.segments.big.since": ("number", []),
        "event.properties.page": ("text", ["home"]),
        "event.type": ("text", ["identify", "clicked"]),
    }
    assert {name: (found[name]["type"], sorted(found[name]["samples"], key=str)) for name in types} == {
        name: (type, sorted(samples, key=str)) for name, (type, samples) in types.items()
    }
    assert "event.properties.list" not in found, "conditions compare with no lists of objects"
    assert found["features.clicks"]["text"] == "clicks"
    assert not any(str(name).startswith("event") for name in fields_of(asked))


def test_every_field_that_is_listed_can_be_named_by_a_segment(asked: Asked) -> None:
    found = fields_of(asked, people=20)
    assert len(found) > 40
    tests = [{"field": each["field"], "exists": True} for each in found.values()]
    for begin in range(0, len(tests), 50):
        text = json.dumps({"when": {"any": tests[begin : begin + 50]}})
        assert check(asked, text, section="segments", name="all_fields")["valid"]


def test_what_one_person_of_many_has_is_not_listed_and_nobody_has_to_be_looked_at(asked: Asked) -> None:
    assert not any(str(name).startswith("identifiers.") for name in fields_of(asked))
    assert "features.monetary_total" in fields_of(asked, people=0)
