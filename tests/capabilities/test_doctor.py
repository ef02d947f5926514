"""What the doctor says of a running server, and that a screen says the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.console.stage import opened, signed_in
from threadline.app import open_engine
from threadline.capabilities.operate.doctor.operations import DoctorResult, doctor
from threadline.engine.context import Context
from threadline.engine.scheduled import timer_put
from threadline.kernel.event import Event, Identifier
from threadline.kernel.operation import NoParams
from threadline.kernel.policy import Timer
from threadline.kernel.store import Batch
from threadline.kernel.time import HOUR, parse_time
from threadline.settings import Settings

NOW = parse_time("2026-03-01T12:00:00Z")


def asked(store: Any, *, now: int = NOW, recorded_at: int = NOW, due_at: int = 0) -> DoctorResult:
    """What is said at ``now`` of a store with an event, and a timer if it is due at an instant."""
    clock = [recorded_at]
    engine = open_engine(store, Settings(), lambda: clock[0])
    who = (Identifier("user_id", "ada"),)
    engine.recorder.record([Event(type="signed_up", identifiers=who, occurred_at=recorded_at, key="1")])
    if due_at:
        timer = timer_put("default", "0" * 32, "journeys", Timer(key="k", due_at=due_at, data={}))
        assert engine.store.commit([Batch(writes=[timer])]) == [None]
    found: DoctorResult = doctor.run(Context(engine, "default", now, "test"), NoParams())
    engine.close()
    return found


def test_a_quiet_store_is_well(tmp_path: Path) -> None:
    found = asked(tmp_path / "events.db")
    assert found.well
    assert {each.what for each in found.findings} >= {"outbox", "last event", "scrub", "size"}
    assert {each.sign for each in found.findings} == {"ok"}


def test_a_timer_that_nobody_lets_fire_is_noted(tmp_path: Path) -> None:
    found = asked(tmp_path / "events.db", due_at=NOW - HOUR)
    [note] = [each for each in found.findings if each.sign == "note"]
    assert (note.what, found.well) == ("waiting", True)
    assert "does a server or a worker run?" in note.seen


def test_an_event_of_a_clock_that_was_ahead_is_a_fault(tmp_path: Path) -> None:
    found = asked(tmp_path / "events.db", recorded_at=NOW + HOUR)
    assert not found.well
    assert [each.what for each in found.findings if each.sign == "fault"] == ["last event"]


def test_the_screen_shows_what_the_doctor_says() -> None:
    with opened() as engine:
        page = signed_in(engine, "viewer").get("/health")
    assert page.status_code == 200
    assert "need a look" in page.text or "All is well" in page.text
    assert re.search(r">\s*Outbox\s*<", page.text)
