"""Erased events and what reads the log: duplicates, the feed, look-ups by key, outcomes of effects."""

from __future__ import annotations

import pytest

from tests.laws import staging
from threadline.capabilities.foundation.events.names import TYPE
from threadline.capabilities.foundation.events.operations.feed import FeedParams, feed
from threadline.engine.context import Context
from threadline.engine.delivery.outcomes import effect_of, internal
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.kernel.sender import EFFECT_RETRIED
from threadline.stores.memory import MemoryStore


def page(key: str, type: str = "page") -> Event:
    return staging.event(type, {"user_id": "ada"}, key)


def erased_of(on: Engine, *keys: str) -> list[str]:
    """Record these events and erase them; their ids."""
    ids = [receipt.id for receipt in on.recorder.record([page(key) for key in keys])]
    assert on.store.erase(ids) == len(keys)
    return ids


def test_an_erased_event_is_a_duplicate_whatever_its_payload() -> None:
    store = MemoryStore()
    [id] = erased_of(staging.engine(store), "1")
    on = staging.engine(store)
    again = [page("1"), page("1", "other"), page("2")]
    assert on.recorder.fresh(on.recorder.check(again)) == [[2]]
    receipts = on.recorder.record([*again, again[0]])
    erased = [("duplicate", "erased", id, "")]
    assert [(each.status, each.code, each.id, each.person) for each in (*receipts[:2], receipts[3])] == erased * 3
    assert receipts[2].status == "accepted"
    assert store.scan("rejected") == [], "another payload is no conflict with what is gone"
    assert len(store.feed()) == 2


def test_an_erased_event_is_not_found_under_its_key() -> None:
    on = staging.engine(MemoryStore())
    erased_of(on, "1")
    on.recorder.record([page("2")])
    assert on.log.of_keys("default", [page("1").source], ["1"]) is None
    found = on.log.of_keys("default", [page("1").source], ["1", "2"])
    assert found is not None
    assert found.event.key == "2"


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_the_feed_operation_goes_past_erased_events(limit: int) -> None:
    on = staging.engine(MemoryStore())
    erased_of(on, *"abc")
    on.recorder.record([page("d"), page("e")])
    erased_of(on, *"fgh")
    on.recorder.record([page("i")])
    erased_of(on, *"jk")
    found, cursor, more = list[str](), "", True
    while more:
        answer = feed.run(Context(on, "default", on.now()), FeedParams(cursor=cursor, limit=limit))
        found += [each.key for each in answer.events]
        cursor, more = answer.next, answer.more
    assert found == ["d", "e", "i"]
    assert cursor == on.store.feed()[-1].cursor, "it does not read the erased ones at the end again and again"


def test_no_event_type_is_sent_by_erased_events() -> None:
    on = staging.engine(MemoryStore())
    erased_of(on, "1")
    assert on.log.names_sent({TYPE: {"page"}}) == {"event type": frozenset()}
    on.recorder.record([page("2", "other")])
    assert on.log.names_sent({TYPE: {"page"}}) == {"event type": {"other"}}


def test_outcomes_after_an_erased_one_are_found() -> None:
    on = staging.engine(MemoryStore())
    who = Identifier("user_id", "ada")
    made = [internal("default", who, EFFECT_RETRIED, f"x/{n}", staging.NOW - 1, {"effect": "x"}) for n in range(3)]
    ids = [receipt.id for receipt in on.recorder.record(made)]
    on.store.erase(ids[:1])
    assert [each.id for each in effect_of(on.store, (), "default", "x", 0).outcomes] == ids[1:]
