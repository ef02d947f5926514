"""The gate: a version is activated only if a what-if has shown what it changes, and that is little enough."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.whatif_stage import Tried, yaml
from threadline.capabilities.decide.rules import what_if_gate as gate
from threadline.kernel.errors import Conflict
from threadline.kernel.time import format_time

# --- the gate ----------------------------------------------------------------------------------


@pytest.fixture
def gated() -> Tried:
    tried = Tried(yaml({"segments": {}}))
    tried.ask("rule_sets_write", name="paid", events=["paid"], rules=["big"])
    for above in (80, 70):
        content = {"conditions": {"field": "event.properties.total", "greater_than": above}}
        tried.ask("rules_write", id="big", rule=content)
    tried.ask("rules_activate", id="big", version=1, untested=True)
    for total in range(0, 100, 4):
        tried.tell("paid", user_id=f"u{total}", properties={"total": total})
    return tried


def activate(tried: Tried, changed_max: float | None = 1.0, version: int = 2) -> Any:
    return tried.ask("rules_activate", id="big", version=version, untested=True, changed_max=changed_max)


def test_a_rule_without_a_version_is_tried_in_its_newest_one(gated: Tried) -> None:
    answer = gated.what_if(rule="big", save=True)
    assert (answer["changed"], answer["decisions"]) == (3, 25)
    assert activate(gated)["active"] == 2


def test_the_gate_opens_for_exactly_what_was_tried(gated: Tried) -> None:
    with pytest.raises(Conflict, match="no what-if of it was saved"):
        activate(gated)
    gated.what_if(rule="big", version=2)
    with pytest.raises(Conflict, match="no what-if of it was saved"):
        activate(gated)
    answer = gated.what_if(rule="big", version=2, save=True)
    # 72, 76 and 80 of 25.
    assert (answer["changed"], answer["decisions"]) == (3, 25)
    with pytest.raises(Conflict, match=r"changed 12.00% of 25 answers, and 10.00% may be changed"):
        activate(gated, 0.1)
    assert activate(gated, 0.12)["active"] == 2


def test_the_gate_asks_for_everybody_against_what_is_active(gated: Tried) -> None:
    gated.what_if(rule="big", version=2, save=True, people=["user_id:u4"])
    with pytest.raises(Conflict, match="looked at a part"):
        activate(gated)
    gated.what_if(rule="big", version=2, save=True)
    gated.ask("rules_write", id="big", rule={"conditions": {"field": "event.properties.total", "greater_than": 10}})
    gated.ask("rules_activate", id="big", version=3, untested=True)
    with pytest.raises(Conflict, match="was against version 1, and version 3 is active now"):
        activate(gated)


def test_the_gate_looks_at_what_is_active_when_the_version_is_activated(
    gated: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated.what_if(rule="big", version=2, save=True)
    gated.ask("rules_write", id="big", rule={"conditions": {"field": "event.properties.total", "greater_than": 10}})
    newest, once = gate.newest, [True]

    def overtaken(*asked: Any) -> Any:
        found = newest(*asked)
        if once:
            once.clear()
            gated.ask("rules_activate", id="big", version=3, untested=True)
        return found

    monkeypatch.setattr(gate, "newest", overtaken)
    with pytest.raises(Conflict, match="was against version 1, and version 3 is active now"):
        activate(gated)


def test_the_gate_refuses_errors_and_what_says_nothing(gated: Tried) -> None:
    broken = {
        "conditions": {"field": "event.properties.total", "greater_than": 70},
        "actions": [{"award_points": {"points": "${event.properties.missing}"}}],
    }
    gated.ask("rules_write", id="big", rule=broken)
    gated.what_if(rule="big", version=3, save=True)
    with pytest.raises(Conflict, match="had 7 errors"):
        activate(gated, 1.0, 3)
    gated.what_if(rule="big", version=2, save=True, start=format_time(gated.now), stop=format_time(gated.now + 1))
    with pytest.raises(Conflict, match="asked it of no event"):
        activate(gated)


def test_the_setting_asks_for_the_same(gated: Tried) -> None:
    gated.engine.simulations.activation_changed_max = 0.1
    with pytest.raises(Conflict, match="no what-if"):
        activate(gated, None)
    gated.what_if(rule="big", version=2, save=True)
    with pytest.raises(Conflict, match="may be changed"):
        activate(gated, 0.5)
    gated.engine.simulations.activation_changed_max = 0.5
    assert activate(gated, None)["active"] == 2


# --- what was seen -----------------------------------------------------------------------------


def seen(tried: Tried, what_if: str, version: int = 2) -> Any:
    return tried.ask("rules_activate", id="big", version=version, untested=True, seen=what_if)


def test_activation_by_what_was_seen_takes_the_newest_what_if_of_exactly_this_version(gated: Tried) -> None:
    shut = gated.ask("rules_gate", id="big", version=2)
    assert (shut["open"], shut["what_if"], shut["active"]) == (False, "", 1)
    assert "no what-if of it was saved" in shut["problem"]
    with pytest.raises(Conflict, match="no what-if of it was saved"):
        seen(gated, "f" * 32)
    first = gated.what_if(rule="big", version=2, save=True)
    gated.tell("paid", user_id="late", properties={"total": 75})
    second = gated.what_if(rule="big", version=2, save=True)
    with pytest.raises(Conflict, match=f"is newer than {first['id']}, which was looked at"):
        seen(gated, first["id"])
    found = gated.ask("rules_gate", id="big", version=2)
    # 72, 75, 76 and 80 of 26.
    assert (found["open"], found["what_if"], found["changed"], found["asked"]) == (True, second["id"], 4, 26)
    assert seen(gated, second["id"])["active"] == 2


def test_what_was_seen_counts_only_against_the_version_that_is_active(gated: Tried) -> None:
    tried = gated.what_if(rule="big", version=2, save=True)
    gated.ask("rules_write", id="big", rule={"conditions": {"field": "event.properties.total", "greater_than": 10}})
    gated.ask("rules_activate", id="big", version=3, untested=True)
    assert not gated.ask("rules_gate", id="big", version=2)["open"]
    with pytest.raises(Conflict, match="was against version 1, and version 3 is active now"):
        seen(gated, tried["id"])


def test_a_setting_that_bounds_changes_holds_for_what_was_seen_as_well(gated: Tried) -> None:
    gated.engine.simulations.activation_changed_max = 0.1
    tried = gated.what_if(rule="big", version=2, save=True)
    found = gated.ask("rules_gate", id="big", version=2)
    assert (found["open"], found["required"]) == (False, True)
    with pytest.raises(Conflict, match=r"changed 12.00% of 25 answers, and 10.00% may be changed"):
        seen(gated, tried["id"])


def test_cells_of_the_matrix_name_the_people_whose_answers_changed(gated: Tried) -> None:
    answer = gated.what_if(rule="big", version=2)
    cells = {(each["old"], each["new"]): each for each in answer["matrix"]}
    changed = {gated.ask("person", id=f"user_id:u{total}")["id"] for total in (72, 76, 80)}
    assert set(cells["NoMatch", "Matched"]["people"]) == changed
    assert all(each["people"] == [] for place, each in cells.items() if place != ("NoMatch", "Matched"))
