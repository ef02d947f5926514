"""Law: the mails of one person leave in the order in which they were requested, and a cap drops the newer."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.capabilities.mail_stage import MailStage
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.scheduled import OUTBOX, due_of, outbox_key, pending_effect
from threadline.kernel.sender import Outcome
from threadline.kernel.store import Batch, Delete, Put, scan_pages
from threadline.kernel.time import DAY, HOUR, MINUTE, time_key

TEMPLATES = "abcdefgh"
SHOP = """
mail:
  senders: {shop: {from: hello@shop.example}}
  provider: {console: {}, at_once: AT_ONCE}
  templates:
TEMPLATES
MORE
journeys:
  burst:
    trigger: {event: began}
    reentry: always
    steps: [{send: c}, {send: a}, {send: b}]
  drip:
    trigger: {event: began}
    reentry: always
    steps: [{send: e}, {wait: 2h}, {send: d}]
"""
QUIET = "  quiet_hours: {from: '21:00', to: '08:00'}\n"
CAP = "  caps: [{mails: 1, per: 5h}, {mails: 3, per: 2d}]\n  give_up_after: 3d\n"


def stage_of(more: str = "", at_once: int = 16, page: int = 100) -> MailStage:
    templates = "".join(f"    {name}: {{subject: Mail {name}, text: Hello.}}\n" for name in TEMPLATES)
    text = SHOP.replace("TEMPLATES", templates).replace("MORE", more).replace("AT_ONCE", str(at_once))
    stage = MailStage(text.replace("{console: {}, at_once: ", "{at_once: "))
    stage.dispatcher = Dispatcher(stage.engine, {"mail": stage.box}, "test", page=page)
    return stage


class Sent:
    """What left, and when: by person the ids of mails in the order in which they left."""

    def __init__(self, stage: MailStage) -> None:
        self.stage = stage
        self.mails: dict[str, list[str]] = defaultdict(list)
        self.templates: dict[str, list[str]] = defaultdict(list)
        stage.box.answer = self.answer

    def answer(self, data: dict[str, Any]) -> Outcome:
        who = data["to"].partition("@")[0]
        self.mails[who].append(data["record"]["message"])
        self.templates[who].append(data["record"]["template"])
        return Outcome(type="mail_sent", properties=data["record"])

    def work_until(self, at: int) -> None:
        """Do whatever is due, at the moment it is."""
        store = self.stage.engine.store
        while True:
            self.stage.work()
            dues = [due_of(item) for table in (OUTBOX, "timer") for item in scan_pages(store, table)]
            following = min((due for due in dues if due > self.stage.now), default=at)
            if following >= at:
                break
            self.stage.now = following
        self.stage.now = at
        self.stage.work()


class Requested:
    """The mails of one person in the order of their requests, reckoned from the log and the declared steps alone."""

    def __init__(self, stage: MailStage, who: str) -> None:
        person = stage.engine.reader.person("default", who)
        events = sorted(stage.engine.reader.all_events(person), key=lambda each: each.sequence)
        self.outcomes = [
            (each.event.type, each.event.properties)
            for each in events
            if each.event.type in ("mail_sent", "mail_skipped")
        ]
        self.requests: list[tuple[str, str]] = []
        """(the event that requested it, its template)."""
        for each in events:
            if each.event.type == "mail_requested":
                self.requests.append((each.id, each.event.properties["template"]))
            mails = each.event.properties.get("mails", ()) if each.event.type.startswith("journey_") else ()
            self.requests += [(each.event.properties["run"] + mail["step"], mail["template"]) for mail in mails]

    def place(self, properties: dict[str, Any]) -> int:
        """The number of a mail among the requests."""
        wanted = properties["template"]
        run = properties.get("occurrence", "").split("/")
        name = run[1] + properties["step"] if len(run) > 2 else ""
        return next(
            number
            for number, (cause, template) in enumerate(self.requests)
            if template == wanted and (cause == name or (not name and cause == properties["occurrence"]))
        )


# Without shrinking: an example is a life of days, and a failing one says enough.
@settings(max_examples=12, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_mails_of_one_person_leave_in_the_order_of_their_requests(seed: int) -> None:
    random = Random(seed)
    stage = stage_of(
        random.choice([QUIET, CAP, QUIET + CAP, ""]), random.choice([1, 2, 16]), random.choice([2, 5, 100])
    )
    sent, people = Sent(stage), [f"p{number}" for number in range(6)]
    for who in people:
        stage.person(who, timezone=random.choice(["Europe/Rome", "America/New_York", "UTC"]))
    for _ in range(random.randint(2, 6)):
        for who in random.sample(people, 4):
            if random.random() < 0.5:
                stage.record("began", who)
            else:
                stage.ask("mail_send", id=who, template=random.choice("fgh"))
        sent.work_until(stage.now + random.choice([MINUTE, HOUR, 7 * HOUR, DAY]))
    sent.work_until(stage.now + 8 * DAY)
    for who in people:
        requested = Requested(stage, who)
        places = [(type, requested.place(properties)) for type, properties in requested.outcomes]
        left = [place for type, place in places if type == "mail_sent"]
        assert left == sorted(left), (seed, who)
        for number, (type, place) in enumerate(places):
            if type == "mail_skipped":
                before = [other for kind, other in places[:number] if kind == "mail_sent"]
                assert all(other < place for other in before), "a newer mail took the place of this one"
        assert sent.mails[who] == [p["message"] for type, p in requested.outcomes if type == "mail_sent"]


def test_three_mails_of_one_moment_leave_as_they_are_written() -> None:
    stage = stage_of()
    sent = Sent(stage)
    for number in range(30):
        stage.person(f"u{number}")
        stage.record("began", f"u{number}")
    stage.work()
    assert {tuple(templates) for templates in sent.templates.values()} == {("c", "a", "b", "e")}


def test_what_was_requested_at_night_leaves_in_the_morning_in_its_order() -> None:
    stage = stage_of(QUIET)
    sent = Sent(stage)
    sent.work_until(stage.now + 12 * HOUR)
    for number in range(20):
        stage.person(f"u{number}")
        stage.ask("mail_send", id=f"u{number}", template="h")
    sent.work_until(stage.now + 2 * HOUR)
    for number in range(20):
        stage.ask("mail_send", id=f"u{number}", template="a")
    assert not sent.templates
    sent.work_until(stage.now + 12 * HOUR)
    assert {tuple(templates) for templates in sent.templates.values()} == {("h", "a")}


def test_a_cap_drops_the_newer_mail() -> None:
    stage = stage_of("  caps: [{mails: 1, per: 2d}]\n  give_up_after: 2d\n")
    sent = Sent(stage)
    for template, later in (("f", 6 * HOUR), ("g", 18 * HOUR), ("h", 8 * DAY)):
        for number in range(20):
            if template == "f":
                stage.person(f"u{number}")
            stage.ask("mail_send", id=f"u{number}", template=template)
        sent.work_until(stage.now + later)
    assert {tuple(templates) for templates in sent.templates.values()} == {("f", "g")}


@pytest.mark.parametrize("template", ["f", "g"])
def test_a_mail_of_an_earlier_release_still_leaves_and_before_others_of_its_instant(template: str) -> None:
    stage = stage_of()
    stage.person()
    stage.ask("mail_send", id="ada", template="h")
    stage.ask("mail_send", id="ada", template=template)
    *_, old = sorted(scan_pages(stage.engine.store, OUTBOX), key=lambda item: item.key.sort)
    pending = pending_effect(old)
    due = min(due_of(item) for item in scan_pages(stage.engine.store, OUTBOX))
    key = old.key._replace(sort=f"{time_key(due)}.{pending.id}")
    assert key == outbox_key(old.key.partition, due, "", pending.id)
    assert stage.engine.store.commit([Batch(writes=[Delete(old.key, old.version), Put(key, old.value, 0)])]) == [None]
    sent = Sent(stage)
    stage.work()
    assert sent.templates["ada"] == [template, "h"]
    assert sent.mails["ada"][0] == pending.id
