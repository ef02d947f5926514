"""Who waits in a journey, and what ends it: quiet hours, pauses, merges and splits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT
from tests.capabilities.journeys_stage import Stage
from threadline.kernel.time import DAY, HOUR, MINUTE

NIGHT = STARTS_AT + 2 * HOUR
"""Two in the morning in UTC."""

SINGLE = """
journeys:
  order:
    trigger: {event: signed_up}
    quiet_hours: {from: "21:00", to: "08:00"}
    OPTION
    exit_on: {event: gone}
    events: [{event: order_shipped, send: shipped}]
    steps: [{wait: 30d}]
"""
TRANSACTIONAL = """
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {shipped: {subject: Shipped, text: It is on its way., transactional: true}}
"""


def single_mail(option: str = "reply_to: a@example.com", more: str = "", zone: str = "UTC") -> Stage:
    stage = Stage(SINGLE.replace("OPTION", option) + more)
    stage.tell("identify", user_id="ada", properties={"timezone": zone, "email": "ada@example.com"})
    stage.tell("signed_up", user_id="ada")
    stage.until(NIGHT)
    stage.tell("order_shipped", user_id="ada")
    return stage


def test_a_single_mail_requested_at_night_leaves_in_the_morning_of_the_recipient() -> None:
    for zone, expected in (("UTC", "2026-01-01T08:00"), ("Europe/Rome", "2026-01-01T07:00"), ("Asia/Tokyo", "02:00")):
        stage = single_mail(zone=zone)
        stage.until(NIGHT + DAY)
        [(at, template)] = stage.got()
        assert (at.endswith(expected), template) == (True, "shipped")


def test_a_single_mail_whose_person_moves_while_it_waits_is_not_sent_in_the_night_of_the_new_zone() -> None:
    stage = single_mail()
    stage.until(NIGHT + HOUR)
    stage.tell("identify", user_id="ada", properties={"timezone": "America/New_York"})
    stage.until(NIGHT + DAY)
    assert stage.got() == [("2026-01-01T13:00", "shipped")]


def test_a_single_mail_is_withdrawn_when_its_journey_is_left_in_the_night() -> None:
    stage = single_mail()
    stage.tell("gone", user_id="ada")
    stage.until(NIGHT + DAY)
    assert stage.got() == []


@pytest.mark.parametrize(("option", "more"), [("transactional: true", ""), ("on_bounce: exit", TRANSACTIONAL)])
def test_a_transactional_single_mail_leaves_at_night(option: str, more: str) -> None:
    stage = single_mail(option, more)
    stage.until(NIGHT + DAY)
    assert stage.got() == [("2026-01-01T02:00", "shipped")]


def test_a_trial_says_when_a_single_mail_would_leave() -> None:
    stage = single_mail()
    stage.until(NIGHT + DAY)
    tried = stage.ask("journeys_what_if", definitions=SINGLE.replace("OPTION", "version: 2"))
    assert [mail["at"][:16] for sample in tried["samples"] for mail in sample["new"]] == ["2026-01-01T08:00"]


# --- pauses -----------------------------------------------------------------------------------

TIMED = """
journeys:
  timed:
    trigger: {event: signed_up}
    timeout: 12h
    events: [{event: order_shipped, send: shipped}]
    steps: [{send: hello}, {wait: 30d}]
