"""Decisions as events come in: what they say and rest on, and in which order rules are asked."""

from __future__ import annotations

import hashlib

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.deciding_stage import ALWAYS, NEVER, RISK, applied, decisions, events, rules, views
from threadline.kernel.canonical import canonical_json
from threadline.kernel.event import event_id
from threadline.kernel.time import DAY, format_time


def test_a_decision_says_all_that_it_rests_on() -> None:
    asked = Asked(definitions=RISK)
    cause = applied(asked)
    [event] = events(asked, "decision_made")
    (made,) = decisions(asked)
    assert event["cause"] == cause
    assert event["source_type"] == "internal"
    assert made.pop("decision_id") == event["id"] == event_id("default", "policy:rules", f"{cause}/risk/4/live")
    assert made.pop("evaluated_at") == event["recorded_at"]
    content = {
        "id": "risk",
        "version": 4,
        "name": "",
        "description": "",
        "priority": 50,
        "conditions": {"field": "event.properties.score", "greater_than": 80},
        "actions": [{"store_decision": {"result": "reject", "reason": "score ${event.properties.score} > 80"}}],
    }
    told = {
        "engine": 1,
        "inputs": {"event.properties.score": 91},
        "output": {"result": "reject", "reason": "score 91 > 80"},
        "status": "Rejected",
        "trace": [
            {
                "step": 1,
                "field": "event.properties.score",
                "operator": "greater_than",
                "expected": 80,
                "actual": 91,
                "matched": True,
                "note": "",
            }
        ],
        "wished": [{"store_decision": {"result": "reject", "reason": "score 91 > 80"}}],
    }
    # The hash is computed here from the description alone.
    digest = hashlib.sha256(canonical_json({"content": content, **told})).hexdigest()
    expected = {"event_id": cause, "rule": "risk", "version": 4, "rule_set": "applications", "mode": "live"}
    assert made == {**expected, **told, "hash": digest}


def test_no_match_leaves_nothing_unless_it_is_to_be_recorded() -> None:
    asked = Asked(definitions=RISK)
    applied(asked, 80)
    assert decisions(asked) == []
    asked = Asked(definitions=RISK.replace("rules: [risk]", "rules: [risk], record: all"))
    applied(asked, 80)
    applied(asked, None)
    assert [(made["status"], made["trace"][0]["note"]) for made in decisions(asked)] == [
        ("NoMatch", ""),
        ("NoMatch", "missing"),
    ]


@pytest.mark.parametrize(
    ("actions", "status"),
    [
        ("[{store_decision: {result: reject}}]", "Rejected"),
        ("[{store_decision: {result: Approve}}]", "Approved"),
        ("[{StoreDecision: {result: review, level: 2}}]", "Review"),
        ("[{store_decision: {result: gold}}]", "Matched"),
        ("[{tag: {tag: vip}}]", "Matched"),
        ("[]", "Matched"),
    ],
)
def test_the_status_comes_from_the_result(actions: str, status: str) -> None:
    asked = Asked(definitions=rules(f"{ALWAYS}, actions: {actions}"))
    applied(asked)
    assert [made["status"] for made in decisions(asked)] == [status]


def test_the_same_event_again_decides_nothing_again() -> None:
    asked = Asked(definitions=RISK)
    applied(asked, key="one")
    assert asked.tell("applied", user_id="ada", properties={"score": 91}, key="one")["status"] == "duplicate"
    assert len(decisions(asked)) == 1


def test_the_same_inputs_give_the_same_hash_whoever_and_whenever() -> None:
    hashes = set()
    for who, delay in (("ada", 0), ("bob", DAY)):
        asked = Asked(definitions=RISK)
        asked.now += delay
        asked.tell("applied", user_id=who, properties={"other": delay, "score": 91})
        feed = [each["properties"] for each in asked.ask("events_feed")["events"] if each["type"] == "decision_made"]
        hashes |= {made["hash"] for made in feed}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "changed",
    [
        RISK.replace("version: 4", "version: 5"),
        RISK.replace("priority: 50", "priority: 51"),
        RISK.replace("greater_than: 80", "greater_than: 80.5"),
        RISK.replace('> 80"', '> 80."'),
        RISK.replace("version: 4", "version: 4\n    name: Risk"),
    ],
)
def test_the_hash_changes_with_one_byte_of_the_rule(changed: str) -> None:
    found = []
    for definitions in (RISK, changed):
        asked = Asked(definitions=definitions)
        applied(asked)
        found.append(decisions(asked)[0]["hash"])
    assert found[0] != found[1]


def test_the_hash_changes_with_the_inputs_and_not_with_the_order_of_keys() -> None:
    definitions = rules("conditions: {field: event.properties.score, exists: true}")
    hashes = []
    for score in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 3}):
        asked = Asked(definitions=definitions)
        applied(asked, score)
        hashes.append(decisions(asked)[0]["hash"])
    assert hashes[0] == hashes[1] != hashes[2]


def test_what_is_long_is_kept_as_its_hash() -> None:
    asked = Asked(definitions=rules("conditions: {field: event.properties.score, exists: true}"))
    applied(asked, "x" * 5_000)
    (made,) = decisions(asked)
    kept = {"sha256": hashlib.sha256(canonical_json("x" * 5_000)).hexdigest(), "bytes": 5_002}
    assert made["inputs"] == {"event.properties.score": kept}
    assert made["trace"][0]["actual"] == kept


# --- order, sets, times -------------------------------------------------------------------------


