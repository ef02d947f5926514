"""What definitions leave out is told as missing or as empty: no operation ends with a fault of the program."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
import yaml

from tests.capabilities.asked import Asked
from threadline.capabilities.profile.interests.definition import SHIPPED
from threadline.kernel.errors import NotFound, ThreadlineError

OWN = ("computed", "insight", "remembered")
"""Derivations that cannot be left out."""


def left_out() -> dict[str, Any]:
    """Every section that can leave out something of what ships, leaving out all of it."""
    shipping = Asked()
    features = [each["name"] for each in shipping.ask("features_list")["features"]]
    derivations = [each["name"] for each in shipping.ask("memory_definitions")["derivations"]]
    return {
        "features": dict.fromkeys(features, False),
        "interests": {"events": dict.fromkeys(SHIPPED, False)},
        "memory": dict.fromkeys(sorted({*derivations} - {*OWN}), False),
        "points": False,
        "streaks": {"daily": False},
    }


SECTIONS = left_out()


@pytest.mark.parametrize("definitions", [*([name] for name in SECTIONS), [*SECTIONS]], ids=" ".join)
@pytest.mark.slow
def test_every_operation_answers_whatever_is_left_out(definitions: list[str]) -> None:
    asked = Asked(definitions=yaml.safe_dump({name: SECTIONS[name] for name in definitions}))
    for type in ("page", "tool_used", "purchase_completed"):
        asked.tell(type, user_id="42")
    examples = {name: each.example for name, each in asked.operations.items() if each.example is not None}
    assert len(examples) > 40
    for name, example in examples.items():
        with suppress(ThreadlineError):
            asked.ask(name, **msgspec.to_builtins(example))


def test_points_that_are_switched_off_are_told_as_such() -> None:
    asked = Asked(definitions="points: false")
    asked.tell("tool_used", user_id="42")
    for operation, params in (
        ("points_of", {}),
        ("points_spend", {"points": 1, "request": "a"}),
        ("points_adjust", {"points": 1, "request": "a", "reason": "b"}),
    ):
        with pytest.raises(NotFound, match="switched off"):
            asked.ask(operation, id="user_id:42", **params)
    assert [each["type"] for each in asked.ask("events_of", id="user_id:42")["events"]] == ["tool_used"]
