"""Journeys worked by hand: what each step does, and when."""

from __future__ import annotations

from tests.capabilities.asked import STARTS_AT
from tests.capabilities.journeys_stage import Stage
from threadline.kernel.time import DAY, HOUR

WELCOME = """
journeys:
  welcome:
    trigger: {event: signed_up, map: {plan: event.properties.plan}}
    exit_on: {event: closed_account}
    steps:
      - send: hello
      - wait: 2d
      - id: bought
        wait: {event: purchase_completed, timeout: 3d}
        then:
          - send: thanks
        else:
          - choice:
              - when: {field: journey.variables.plan, equals: pro}
                steps: [{send: call_us}]
            else:
              - send: reminder
      - id: end
        send: goodbye
"""


def test_a_journey_sends_waits_and_branches() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada", properties={"plan": "pro"})
    stage.until(STARTS_AT + 10 * DAY)
    assert stage.got() == [
        ("2026-01-01T00:00", "hello"), ("2026-01-06T00:00", "call_us"), ("2026-01-06T00:00", "goodbye"),
    ]  # fmt: skip
    assert stage.path() == ["1", "2", "bought", "bought.else.1", "bought.else.1.1.1", "end", "completed"]


def test_a_wait_ends_with_its_event() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + 3 * DAY)
    stage.tell("purchase_completed", user_id="ada", properties={"total": 5, "currency": "EUR"})
    stage.until(STARTS_AT + 10 * DAY)
    assert [template for _, template in stage.got()] == ["hello", "goodbye", "thanks"]
    assert stage.got()[1][0] == "2026-01-04T00:00"


def test_an_exit_event_ends_it_and_nothing_more_is_sent() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + DAY)
    stage.tell("closed_account", user_id="ada")
    stage.until(STARTS_AT + 10 * DAY)
    assert [template for _, template in stage.got()] == ["hello"]
    assert stage.path()[-1] == "exit_on"
    assert stage.engine.reader.person("default", "user_id:ada").timers == {}


def test_quiet_hours_hold_a_mail_until_the_morning_of_the_recipient() -> None:
    stage = Stage("""
journeys:
  night:
    trigger: {event: signed_up}
    quiet_hours: {from: "22:00", to: "08:00"}
    steps: [{send: hello}]
""")
    stage.tell("identify", user_id="ada", properties={"timezone": "Europe/Rome"})
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + DAY)
    assert stage.got() == [("2026-01-01T07:00", "hello")]


def test_a_recipient_who_moves_while_asleep_is_woken_by_the_new_zone() -> None:
    definitions = """
journeys:
  morning:
    trigger: {event: signed_up}
    steps: [{wait: {until: "09:00"}}, {send: hello}]
"""
    for zone, expected in (("Asia/Tokyo", "2026-01-02T00:00"), ("America/New_York", "2026-01-01T14:00")):
        stage = Stage(definitions)
        stage.tell("identify", user_id="ada", properties={"timezone": "Europe/Rome"})
        stage.now = STARTS_AT + HOUR
        stage.tell("signed_up", user_id="ada")
        stage.until(STARTS_AT + 2 * HOUR)
        stage.tell("identify", user_id="ada", properties={"timezone": zone})
        stage.until(STARTS_AT + 2 * DAY)
        assert stage.got() == [(expected, "hello")]
