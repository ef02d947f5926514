"""Traces of trees of every kind: to the byte those of a recorded corpus, and written at once as they are plainly."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.capabilities.conditions_drawn import traits, trees
from threadline.capabilities.decide.rules.definition import rule_of_json
from threadline.capabilities.decide.rules.operations.verification import breaches
from threadline.capabilities.decide.rules.policy import decide_rule
from threadline.capabilities.foundation.conditions import Conditions, Subject, read_json
from threadline.kernel.canonical import standard_json
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.limits import TRACE_LAYOUTS_MAX

CORPUS = (Path(__file__).parent.parent / "data/conditions/traces.jsonl").read_text().splitlines()
"""A line a case: a tree, the traits it is asked about, and what a rule with it decided when this was recorded."""


def subject(known: Mapping[str, Any], recorded: Recorded | None = None) -> Subject:
    return Subject(lambda name: {"traits": known} if name == "profile" else {}, recorded, 1)


@pytest.mark.parametrize("line", CORPUS, ids=[f"case-{number}" for number in range(1, len(CORPUS) + 1)])
def test_a_tree_of_the_corpus_gives_the_trace_inputs_and_hash_that_were_recorded(line: str) -> None:
    case = msgspec.json.decode(line)
    actions = [{"store_decision": {"result": "x"}}]
    rule = rule_of_json("r", {"conditions": case["when"], "actions": actions})
    traced = rule.body.evaluate(subject(case["traits"]))
    assert traced.matched == case["matched"]
    assert standard_json(traced.trace) == standard_json(case["trace"])
    assert standard_json(traced.inputs) == standard_json(case["inputs"])
    decided = decide_rule(rule, None, subject(case["traits"]))
    assert decided is not None
    assert decided.hash == case["hash"]


@given(trees, traits)
def test_what_is_written_at_once_is_the_canonical_json_of_inputs_and_trace(
    tree: dict[str, Any], known: dict[str, Any]
) -> None:
    traced = Conditions(read_json(tree)).trace(subject(known))
    plain = standard_json(traced.inputs), standard_json(traced.trace)
    assert traced.written("|", "|").encode() == b"%b|%b|" % plain


@given(trees, traits)
def test_a_tree_asked_again_of_its_inputs_gives_the_same_steps(tree: dict[str, Any], known: dict[str, Any]) -> None:
    conditions = Conditions(read_json(tree))
    first = conditions.trace(subject(known))
    again = conditions.tracer.again(first.inputs)
    assert (again.matched, again.steps, again.inputs) == (first.matched, first.steps, first.inputs)


def test_a_tree_that_ends_in_more_ways_than_are_laid_out_traces_each_of_them() -> None:
    """What is laid out is forgotten when it is too much, and a trace that was made before can still be read."""
    names = ("ab", "cd", "ef", "gh")
    pairs = [
        {"any": [{"field": f"traits.{a}", "equals": 1}, {"field": f"traits.{b}", "exists": True}]} for a, b in names
    ]
    conditions = Conditions(read_json({"all": pairs}))
    drawn = [
        dict(zip("aceg", values, strict=True)) | dict.fromkeys("bdfh", 0)
        for values in product([1, 2, "x", None], repeat=4)
    ]
    traced = [(known, conditions.trace(subject(known))) for known in drawn]
    ends = {tuple((step.matched, step.note) for step in each.steps) for _, each in traced}
    assert len(ends) > TRACE_LAYOUTS_MAX
    for known, each in traced:
        asked = [step for step in each.steps if step.note != "skipped"]
        assert [step.actual for step in asked] == [known[str(step.field)[-1]] for step in asked]
        assert each.written("", "").encode() == standard_json(each.inputs) + standard_json(each.trace)


def test_errors_of_one_rule_with_different_texts_have_the_hashes_of_their_own_content() -> None:
    """The hash of the first error was written with the text of that error for all after it."""
    actions = [
        {"award_points": {"points": "${event.properties.total}", "reason": "x"}},
        {"tag": {"tag": "${event.properties.label}"}},
    ]
    rule = rule_of_json("r", {"conditions": {"field": "traits.a", "equals": 1}, "actions": actions})
    events = [purchase(total="many"), purchase(total=5, label="")]
    decisions = [decided for event in events if (decided := decide_rule(rule, None, subject({"a": 1}, event)))]
    assert [decided.status for decided in decisions] == ["Error", "Error"]
    assert len({decided.output["error"] for decided in decisions}) == 2
    assert [breaches(decided.plain, rule) for decided in decisions] == [[], []]


def purchase(**properties: Any) -> Recorded:
    event = Event(
        type="purchase",
        identifiers=(Identifier("user_id", "42"),),
        occurred_at=1,
        key="k",
        source="web",
        source_type="external",
        properties=properties,
        context={},
        received_at=1,
    )
    return Recorded(event, "0" * 32, "t" * 32, 1, 1)
