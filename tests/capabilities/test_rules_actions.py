"""What rules do: their actions once, within limits, and nothing where one cannot be filled."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.deciding_stage import ALWAYS, RISK, acting, applied, decisions, events, rules, views
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.folding.packing import unpack
from threadline.engine.recording.attempt import Plans
from threadline.kernel.store import scan_pages
from threadline.kernel.time import DAY


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
        + "journeys: {welcome: {steps: [{send: hello}]}}\n"
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
        "rule": "a",
        "version": 1,
        "level": "info",
        "message": "seen",
        "data": {"n": 1},
    }
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
        ("{call_webhook: {url: '${event.properties.nothing}'}}", "call_webhook: `url` takes an address"),
        ("{call_webhook: {destination: '${event.properties.nothing}'}}", "call_webhook: `destination` takes a text"),
        ("{set_value: {trait: '${event.properties.nothing}', value: 1}}", "set_value: `trait` takes a text"),
        ("{set_value: {fact: '${event.properties.nothing}', value: 1}}", "set_value: `fact` takes a text"),
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
    applied(asked, "a" * 30_000 + "!")
    applied(asked, "a" * 30_000)
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
    plans = Plans(asked.engine.catalogue, asked.engine.recorder.shared)
    assert "rules" not in {policy.name for policy in plans.of("default", "applied").policies}
    ruled = Asked(definitions=RISK)
    plans = Plans(ruled.engine.catalogue, ruled.engine.recorder.shared)
    assert "rules" in {policy.name for policy in plans.of("default", "applied").policies}
    assert "rules" not in {policy.name for policy in plans.of("default", "page").policies}
