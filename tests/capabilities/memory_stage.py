"""What tests of memory share: events that are folded and viewed as the engine does it."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.capabilities.asked import STARTS_AT
from threadline.capabilities.profile.memory import read_derivations
from threadline.capabilities.profile.memory.projection import fact_derivations, projection
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.projection import Projection


def memory_of(*definitions: str) -> Projection:
    """The projection of what ships and of these definitions."""
    derivations = read_derivations([(f"{number}.yaml", text) for number, text in enumerate(definitions)])
    return projection(derivations, fact_derivations(derivations))


MEMORY = memory_of()
T0 = STARTS_AT
INSIGHT = {"type": "fact", "key": "likes", "value": "the sea", "confidence": 0.7}


def record(at: int, type: str, properties: dict[str, Any], source: str = "shop", key: str = "") -> Recorded:
    key = key or f"{type} {at} {source}"
    event = Event(type=type, identifiers=(), occurred_at=at, key=key, source=source, properties=properties)
    return Recorded(event, event_id("default", source, key), "thread", 1, at)


def fold(events: list[Recorded]) -> Any:
    """The state as the engine comes to it: with the compiled fold."""
    state: dict[str, Any] = {}
    assert MEMORY.faster.fold is not None
    for each in events:
        step = MEMORY.faster.fold(each.event.type)
        if step is not None:
            step(state, each)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state))


def view(events: list[Recorded], now: int) -> dict[str, Any]:
    known = [each for each in events if each.event.occurred_at < now]
    state = fold(known)
    assert MEMORY.depends.edges is not None
    edges = MEMORY.depends.edges(state, now)
    inside = [each for each in known if any(edge.holds(each) for edge in edges)]
    inside.sort(key=lambda each: (each.event.occurred_at, each.id))
    return MEMORY.view(state, now, inside)  # type: ignore[no-any-return]
