"""Events of impossible times: none is believed but of imported history, and none stops a report."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from threadline.app import open_engine
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.event import CLAIMED_HISTORY, CLAMPED, Event, Identifier
from threadline.kernel.limits import BELIEVED_FROM_SECONDS
from threadline.kernel.operation import Operation
from threadline.kernel.time import DAY, EARLIEST, SECOND, parse_time
from threadline.settings import Settings
from threadline.surfaces.operation_calls import call

NOW = parse_time("2026-03-02T08:00:00Z")
BELIEVED_FROM = BELIEVED_FROM_SECONDS * SECOND
GIVEN = {
    "event": "bought",
    "steps": ["viewed", "bought"],
    "feature": "monetary_total",
    "start_at": "viewed",
    "first": "viewed",
    "metric": "bought",
}
OF_SOMETHING = {"analytics_experiment", "analytics_journey"}
"""They ask about a broadcast or a journey, whose events are Threadline's own."""
OF_WEEKS_OF_BUYING = {"analytics_lifetime"}
"""It fits a model, for which there must be people who bought again; see its own tests."""


def event(who: str, type: str, at: int, **fields: Any) -> Event:
    return Event(
        type=type,
        identifiers=(Identifier("user_id", who),),
        occurred_at=at,
        key=f"{who}/{type}/{at}",
        source="shop",
        source_type="external",
        **fields,
    )


def opened(*events: Event) -> Engine:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    assert {receipt.status for receipt in engine.recorder.record(events)} <= {"accepted"}
    return engine


def usual() -> list[Event]:
    return [event(f"u{n}", type, NOW - n * DAY) for n in range(5) for type in ("viewed", "bought")]


def asked(engine: Engine, name: str, **given: Any) -> Any:
    operation = next(each for each in engine.catalogue.operations if each.name == name)
    return call(operation, Context(engine, "default", NOW, "test"), given, strict=True)


@pytest.mark.parametrize("at", [EARLIEST, 0, BELIEVED_FROM - 1])
@pytest.mark.parametrize("fields", [{}, {"historical": True, "marks": (CLAIMED_HISTORY,)}])
def test_event_dated_before_1990_occurs_when_it_is_received_and_is_marked(at: int, fields: dict[str, Any]) -> None:
    engine = opened(event("ada", "viewed", at, **fields))
    (recorded,) = engine.reader.events(engine.reader.person("default", "user_id:ada"))
    assert (recorded.event.occurred_at, recorded.event.sent_time) == (NOW, at)
    assert CLAMPED in recorded.event.marks
    assert engine.recorder.record([event("ada", "viewed", at, **fields)])[0].status == "duplicate"


@pytest.mark.parametrize(("at", "fields"), [(EARLIEST, {"historical": True}), (BELIEVED_FROM, {})])
def test_imported_history_of_any_time_and_events_from_1990_on_are_believed(at: int, fields: dict[str, Any]) -> None:
    engine = opened(event("ada", "viewed", at, **fields))
    (recorded,) = engine.reader.events(engine.reader.person("default", "user_id:ada"))
    assert (recorded.event.occurred_at, recorded.event.marks) == (at, ())


def reports(engine: Engine) -> list[tuple[Operation, dict[str, Any]]]:
    """Every analysis, with what it cannot do without, and each length of its periods."""
    found = []
    for operation in engine.catalogue.operations:
        if operation.name.startswith("analytics_") and operation.name not in OF_SOMETHING | OF_WEEKS_OF_BUYING:
            fields = {field.encode_name: field for field in msgspec.structs.fields(operation.params)}
            given = {name: GIVEN[name] for name, field in fields.items() if field.required}
            lengths = ["day", "week", "month"] if "per" in fields else [""]
            found += [(operation, {**given, **({"per": per} if per else {})}) for per in lengths]
    return found


def test_every_report_without_a_start_answers_about_a_store_that_has_events_of_the_year_1_and_1970() -> None:
    old = [event(who, "viewed", at, historical=True) for who, at in (("zero", EARLIEST), ("epoch", 0))]
    engine = opened(*usual(), *old)
    names = set()
    for operation, given in reports(engine):
        names.add(operation.name)
        asked(engine, operation.name, **given)
    assert len(names) > 6


def test_empty_periods_are_left_out_where_they_are_many_and_shown_where_they_are_few() -> None:
    engine = opened(*usual(), event("zero", "viewed", EARLIEST, historical=True))
    trend = asked(engine, "analytics_trend", event="viewed")
    days = [row.period for row in trend.rows]
    assert days[:2] == ["0001-01-01", "0001-01-02"]
    assert days[2:] == ["2026-02-25", "2026-02-26", "2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]
    assert [row.events for row in trend.rows] == [1, 0, 0, 1, 1, 1, 1, 1]
    assert any("next to others" in note for note in trend.notes)
    sessions = asked(engine, "analytics_sessions", events="viewed")
    assert [row.period for row in sessions.rows] == days
    few = asked(opened(*usual(), event("ada", "viewed", NOW - 400 * DAY)), "analytics_trend", event="viewed")
    assert len(few.rows) == 401
    assert not any("next to others" in note for note in few.notes)
