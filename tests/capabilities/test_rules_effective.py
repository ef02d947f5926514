"""Whether a rule that is asked about would act, and every reason why it would not."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.deciding_stage import ALWAYS, rules
from tests.capabilities.lifecycle_stage import activate, asked_with_set, rule, write
from threadline.kernel.time import DAY, format_time

APPLIED = {"type": "applied", "identifiers": {"user_id": "ada"}, "key": "given", "properties": {"score": 91}}


def codes(answer: dict[str, Any]) -> list[str]:
    assert answer["effective"] is (answer["reasons"] == [])
    return [each["code"] for each in answer["reasons"]]


def why(asked: Asked, rule: str = "score", **more: Any) -> list[str]:
    return codes(asked.ask("rules_why", id="user_id:ada", rule=rule, **more))


def evaluated(asked: Asked, **params: Any) -> list[str]:
    (decision,) = asked.ask("decisions_evaluate", **params)["decisions"]
    return codes(decision)


def told(asked: Asked, type: str = "applied", **fields: Any) -> str:
    return str(asked.tell(type, user_id="ada", properties={"score": 91}, **fields)["id"])


def test_a_rule_that_acted_on_the_event_has_no_reason() -> None:
    asked = asked_with_set()
    activate(asked)
    id = told(asked)
    assert why(asked) == []
    assert evaluated(asked, event_id=id) == evaluated(asked, event_id=id, rule="score") == []
    assert evaluated(asked, event=APPLIED) == []


def test_a_historical_event_of_a_set_without_history_is_a_reason() -> None:
    asked = asked_with_set()
    activate(asked)
    id = told(asked, at=STARTS_AT - 9 * DAY, historical=True)
    assert asked.ask("decisions_list", event=id)["decisions"] == []
    assert why(asked) == ["historical"]
    assert evaluated(asked, event_id=id) == ["historical"]
    past = format_time(STARTS_AT - DAY)
    assert evaluated(asked, event={**APPLIED, "historical": True, "occurred_at": past}) == ["historical"]


def test_an_event_that_is_older_than_the_rule_is_a_reason() -> None:
    asked = asked_with_set()
    id = told(asked)
    activate(asked)
    assert why(asked) == evaluated(asked, event_id=id) == ["before_rule"]
    activate(asked, 85)
    assert why(asked) == ["before_rule"], "the version that decided is another one"
    answer = asked.ask("rules_why", id="user_id:ada", rule="score")
    assert answer["reasons"][0]["message"].endswith("no version of the rule was active")


def test_an_event_of_a_type_that_no_set_of_the_rule_runs_on_is_a_reason() -> None:
    asked = asked_with_set()
    activate(asked)
    id = told(asked, "called")
    assert evaluated(asked, event_id=id, rule="score") == ["event_type"]
    assert evaluated(asked, event={**APPLIED, "type": "called"}, rule_set="apps") == ["event_type"]
    asked.ask("rule_sets_write", name="calls", events=["called"], rules=["score"])
    assert evaluated(asked, event_id=id, rule="score") == ["undecided"], "the set came after the event"
    assert evaluated(asked, event={**APPLIED, "type": "called"}, rule_set="apps") == []


def test_a_rule_in_no_set_and_a_person_without_an_event_are_reasons() -> None:
    asked = asked_with_set()
    activate(asked)
    asked.tell("page", user_id="ada")
    assert why(asked) == ["no_match", "no_event"]
    assert evaluated(asked, person="user_id:ada") == ["no_match", "no_event"]
    asked.ask("rule_sets_remove", name="apps")
    id = told(asked)
    assert why(asked) == ["no_match", "no_rule_set"]
    assert evaluated(asked, event_id=id, rule="score") == ["no_rule_set"]


def test_a_version_that_is_not_active_says_what_it_is() -> None:
    asked = asked_with_set()
    activate(asked)
    write(asked, 70)
    id = told(asked)
    for operation, state in (("", "draft"), ("rules_tested", "tested"), ("rules_shadow", "shadow")):
        if operation:
            asked.ask(operation, id="score", version=2)
        assert why(asked, version=2) == [state, "before_rule"]
        assert evaluated(asked, event_id=id, rule="score", version=2) == [state, "before_rule"]
        assert evaluated(asked, event=APPLIED, rule="score", version=2) == [state]
    asked.ask("rules_activate", id="score", version=2)
    assert why(asked, version=1) == ["retired"]
    asked.ask("rules_retire", id="score")
    assert why(asked, version=2) == ["retired", "before_rule"]
    assert evaluated(asked, event=APPLIED, content=rule()) == ["unwritten"]


def test_a_version_of_the_definitions_that_they_no_longer_declare_is_retired() -> None:
    asked = Asked(definitions=rules(f"version: 2, {ALWAYS}"))
    told(asked)
    assert why(asked, "a") == why(asked, "a", version=2) == []
    other = Asked(definitions=rules(f"version: 3, {ALWAYS}"))
    asked.now += DAY
    other.now = asked.now
    other.engine = type(asked.engine)(asked.engine.store, other.engine.catalogue, lambda: other.now)
    assert why(other, "a", version=2) == ["retired"]
    assert why(other, "a") == ["before_rule"]


def test_a_rule_after_the_first_match_of_its_set_does_not_act() -> None:
    first = "  all: {events: [applied], rules: [a, b], policy: first}"
    asked = Asked(definitions=rules(f"priority: 1, {ALWAYS}", ALWAYS, sets=first))
    id = told(asked)
    assert (why(asked, "a"), why(asked, "b")) == ([], ["first_match"])
    assert evaluated(asked, event_id=id, rule="b") == evaluated(asked, event=APPLIED, rule="b") == ["first_match"]


def test_what_only_a_change_of_the_person_has_made_true_did_not_act() -> None:
    asked = Asked(definitions=rules("conditions: {field: traits.plan, equals: pro}"))
    told(asked)
    assert why(asked, "a") == ["no_match"]
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    assert why(asked, "a") == ["undecided"]


def test_a_replayed_decision_does_not_act() -> None:
    asked = asked_with_set()
    id = told(asked)
    activate(asked)
    assert evaluated(asked, event_id=id, record=True) == ["replay"]
    assert evaluated(asked, event=APPLIED, record=True) == []


@pytest.mark.parametrize(
    ("policy", "historical", "record"), [*product(("all", "first"), (False, True), ("matched", "all"))]
)
def test_effective_is_true_of_exactly_the_rules_that_decide_the_event(
    policy: str, historical: bool, record: str
) -> None:
    over = "conditions: {field: event.properties.score, greater_than: %d}"
    name = f"policy: {policy}, historical: {str(historical).lower()}, record: {record}"
    until = f"effective_until: '{format_time(STARTS_AT - DAY)}'"
    sets = f"  one: {{events: [applied], rules: [a, b, c, d], {name}}}\n  two: {{events: [called], rules: [d, e]}}"
    asked = Asked(definitions=rules(over % 90, over % 50, over % 0, f"{until}, {ALWAYS}", ALWAYS, sets=sets))
    events = [
        {"type": type, "key": f"{type}{score}{past}", "identifiers": {"user_id": "ada"}, "properties": {"score": score}}
        | ({"historical": True, "occurred_at": format_time(STARTS_AT - past * DAY)} if past else {})
        for type in ("applied", "called")
        for score in (0, 60, 91)
        for past in (0, 1, 2)
    ]
    acted = 0
    for event in events:
        tried = [asked.ask("decisions_evaluate", event=event, rule=name)["decisions"][0] for name in "abcde"]
        receipt = asked.ask("record", events=[event])["receipts"][0]
        decided = asked.ask("decisions_list", event=receipt["id"])["decisions"]
        acting = {each["rule"] for each in decided if each["status"] == "Matched"}
        assert {each["rule"] for each in tried if each["effective"]} == acting
        for each in tried:
            assert codes(each) == evaluated(asked, event_id=receipt["id"], rule=each["rule"])
        acted += len(acting)
    assert acted
