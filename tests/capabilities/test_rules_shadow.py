"""Shadows: a version asked of live events beside the one that counts does nothing, and is compared with it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import Asked
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.store import scan_pages


def rule(above: int, *actions: dict[str, Any]) -> dict[str, Any]:
    return {
        "conditions": {"field": "event.properties.score", "greater_than": above},
        "actions": [{"store_decision": {"result": "reject"}}, *actions],
    }


@pytest.fixture
def asked() -> Asked:
    """Version 1 counts, version 2 is tested and would do much more."""
    made = Asked()
    made.ask("rule_sets_write", name="apps", events=["applied"], rules=["score"])
    made.ask("rules_write", id="score", rule=rule(80))
    made.ask("rules_activate", id="score", version=1, untested=True)
    actions = ({"tag": {"tag": "low"}}, {"award_points": {"points": 7}}, {"call_webhook": {"url": "https://x.example"}})
    made.ask("rules_write", id="score", rule=rule(70, *actions))
    made.ask("rules_tested", id="score", version=2)
    return made


def tell(asked: Asked, *scores: Any) -> list[dict[str, Any]]:
    receipts = [asked.tell("applied", user_id="ada", properties={"score": score}) for score in scores]
    return [each for receipt in receipts for each in asked.ask("decisions_list", event=receipt["id"])["decisions"]]


def said(decisions: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return sorted((each["mode"], each["version"], each["status"]) for each in decisions)


def test_a_shadow_is_asked_and_does_nothing(asked: Asked) -> None:
    assert asked.ask("rules_shadow", id="score", version=2) == {"id": "score", "active": 1, "shadow": 2}
    assert said(tell(asked, 75)) == [("shadow", 2, "Rejected")]
    assert said(tell(asked, 60)) == []
    person = asked.ask("person", id="user_id:ada")
    assert person["tags"] == []
    assert person["views"]["points"]["balance"] == 0
    assert list(scan_pages(asked.engine.store, "outbox")) == []
    # What counts said nothing of 75 yet, and only its word is the person's.
    assert person["views"]["decisions"] == {}
    assert said(tell(asked, 91)) == [("live", 1, "Rejected"), ("shadow", 2, "Rejected")]
    assert asked.ask("person", id="user_id:ada")["views"]["decisions"]["score"]["version"] == 1
    assert [each["mode"] for each in asked.ask("decisions_list", rule="score")["decisions"]] == ["live"]


def test_what_it_says_is_compared_with_what_counted(asked: Asked) -> None:
    asked.ask("rules_shadow", id="score", version=2)
    tell(asked, 60, 75, 76, 85, 95)
    report = asked.ask("rules_shadow_report", id="score")
    assert (report["version"], report["decisions"], report["changed"], report["errors"]) == (2, 4, 4, 0)
    cells = {(each["live"], each["shadow"]): (each["same"], each["changed"]) for each in report["matrix"]}
    # Of 85 and 95 both say the same, and the shadow wants more done.
    assert cells == {("NoMatch", "Rejected"): (0, 2), ("Rejected", "Rejected"): (0, 2)}
    assert [each["inputs"]["event.properties.score"] for each in report["samples"]] == [95, 85, 76, 75]
    assert report["samples"][0]["wished"][1] == {"tag": {"tag": "low"}}


def test_a_shadow_that_is_silent_where_the_other_is_not_says_so(asked: Asked) -> None:
    asked.ask("rules_write", id="score", rule=rule(90))
    asked.ask("rules_tested", id="score", version=3)
    asked.ask("rules_shadow", id="score", version=3)
    decisions = tell(asked, 85, 91)
    assert said(decisions) == [
        ("live", 1, "Rejected"),
        ("live", 1, "Rejected"),
        ("shadow", 3, "NoMatch"),
        ("shadow", 3, "Rejected"),
    ]
    report = asked.ask("rules_shadow_report", id="score", version=3)
    assert [(each["live"], each["shadow"], each["same"], each["changed"]) for each in report["matrix"]] == [
        ("Rejected", "NoMatch", 0, 1),
        ("Rejected", "Rejected", 1, 0),
    ]


def test_a_rule_without_an_active_version_can_have_a_shadow() -> None:
    asked = Asked()
    asked.ask("rule_sets_write", name="apps", events=["applied"], rules=["new"])
    asked.ask("rules_write", id="new", rule=rule(10))
    asked.ask("rules_tested", id="new", version=1)
    assert tell(asked, 50) == []
    asked.ask("rules_shadow", id="new", version=1)
    assert said(tell(asked, 50)) == [("shadow", 1, "Rejected")]


def test_it_ends_when_it_is_ended_activated_or_retired(asked: Asked) -> None:
    asked.ask("rules_shadow", id="score", version=2)
    assert asked.ask("rules_shadow", id="score", version=0)["shadow"] == 0
    assert tell(asked, 75) == []
    asked.ask("rules_shadow", id="score", version=2)
    asked.ask("rules_activate", id="score", version=2)
    assert said(tell(asked, 75)) == [("live", 2, "Rejected")]
    turns = [(each["version"], each["to"]) for each in asked.ask("rules_log", id="score")["log"]]
    assert turns[-6:] == [
        (2, "shadow"),
        (2, "shadow ended"),
        (2, "shadow"),
        (2, "shadow ended"),
        (1, "retired"),
        (2, "active"),
    ]


def test_only_what_is_tested_and_there_can_be_a_shadow(asked: Asked) -> None:
    with pytest.raises(Conflict, match="version 1 of rule 'score' is active"):
        asked.ask("rules_shadow", id="score", version=1)
    with pytest.raises(NotFound, match="no version 9"):
        asked.ask("rules_shadow", id="score", version=9)


def test_the_audit_of_a_shadow_shows_that_nothing_was_carried_out(asked: Asked) -> None:
    asked.ask("rules_shadow", id="score", version=2)
    (decision,) = tell(asked, 75)
    audit = asked.ask("decisions_audit", decision=decision["decision_id"])
    assert audit["problems"] == []
    assert {each["status"] for each in audit["consequences"][1:]} == {"not carried out"}
    assert asked.ask("decisions_verify")["breaches"] == []
