"""Decisions afterwards: found, followed from cause to consequence, explained and reckoned again."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.audit_stage import DEFINITIONS, applied, people
from threadline.capabilities.decide.rules.operations import decisions
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.policy import Effect, Emit, Policy, PolicyView, Wish
from threadline.kernel.sender import Outcome
from threadline.kernel.time import DAY, HOUR, MINUTE, format_time
from threadline.senders.console import ConsoleSender


def test_decisions_are_found_by_person_rule_version_status_and_time() -> None:
    asked = people()
    asked.tell("purchase_completed", user_id="bob", properties={"total": 81, "currency": "EUR"})
    times = []
    for number in range(30):
        asked.now += HOUR
        applied(asked, 91, who=("ada", "bob")[number % 2])
        times.append(asked.now)
    expected = {"score": list(reversed(times[0::2])), "spender": list(reversed(times[1::2]))}
    for rule, when in expected.items():
        found: list[str] = []
        cursor = ""
        while True:
            page = asked.ask("decisions_list", rule=rule, limit=4, cursor=cursor)
            found += [each["evaluated_at"] for each in page["decisions"]]
            cursor = page["next"]
            if not cursor:
                break
        assert found == [format_time(at) for at in when]
    assert len(asked.ask("decisions_list", rule="score", version=2)["decisions"]) == 15
    assert asked.ask("decisions_list", rule="score", version=1)["decisions"] == []
    assert asked.ask("decisions_list", rule="score", status="Approved")["decisions"] == []
    assert len(asked.ask("decisions_list", rule="score", status="Rejected")["decisions"]) == 15
    for who in ({"rule": "score"}, {"person": "user_id:ada"}):
        span = asked.ask("decisions_list", **who, start=format_time(times[4]), stop=format_time(times[8]))["decisions"]
        assert [each["evaluated_at"] for each in span] == [format_time(times[6]), format_time(times[4])]
    found = []
    cursor = ""
    while True:
        page = asked.ask("decisions_list", person="user_id:bob", limit=4, cursor=cursor)
        found += [each["evaluated_at"] for each in page["decisions"]]
        cursor = page["next"]
        if not cursor:
            break
    assert found == [format_time(at) for at in expected["spender"]]
    with pytest.raises(InvalidValue, match="is not a cursor"):
        asked.ask("decisions_list", rule="score", cursor="bogus")


def test_decisions_of_all_rules_are_listed_by_status_and_time_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = people()
    asked.ask("rules_write", id="later", rule={"conditions": {"field": "event.properties.score", "exists": True}})
    asked.ask("rules_activate", id="later", version=1, untested=True)
    asked.ask("rule_sets_write", name="more", events=["applied"], rules=["later"])
    for score in (91, 5, 92, 93):
        asked.now += HOUR
        applied(asked, score)
    asked.ask("rules_retire", id="later")
    withdrawn = Asked(definitions="rules: {other: {conditions: {field: tags, exists: true}}}")
    withdrawn.now = asked.now + HOUR
    withdrawn.engine = Engine(asked.engine.store, withdrawn.engine.catalogue, lambda: withdrawn.now)

    def pages(**params: Any) -> list[tuple[str, int]]:
        found, cursor = [], ""
        while True:
            page = withdrawn.ask("decisions_list", limit=2, cursor=cursor, **params)
            found += [(each["rule"], each["inputs"]["event.properties.score"]) for each in page["decisions"]]
            cursor = page["next"]
            if not cursor:
                return found

    assert pages(status="Rejected") == [("score", 93), ("score", 92), ("score", 91)]
    assert pages(status="Matched") == [("later", score) for score in (93, 92, 5, 91)]
    assert len(pages()) == 7
    assert pages(start=format_time(asked.now - HOUR - MINUTE), status="Rejected") == [("score", 93), ("score", 92)]
    monkeypatch.setattr(decisions, "RULES_LISTED_MAX", 4)
    with pytest.raises(InvalidValue, match="listed for up to 4 rules"):
        pages()
    assert len(pages(rule="score")) == 3


def test_decisions_follow_their_person_through_a_merge() -> None:
    asked = people()
    id = applied(asked)
    asked.tell("page", user_id="bob")
    asked.engine.identity.merge("default", "user_id:bob", "user_id:ada", request="m", force=True)
    (made,) = asked.ask("decisions_list", person="user_id:bob")["decisions"]
    assert made["event_id"] == id
    assert made["person"] == asked.ask("person", id="user_id:bob")["id"]
    assert asked.ask("decisions_list", rule="score")["decisions"] == [made]


# --- audit --------------------------------------------------------------------------------------


class Crm:
    """Fails once, then succeeds."""

    kind = "webhook"

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        self.sent.append(effect_id)
        return Outcome(type="called", retry_after_seconds=5.0 if len(self.sent) == 1 else None)


def test_an_audit_goes_from_the_cause_of_the_cause_to_what_came_of_it() -> None:
    chained = DEFINITIONS.replace("apps:", "more: {events: [page], rules: [chain]}\n  apps:").replace(
        "rules:\n  score:",
        "rules:\n  chain:\n    conditions: {field: event.type, exists: true}\n"
        "    actions: [{emit_event: {type: applied, properties: {score: 99}}}]\n  score:",
        1,
    )
    asked = Asked(definitions=chained)
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    page = asked.tell("page", user_id="ada")["id"]
    (decision,) = asked.ask("decisions_list", rule="score")["decisions"]
    told = asked.ask("decisions_audit", decision=decision["decision_id"])
    assert told["decision"] == decision
    assert [each["id"] for each in told["causes"]] == [page]
    assert told["event"]["type"] == "applied"
    assert told["rule"]["conditions"]["all"][1] == {"field": "traits.plan", "equals": "pro"}
    assert (told["in_force"], told["problems"]) == (True, [])
    stored, tag, call = told["consequences"]
    assert (stored["status"], tag["status"], call["status"]) == ("decided", "recorded", "waiting")
    assert tag["event"]["properties"] == {"tag": "risky"}
    crm = Crm()
    dispatcher = Dispatcher(asked.engine, {"webhook": crm}, "test")
    states = []
    by = {"decision": decision["decision_id"], "policy": "rules"}
    key = asked.ask("events_show", id=page)["key"]
    assert asked.ask("messages_show", message_id=key)["effects"] == [{**call, **by}]
    for _ in range(2):
        asked.now += HOUR
        dispatcher.run_once()
        call = asked.ask("decisions_audit", decision=decision["decision_id"])["consequences"][2]
        # Whoever asks after the message is told of what it led to in the same words.
        assert asked.ask("messages_show", message_id=key)["effects"] == [{**call, **by}]
        states.append((call["status"], len(call["outcomes"])))
    assert states == [("retrying", 1), ("done", 2)]
    assert {call["effect"]} == set(crm.sent)
    with pytest.raises(NotFound):
        asked.ask("decisions_audit", decision=page)


class Slow(Crm):
    """Fails at the first attempt at an effect of the key `now`."""

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        again = effect.key == "now" and effect_id not in self.sent
        self.sent.append(effect_id)
        return Outcome(type="called", retry_after_seconds=5.0 if again else None)


def test_a_message_shows_what_a_policy_of_ones_own_emits_and_sends_because_of_it() -> None:
    def react(recorded: Recorded, person: PolicyView) -> list[Wish]:
        later = recorded.event.occurred_at + DAY
        return [
            Emit(type="noticed", key="n", occurred_at=recorded.event.occurred_at),
            Effect(kind="webhook", key="now", data={"score": recorded.event.properties["score"]}),
            Effect(kind="webhook", key="later", due_at=later, queue="crm"),
        ]

    def echo(recorded: Recorded, person: PolicyView) -> list[Wish]:
        return [Effect(kind="webhook", key="echo")]

    asked = people()
    own = [Policy("own", frozenset({"applied"}), react), Policy("echo", frozenset({"noticed"}), echo)]
    catalogue = Catalogue([*discover(definitions=Definitions()), *own], rules(Definitions()))
    asked.engine = Engine(asked.engine.store, catalogue, lambda: asked.now)
    applied(asked, 5, key="other")
    applied(asked, 7, key="message")

    def effects() -> list[tuple[str, str, str, int]]:
        found = asked.ask("messages_show", message_id="message")["effects"]
        assert {(each["action"], each["decision"]) for each in found} == {("webhook", "")}
        return sorted((each["policy"], each["status"], str(each["wished"]), len(each["outcomes"])) for each in found)

    assert [each["type"] for each in asked.ask("messages_show", message_id="message")["caused"]] == ["noticed"]
    assert effects() == [
        ("echo", "waiting", "{}", 0),
        ("own", "waiting", "{'score': 7}", 0),
        ("own", "waiting", "{}", 0),
    ]
    slow, stages = Slow(), []
    for hours in (1, 1, 24):
        asked.now += hours * HOUR
        Dispatcher(asked.engine, {"webhook": slow}, "test").run_once()
        stages.append([(policy, status, outcomes) for policy, status, _, outcomes in effects()])
    assert stages == [
        [("echo", "done", 1), ("own", "retrying", 1), ("own", "waiting", 0)],
        [("echo", "done", 1), ("own", "done", 2), ("own", "waiting", 0)],
        [("echo", "done", 1), ("own", "done", 1), ("own", "done", 2)],
    ]


def test_a_call_that_was_given_up_on_is_not_done() -> None:
    class Gone(Crm):
        """Says that there is nobody any more."""

        def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
            return Outcome(type="called", parked="it answered 410, gone")

    asked = people()
    applied(asked)
    (decision,) = asked.ask("decisions_list", rule="score")["decisions"]

    def standing() -> str:
        call = asked.ask("decisions_audit", decision=decision["decision_id"])["consequences"][2]
        return str(call["status"])

    asked.now += HOUR
    Dispatcher(asked.engine, {"webhook": Gone()}, "test").run_once()
    assert standing() == "parked"
    assert asked.engine.delivery.redrive(asked.engine.delivery.dead_letters("default"), "ops") == 1
    assert standing() == "retrying"
    asked.now += HOUR
    Dispatcher(asked.engine, {"webhook": Crm()}, "test").run_once()
    asked.now += HOUR
    Dispatcher(asked.engine, {"webhook": Gone()}, "test").run_once()
    assert standing() == "parked", "what was given up on again"


@pytest.mark.parametrize("failures", [0, 1])
def test_a_call_is_parked_where_nothing_can_tell_so(failures: int) -> None:
    class Unspeakable(Crm):
        """Fails some times, and then says what no thread can take."""

        def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
            self.sent.append(effect_id)
            if len(self.sent) <= failures:
                return Outcome(type="called", retry_after_seconds=5.0)
            return Outcome(type="x" * 1_000)

    asked = people()
    applied(asked)
    (decision,) = asked.ask("decisions_list", rule="score")["decisions"]

    def standing() -> tuple[str, list[str]]:
        call = asked.ask("decisions_audit", decision=decision["decision_id"])["consequences"][2]
        return call["status"], [each["type"].rpartition("_")[2] for each in call["outcomes"]]

    crm = Unspeakable()
    for _ in range(failures + 2):
        asked.now += HOUR
        Dispatcher(asked.engine, {"webhook": crm}, "test").run_once()
    told = ["retried"] * failures
    assert (len(crm.sent), standing()) == (failures + 1, ("parked", told))
    assert asked.engine.delivery.redrive(asked.engine.delivery.dead_letters("default"), "ops") == 1
    told += ["redriven"]
    assert standing() == ("retrying", told)
    asked.now += HOUR
    Dispatcher(asked.engine, {"webhook": Crm()}, "test").run_once()
    assert standing() == ("retrying", [*told, "retried"])
    asked.now += HOUR
    well = Crm()
    well.sent.append("")
    Dispatcher(asked.engine, {"webhook": well}, "test").run_once()
    assert standing() == ("done", [*told, "retried", "called"])


def test_why_and_why_not() -> None:
    asked = people()
    applied(asked, 91)
    id = applied(asked, 80)
    told = asked.ask("rules_why", id="user_id:ada", rule="score")
    assert (told["matched"], told["event"]["id"], told["version"]) == (False, id, 2)
    assert [(step["actual"], step["note"]) for step in told["decision"]["trace"]] == [(80, ""), (None, "skipped")]
    asked.tell("page", user_id="bob")
    told = asked.ask("rules_why", id="user_id:bob", rule="spender")
    assert (told["matched"], told["event"]) == (False, None)
    asked.tell("purchase_completed", user_id="bob", properties={"total": 81, "currency": "EUR"})
    assert asked.ask("rules_why", id="user_id:bob", rule="spender")["matched"] is True
    with pytest.raises(NotFound):
        asked.ask("rules_why", id="user_id:bob", rule="nothing")


def test_why_is_not_asked_of_what_has_not_happened() -> None:
    asked = people()
    id = applied(asked, 80)
    ahead = asked.tell("applied", at=asked.now + HOUR, user_id="ada", properties={"score": 99})["id"]
    for hours, event, matched in ((0, id, False), (2, ahead, True)):
        asked.now += hours * HOUR
        told = asked.ask("rules_why", id="user_id:ada", rule="score")
        assert (told["event"]["id"], told["matched"]) == (event, matched)


# --- computing again ----------------------------------------------------------------------------


def forge(asked: Asked, **changes: Any) -> None:
    """A decision in the log that says something else than what was decided."""
    (made,) = asked.ask("decisions_list", rule="score")["decisions"]
    properties = {name: value for name, value in made.items() if name != "person"} | {"mode": "replay"} | changes
    event = Event(
        type="decision_made",
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=STARTS_AT,
        key="forged",
        source_type="internal",
        properties=properties,
    )
    assert asked.engine.recorder.record([event])[0].status == "accepted"


def test_every_decision_can_be_reckoned_again() -> None:
    asked = people()
    for score in (91, 5, "x" * 3_000, None, [1]):
        applied(asked, score)
    asked.ask("decisions_evaluate", person="user_id:ada", record=True, request="r")
    answer = asked.ask("decisions_verify")
    assert (answer["decisions"], answer["breaches"]) == (1, [])
    assert [fault for each in asked.engine.catalogue.inspections for fault in each.inspect(asked.engine)] == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"status": "Approved"}, "the same inputs give another status: 'Rejected', not 'Approved'"),
        ({"hash": "0" * 64}, "its hash is 0000"),
        ({"inputs": {"event.properties.score": 80, "traits.plan": "pro"}}, "the conditions say something else"),
        ({"output": {"result": "reject", "of": "free"}}, "the same inputs give another output"),
        ({"wished": []}, "the same inputs give another wished"),
        ({"trace": []}, "the conditions say something else"),
        ({"version": 7}, "version 7 of rule 'score' is not known here"),
        ({"engine": 99}, "it was made by engine 99"),
    ],
)
def test_what_was_changed_is_a_breach(changes: dict[str, Any], problem: str) -> None:
    asked = people()
    applied(asked)
    forge(asked, **changes)
    answer = asked.ask("decisions_verify")
    assert answer["decisions"] == 2
    (breach,) = answer["breaches"]
    assert any(problem in each for each in breach["problems"]), breach
    assert any(problem in fault for each in asked.engine.catalogue.inspections for fault in each.inspect(asked.engine))


def test_pages_of_reckoning_go_on_where_the_last_ended() -> None:
    asked = people()
    for _ in range(7):
        applied(asked)
    count, cursor = 0, ""
    while True:
        answer = asked.ask("decisions_verify", limit=5, cursor=cursor)
        count += answer["decisions"]
        cursor = answer["next"]
        if not cursor:
            break
    assert count == 7


def test_notification_that_is_only_printed_is_not_done() -> None:
    always = {"field": "event.type", "exists": True}
    hello = {"conditions": always, "actions": [{"send_notification": {"message": "hello"}}]}
    definitions = {"rules": {"hello": hello}, "rule_sets": {"all": {"events": ["applied"], "rules": ["hello"]}}}
    tried = Asked(definitions=json.dumps(definitions))
    tried.tell("applied", user_id="ada")
    printed = io.StringIO()
    Dispatcher(tried.engine, {"notification": ConsoleSender(printed, "notification")}, "test").run_once()
    assert json.loads(printed.getvalue())["data"]["message"] == "hello"
    [decision] = tried.ask("decisions_list", person="ada")["decisions"]
    [sent] = tried.ask("decisions_audit", decision=decision["decision_id"])["consequences"]
    assert (sent["status"], [each["type"] for each in sent["outcomes"]]) == ("printed", ["threadline.effect_printed"])


def test_a_decision_says_why_a_field_had_no_value_and_is_verified_without_it() -> None:
    asked = Asked(
        definitions="rules: {spender: {version: 1, conditions: {any: [{field: features.monetary_total, gt: 80}, "
        "{field: traits.plan, equals: pro}]}, actions: [{store_decision: {result: big}}]}}\n"
        "rule_sets: {all: {events: [purchase_completed], rules: [spender], record: all}}"
    )
    for number, properties in enumerate(({"total": 90, "currency": "EUR"}, {"total": 90})):
        asked.tell("purchase_completed", user_id="ada", key=f"{number}", properties=properties)
    newest, first = asked.ask("decisions_list", rule="spender")["decisions"]
    assert (first["status"], first["missing"]) == ("Matched", {})
    assert newest["status"] == "NoMatch"
    assert newest["missing"] == {"features.monetary_total": "2 currencies: EUR and none; no rates"}
    assert [step["note"] for step in newest["trace"]] == ["missing", "missing"]
    audited = asked.ask("decisions_audit", decision=newest["decision_id"])
    assert (audited["decision"]["missing"], audited["problems"]) == (newest["missing"], [])
    assert asked.ask("decisions_verify")["breaches"] == []
    (tried,) = asked.ask("decisions_evaluate", person="user_id:ada")["decisions"]
    assert tried["missing"] == newest["missing"]
