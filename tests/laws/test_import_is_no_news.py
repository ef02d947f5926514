"""Law: a store filled by import equals one filled live in all but what sends, and the import has sent nothing.

Both are filled at one instant, so that only the reason differs: when something was noticed is part of many states.
Which projections and policies there are is found in the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import Asked
from tests.capabilities.segments_stage import work
from threadline.capabilities.reach.journeys.events import RUN_EVENTS
from threadline.engine.scheduled import due_effects, pending_effect
from threadline.kernel.event import Recorded
from threadline.kernel.policy import policy_of
from threadline.kernel.time import DAY
from threadline.kernel.why import LIVE, REASONS
from threadline.testing.world import World

SENDING = frozenset({"journeys", "mail", "alerts"})
"""What is left out of the comparison: projections of what was sent, or is to be."""
EVENTS = 60
DEFINITIONS = """
segments:
  buyers: {when: {field: features.has_purchased, equals: true}}
  lapsed: {when: {field: features.days_since_last_purchase, greater_than_or_equal: 2}}
  recent: {when: {field: features.recency_days, less_than: 1}}
  scored: {when: {field: points.balance, greater_than: 20}}
mail:
  senders: {shop: {from: n@shop.example}}
  templates: {hello: {subject: a, text: x}}
journeys:
  bought: {trigger: {segment: buyers}, steps: [{send: hello}]}
  viewed: {trigger: {event: product_viewed}, reentry: always, late: 365d, steps: [{send: hello}]}
destinations: {crm: {url: "https://crm.example.com/hooks"}}
rules:
  call: {conditions: {field: event.type, exists: true}, actions: [{call_webhook: {destination: crm}}]}
  note: {conditions: {field: event.type, exists: true}, actions: [{tag: {tag: "seen-${event.type}"}}]}
rule_sets:
  called: {events: [segment_entered, purchase_completed, points_earned], rules: [call]}
  noted: {events: [segment_entered, purchase_completed, points_earned], rules: [note], existing: true}
points:
  back: 8d
  tables: [{version: 2, earn: {purchase_completed: 10, product_viewed: {points: 2, per_day: 3}}}]
streaks: {visits: {cadence: day, milestones: [2, 3]}}
leaderboards:
  points: {score: points.earned, periods: [week, all]}
  visits: {score: streaks.visits.current, periods: [all]}
"""
CATALOGUE = Asked(definitions=DEFINITIONS).engine.catalogue


def filled(seed: int, *, historical: bool) -> tuple[Asked, list[str]]:
    """A store with a world's events, and the kinds of the effects that were asked for."""
    world = World(seed, people=2, days=5, history=EVENTS)
    asked = Asked(catalogue=CATALOGUE)
    asked.now = world.ends_at(EVENTS) + DAY
    events = [msgspec.structs.replace(event, historical=historical) for event in world.events(EVENTS)]
    assert {receipt.status for receipt in asked.engine.recorder.record(events)} == {"accepted"}
    work(asked)  # what did not fit into the commits
    return asked, [pending_effect(item).effect.kind for item in due_effects(asked.engine.store, ["mail", "crm"], "0")]


def shown(asked: Asked, at: int) -> dict[str, dict[str, Any]]:
    """Person -> projection -> its view, without what depends on what was sent and on the ids of other events."""
    names = [projection.name for projection in asked.engine.catalogue.projections if projection.name not in SENDING]
    people = {}
    for person in asked.engine.reader.all_people("default"):
        views = msgspec.to_builtins(asked.engine.reader.views(person, at, names=names))
        counts = views["activity"]["events_by_type"]
        for type in RUN_EVENTS & counts.keys():
            views["activity"]["events"] -= counts.pop(type)
        views["decisions"].pop("call", None)
        # A decision of the set that sends is an event, too.
        views["activity"]["events"] -= counts.pop("decision_made", 0)
        people[person.id] = dict(without_ids(views))
    return people


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_ids(part) for name, part in value.items() if name not in ("source_event_ids", "decision")}
    return [without_ids(part) for part in value] if isinstance(value, list) else value


def derived(asked: Asked) -> Iterator[Recorded]:
    for person in asked.engine.reader.all_people("default"):
        events = asked.engine.reader.events(person, limit=1_000)
        yield from (recorded for recorded in events if policy_of(recorded.event.source))


@given(st.integers(0, 1 << 32))
def test_an_import_equals_a_live_run_in_all_that_sends_nothing_and_has_sent_nothing(seed: int) -> None:
    live, sent = filled(seed, historical=False)
    imported, nothing = filled(seed, historical=True)
    assert {"mail", "webhook"} <= {*sent}
    assert nothing == []
    assert shown(imported, live.now) == shown(live, live.now)
    for asked, why in ((live, "live"), (imported, "history")):
        made = list(derived(asked))
        assert {recorded.event.why for recorded in made} == {why}
        assert {"segments", "points", "rules"} <= {policy_of(recorded.event.source) for recorded in made}


@pytest.mark.parametrize("why", sorted(REASONS - {LIVE}))
def test_whoever_records_an_event_over_the_api_cannot_say_why_it_happened(why: str) -> None:
    asked = Asked()
    event = {"type": "page", "key": "1", "identifiers": {"user_id": "ada"}, "why": why, "marks": [why]}
    (receipt,) = asked.ask("record", events=[event])["receipts"]
    assert receipt["status"] == "rejected"
    assert "why" in receipt["message"] or "marks" in receipt["message"]
