"""A rehearsal: what is due while the clock is moved is carried out, each at its instant, and nothing leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import threadline
from threadline.kernel.errors import InvalidValue
from threadline.surfaces.python.embedded import Threadline
from threadline.testing.rehearsal import ManualClock, Rehearsal

START = "2026-03-02T09:00:00Z"
DEFINITIONS = """
settings: {webhook_http: true}
mail:
  senders: {shop: {from: hello@shop.example}}
  quiet_hours: {from: "21:00", to: "08:00"}
  templates:
    hello:
      subject: "Hello, {{ name }}"
      text: "Grüße, {{ name }}.\\n\\nYours"
      html: "<p>Hello, {{ name }}</p>"
      variables: {name: {default: friend}}
    sale: {subject: Sale, text: Until Sunday.}
    thanks: {subject: Thanks, text: It is on its way.}
journeys:
  welcome:
    trigger: {event: signed_up, map: {name: event.properties.name}}
    steps:
      - id: greet
        send: hello
      - wait: {event: purchase_completed, timeout: 5d}
        then: [{send: thanks}]
destinations: {crm: {url: "https://crm.example.com/hooks"}}
rules:
  large:
    version: 1
    conditions: {field: event.properties.total, greater_than: 100}
    actions: [{call_webhook: {destination: crm, payload: {total: "${event.properties.total}"}}}]
rule_sets: {orders: {events: [purchase_completed], rules: [large]}}
"""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def shop(tmp_path: Path, clock: ManualClock) -> Iterator[Threadline]:
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with threadline.open("memory:", definitions=file, clock=clock) as opened:
        opened.identify("ada", {"email": "ada@example.com"})
        yield opened


def test_a_step_of_a_journey_is_mailed_at_its_instant_as_its_recipient_would_read_it(
    shop: Threadline, clock: ManualClock
) -> None:
    rehearsal = Rehearsal(shop, clock)
    shop.track("ada", "signed_up", {"name": "Ada"})
    rehearsal.advance("1d")
    [mail] = rehearsal.mails
    assert (mail.at, mail.to, mail.person) == (START, "ada@example.com", shop.person("ada").id)
    assert (mail.subject, mail.template, mail.journey, mail.step) == ("Hello, Ada", "hello", "welcome", "greet")
    assert mail.text == "Grüße, Ada.\n\nYours"
    assert "<p>Hello, Ada</p>" in mail.html


def test_an_event_that_a_journey_waits_for_goes_on_from_there_and_a_call_is_listed(
    shop: Threadline, clock: ManualClock
) -> None:
    rehearsal = Rehearsal(shop, clock)
    shop.track("ada", "signed_up")
    rehearsal.advance("3d")
    shop.track("ada", "purchase_completed", {"total": 120})
    rehearsal.advance("1h")
    assert [(mail.at, mail.subject) for mail in rehearsal.mails] == [
        (START, "Hello, friend"),
        ("2026-03-05T09:00:00Z", "Thanks"),
    ]
    [call] = rehearsal.sent
    assert (call.at, call.kind, call.data["payload"]) == ("2026-03-05T09:00:00Z", "webhook", {"total": 120})


def test_quiet_hours_hold_a_mail_until_the_morning(shop: Threadline, clock: ManualClock) -> None:
    rehearsal = Rehearsal(shop, clock)
    rehearsal.advance_to("2026-03-02T22:30:00Z")
    shop.track("ada", "signed_up")
    rehearsal.advance("12h")
    assert [mail.at for mail in rehearsal.mails] == ["2026-03-03T08:00:00Z"]


def test_a_broadcast_that_is_scheduled_leaves_at_its_time_to_everybody(shop: Threadline, clock: ManualClock) -> None:
    rehearsal = Rehearsal(shop, clock)
    for number in range(250):
        shop.identify(f"u{number}", {"email": f"u{number}@example.com"})
    shop.broadcasts.create("spring", template="sale", at="2026-03-04T12:00")
    shop.broadcasts.start("spring")
    rehearsal.advance("2d")
    assert rehearsal.mails == []
    rehearsal.advance("1d")
    assert len({mail.to for mail in rehearsal.mails}) == len(rehearsal.mails) == 251
    assert {(mail.broadcast, mail.at[:16]) for mail in rehearsal.mails} == {("spring", "2026-03-04T12:00")}


def test_what_is_due_is_done_at_its_instant_however_the_time_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)

    def mailed(steps: list[str]) -> list[tuple[str, str, str]]:
        clock = ManualClock(START)
        with threadline.open("memory:", definitions=file, clock=clock) as shop:
            rehearsal = Rehearsal(shop, clock)
            for number in range(5):
                shop.identify(f"u{number}", {"email": f"u{number}@example.com"})
                shop.track(f"u{number}", "signed_up")
            rehearsal.advance("39h")
            shop.track("u3", "purchase_completed", {"total": 1})
            for step in steps:
                rehearsal.advance(step)
            return sorted((mail.at, mail.to, mail.template) for mail in rehearsal.mails)

    assert [template for _, _, template in mailed(["10d"])].count("thanks") == 1
    assert mailed(["10d"]) == mailed(["1d"] * 10) == mailed(["7h"] * 35)


def test_a_clock_that_is_not_the_stores_is_refused(shop: Threadline) -> None:
    with pytest.raises(InvalidValue, match="open it with"):
        Rehearsal(shop, ManualClock(START))


def test_an_instant_that_is_over_is_refused(shop: Threadline, clock: ManualClock) -> None:
    rehearsal = Rehearsal(shop, clock)
    with pytest.raises(InvalidValue, match="is before 2026-03-02T09:00:00"):
        rehearsal.advance_to("2026-03-01T00:00:00Z")
    assert clock.at <= ManualClock("2026-03-02T09:00:01Z").at
