"""Why an event happened: what was so before, and is only noticed now, sends nobody anything unless that is asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import redefined, work
from threadline.engine.scheduled import due_effects, pending_effect
from threadline.kernel.time import DAY, HOUR

SEGMENTS = """
segments:
  buyers: {when: {field: features.has_purchased, equals: true}}
  lapsed: {when: {field: features.days_since_last_purchase, greater_than_or_equal: 30}}
"""
SENDING = """
mail:
  senders: {shop: {from: n@shop.example}}
  templates: {hello: {subject: a, text: x}}
journeys:
  bought: {trigger: {segment: buyers}, EXISTING, steps: [{send: hello}]}
  lapsed: {trigger: {segment: lapsed}, steps: [{send: hello}]}
destinations: {crm: {url: "https://crm.example.com/hooks"}}
rules:
  tell: {conditions: {field: event.properties.segment, equals: buyers}, actions: [{call_webhook: {destination: crm}}]}
rule_sets:
  told: {events: [segment_entered], EXISTING, rules: [tell]}
"""
LONG_AGO = STARTS_AT - 300 * DAY


def declared(existing: str = "existing: false") -> str:
    return SEGMENTS + SENDING.replace("EXISTING", existing)


def ordered(asked: Asked, who: str = "ada", at: int = LONG_AGO, **fields: Any) -> None:
    properties = {"total": 5, "currency": "EUR"}
    asked.tell("purchase_completed", at=at, email=f"{who}@x.example", properties=properties, **fields)


def sent(asked: Asked) -> list[str]:
    """The kinds of the effects that wait."""
    waiting = due_effects(asked.engine.store, asked.engine.catalogue.queues, "0")
    return sorted(pending_effect(item).effect.kind for item in waiting)


def entries(asked: Asked, who: str = "ada") -> dict[str, str]:
    """Segment -> why the person entered it last."""
    page = asked.ask("events_of", id=f"email:{who}@x.example", type="segment_entered")
    assert all(event["properties"]["why"] == event.get("why", "live") for event in page["events"])
    return {event["properties"]["segment"]: event["properties"]["why"] for event in reversed(page["events"])}


def refreshed(asked: Asked) -> None:
    cursor = ""
    while True:
        done = asked.ask("definitions_apply", cursor=cursor, limit=100)
        if not (cursor := done["next"]):
            return


def test_an_import_enters_segments_because_of_history_and_sends_nothing() -> None:
    asked = Asked(definitions=declared())
    ordered(asked, historical=True)
    assert entries(asked) == {"buyers": "history", "lapsed": "history"}
    work(asked)
    assert sent(asked) == []


def test_a_live_order_enters_a_segment_and_sends_mail_and_webhook() -> None:
    asked = Asked(definitions=declared())
    ordered(asked, at=STARTS_AT)
    assert entries(asked) == {"buyers": "live"}
    assert sent(asked) == ["mail", "webhook"]


@pytest.mark.parametrize("existing", ["existing: true", "historical: true"])
def test_who_asks_for_what_exists_gets_imported_entries_too(existing: str) -> None:
    text = SEGMENTS + SENDING.replace("EXISTING", "existing: true", 1).replace("EXISTING", existing)
    asked = Asked(definitions=text)
    ordered(asked, historical=True)
    assert sent(asked) == ["mail", "webhook"]


def test_what_time_brings_about_after_an_import_is_news() -> None:
    asked = Asked(definitions=declared())
    ordered(asked, at=STARTS_AT - 29 * DAY, historical=True)
    assert entries(asked) == {"buyers": "history"}
    assert sent(asked) == []
    asked.now += DAY + HOUR
    work(asked)
    assert entries(asked) == {"buyers": "history", "lapsed": "time"}
    assert sent(asked) == ["mail"]


def test_definitions_put_in_force_over_an_old_store_send_nothing() -> None:
    before = Asked()
    ordered(before, at=STARTS_AT)
    asked = redefined(before, declared())
    refreshed(asked)
    assert entries(asked) == {"buyers": "definitions"}
    assert sent(asked) == []
    ordered(asked, who="bob", at=asked.now)
    assert entries(asked, "bob") == {"buyers": "live"}
    assert sent(asked) == ["mail", "webhook"]


def test_an_instant_that_came_before_definitions_were_applied_is_news_for_a_segment_that_has_not_changed() -> None:
    """Its timer is due and has not fired yet, as after an hour in which no server ran."""
    asked = Asked(definitions=declared())
    ordered(asked, at=STARTS_AT)
    asked.now += 30 * DAY + HOUR
    later = redefined(
        asked,
        declared().replace("  lapsed:", "  old: {when: {field: features.has_purchased, equals: true}}\n  lapsed:", 1),
    )
    refreshed(later)
    assert entries(later) == {"buyers": "live", "old": "definitions"}
    work(later)
    assert entries(later) == {"buyers": "live", "old": "definitions", "lapsed": "time"}
    assert sent(later) == ["mail", "mail", "webhook"]


BOTH = declared().replace("features.has_purchased, equals: true", "features.monetary_total, greater_than: 8")


@pytest.mark.parametrize("by_event", [False, True])
def test_a_merge_sends_nothing_if_an_operator_asked_for_it_and_is_live_if_an_event_did(by_event: bool) -> None:
    asked = Asked(definitions=BOTH)
    for who in ("ada", "bob"):
        ordered(asked, who=who, at=STARTS_AT)
    assert (entries(asked), sent(asked)) == ({}, [])
    if by_event:
        for who in ("ada", "bob"):
            asked.tell("page", user_id="u", email=f"{who}@x.example")
        assert (entries(asked), sent(asked)) == ({"buyers": "live"}, ["mail", "webhook"])
    else:
        asked.ask("people_merge", id="email:ada@x.example", other="email:bob@x.example")
        assert (entries(asked), sent(asked)) == ({"buyers": "merge"}, [])


def test_a_merge_because_of_an_imported_event_is_history() -> None:
    asked = Asked(definitions=BOTH)
    for who in ("ada", "bob"):
        ordered(asked, who=who, at=STARTS_AT)
        asked.tell("page", user_id="u", email=f"{who}@x.example", at=LONG_AGO, historical=True)
    assert (entries(asked), sent(asked)) == ({"buyers": "history"}, [])


@pytest.mark.parametrize(("historical", "why"), [(True, "history"), (False, "live")])
def test_what_does_not_fit_into_the_commit_keeps_the_reason_of_its_cause(historical: bool, why: str) -> None:
    many = "".join(f"  plan_{n}: {{when: {{field: features.has_purchased, equals: true}}}}\n" for n in range(40))
    asked = Asked(definitions=f"segments:\n{many}")
    ordered(asked, at=STARTS_AT, historical=historical)
    assert len(entries(asked)) < 40
    asked.now += 3 * DAY
    work(asked)
    assert set(entries(asked).values()) == {why}
    assert len(entries(asked)) == 40


def test_a_journey_is_left_whatever_the_reason_is() -> None:
    text = """
segments: {buyers: {when: {field: features.monetary_total, greater_than: 8}}}
mail:
  senders: {shop: {from: n@shop.example}}
  templates: {hello: {subject: a, text: x}}
journeys:
  remind:
    trigger: {event: cart_filled}
    exit_on: {segment: buyers}
    steps: [{wait: 1d}, {send: hello}]
"""
    asked = Asked(definitions=text)
    asked.tell("cart_filled", email="ada@x.example")
    for who in ("ada", "bob"):
        ordered(asked, who=who, at=STARTS_AT)
    asked.ask("people_merge", id="email:ada@x.example", other="email:bob@x.example")
    (left,) = asked.ask("events_of", id="email:ada@x.example", type="journey_exited")["events"]
    assert (left["why"], left["properties"]["reason"]) == ("merge", "exit_on")
    asked.now += 2 * DAY
    work(asked)
    assert sent(asked) == []
