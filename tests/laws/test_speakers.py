"""Law: nobody but its speaker can say an event. Said by somebody else it stands in the log and changes nothing more."""

from __future__ import annotations

from random import Random
from string import Formatter
from typing import Any

import msgspec
import pytest

from tests.laws.test_asking import Life, told_by
from tests.laws.test_policies import DEFINITIONS, MORE
from threadline import app
from threadline.capabilities.decide.rules.actions import RESERVED
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.maintenance.rebuild import refold_shard
from threadline.engine.scheduled import OUTBOX, TIMER
from threadline.exports.curated.queries import TABLES, VIEWS
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.event import NOT_COUNTED, Event, Identifier
from threadline.kernel.event_type import EventType, Properties, may_say
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.store import scan_pages
from threadline.kernel.time import DAY, MINUTE
from threadline.settings import Settings
from threadline.stores.memory import MemoryStore
from threadline.surfaces.console.fields import fields_of
from threadline.surfaces.operation_calls import convert, run
from threadline.testing import scenarios

FULL = Catalogue.declared(Definitions([("threadline.yaml", DEFINITIONS + MORE)]), rules(Definitions()))
"""Everything that ships, with something declared of each kind that a forged event could be about."""
RESTRICTED = sorted(
    (type for type in FULL.event_types.declared.values() if type.speaker != "anyone"), key=lambda type: type.name
)
SENT = [type for type in RESTRICTED if not type.name.startswith(SYSTEM_PREFIX)]
ADA = (Identifier("user_id", "ada"),)
KNOWN: dict[str, Any] = {
    "segment": "rich", "board": "points", "journey": "drawn", "streak": "daily", "template": "first", "rule": "large",
    "address": "ada@example.com", "reason": "bounce", "bounce": "permanent", "status": "Approved", "mode": "live",
    "points": 50, "broadcast": "spring", "arm": "a", "alert": "sale", "topic": "news", "length": 2, "day": "2025-12-31",
    "run": "0" * 32, "event_id": "0" * 32, "message": "m-1", "domain": "example.com", "warm_up": True, "path": [],
    "entered_at": "2025-12-31T00:00:00Z", "as_of": "2025-12-31T00:00:00Z", "why": "x", "kind": "rate", "of": "x",
}  # fmt: skip
"""A value that means something here, by the name of a property."""
SAMPLES = {"string": "x", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {"monetary_total": 1}}


def sample(type: EventType) -> dict[str, Any]:
    """Properties that a believed event of a type could have."""
    return {
        name: KNOWN.get(name, SAMPLES.get(str(schema.get("type")), 1))
        for name, schema in type.schema.get("properties", {}).items()
    }


def somebody() -> Engine:
    """An engine that knows a person who has done this and that."""
    on = Engine(MemoryStore(), FULL, lambda: scenarios.NOW)
    done = [
        ("identify", {"email": "ada@example.com", "plan": "pro"}),
        ("purchase_completed", {"total": "40"}),
        ("tool_used", {}),
        ("points_adjusted", {"points": 30}),
        ("app_action", {"topic": "jazz"}),
    ]
    for number, (type, properties) in enumerate(done):
        at = scenarios.NOW - DAY + number * MINUTE
        on.recorder.record([Event(type=type, identifiers=ADA, occurred_at=at, key=str(number), properties=properties)])
    return on


def said(type: EventType, source_type: str) -> Event:
    return Event(
        type=type.name,
        identifiers=ADA,
        occurred_at=scenarios.NOW - MINUTE,
        key=f"{type.name}/{source_type}",
        source="site",
        source_type=source_type,
        properties=sample(type),
    )


def state_of(on: Engine) -> tuple[Any, Any]:
    """What is derived of everybody, at one instant; and the rows of indexes, timers and effects."""
    people = on.reader.all_people("default")
    views = {person.id: on.reader.views(person, scenarios.NOW + DAY) for person in people}
    derived = {name for projection in FULL.projections for name in projection.index.tables} | {OUTBOX, TIMER}
    rows = [(item.key, item.value) for table in sorted(derived) for item in scan_pages(on.store, table)]
    return msgspec.to_builtins(views), rows


def changes(type: EventType, source_type: str) -> tuple[bool, list[str]]:
    """Whether an event changes anything beside the log, and the types of what followed from it."""
    on = somebody()
    before = state_of(on)
    [receipt] = on.recorder.record([said(type, source_type)])
    assert receipt.status == "accepted", receipt
    followed = [
        recorded.event.type
        for person in on.reader.all_people("default")
        for recorded in on.reader.events(person, limit=500)
        if recorded.cause == receipt.id
    ]
    return state_of(on) != before, followed


@pytest.mark.parametrize(
    ("type", "source_type"),
    [
        pytest.param(type, source_type, id=f"{type.name}-{source_type}")
        for type in SENT
        for source_type in ("external", "direct")
        if not may_say(type.speaker, said(type, source_type))
    ],
)
def test_an_event_of_another_speaker_changes_the_log_and_nothing_else(type: EventType, source_type: str) -> None:
    assert changes(type, source_type) == (False, [])


