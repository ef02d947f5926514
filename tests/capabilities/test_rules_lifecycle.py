"""The life of a rule by operations: drafts, versions, what is active, what was in force, and who may change what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.lifecycle_stage import SCORE, activate, asked_with_set, decided, log, rule, write
from threadline.capabilities.decide.rules import repository
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import Conflict, InvalidDefinition, NotFound
from threadline.kernel.store import Batch, Key, Put
from threadline.kernel.time import DAY, SECOND, format_time

# --- versions -----------------------------------------------------------------------------------


def test_a_draft_decides_nothing_and_an_active_version_from_the_next_event_on() -> None:
    asked = asked_with_set()
    assert write(asked) == 1
    assert decided(asked) == []
    asked.ask("rules_tested", id="score", version=1, note="tried")
    assert decided(asked) == []
    answer = asked.ask("rules_activate", id="score", version=1)
    assert answer == {"id": "score", "version": 1, "state": "active", "active": 1}
    assert decided(asked) == [("Rejected", 1)]


@pytest.mark.parametrize("bound", [9.3e18, 1e20, 1e21])
def test_numbers_beyond_64_bits_count_as_they_were_written(bound: float) -> None:
    asked = asked_with_set()
    stored = {"store_decision": {"result": "reject", "bound": bound}}
    content = {"conditions": {"field": "event.properties.score", "less_than": bound}, "actions": [stored]}
    asked.ask("rules_write", id="score", rule=content)
    asked.ask("rules_activate", id="score", version=1, untested=True)
    assert asked.ask("rules_list")["rules"][0]["problem"] == ""
    assert decided(asked) == [("Rejected", 1)]
    assert asked.ask("decisions_verify")["breaches"] == []


def test_another_version_takes_the_place_of_the_one_before_in_one_commit() -> None:
    asked = asked_with_set()
    activate(asked)
    assert activate(asked, 90) == 2
    assert decided(asked, 85) == []
    assert decided(asked, 91) == [("Rejected", 2)]
    assert log(asked) == [(1, "draft"), (1, "active"), (2, "draft"), (1, "retired"), (2, "active")]
    states = asked.ask("rules_versions", id="score")["versions"]
    assert [(each["version"], each["state"], each["created_by"]) for each in states] == [
        (1, "retired", "shop"),
        (2, "active", "shop"),
    ]


def test_one_goes_back_by_activating_the_version_before() -> None:
    asked = asked_with_set()
    activate(asked)
    activate(asked, 90)
    asked.ask("rules_activate", id="score", version=1, note="too strict")
    assert decided(asked, 85) == [("Rejected", 1)]
    assert asked.ask("rules_show", id="score")["version"] == 1


def test_a_retired_rule_decides_nothing_and_can_come_back() -> None:
    asked = asked_with_set()
    activate(asked)
    assert asked.ask("rules_retire", id="score", note="enough")["active"] == 0
    assert decided(asked) == []
    with pytest.raises(NotFound, match="no version of rule 'score' is active"):
        asked.ask("rules_retire", id="score")
    asked.ask("rules_activate", id="score", version=1)
    assert decided(asked) == [("Rejected", 1)]


def test_the_same_content_is_the_same_version() -> None:
    asked = asked_with_set()
    first = asked.ask("rules_write", id="score", rule=rule())
    again = asked.ask("rules_write", id="score", rule=dict(reversed(rule().items())))
    assert (first["created"], again["created"]) == (True, False)
    assert (first["version"], first["hash"]) == (again["version"], again["hash"])
    assert log(asked) == [(1, "draft")]


def test_whoever_knows_an_older_version_is_told() -> None:
    asked = asked_with_set()
    assert write(asked, expected=0) == 1
    with pytest.raises(Conflict, match="the newest version of rule 'score' is 1, not 0"):
        write(asked, 85, expected=0)
    assert write(asked, 85, expected=1) == 2


@pytest.mark.parametrize(
    ("steps", "last", "message"),
    [
        ([], ("rules_activate", {"version": 1}), "is a draft that nobody has tested"),
        ([], ("rules_activate", {"version": 2}), "has no version 2"),
        ([("rules_retire", {"version": 1})], ("rules_tested", {"version": 1}), "is retired and cannot become tested"),
        (
            [("rules_activate", {"version": 1, "untested": True})],
            ("rules_tested", {"version": 1}),
            "is active and cannot become tested",
        ),
    ],
)
def test_what_a_version_cannot_become(steps: list[Any], last: Any, message: str) -> None:
    asked = asked_with_set()
    write(asked)
    for operation, params in steps:
        asked.ask(operation, id="score", **params)
    before = log(asked)
    with pytest.raises((Conflict, NotFound), match=message):
        asked.ask(last[0], id="score", **last[1])
    assert log(asked) == before


def test_what_is_so_already_is_not_told_again() -> None:
    asked = asked_with_set()
    activate(asked)
    before = log(asked)
    assert asked.ask("rules_activate", id="score", version=1)["state"] == "active"
    assert log(asked) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"conditions": {"field": "tags", "contain": "x"}}, r"rule\.conditions\.contain: unknown operator 'contain'"),
        ({**SCORE, "version": 7}, r"rule\.version: the version number is assigned when the rule is written"),
        ({**SCORE, "actions": [{"tag": {"tag": 7}}]}, r"rule\.actions\[0\]\.tag\.tag: `tag` takes a text"),
        (
            {"conditions": {"field": "features.monetary", "exists": True}},
            "rule: rule 'score': features has no 'monetary'",
        ),
    ],
)
def test_what_cannot_be_a_rule_is_not_written(content: dict[str, Any], message: str) -> None:
    asked = Asked()
    with pytest.raises(InvalidDefinition, match=message):
        asked.ask("rules_write", id="score", rule=content)
    assert asked.ask("rules_list")["rules"] == []


# --- what was in force --------------------------------------------------------------------------


def test_which_version_was_in_force_is_answered_from_the_log() -> None:
    asked = asked_with_set()
    instants = []
    for step in (lambda: activate(asked), lambda: activate(asked, 90), lambda: asked.ask("rules_retire", id="score")):
        asked.now += DAY
        step()
        instants.append(asked.now)
    asked.now += DAY
    found = []
    for at in (instants[0] - 10, instants[0], instants[1] - 10, instants[1], instants[2] - 1, instants[2]):
        try:
            view = asked.ask("rules_show", id="score", at=format_time(at))
            found.append((view["version"], view["effective"]))
        except NotFound:
            found.append((0, None))
    assert found == [(0, None), (1, True), (1, True), (2, True), (2, True), (0, None)]


def test_effective_times_are_told_beside_what_was_in_force() -> None:
    asked = asked_with_set()
    until = STARTS_AT + 2 * DAY
    asked.ask("rules_write", id="score", rule=rule(effective_until=format_time(until)))
    asked.ask("rules_activate", id="score", version=1, untested=True)
    assert decided(asked) == [("Rejected", 1)]
    asked.now = until
    assert decided(asked) == []
    assert asked.ask("rules_show", id="score", at=format_time(until - 1))["effective"] is True
    assert asked.ask("rules_show", id="score", at=format_time(until))["effective"] is False


def test_who_asks_for_all_rules_is_not_answered_by_those_that_do_not_count() -> None:
    asked = asked_with_set()
    until = STARTS_AT + DAY
    asked.ask("rules_write", id="score", rule=rule(effective_until=format_time(until)))
    asked.ask("rules_activate", id="score", version=1, untested=True)
    event = {"type": "applied", "key": "a", "identifiers": {"user_id": "ada"}, "properties": {"score": 91}}
    asked.tell("applied", user_id="ada", properties={"score": 91})

    def statuses(**named: Any) -> list[str]:
        return [each["status"] for each in asked.ask("decisions_evaluate", **named)["decisions"]]

    for effective, found in ((True, ["Rejected"]), (False, [])):
        assert statuses(event=event) == found
        assert statuses(event=event, rule_set="apps") == found
        assert len(statuses(person="user_id:ada")) == len(found)
        assert statuses(event=event, rule="score") == ["Rejected"], "who names a rule wants to know of that"
        why = asked.ask("rules_why", id="user_id:ada", rule="score")
        assert (why["matched"], why["effective"]) == (True, effective)
        asked.now = until


@pytest.mark.parametrize("operation", ["rules_show", "rules_log", "rules_versions", "rules_shadow_report"])
def test_what_was_never_a_rule_is_not_found(operation: str) -> None:
    asked = asked_with_set()
    with pytest.raises(NotFound, match="'score'"):
        asked.ask(operation, id="score")


def test_rules_are_listed_page_by_page() -> None:
    declared = "{conditions: {field: tags, exists: true}}"
    asked = Asked(definitions=f"rules: {{b1: {declared}, d: {declared}}}")
    for id in ("a", "b", "c", "e"):
        asked.ask("rules_write", id=id, rule=rule())
    asked.ask("rules_activate", id="c", version=1, untested=True)
    found: list[str] = []
    after = ""
    while True:
        page = asked.ask("rules_list", cursor=after, limit=2)
        assert len(page["rules"]) <= 2
        found += [each["id"] for each in page["rules"]]
        after = page["next"]
        if not after:
            break
    assert found == ["a", "b", "b1", "c", "d", "e"]
    assert [each["id"] for each in asked.ask("rules_list", state="active")["rules"]] == ["b1", "c", "d"]
    assert [each["id"] for each in asked.ask("rules_list", state="draft", limit=2)["rules"]] == ["a", "b"]


def test_sets_say_which_of_their_rules_are_there() -> None:
    asked = asked_with_set()
    (shown,) = asked.ask("rule_sets_list")["rule_sets"]
    assert (shown["rules"], shown["absent"], shown["declared"]) == ([], ["score"], False)
    activate(asked)
    (shown,) = asked.ask("rule_sets_list")["rule_sets"]
    assert (shown["rules"], shown["absent"]) == (["score"], [])
    assert asked.ask("rule_sets_write", name="apps", events=["applied"], rules=["score"])["changed"] is False
    assert asked.ask("rule_sets_remove", name="apps")["changed"] is True
    assert decided(asked) == []
    with pytest.raises(NotFound):
        asked.ask("rule_sets_remove", name="apps")
    turns = asked.engine.store.query("rule_log", "default/set/apps")
    assert len(turns) == 2


# --- workspaces and processes -------------------------------------------------------------------


def test_no_workspace_sees_the_rules_of_another() -> None:
    asked = asked_with_set()
    activate(asked)
    asked.tell("applied", workspace="other", user_id="ada", properties={"score": 91})
    assert asked.ask("rules_list", workspace="other")["rules"] == []
    assert [each["type"] for each in asked.ask("events_feed", workspace="other")["events"]] == ["applied"]
    with pytest.raises(NotFound):
        asked.ask("rules_show", workspace="other", id="score")


def test_another_process_goes_by_a_change_when_its_time_is_up() -> None:
    asked = asked_with_set()
    other = Asked()
    other.engine = Engine(asked.engine.store, asked.engine.catalogue, lambda: other.now)
    other.engine.shared.refresh_seconds = 1.0
    other.now, other._keys = asked.now, 1_000
    assert decided(other) == []
    activate(asked)
    for _ in range(3):
        assert decided(other) == []
    other.now += SECOND
    assert decided(other) == [("Rejected", 1)]
    other.engine.shared.refresh_seconds = 0.0
    asked.ask("rules_retire", id="score")
    assert decided(other) == []


def test_who_alone_writes_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_with_set()
    asked.engine.shared.refresh_seconds = None
    assert decided(asked) == []
    reads: list[Any] = []
    get = asked.engine.store.get

    def counted(keys: Any) -> Any:
        reads.extend(key for key in keys if key.table == "edition")
        return get(keys)

    monkeypatch.setattr(asked.engine.store, "get", counted)
    for _ in range(3):
        asked.tell("applied", user_id="ada", properties={"score": 91})
    assert reads == []
    activate(asked)
    assert decided(asked) == [("Rejected", 1)]


def test_two_who_change_a_rule_at_once_both_get_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_with_set()
    write(asked)
    write(asked, 85)
    other = Asked()
    other.engine = Engine(asked.engine.store, asked.engine.catalogue, lambda: asked.now)
    once = [True]
    held = repository.stored_head

    def overtaken(context: Any, id: str) -> Any:
        found = held(context, id)
        if once:
            once.clear()
            other.ask("rules_activate", id="score", version=1, untested=True)
        return found

    monkeypatch.setattr(repository, "stored_head", overtaken)
    asked.ask("rules_activate", id="score", version=2, untested=True)
    assert log(asked)[2:] == [(1, "active"), (1, "retired"), (2, "active")]
    assert decided(asked, 86) == [("Rejected", 2)]


def test_a_change_leaves_all_other_rules_as_they_were_compiled() -> None:
    asked = asked_with_set()
    activate(asked)
    asked.ask("rules_write", id="other", rule=rule(5))
    asked.ask("rules_activate", id="other", version=1, untested=True)
    before = repository.active_rules_of(_context(asked))
    activate(asked, 90)
    after = repository.active_rules_of(_context(asked))
    assert after.rules["other"] is before.rules["other"]
    assert (before.rules["score"].version, after.rules["score"].version) == (1, 2)


def test_a_rule_that_cannot_be_read_any_more_stops_nothing() -> None:
    asked = asked_with_set()
    activate(asked)
    broken = Put(Key("rules", "default", "rule/broken"), b'{"id":"broken","conditions":{"field":"x","newer":1}}')
    assert asked.engine.store.commit([Batch(writes=[broken])]) == [None]
    asked.engine.shared.change("default", "rules", [])
    assert decided(asked) == [("Rejected", 1)]
    assert "unknown operator 'newer'" in repository.active_rules_of(_context(asked)).problems["rule/broken"]


def _context(asked: Asked) -> Any:
    return Context(asked.engine, "default", asked.now)


def test_event_types_given_with_a_rule_become_its_own_set_which_a_later_version_changes() -> None:
    asked = Asked()
    asked.ask("rules_write", id="score", rule=rule(), events=["applied"])
    asked.ask("rules_activate", id="score", version=1, untested=True)
    asked.tell("applied", user_id="ada", properties={"score": 91})
    assert len(asked.ask("decisions_list")["decisions"]) == 1
    asked.ask("rules_write", id="score", rule=rule(95), events=["applied", "renewed"])
    asked.ask("rules_write", id="score", rule=rule(96))
    [own] = asked.ask("rule_sets_list")["rule_sets"]
    assert (own["name"], own["events"], own["rules"]) == ("score", ["applied", "renewed"], ["score"])


def test_event_types_of_a_rule_that_another_set_names_are_refused_and_no_version_is_written() -> None:
    asked = Asked()
    asked.ask("rule_sets_write", name="all", events=["applied"], rules=["score"])
    with pytest.raises(Conflict, match="runs by the rule set 'all'"):
        asked.ask("rules_write", id="score", rule=rule(), events=["renewed"])
    assert asked.ask("rules_list")["rules"] == []


def test_a_set_of_several_rules_is_not_changed_with_the_rule_whose_name_it_has() -> None:
    asked = Asked()
    asked.ask("rule_sets_write", name="score", events=["applied"], rules=["score", "other"])
    with pytest.raises(Conflict, match="runs by the rule set 'score'"):
        asked.ask("rules_write", id="score", rule=rule(), events=["renewed"])


DOCUMENT = {
    "RuleId": "risk-scoring-v4",
    "Version": 4,
    "Name": "Risk scoring",
    "IsActive": True,
    "Priority": 50,
    "Conditions": [
        {"Field": "score", "Operator": "GreaterThan", "Value": 80},
        {"Field": "traits.country", "Operator": "In", "Value": ["DE", "AT"]},
    ],
    "Actions": [{"Type": "StoreDecision", "Order": 1, "Parameters": {"Result": "reject", "Reason": "score"}}],
}


@pytest.mark.parametrize(
    "written", [DOCUMENT, {name.lower(): value for name, value in DOCUMENT.items() if name[0] in "CAN"}]
)
def test_a_rule_as_a_document_database_keeps_it_is_written_and_tried_at_every_door(written: dict[str, Any]) -> None:
    document = {name: value for name, value in written.items() if name not in ("isactive",)}
    asked = Asked()
    asked.ask("rules_write", id="risk", rule=document, events=["applied"])
    asked.ask("rules_activate", id="risk", version=1, untested=True)
    asked.tell("identify", user_id="ada", properties={"country": "DE"})
    receipt = asked.tell("applied", user_id="ada", properties={"score": 91})
    assert [each["status"] for each in asked.ask("decisions_list")["decisions"]] == ["Rejected"]
    tried = asked.ask("decisions_evaluate", event_id=receipt["id"], content=document)["decisions"]
    assert [each["status"] for each in tried] == ["Rejected"]
    assert asked.ask("what_if_run", wait=True, rule="risk", content=document)["changed"] == 0


def test_an_operator_may_be_written_as_documents_write_it() -> None:
    asked = Asked()
    asked.ask(
        "rules_write", id="risk", rule={"conditions": {"field": "event.properties.score", "GreaterThanOrEqual": 80}}
    )
    shown = asked.ask("rules_show", id="risk", version=1)["content"]["conditions"]
    assert shown == {"field": "event.properties.score", "greater_than_or_equal": 80}
