"""The gate: a version is activated only if a what-if has shown what it changes, and that is little enough."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.whatif_stage import Tried, yaml
from threadline.capabilities.whatif import gate
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
