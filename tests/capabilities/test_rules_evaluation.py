"""Rules on demand: an event or a person is tried, and recorded only if that is asked for, once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.audit_stage import DEFINITIONS, applied, everything, native, people, statuses
from tests.capabilities.deciding_stage import rules
from threadline.engine.engine import Engine
from threadline.kernel.errors import Conflict, EventRejected, InvalidDefinition, InvalidValue, NotFound
from threadline.kernel.time import DAY


def test_an_event_can_be_tried_and_leaves_nothing_behind() -> None:
    asked = people()
    before = everything(asked)
    answer = asked.ask("decisions_evaluate", event=native())
    assert everything(asked) == before
    assert (answer["recorded"], answer["event"]) == (False, "")
    # What it would itself change is seen, as it is when it is recorded: only the rules that are asked are told.
    assert statuses(answer) == {"never": "NoMatch", "score": "Rejected", "spender": "NoMatch"}
    tried = {each["rule"]: each for each in answer["decisions"]}
    applied(asked, key="real")
    (recorded,) = asked.ask("decisions_list", person="user_id:ada")["decisions"]
    for name in ("hash", "inputs", "trace", "output", "wished", "status"):
        assert tried["score"][name] == recorded[name]
    assert (tried["score"]["mode"], tried["score"]["decision_id"]) == ("dry", "")


def test_somebody_new_can_be_tried() -> None:
    asked = people()
    answer = asked.ask("decisions_evaluate", event=native(who="new"))
    assert statuses(answer) == {"never": "NoMatch", "score": "NoMatch", "spender": "NoMatch"}
    with pytest.raises(NotFound):
        asked.ask("person", id="user_id:new")
    with pytest.raises(EventRejected, match="no usable identifier"):
        asked.ask("decisions_evaluate", event=native(who="null"))


def test_what_an_event_folds_is_seen_by_the_rules_that_are_tried() -> None:
    asked = Asked(definitions=DEFINITIONS.replace("[applied]", "[purchase_completed]"))
    bought = {"type": "purchase_completed", "identifiers": {"user_id": "ada"}, "key": "b"}
    answer = asked.ask("decisions_evaluate", event={**bought, "properties": {"total": 81, "currency": "EUR"}})
    assert statuses(answer)["spender"] == "Matched"


def test_an_event_that_is_there_is_seen_with_what_was_known_then() -> None:
    asked = people()
    id = applied(asked)
    asked.now += DAY
    asked.tell("identify", user_id="ada", properties={"plan": "free"})
    before = everything(asked)
    answer = asked.ask("decisions_evaluate", event_id=id)
    assert everything(asked) == before
    assert statuses(answer)["score"] == "Rejected"
    with pytest.raises(InvalidValue, match="recorded already"):
        asked.ask("decisions_evaluate", event=native(key="key-2"))


def test_imported_history_is_seen_as_it_was_when_it_happened() -> None:
    month = "features: {month: {aggregate: count, events: applied, window: 30d}}\n"
    asked = Asked(definitions=month + rules("conditions: {field: features.month, equals: 2}"))
    told = [
        asked.tell("applied", user_id="ada", at=STARTS_AT - days * DAY, historical=True) for days in (400, 399, 398)
    ]
    found = [asked.ask("decisions_evaluate", event_id=each["id"])["decisions"] for each in told]
    assert [each["inputs"] for (each,) in found] == [{"features.month": number} for number in (1, 2, 3)]
    assert [each["status"] for (each,) in found] == ["NoMatch", "Matched", "NoMatch"]


def test_a_person_can_be_looked_at_without_an_event() -> None:
    asked = people()
    asked.tell("purchase_completed", user_id="ada", properties={"total": 81, "currency": "EUR"})
    before = everything(asked)
    answer = asked.ask("decisions_evaluate", person="user_id:ada")
    assert everything(asked) == before
    assert statuses(answer) == {"never": "NoMatch", "score": "NoMatch", "spender": "Matched"}
    (score,) = [each for each in answer["decisions"] if each["rule"] == "score"]
    assert [step["note"] for step in score["trace"]] == ["missing", "skipped"]


def test_a_rule_that_is_not_active_or_not_even_written_can_be_tried() -> None:
    asked = people()
    content = {"conditions": {"field": "event.properties.score", "less_than": 100}}
    answer = asked.ask("decisions_evaluate", event=native(), content=content)
    assert statuses(answer) == {"unwritten": "Matched"}
    asked.ask("rules_write", id="draft", rule=content)
    assert statuses(asked.ask("decisions_evaluate", event=native(), rule="draft", version=1)) == {"draft": "Matched"}
    with pytest.raises(NotFound, match="no version of a rule 'draft' is active"):
        asked.ask("decisions_evaluate", event=native(), rule="draft")
    assert statuses(asked.ask("decisions_evaluate", event=native(), rule="never")) == {"never": "NoMatch"}
    assert len(asked.ask("decisions_evaluate", event=native(), rule_set="apps")["decisions"]) == 3
    with pytest.raises(InvalidDefinition, match=r"content\.conditions: a condition names its `field`"):
        asked.ask("decisions_evaluate", event=native(), content={"conditions": {}})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "give one of"),
        ({"person": "user_id:ada", "event_id": "0" * 32}, "give one of"),
        ({"person": "user_id:ada", "rule": "score", "rule_set": "apps"}, "at most one of"),
        ({"person": "user_id:ada", "version": 1}, "`version` needs `rule`"),
        ({"person": "user_id:ada", "content": {}, "record": True}, "give at most one of `record` and `content`"),
        ({"person": "user_id:ada", "record": True}, "give a `request`"),
        ({"event": native(), "rule": "score", "record": True}, "recorded with all rules in force"),
    ],
)
def test_what_cannot_be_asked(params: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        people().ask("decisions_evaluate", **params)


def test_an_event_can_be_recorded_and_answered_in_one_call() -> None:
    asked = people()
    answer = asked.ask("decisions_evaluate", event=native(), record=True)
    assert answer["recorded"] is True
    assert statuses(answer) == {"score": "Rejected"}
    assert asked.ask("decisions_evaluate", event=native(), record=True) == answer
    assert asked.ask("person", id="user_id:ada")["tags"] == ["risky"]


def test_replays_are_decisions_without_actions_once_each() -> None:
    asked = Asked()
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    id = applied(asked)
    later = Asked(definitions=DEFINITIONS)
    later.now = asked.now + DAY
    later.engine = Engine(asked.engine.store, later.engine.catalogue, lambda: later.now)
    for _ in range(2):
        answer = later.ask("decisions_evaluate", event_id=id, record=True)
        assert {each["rule"]: each["mode"] for each in answer["decisions"] if each["status"] == "Rejected"} == {
            "score": "replay"
        }
    (made,) = later.ask("decisions_list", event=id)["decisions"]
    assert (made["mode"], made["event_id"]) == ("replay", id)
    assert later.ask("person", id="user_id:ada")["tags"] == []
    told = later.ask("decisions_audit", decision=made["decision_id"])
    assert [each["status"] for each in told["consequences"]] == ["decided", "not carried out", "not carried out"]
    assert (told["problems"], told["in_force"]) == ([], True)


def test_asking_about_a_person_can_be_recorded_once() -> None:
    asked = people()
    asked.tell("purchase_completed", user_id="ada", properties={"total": 81, "currency": "EUR"})
    for _ in range(2):
        answer = asked.ask("decisions_evaluate", person="user_id:ada", record=True, request="r1")
        assert statuses(answer)["spender"] == "Matched"
    (made,) = asked.ask("decisions_list", person="user_id:ada")["decisions"]
    assert (made["rule"], made["mode"]) == ("spender", "replay")


def test_a_request_about_a_person_is_one_wish_whoever_sends_it() -> None:
    asked = people()
    asked.tell("purchase_completed", user_id="ada", properties={"total": 81, "currency": "EUR"})
    wish = {"person": "user_id:ada", "record": True, "request": "r1"}
    first = asked.ask("decisions_evaluate", **wish)
    assert asked.ask("decisions_evaluate", source="another", **wish)["event"] == first["event"]
    assert len(asked.ask("decisions_list", person="user_id:ada")["decisions"]) == 1
    asked.tell("page", user_id="bob")
    with pytest.raises(Conflict, match="about another person"):
        asked.ask("decisions_evaluate", **wish | {"person": "user_id:bob"})
