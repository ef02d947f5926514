"""Rules as a document database keeps them, imported: `RuleId`, `Conditions`, `Operator`, `Actions` with `Order`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.capabilities.asked import Asked
from threadline.capabilities.decide.rules.actions import KINDS, SYNONYMS
from threadline.capabilities.decide.rules.document_import import ROOTS, snake
from threadline.capabilities.decide.rules.file_import import Imported, rules_of_files
from threadline.capabilities.foundation.conditions.operators import OPERATORS
from threadline.capabilities.foundation.definitions import Definitions
from threadline.engine.folding.catalogue import discover
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.projection import Projection

RISK: dict[str, Any] = {
    "_id": {"$oid": "66b0ff5f84d1a2"},
    "RuleId": "rule-risk-score",
    "Version": 4,
    "Name": "Risk scoring",
    "Description": "Reject high-risk applications",
    "IsActive": True,
    "Priority": 50,
    "Conditions": [{"Field": "score", "Operator": "GreaterThan", "Value": 80}],
    "Actions": [{"Type": "StoreDecision", "Order": 1, "Parameters": {"result": "reject"}}],
    "EffectiveFrom": {"$date": "2026-01-01T00:00:00Z"},
    "CreatedAt": "2026-02-10T14:20:00Z",
}


def imported(*documents: Any, **how: Any) -> Imported:
    text = json.dumps(documents[0] if len(documents) == 1 else documents)
    return rules_of_files([("rules.json", text.encode())], **how)


def conditions(*written: Any) -> Any:
    [rule] = imported({**RISK, "Conditions": written[0] if type(written[0]) is list else list(written)}).rules
    return rule.content["conditions"]


def test_a_document_becomes_the_rule_that_decides_as_it_says() -> None:
    [rule] = imported(RISK).rules
    assert rule.content == {
        "id": "rule-risk-score",
        "version": 4,
        "name": "Risk scoring",
        "description": "Reject high-risk applications",
        "priority": 50,
        "conditions": {"all": [{"field": "event.properties.score", "greater_than": 80}]},
        "actions": [{"store_decision": {"result": "reject"}}],
        "effective_from": "2026-01-01T00:00:00.000000Z",
    }
    asked = Asked()
    content = {name: each for name, each in rule.content.items() if name not in ("id", "version")}
    asked.ask("rules_write", id=rule.id, rule=content)
    event = {"type": "applied", "key": "k", "identifiers": {"user_id": "ada"}, "properties": {"score": 91}}
    (decision,) = asked.ask("decisions_evaluate", event=event, rule=rule.id, version=1)["decisions"]
    assert decision["status"] == "Rejected"


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_is_read_in_either_spelling(name: str) -> None:
    value = {"in": [1], "not_in": [1], "exists": False, "regex": "^a"}.get(name, "1")
    pascal = "".join(part.capitalize() for part in name.split("_"))
    for operator in (pascal, name):
        test = {"Field": "traits.plan", "Operator": operator, "Value": value}
        assert conditions(test) == {"all": [{"field": "traits.plan", name: value}]}


def test_groups_stand_in_each_other() -> None:
    test = {"Field": "Payload.score", "Operator": "Exists"}
    mine = {"field": "event.properties.score", "exists": True}
    assert conditions({"Any": [test, {"Not": {"All": [test]}}]}) == {"all": [{"any": [mine, {"not": {"all": [mine]}}]}]}
    [rule] = imported({**RISK, "Conditions": {"Not": test}}).rules
    assert rule.content["conditions"] == {"not": mine}


def test_a_field_that_is_none_of_threadlines_is_a_property_of_the_event() -> None:
    projections = {each.name for each in discover(definitions=Definitions()) if isinstance(each, Projection)}
    assert projections - {"profile"} <= ROOTS
    for field, path in {
        "points": "event.properties.points",
        "points.balance": "points.balance",
        "tags": "tags",
    }.items():
        [test] = conditions({"Field": field, "Operator": "Exists"})["all"]
        assert test["field"] == path


@pytest.mark.parametrize("written", SYNONYMS)
def test_every_action_is_read(written: str) -> None:
    kind = KINDS[SYNONYMS[written]]
    params = {
        name: {"points": 3, "url": "https://a.example"}.get(name, "some_value")
        for name, param in kind.params.items()
        if param.required or name in kind.one_of[:1]
    }
    given = {"".join(part.capitalize() for part in name.split("_")): each for name, each in params.items()}
    [rule] = imported({**RISK, "Actions": [{"Type": written, "Order": 1, "Parameters": given}]}).rules
    assert rule.content["actions"] == [{kind.name: params}]


def test_actions_stand_in_their_order() -> None:
    actions = [{"Type": "Tag", "Order": order, "Parameters": {"tag": f"t{order}"}} for order in (3, 1, 2)]
    [rule] = imported({**RISK, "Actions": actions}).rules
    assert [each["tag"]["tag"] for each in rule.content["actions"]] == ["t1", "t2", "t3"]


def test_of_several_versions_the_newest_active_one_is_taken_and_of_drafts_the_newest() -> None:
    versions = [{**RISK, "Version": number, "IsActive": number < 3} for number in (2, 3, 1)]
    lines = "\n".join(map(json.dumps, versions)).encode()
    for found in (imported(*versions), rules_of_files([("export.json", lines)])):
        assert [rule.version for rule in found.rules] == [2]
        assert found.left_out == [
            "rule-risk-score version 1 is left out: version 2 is newer",
            "rule-risk-score version 3 is left out: it is not active",
        ]
    assert [rule.version for rule in imported(*versions, inactive=True).rules] == [3]
    assert imported(versions[1]) == ([], ["rule-risk-score version 3 is left out: it is not active"])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"Conditons": []}, "rules.json: unknown key 'conditons' of a rule; did you mean 'conditions'?"),
        ({"RuleId": 7}, "rules.json: a rule has a `RuleId`, a text"),
        (
            {"Conditions": [{"Field": "a", "Operator": "Bigger", "Value": 1}]},
            "rules.json: Conditions: unknown operator",
        ),
        ({"Conditions": [{"Field": "a", "Value": 1}]}, "rules.json: Conditions: a condition has `Field`"),
        ({"Conditions": ["score"]}, "rules.json: Conditions is a list of objects"),
        ({"Conditions": []}, "rules.json.conditions.all: `all` takes a list of at least one condition"),
        ({"Actions": [{"Type": "Explode"}]}, "unknown action 'Explode'"),
        ({"Actions": [{"Parameters": {}}]}, "rules.json: Actions: an action has `Type`"),
        ({"Actions": [{"Type": "Tag", "Order": "1"}]}, "rules.json: Actions: `Order` is a whole number"),
        ({"Conditions": {"All": [], "Any": []}}, "rules.json: Conditions: a condition has `Field`"),
        ({"Version": "4"}, "rules.json.version"),
    ],
)
def test_a_mistake_in_a_document_names_its_place(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidDefinition) as error:
        imported({**RISK, **changes})
    assert problem in str(error.value)


def test_keys_in_snake_case_are_the_same_document() -> None:
    named = {snake(name): each for name, each in RISK.items()}
    [one], [other] = imported(named).rules, imported(RISK).rules
    assert one.canonical == other.canonical


def test_two_rules_of_one_version_are_refused() -> None:
    with pytest.raises(InvalidDefinition, match="two rules 'rule-risk-score' of version 4"):
        imported(RISK, RISK)
