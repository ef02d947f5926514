"""Law: what definitions say of the past is `definitions`, however it becomes known, and sends nobody anything.

A store is filled under definitions that derive nothing, and opened under others; people go on. Whatever the same people
under the same definitions had already been said to be by then is no news: not by `apply`, and not by their next event.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import redefined, work
from threadline.engine.scheduled import due_effects, pending_effect
from threadline.kernel.store import Batch, Delete, Key
from threadline.kernel.time import DAY, HOUR

SECTIONS = {
    "segments": "segments: {buyers: {when: {field: features.has_purchased, equals: true}}}",
    "leaderboards": "leaderboards: {spent: {score: features.monetary_total}}",
    "milestones": "streaks: {daily: {milestones: [2, 3, 4, 9]}, weekly: {cadence: week, milestones: [1, 2]}}",
    "freezes": "streaks: {daily: {milestones: [7], freezes: {start: 1, max: 2}}}",
    "amnesty": "calendar: {amnesty: [{from: 2025-12-30, to: 2025-12-30}]}\nstreaks: {daily: {milestones: [7]}}",
    "grace": "streaks: {daily: {milestones: [7], grace: 3h}}",
}
"""Sections that derive events from what a person is, one at a time."""
BEFORE = "streaks: {daily: {milestones: [7]}, weekly: {cadence: week}}"
SENDING = """
mail:
  senders: {shop: {from: n@shop.example}}
  templates: {hello: {subject: a, text: x}}
journeys:
  milestone: {trigger: {event: streak_milestone_reached}, reentry: always, EXISTING, steps: [{send: hello}]}
"""
SAYS = ("segment_entered", "leaderboard_scored", "streak_milestone_reached")
BY_POLICIES_WITHOUT_A_REFRESH = {
    "journeys": "a journey that is entered by an event begins with that event, and one by a segment goes by its entry",
}
"""Policies that see every event and are no `Refresh`, and why what they say is news all the same."""


def lived(asked: Asked) -> None:
    """Eight days, of which one was missed."""
    for day in (-8, -7, -6, -5, -4, -3, -1):
        at = STARTS_AT + day * DAY
        properties = {"total": 20, "currency": "EUR"}
        asked.tell("purchase_completed", at=at, email="ada@x.example", properties=properties)


def said(asked: Asked) -> Counter[tuple[str, str, str]]:
    """What is said of the person: the type, of what, and why."""
    page = asked.ask("events_of", id="email:ada@x.example", limit=200, order="asc")
    found: Counter[tuple[str, str, str]] = Counter()
    for event in page["events"]:
        if event["type"] in SAYS:
            about = {name: event["properties"].get(name) for name in ("segment", "board", "streak", "length")}
            found[event["type"], str(about), event.get("why", "live")] += 1
    return found


def sent(asked: Asked) -> int:
    waiting = due_effects(asked.engine.store, asked.engine.catalogue.queues, "0")
    return sum(pending_effect(item).effect.kind == "mail" for item in waiting)


def applied(asked: Asked) -> None:
    cursor = asked.engine.maintenance.advance("", 1).next
    while cursor:
        cursor = asked.engine.maintenance.advance(cursor, 1).next
    assert asked.engine.maintenance.stale() == ()


@pytest.mark.parametrize("apply_first", [False, True])
@pytest.mark.parametrize("section", SECTIONS)
def test_what_was_so_before_definitions_is_no_news_by_apply_or_by_the_next_event(
    section: str, apply_first: bool
) -> None:
    definitions = SECTIONS[section] + SENDING.replace("EXISTING", "existing: false")
    always = Asked(definitions=definitions)
    lived(always)
    before = said(always)
    always.now = STARTS_AT + HOUR
    always.tell("page", at=always.now, email="ada@x.example")
    news = said(always) - before

    old = Asked(definitions=BEFORE)
    lived(old)
    asked = redefined(old, definitions)
    asked.now = STARTS_AT + HOUR
    already = said(asked)
    if apply_first:
        applied(asked)
    asked.tell("page", at=asked.now, email="ada@x.example")
    work(asked)
    found = said(asked) - already
    live = Counter({key: n for key, n in found.items() if key[2] == "live"})
    assert live - news == Counter()
    assert sent(asked) == sum(n for key, n in live.items() if key[0] == "streak_milestone_reached")
    # All that a store under these definitions has is there by now, whatever its reason.
    assert {key[:2] for key in said(always)} <= {key[:2] for key in said(asked)}
    applied(asked)
    assert said(asked) - already == found


def test_whoever_asks_for_what_exists_gets_the_milestones_that_were_passed() -> None:
    old = Asked(definitions=BEFORE)
    lived(old)
    asked = redefined(old, SECTIONS["milestones"] + SENDING.replace("EXISTING", "existing: true"))
    applied(asked)
    assert sent(asked) == sum(n for key, n in said(asked).items() if key[2] == "definitions") > 0


def test_a_store_of_an_earlier_version_with_the_same_definitions_has_nothing_to_look_at() -> None:
    old = Asked(definitions=SECTIONS["milestones"])
    lived(old)
    old.engine.store.commit([Batch(writes=[Delete(Key("index", "all streaks"))])])
    assert redefined(old, SECTIONS["milestones"]).engine.maintenance.stale() == ()
    old.engine.store.commit([Batch(writes=[Delete(Key("index", "all streaks"))])])
    assert redefined(old, SECTIONS["grace"]).engine.maintenance.stale() == ("people", "streaks")


def test_policies_that_see_every_event_are_those_of_a_refresh() -> None:
    catalogue = Asked(
        definitions="\n".join([SECTIONS["segments"], SECTIONS["leaderboards"], SENDING.replace("EXISTING, ", "")])
    ).engine.catalogue
    seeing: set[Any] = {policy.name for policy in catalogue.policies if policy.handles is None and policy.emits}
    refreshed = {refresh.name for refresh in catalogue.refreshes}
    assert seeing - refreshed <= BY_POLICIES_WITHOUT_A_REFRESH.keys()
    assert refreshed == {"segments", "leaderboards", "streaks"}