"""


@pytest.mark.parametrize("person", [{}, {"person": "ada"}])
def test_a_run_whose_time_ended_during_a_pause_is_left_when_it_is_resumed(person: dict[str, Any]) -> None:
    stage = Stage(TIMED)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + HOUR)
    stage.ask("journeys_pause", name="timed", **person)
    stage.until(STARTS_AT + 18 * HOUR + 30 * MINUTE)
    stage.ask("journeys_resume", name="timed", **person)
    stage.tell("order_shipped", user_id="ada")
    stage.until(STARTS_AT + 30 * HOUR)
    assert (stage.told()[-1]["at"], stage.told()[-1]["reason"]) == ("2026-01-01T18:30", "timeout")
    assert [template for _, template in stage.got()] == ["hello"]


@pytest.mark.parametrize("person", [{}, {"person": "ada"}])
def test_a_mail_that_waited_for_the_end_of_a_pause_leaves_when_it_is_resumed(person: dict[str, Any]) -> None:
    stage = Stage(TIMED)
    stage.tell("signed_up", user_id="ada")
    stage.tell("signed_up", user_id="bob")
    stage.ask("journeys_pause", name="timed", **person)
    stage.until(STARTS_AT + 65 * MINUTE)
    assert stage.got() == []
    resumed = stage.ask("journeys_resume", name="timed", **person)
    stage.work()
    assert [template for _, template in stage.got()] == ["hello"]
    assert resumed["mails"] == (1 if person else 2)


def test_resuming_a_journey_leaves_mails_of_others_where_they_wait() -> None:
    stage = Stage(TIMED + TIMED.replace("journeys:\n", "").replace("timed:", "other:"))
    stage.tell("signed_up", user_id="ada")
    for name in ("timed", "other"):
        stage.ask("journeys_pause", name=name)
    stage.until(STARTS_AT + 65 * MINUTE)
    assert stage.ask("journeys_resume", name="timed")["mails"] == 1
    stage.work()
    assert len(stage.got()) == 1


@pytest.mark.parametrize("person", [{}, {"person": "ada"}])
def test_who_moves_during_a_pause_is_woken_by_the_new_zone_after_it(person: dict[str, Any]) -> None:
    stage = Stage(MORNING)
    stage.tell("identify", user_id="ada", properties={"timezone": "America/Los_Angeles"})
    stage.until(STARTS_AT + HOUR)
    stage.tell("signed_up", user_id="ada")
    stage.ask("journeys_pause", name="morning", **person)
    stage.until(STARTS_AT + 2 * HOUR)
    stage.tell("identify", user_id="ada", properties={"timezone": "Europe/Rome"})
    stage.ask("journeys_resume", name="morning", **person)
    stage.until(STARTS_AT + 3 * DAY)
    assert stage.got() == [("2026-01-01T08:00", "hello")]


# --- merges and splits ------------------------------------------------------------------------

MORNING = """
journeys:
  morning:
    trigger: {event: signed_up}
    steps: [{wait: {until: "09:00"}}, {send: hello}]
"""


def test_a_merge_wakes_who_waits_for_a_local_time() -> None:
    stage = Stage(MORNING)
    stage.tell("identify", user_id="ada", properties={"timezone": "Asia/Tokyo"})
    stage.until(STARTS_AT + HOUR)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + 12 * HOUR)
    stage.tell("identify", email="ada@example.com", properties={"timezone": "America/Los_Angeles"})
    stage.ask("people_merge", id="ada", other="email:ada@example.com")
    stage.until(STARTS_AT + 3 * DAY)
    assert stage.got() == [("2026-01-01T17:00", "hello")]


FOR_EVER = """
journeys:
  endless:
    trigger: {event: signed_up}
    reentry: always
    timeout: 5d
    steps: [{send: hello}, {wait: 2d}, {send: more}, {wait: {event: bought}}]
"""


def three_in_one() -> Stage:
    """Ada, Bob and Cy are in one journey and are joined; then Bob and Cy are split off together."""
    stage = Stage(FOR_EVER)
    for who in ("ada", "bob", "cy"):
        stage.tell("signed_up", user_id=who)
        stage.until(stage.now + HOUR)
    for other in ("bob", "cy"):
        stage.ask("people_merge", id="ada", other=other, force=True)
    stage.ask("people_split", id="ada", identifiers=["user_id:bob", "user_id:cy"])
    return stage


def test_of_two_runs_that_come_back_by_a_split_one_goes_on_and_the_other_ends() -> None:
    stage = three_in_one()
    assert stage.path("bob").count("merged") == 1
    stage.until(STARTS_AT + 3 * DAY)
    assert [template for _, template in stage.got("bob")] == ["hello", "more"]
    stage.until(STARTS_AT + 6 * DAY)
    assert stage.path("bob").count("timeout") == 1
    stage.tell("signed_up", user_id="cy")
    assert stage.told("cy")[-1]["type"] == "journey_entered"


def test_a_mail_that_was_withdrawn_because_of_a_merge_is_not_sent_after_the_split() -> None:
    stage = Stage(FOR_EVER)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + HOUR)
    stage.tell("signed_up", user_id="bob")
    stage.ask("people_merge", id="ada", other="bob", force=True)
    stage.work()
    stage.ask("people_split", id="ada", identifiers=["user_id:bob"])
    stage.until(STARTS_AT + 3 * DAY)
    assert [template for _, template in stage.got("bob")] == ["more"]


def test_a_mail_that_a_split_reaches_before_it_is_withdrawn_is_sent() -> None:
    stage = Stage(FOR_EVER)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + HOUR)
    stage.tell("signed_up", user_id="bob")
    stage.ask("people_merge", id="ada", other="bob", force=True)
    stage.ask("people_split", id="ada", identifiers=["user_id:bob"])
    stage.until(STARTS_AT + 3 * DAY)
    assert [template for _, template in stage.got("bob")] == ["hello", "more"]
