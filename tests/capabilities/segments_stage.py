"""What tests of segments share: people who buy, what they were told, and restarts with other definitions."""

from __future__ import annotations

from typing import Any

from tests.capabilities.asked import Asked
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine

SPENDERS = "segments: {spenders: {when: {field: features.monetary_total, greater_than: 80}}}"
RECENT = "segments: {recent: {when: {field: features.recency_days, less_than: 3}}}"


def bought(asked: Asked, who: str, total: Any, at: int | None = None) -> None:
    receipt = asked.tell("purchase_completed", at=at, user_id=who, properties={"total": total, "currency": "EUR"})
    assert receipt["status"] == "accepted"


def told(asked: Asked, who: str = "ada") -> list[tuple[str, str]]:
    person = asked.engine.reader.person("default", f"user_id:{who}")
    events = asked.engine.reader.events(person, limit=1_000)
    return [(e.event.type, e.event.properties["segment"]) for e in events if e.event.type.startswith("segment_")]


def work(asked: Asked) -> int:
    dispatcher, fired = Dispatcher(asked.engine, {}, "test"), 0
    while done := dispatcher.run_once():
        fired += done
        asked.now += 1
    return fired


def run_until(asked: Asked, until: int, who: str = "ada") -> None:
    """Let time pass, with a dispatcher that fires whatever is due the moment it is."""
    dispatcher = Dispatcher(asked.engine, {}, "test")
    while (due := min(asked.engine.reader.person("default", f"user_id:{who}").timers.values(), default=until)) < until:
        asked.now = max(asked.now, due) + 1
        dispatcher.run_once()
    asked.now = until


def members(asked: Asked, name: str, limit: int = 100) -> list[str]:
    found: list[str] = []
    after = ""
    while True:
        page = asked.ask("segments_members", name=name, cursor=after, limit=limit)
        assert len(page["members"]) <= limit
        found += [each["person"] for each in page["members"]]
        after = page["next"]
        if not after:
            return found


def redefined(asked: Asked, definitions: str) -> Asked:
    """The same store under other definitions, as after a restart."""
    other = Asked(definitions=definitions)
    other.engine = Engine(asked.engine.store, other.engine.catalogue, lambda: other.now)
    other.now, other._keys = asked.now, asked._keys
    return other
