"""The function that writes the lake: everything in any number of invocations, however short each of them is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from threadline.app import MEMORY, composition
from threadline.kernel.event import Event, Identifier
from threadline.settings import Settings
from threadline.surfaces.lambda_ import lake
from threadline.surfaces.lambda_.runtime import Runtime

pytest.importorskip("pyarrow")
EVENTS = 25


def test_invocations_that_are_cut_short_go_on_where_the_last_one_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake, "ENTRIES", 10)
    runtime = Runtime(composition(), Settings(store=MEMORY, lake=str(tmp_path)))
    events = [
        Event(type="visited", identifiers=(Identifier("user_id", f"p{number}"),), occurred_at=1_000, key=str(number))
        for number in range(EVENTS)
    ]
    runtime.engine.recorder.record(events)
    assert lake.bring_up(runtime, time.monotonic()) == {"events": 0, "position": -1, "complete": False}

    ticks = iter([0.0, 1.0, 2.0, 3.0])  # time for two of the three parts
    monkeypatch.setattr(lake.time, "monotonic", lambda: next(ticks))
    assert lake.bring_up(runtime, 2.0) == {"events": 20, "position": 20, "complete": False}
    monkeypatch.undo()
    assert lake.bring_up(runtime, time.monotonic() + 30) == {"events": 5, "position": EVENTS, "complete": True}

    door = runtime.composition.lake(runtime.settings)
    assert door.verify(runtime.engine)["problems"] == []
    runtime.close()
