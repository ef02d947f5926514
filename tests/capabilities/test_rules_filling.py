"""What actions are filled in with is bounded while it is filled in: a rule makes no more text than may be written."""

from __future__ import annotations

from typing import Any

import pytest

from threadline.capabilities.decide.rules.acting import act
from threadline.capabilities.decide.rules.actions import KINDS, Action
from threadline.capabilities.foundation.conditions import Path
from threadline.capabilities.foundation.conditions.placeholders import read_template
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import EVENT_BYTES_MAX


def action(value: Any) -> Action:
    """One with a field that takes anything."""

    def fail(at: Any, problem: str) -> None:
        raise AssertionError(problem)

    return Action(KINDS["store_decision"], {"items": read_template(value, (), fail)})


@pytest.mark.parametrize("found", ["x" * 30_000, ["x" * 1_000] * 30, {"a": {"b": "x" * 30_000}}])
@pytest.mark.parametrize("hole", ["${event.properties.a}", "a ${event.properties.a}"])
def test_a_rule_whose_text_would_be_larger_than_all_actions_may_be_stops_at_that_size(found: Any, hole: str) -> None:
    looked: list[Path] = []

    def look(path: Path) -> Any:
        looked.append(path)
        return found

    with pytest.raises(InvalidValue, match=f"the actions would take more than {EVENT_BYTES_MAX:,} bytes"):
        act([action([hole] * 1_000)], {}, look)
    assert len(looked) == 2


def test_all_that_fits_is_filled_in() -> None:
    number = EVENT_BYTES_MAX // 2_300
    made = act([action(["${event.properties.a}"] * number)], {}, lambda path: "x" * 1_000)
    assert made.output == {"items": ["x" * 1_000] * number}
