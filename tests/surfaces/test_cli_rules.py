"""`threadline what-if` and `threadline rules`, called in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import threadline
from tests.surfaces.cli_stage import call, composed, store
from threadline.kernel.counted import counted

__all__ = ["call", "composed", "store"]

RULE = {"conditions": {"field": "event.properties.total", "greater_than": 80}}


@pytest.mark.parametrize(("historical", "asked", "done"), [("all", 3, "counted"), ("by_set", 1, "left out")])
def test_a_what_if_says_what_became_of_historical_events(
    call: Any, store: Path, tmp_path: Path, historical: str, asked: int, done: str
) -> None:
    with threadline.open(store) as shop:
        shop.rule_sets.write(name="orders", events=["purchase_completed"], rules=["big"])
        for number in range(2):
            event = {"type": "purchase_completed", "key": f"old-{number}", "identifiers": {"user_id": "42"}}
            shop.record([{**event, "historical": True, "occurred_at": "2020-01-01"}])
    (tmp_path / "big.json").write_text(json.dumps(RULE))
    command = ("what-if", "run", "--rule", "big", "--content", str(tmp_path / "big.json"), "--historical", historical)
    shown = call(*command)
    assert shown.code == 0, shown.err
    assert f"{done}: 2 historical events of rule sets with `existing: false`" in shown.out.replace("\n", " ")
    assert f"0 of {counted(asked, 'answer')} changed" in shown.out
