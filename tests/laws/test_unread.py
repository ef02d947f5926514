"""Law: what something reads in an event and cannot read is marked. Nothing is ignored, or 0, without a word."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from tests.laws.test_policies import DEFINITIONS, MORE
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.event import VALUE_IGNORED, ZONE_IGNORED, Event, Identifier, Recorded
from threadline.kernel.projection import Projection
from threadline.kernel.reading import ENTRY, Meaning, Reading
from threadline.kernel.time import DAY
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios
from threadline.testing.world_payloads import payload_pools

COMPARED = """
mail:
  senders: {shop: {from: hello@shop.example}}
  templates: {hello: {subject: Hello, text: Hi.}}
segments:
  old: {when: {field: profile.traits.age, greater_than: 60}}
journeys:
  cart:
    trigger: {event: cart_left, where: {worth: {greater_than: 50}}}
    steps: [{wait: {event: paid, where: {amount: {less_than: 10}}, timeout: 1d}}, {send: hello}]
"""
FULL = Catalogue.declared(Definitions([("threadline.yaml", DEFINITIONS + MORE)]), rules(Definitions()))
ADA = (Identifier("user_id", "ada"),)
AT = scenarios.NOW - DAY
ILLEGIBLE: tuple[Any, ...] = ("1.234,56", "29 EUR", "soon", True, 10**15, {"a": 1}, [["x"]])
SAID: dict[str, dict[str, Any]] = {
    "fact_remembered": {"type": "preference", "key": "colour", "value": "red", "expires_at": "2027-01-01T00:00:00Z"},
    "fact_computed": {"type": "preference", "key": "colour", "value": "red", "confidence": 0.5},
    "streak_freeze_granted": {"freezes": 2, "streak": "daily"},
    "streak_amnesty_granted": {"from": "2026-01-01", "to": "2026-01-02", "streak": "daily"},
    "tag_added": {"tag": "vip"},
    "app_action": {"topic": "jazz", "application_id": "radio", "scopes": [{"topic": "album", "value": "blue"}]},
}
"""What events of types say that no shop sends."""


def said(type: str, properties: dict[str, Any]) -> Event:
    return Event(type=type, identifiers=ADA, occurred_at=AT, key="1", source="site", properties=properties)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a payload, those in its lists and mappings included."""
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        yield from places(member, (*path, name))


def changed(payload: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The payload with another value at a place."""
    other = copy.deepcopy(payload)
    inner: Any = other
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return other


def at(payload: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        payload = payload[step]
    return payload


def seen(projection: Projection, event: Event) -> Any:
    """What a projection makes of one event."""
    recorded = Recorded(event, id="0" * 32, thread="0" * 32, sequence=1, recorded_at=AT)
    state = projection.empty()
    folded = projection.fold(state, recorded)
    return msgspec.to_builtins(projection.view(state if folded is None else folded, scenarios.NOW, [recorded]))


def ignored_without_a_mark(type: str, payload: dict[str, Any]) -> Iterator[str]:
    """What a projection reads in a payload, and takes for missing where it is something that it cannot read."""
    for projection in FULL.projections:
        if projection.handles is not None and type not in projection.handles:
            continue
        whole = seen(projection, said(type, payload))
        for path in places(payload):
            without = seen(projection, said(type, changed(payload, path, None)))
            if without == whole:
                continue
            for value in ILLEGIBLE:
                if isinstance(value, dict) and isinstance(at(payload, path), dict):
                    continue  # A mapping in which all that is read is missing.
                event = said(type, changed(payload, path, value))
                if seen(projection, event) == without and not FULL.values_read.unread(event):
                    yield f"{projection.name}: {type}.{'.'.join(map(str, path))} = {value!r}"


@pytest.mark.parametrize("type", sorted({*payload_pools(Random(7)), *SAID}))
def test_a_value_that_a_view_ignores_though_it_is_there_is_marked(type: str) -> None:
    payload = SAID.get(type) or max(payload_pools(Random(7))[type], key=len)
    assert sorted(set(ignored_without_a_mark(type, payload))) == []


# --- what is declared ------------------------------------------------------------------------------

READABLE: dict[Meaning, Any] = {
    "number": "12.5",
    "whole": 2,
    "plain": "x",
    "label": "x",
    "text": "x",
    "currency": "EUR",
    "list": [],
    "mapping": {},
    "many": [],
    "day": "2026-01-01",
    "instant": "2026-01-01T00:00:00Z",
    "zone": "Europe/Rome",
}
READ = sorted(
    (type, reading)
    for type in FULL.values_read.types
    if FULL.event_types.of(type).speaker == "anyone"
    for reading in FULL.values_read.of(type)
)


def nested(path: tuple[str, ...], value: Any) -> Any:
    """The value at the end of a path."""
    for step in reversed(path):
        value = [value] if step == ENTRY else {step: value}
    return value


def recorded(on: Engine, type: str, properties: dict[str, Any], key: str) -> Event:
    [receipt] = on.recorder.record([msgspec.structs.replace(said(type, properties), key=key)])
    assert receipt.status == "accepted", receipt
    return on.log.event("default", receipt.id).event


@pytest.mark.parametrize(("type", "reading"), READ, ids=lambda part: part if isinstance(part, str) else part.name)
def test_an_event_is_marked_for_each_value_that_something_reads_and_cannot(type: str, reading: Reading) -> None:
    on = Engine(MemoryStore(), FULL, lambda: scenarios.NOW)
    ignored = 0
    for number, value in enumerate((*ILLEGIBLE, "x" * 1_000)):
        event = recorded(on, type, nested(reading.path, value), f"{number}")
        assert event.properties == nested(reading.path, value), "it stays as it was sent"
        unread = {each.name for each in FULL.values_read.unread(event) if each.meaning != "zone"}
        assert (VALUE_IGNORED in event.marks, set(event.wire.get("unread", ()))) == (bool(unread), unread)
        ignored += reading.name in unread or ZONE_IGNORED in event.marks
    assert ignored, "nothing is illegible to it"


@pytest.mark.parametrize(("type", "reading"), READ, ids=lambda part: part if isinstance(part, str) else part.name)
def test_no_event_is_marked_for_a_value_that_is_read_or_missing(type: str, reading: Reading) -> None:
    readable = min(reading.among) if reading.among else READABLE[reading.meaning]
    for value in (readable, None, "", " "):
        assert reading not in FULL.values_read.unread(said(type, nested(reading.path, value)))
    assert reading not in FULL.values_read.unread(said(type, {}))


def test_what_definitions_compare_with_numbers_is_read() -> None:
    catalogue = Catalogue.declared(Definitions([("threadline.yaml", COMPARED)]), rules(Definitions()))
    for type, name in (("identify", "age"), ("cart_left", "worth"), ("paid", "amount")):
        assert Reading((name,), "number") in catalogue.values_read.of(type)


def test_a_trait_that_names_no_zone_is_marked_as_the_context_is() -> None:
    on = Engine(MemoryStore(), FULL, lambda: scenarios.NOW)
    assert recorded(on, "identify", {"timezone": "Berlin"}, "1").marks == (ZONE_IGNORED,)
    assert recorded(on, "identify", {"timezone": "Europe/Berlin"}, "2").marks == ()


def test_what_threadline_says_itself_is_never_marked() -> None:
    on = Engine(MemoryStore(), FULL, lambda: scenarios.NOW)
    event = msgspec.structs.replace(said("tag_added", {"tag": 7}), source_type="internal")
    [receipt] = on.recorder.record([event])
    assert on.log.event("default", receipt.id).event.marks == ()