def test_rules_are_asked_by_priority_then_by_id() -> None:
    asked = Asked(
        definitions=rules(f"{ALWAYS}, priority: 1", f"{ALWAYS}, priority: 7", ALWAYS, f"{ALWAYS}, priority: 7")
    )
    applied(asked)
    order = [
        each["properties"]["rule"] for each in asked.ask("events_feed")["events"] if each["type"] == "decision_made"
    ]
    assert order == ["b", "d", "a", "c"]


def test_the_first_match_ends_a_set_that_wants_one() -> None:
    one = "  all: {events: [applied], rules: [a, b, c], policy: first, record: all}"
    asked = Asked(definitions=rules(NEVER, ALWAYS, ALWAYS, sets=one))
    applied(asked)
    assert [(made["rule"], made["status"]) for made in decisions(asked)] in (
        [("a", "NoMatch"), ("b", "Matched")],
        [("b", "Matched"), ("a", "NoMatch")],
    )


def test_a_rule_in_two_sets_is_asked_once() -> None:
    two = "  x: {events: [applied], rules: [a]}\n  y: {events: [applied, other], rules: [a, b], policy: first}"
    asked = Asked(definitions=rules(ALWAYS, ALWAYS, sets=two))
    applied(asked)
    # For the second set it has matched as well, and is the first of it.
    assert [(made["rule"], made["rule_set"]) for made in decisions(asked)] == [("a", "x")]


@pytest.mark.parametrize("found", [True, False])
def test_a_set_that_records_everything_does_so_of_rules_that_another_set_asks_first(found: bool) -> None:
    # Whether the first set has to ask, or its index knows that the rule does not match, makes no difference.
    two = "  x: {events: [applied], rules: [a]}\n  y: {events: [applied], rules: [a], record: all}"
    rule = "conditions: {all: [{field: event.properties.score, equals: %d}, {field: event.key, equals: other}]}"
    asked = Asked(definitions=rules(rule % (91 if found else 90), sets=two))
    applied(asked)
    assert [(made["rule_set"], made["status"]) for made in decisions(asked)] == [("y", "NoMatch")]


@pytest.mark.parametrize("score", [9.3e18, 1e20, 9.9e20, -1e19, 1e21])
def test_what_is_decided_by_numbers_beyond_64_bits_is_kept_and_can_be_reckoned(score: float) -> None:
    reading = "conditions: {field: event.properties.score, not_equals: 9.3e+18}"
    stored = "{store_decision: {result: seen, score: '${event.properties.score}'}}"
    asked = Asked(
        definitions=rules(reading, f"{reading}, actions: [{stored}]", reading.replace(" {", " {not: {") + "}")
    )
    applied(asked, score)
    made = decisions(asked)
    assert sorted(each["rule"] for each in made) == (["c"] if score == 9.3e18 else ["a", "b"])
    assert {each["inputs"]["event.properties.score"] for each in made} == {score}
    assert asked.ask("decisions_verify")["breaches"] == []


def test_a_rule_counts_from_and_until_when_it_says() -> None:
    since, until = format_time(STARTS_AT + DAY), format_time(STARTS_AT + 2 * DAY)
    asked = Asked(definitions=rules(f"{ALWAYS}, effective_from: '{since}', effective_until: '{until}'"))
    found = []
    for at in (STARTS_AT + DAY - 1, STARTS_AT + DAY, STARTS_AT + 2 * DAY - 1, STARTS_AT + 2 * DAY):
        asked.now = at - 1
        applied(asked)
        found.append(len(decisions(asked)))
    assert found == [0, 1, 2, 2]


def test_history_is_decided_only_where_a_set_says_so() -> None:
    for option, count in (("", 0), (", historical: true", 1)):
        asked = Asked(definitions=rules(ALWAYS, sets=f"  all: {{events: [applied], rules: [a]{option}}}"))
        applied(asked, historical=True, at=STARTS_AT - 30 * DAY)
        assert len(decisions(asked)) == count


def test_fields_reach_all_that_is_known() -> None:
    conditions = (
        "{all: [{field: traits.plan, equals: pro}, {field: tags, contains: vip}, "
        "{field: features.monetary_total, greater_than: 80}, {field: points.balance, greater_than: 4}, "
        "{field: streaks.daily.current, equals: 1}, {field: memory.preference.size.value, exists: false}]}"
    )
    asked = Asked(definitions=rules(f"conditions: {conditions}"))
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    asked.tell("tag_added", user_id="ada", properties={"tag": "vip"})
    asked.tell("purchase_completed", user_id="ada", properties={"total": "80.01", "currency": "EUR"})
    asked.tell("tool_used", user_id="ada")
    applied(asked)
    (made,) = decisions(asked)
    assert made["inputs"]["features.monetary_total"] in (80.01, "80.01")
    assert [step["matched"] for step in made["trace"]] == [True] * 6


def test_a_view_shows_the_newest_word_of_each_rule() -> None:
    asked = Asked(definitions=RISK.replace("rules: [risk]", "rules: [risk], record: all"))
    applied(asked)
    applied(asked, 5)
    view = views(asked)["decisions"]
    newest = events(asked, "decision_made")[-1]
    assert view == {"risk": {"status": "NoMatch", "version": 4, "decision": newest["id"], "at": newest["occurred_at"]}}


def test_rules_can_go_by_what_was_decided_before() -> None:
    conditions = "conditions: {not: {field: decisions.a.status, equals: Rejected}}"
    asked = Asked(definitions=rules(f"{conditions}, actions: [{{store_decision: {{result: reject}}}}]"))
    applied(asked)
    applied(asked)
    assert len(decisions(asked)) == 1
