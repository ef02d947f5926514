"""Rules asked of events: what is decided, in which order, what is done about it, and what a decision rests on."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.engine.dispatch import Dispatcher
from threadline.engine.packing import unpack
from threadline.engine.reactors import Reactors
from threadline.kernel.canonical import canonical_json
from threadline.kernel.event import event_id
from threadline.kernel.store import scan_pages
from threadline.kernel.time import DAY, format_time

RISK = """
rules:
  risk:
    version: 4
    priority: 50
    conditions: {field: event.properties.score, greater_than: 80}
    actions:
      - store_decision: {result: reject, reason: "score ${event.properties.score} > 80"}
rule_sets:
  applications: {events: [applied], rules: [risk]}
"""


def rules(*bodies: str, sets: str = "", **more: str) -> str:
    """Definitions with rules a, b, c … asked of `applied`."""
    names = "abcdefgh"[: len(bodies)]
    lines = [f"  {name}: {{{body}}}" for name, body in zip(names, bodies, strict=True)]
    told = sets or f"  all: {{events: [applied], rules: [{', '.join(names)}]}}"
    return "rules:\n" + "\n".join(lines) + "\nrule_sets:\n" + told + "\n"


ALWAYS = "conditions: {field: event.type, equals: applied}"
NEVER = "conditions: {field: event.type, equals: other}"


def acting(*actions: str) -> str:
    return f"{ALWAYS}, actions: [{', '.join(actions)}]"


def applied(asked: Asked, score: Any = 91, **fields: Any) -> str:
    receipt = asked.tell("applied", user_id="ada", properties={"score": score}, **fields)
    assert receipt["status"] == "accepted", receipt
    return str(receipt["id"])


def events(asked: Asked, *types: str) -> list[dict[str, Any]]:
    found = asked.ask("events", id="user_id:ada", order="asc", limit=1_000, type=",".join(types))["events"]
    assert isinstance(found, list)
    return found


def views(asked: Asked) -> dict[str, Any]:
    found: dict[str, Any] = asked.engine.views(asked.engine.person("default", "user_id:ada"), asked.now + 1)
    return found


def decisions(asked: Asked) -> list[dict[str, Any]]:
    return [each["properties"] for each in events(asked, "decision_made")]


# --- decisions --------------------------------------------------------------------------------


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
        "id": "risk", "version": 4, "name": "", "description": "", "priority": 50,
        "conditions": {"field": "event.properties.score", "greater_than": 80},
        "actions": [{"store_decision": {"result": "reject", "reason": "score ${event.properties.score} > 80"}}],
    }  # fmt: skip
    told = {
        "engine": 1,
        "inputs": {"event.properties.score": 91},
        "output": {"result": "reject", "reason": "score 91 > 80"},
        "status": "Rejected",
        "trace": [
            {"step": 1, "field": "event.properties.score", "operator": "greater_than", "expected": 80, "actual": 91,
             "matched": True, "note": ""}
        ],
        "wished": [{"store_decision": {"result": "reject", "reason": "score 91 > 80"}}],
    }  # fmt: skip
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
        feed = [each["properties"] for each in asked.ask("feed")["events"] if each["type"] == "decision_made"]
        hashes |= {made["hash"] for made in feed}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "changed",
    [
        RISK.replace("version: 4", "version: 5"), RISK.replace("priority: 50", "priority: 51"),
        RISK.replace("greater_than: 80", "greater_than: 80.5"), RISK.replace("> 80\"", "> 80.\""),
        RISK.replace("version: 4", "version: 4\n    name: Risk"),
    ],
)  # fmt: skip
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
    order = [each["properties"]["rule"] for each in asked.ask("feed")["events"] if each["type"] == "decision_made"]
    assert order == ["b", "d", "a", "c"]


def test_the_first_match_ends_a_set_that_wants_one() -> None:
    one = "  all: {events: [applied], rules: [a, b, c], policy: first, record: all}"
    asked = Asked(definitions=rules(NEVER, ALWAYS, ALWAYS, sets=one))
    applied(asked)
    assert [(made["rule"], made["status"]) for made in decisions(asked)] in (
        [("a", "NoMatch"), ("b", "Matched")], [("b", "Matched"), ("a", "NoMatch")],
    )  # fmt: skip


def test_a_rule_in_two_sets_is_asked_once() -> None:
    two = "  x: {events: [applied], rules: [a]}\n  y: {events: [applied, other], rules: [a, b], policy: first}"
    asked = Asked(definitions=rules(ALWAYS, ALWAYS, sets=two))
    applied(asked)
    # For the second set it has matched as well, and is the first of it.
    assert [(made["rule"], made["rule_set"]) for made in decisions(asked)] == [("a", "x")]


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


# --- actions ------------------------------------------------------------------------------------


def test_what_actions_leave_behind() -> None:
    asked = Asked(
        definitions=rules(
            acting(
                "{set_value: {trait: plan, value: '${event.properties.score}'}}",
                "{SetValue: {fact: preference, key: size, value: 42}}",
                "{emit_event: {type: offered, properties: {to: '${traits.name}', at: 7}}}",
                "{tag: {tag: 'score ${event.properties.score}'}}",
                "{untag: {tag: cold}}",
                "{award_points: {points: 12, reason: thanks}}",
                "{enter_journey: {journey: welcome}}",
                "{log_event: {message: seen, data: {n: 1}}}",
            )
        )
    )
    asked.tell("identify", user_id="ada", properties={"name": "Ada"})
    asked.tell("tag_added", user_id="ada", properties={"tag": "cold"})
    cause = applied(asked)
    known = views(asked)
    assert known["profile"]["traits"] == {"name": "Ada", "plan": 91}
    assert known["profile"]["tags"] == ["score 91"]
    assert known["points"]["balance"] == known["points"]["earned"] == 12
    assert known["memory"]["preference"]["size"]["value"] == 42
    found = {each["type"]: each for each in events(asked) if each.get("cause") == cause}
    assert found["offered"]["properties"] == {"to": "Ada", "at": 7}
    assert found["journey_entry_requested"]["properties"] == {"rule": "a", "version": 1, "journey": "welcome"}
    assert found["rule_logged"]["properties"] == {
        "rule": "a", "version": 1, "level": "info", "message": "seen", "data": {"n": 1},
    }  # fmt: skip
    assert found["points_earned"]["properties"]["reason"] == "thanks"


def test_effects_go_to_the_outbox_once() -> None:
    url = "'https://shop.example.com/hook'"
    asked = Asked(
        definitions=rules(
            acting(
                "{send_notification: {message: 'Hi ${traits.name}', channel: push}}",
                f"{{call_webhook: {{url: {url}, payload: {{score: '${{event.properties.score}}'}}}}}}",
                "{call_webhook: {destination: crm}}",
            )
        )
    )
    cause = applied(asked, key="k")
    applied(asked, key="other")
    asked.tell("applied", user_id="ada", properties={"score": 91}, key="k")
    effects = [unpack(item.value) for item in scan_pages(asked.engine.store, "outbox")]
    assert len(effects) == 6
    mine = {
        (kind, "url" in data): {name: value for name, value in data.items() if name != "at"}
        for _, _, _, by, _, (kind, _, _, data, *_), *_ in effects
        if by == cause
    }
    who = {"rule": "a", "version": 1}
    assert mine == {
        ("notification", False): {**who, "message": "Hi ", "channel": "push"},
        ("webhook", True): {**who, "url": "https://shop.example.com/hook", "payload": {"score": 91}},
        ("webhook", False): {**who, "destination": "crm"},
    }


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("{award_points: {points: '${event.properties.score}'}}", "award_points: `points` takes a whole number"),
        ("{tag: {tag: '${event.properties.nothing}'}}", "tag: `tag` takes a text"),
        ("{emit_event: {type: '${event.properties.score}'}}", "emit_event: `type` takes an event type"),
        ("{emit_event: {type: '${traits.type}'}}", "emit_event: `type` cannot be 'points_earned'"),
        ("{call_webhook: {url: 'file:${event.properties.score}'}}", "call_webhook: `url` takes an address"),
    ],
)
def test_an_action_that_cannot_be_filled_makes_the_decision_an_error_and_does_nothing(action: str, error: str) -> None:
    asked = Asked(definitions=rules(acting("{tag: {tag: vip}}", action), ALWAYS))
    asked.tell("identify", user_id="ada", properties={"type": "points_earned"})
    applied(asked, 1.5)
    first, second = sorted(decisions(asked), key=lambda made: made["rule"])
    assert (first["status"], first["wished"]) == ("Error", [])
    assert first["output"]["error"].startswith(error)
    assert second["status"] == "Matched"
    assert views(asked)["profile"]["tags"] == []


def test_what_is_too_large_is_an_error() -> None:
    pieces = ", ".join(f"p{number}: '${{event.properties.score}}'" for number in range(40))
    asked = Asked(definitions=rules(acting(f"{{emit_event: {{type: big, properties: {{{pieces}}}}}}}")))
    applied(asked, "x" * 2_000)
    (made,) = decisions(asked)
    assert (made["status"], "more than 32,768 bytes" in made["output"]["error"]) == ("Error", True)


def test_missing_placeholders_are_null_alone_and_nothing_in_a_text() -> None:
    properties = (
        "{alone: '${traits.x}', within: 'a${traits.x}b', typed: '${event.properties.score}', plain: '$${traits.x}'}"
    )
    asked = Asked(definitions=rules(acting(f"{{emit_event: {{type: told, properties: {properties}}}}}")))
    applied(asked, [1, {"b": None}])
    (told,) = events(asked, "told")
    assert told["properties"] == {"alone": None, "within": "ab", "typed": [1, {"b": None}], "plain": "${traits.x}"}


def test_points_that_a_rule_awards_expire_like_all_others() -> None:
    definitions = "points: {expires_after: 30d}\n" + rules(acting("{award_points: {points: 7}}"))
    asked = Asked(definitions=definitions)
    applied(asked)
    assert views(asked)["points"]["balance"] == 7
    asked.now = STARTS_AT + 90 * DAY
    Dispatcher(asked.engine, {}, "test").run_once()
    assert [each["properties"]["points"] for each in events(asked, "points_expired")] == [7]


def test_a_rule_that_calls_itself_is_stopped_and_says_so() -> None:
    asked = Asked(definitions=rules(acting("{emit_event: {type: applied}}")))
    applied(asked)
    (cut,) = events(asked, "threadline.cascade_cut")
    assert cut["properties"]["policy"] == "rules"
    assert 5 < len(decisions(asked)) < 32
    applied(asked)
    assert len(events(asked, "threadline.cascade_cut")) == 2


def test_twenty_rules_decide_about_one_event_and_thirty_are_cut() -> None:
    for count, cut in ((20, 0), (30, 1)):
        names = [f"r{number:02d}" for number in range(count)]
        lines = "\n".join(f"  {name}: {{{ALWAYS}, priority: {number}}}" for number, name in enumerate(names))
        asked = Asked(
            definitions=f"rules:\n{lines}\nrule_sets:\n  all: {{events: [applied], rules: [{', '.join(names)}]}}\n"
        )
        applied(asked)
        assert len(events(asked, "threadline.cascade_cut")) == cut
        made = {each["rule"] for each in decisions(asked)}
        # Those of the highest priority are asked first, and stay.
        assert made == set(names[-len(made) :])
        assert len(made) >= 20


def test_no_pattern_and_no_text_can_hang_a_rule() -> None:
    asked = Asked(definitions=rules("conditions: {field: event.properties.score, regex: '^(a+)+$'}"))
    started_at = time.process_time()
    applied(asked, "a" * 30_000 + "!")
    applied(asked, "a" * 30_000)
    assert time.process_time() - started_at < 2
    (made,) = decisions(asked)
    assert made["status"] == "Matched"


def test_decisions_that_come_over_a_wire_are_nobodys() -> None:
    asked = Asked(definitions=RISK)
    properties = {"rule": "risk", "version": 4, "status": "Approved"}
    asked.tell("decision_made", user_id="ada", properties=properties)
    assert views(asked)["decisions"] == {}
    assert asked.engine.store.query("decision", "default/risk/0") == []


def test_without_rules_no_policy_is_asked_and_no_room_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    reactors = Reactors(asked.engine.catalogue, asked.engine.recorder.shared)
    assert "rules" not in {policy.name for policy in reactors.of("default", "applied")}
    ruled = Asked(definitions=RISK)
    reactors = Reactors(ruled.engine.catalogue, ruled.engine.recorder.shared)
    assert "rules" in {policy.name for policy in reactors.of("default", "applied")}
    assert "rules" not in {policy.name for policy in reactors.of("default", "page")}