@pytest.mark.parametrize("type", SENT, ids=lambda type: type.name)
def test_the_same_event_of_its_own_speaker_counts(type: EventType) -> None:
    # Activity, at the least: so the law above would see a type that is believed of anybody.
    assert changes(type, "internal")[0]


@pytest.mark.parametrize("type", [type for type in RESTRICTED if type not in SENT], ids=lambda type: type.name)
def test_a_type_of_the_engine_is_refused_at_every_door(type: EventType) -> None:
    on = somebody()
    for source_type in ("external", "direct"):
        [receipt] = on.recorder.record([said(type, source_type)])
        assert (receipt.status, receipt.code) == ("rejected", "reserved_type")


def test_a_forged_event_counts_for_nothing_in_a_refold_too() -> None:
    on = somebody()
    before = state_of(on)
    on.recorder.record([said(type, "external") for type in SENT])
    compared = list(refold_shard(on.store, FULL))
    assert [entry.differs for entry in compared] == [False]
    assert state_of(on) == before


def test_forged_events_are_marked_and_counted_by_no_analysis_and_in_no_table_of_sql(seed: int) -> None:
    on = app.open_engine("memory:", Settings(), lambda: scenarios.NOW)
    told(on)
    types = [type.name for type in SENT]
    asked = Random(seed).sample(types, 1)  # an analysis takes a quarter of a second
    believed = [questions(on, type) for type in asked]
    assert sum(isinstance(answer, dict) for answer in believed[0]) > 6
    tables = [on.analytics.query("default", f"SELECT * FROM {name} ORDER BY ALL", {}).rows for name in TABLES_READ]
    receipts = on.recorder.record([said(type, "external") for type in SENT])
    assert [questions(on, type) for type in asked] == believed
    for name, rows in zip(TABLES_READ, tables, strict=True):
        assert on.analytics.query("default", f"SELECT * FROM {name} ORDER BY ALL", {}).rows == rows, name
    uncounted = on.analytics.query("default", "SELECT DISTINCT type FROM uncounted_events ORDER BY type", {})
    assert [type for (type,) in uncounted.rows] == types
    for receipt in receipts:
        assert NOT_COUNTED in on.log.event("default", receipt.id).event.marks


TABLES_READ = ("events", *TABLES, *VIEWS, "streak_snapshots", "feature_vectors", "content_totals")
ANALYSES = [operation for operation in app.catalogue().operations if operation.name.startswith("analytics_")]


def told(on: Engine) -> None:
    """Somebody who has done this and that, and what Threadline said of them."""
    own = [
        Event(type=type, identifiers=ADA, occurred_at=scenarios.NOW - DAY + n * MINUTE, key=f"own {n}")
        for n, type in enumerate(("waved", "purchase_completed", "waved"))
    ]
    on.recorder.record([*own, *(said(type, "internal") for type in SENT if type.name != "decision_made")])


def questions(on: Engine, type: str) -> list[Any]:
    """What every analysis says of a type, each parameter that names one set to it: answers, or refusals."""
    answers: list[Any] = []
    for operation in ANALYSES:
        example = msgspec.to_builtins(operation.example) if operation.example is not None else {}
        named = [field.name for field in fields_of(operation.params) if field.is_event_type]
        params = {**example, **{name: [type, "waved"] if name == "steps" else type for name in named}}
        try:
            answer = msgspec.to_builtins(
                run(operation, Context(on, "default", on.now()), convert(operation, params, strict=True))
            )
        except ThreadlineError as error:
            answers.append(f"{operation.name}: {error}")
            continue
        answers.append({name: value for name, value in answer.items() if name != "position"})
    return answers


def test_no_rule_may_say_what_only_threadline_may() -> None:
    assert {type.name for type in SENT} <= RESERVED


def test_every_type_says_what_happened_and_how_it_reads() -> None:
    assert [type.name for type in FULL.event_types.declared.values() if not type.about.endswith(".")] == []
    wrong = [
        (type.name, name)
        for type in FULL.event_types.declared.values()
        for name in placeholders(type.sentence)
        if type.properties is not Properties and name not in encoded_names(type.properties)
    ]
    assert wrong == []


def placeholders(sentence: str) -> list[str]:
    """The names in braces."""
    return [name for _, name, _, _ in Formatter().parse(sentence) if name]


def encoded_names(properties: type[Properties]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(properties)}


def test_what_threadline_records_has_only_properties_that_its_type_declares() -> None:
    life = Life()
    for gap, call in told_by(Random(4), 120):
        life.until(life.now + gap)
        life.on.recorder.record(call)
    life.until(life.now + 40 * DAY)
    own = [
        recorded.event
        for person in life.on.reader.all_people("default")
        for recorded in life.on.reader.events(person, limit=1_000)
        if recorded.event.source_type == "internal" and recorded.event.type in FULL.event_types.declared
    ]
    assert len({event.type for event in own}) > 8
    for event in own:
        properties = FULL.event_types.of(event.type).properties
        msgspec.convert(event.properties, properties)
        assert properties is Properties or set(event.properties) <= encoded_names(properties), event
