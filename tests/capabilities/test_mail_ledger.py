"""The ledger: bounded, the same in any order, and exact about how often a template was sent."""

from __future__ import annotations

from random import Random

import pytest

from tests.capabilities.mail_stage import STARTS_AT, MailStage
from threadline.capabilities.reach.mail.projection import LEDGER, STATUSES
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.limits import MAIL_LEDGER_MAX
from threadline.kernel.time import MINUTE
from threadline.testing import scenarios
from threadline.testing.projection_laws import LAWS

ADA = (Identifier("user_id", "ada"),)


def history(mails: int, random: Random) -> list[Recorded]:
    """So many mails, each with feedback that may be dated before it was sent."""
    events = []
    for number in range(mails):
        sent_at = STARTS_AT + number * MINUTE
        about = {"message": f"{number:032x}", "template": f"t{number % 3}", "kind": "mail"}
        events.append(Event(type="mail_sent", identifiers=ADA, occurred_at=sent_at, key=f"s{number}", properties=about))
        for type in random.sample([type for type, _ in STATUSES], random.randrange(3)):
            at = sent_at + random.randrange(-2, 30) * MINUTE
            key = f"{type}{number}"
            if type != "mail_sent":
                events.append(Event(type=type, identifiers=ADA, occurred_at=at, key=key, properties=about))
    random.shuffle(events)
    return scenarios.recorded(events)


@pytest.mark.parametrize("mails", [MAIL_LEDGER_MAX - 1, MAIL_LEDGER_MAX + 30])
def test_a_full_ledger_obeys_the_laws(mails: int) -> None:
    random = Random(mails)
    met = history(mails, random)
    for law in LAWS:
        law(LEDGER, met, random)
    state = LEDGER.empty()
    for recorded in sorted(met, key=lambda each: (each.event.occurred_at, each.id)):
        state = LEDGER.after(state, recorded)
    view = LEDGER.view(state, STARTS_AT + 10**12, [])
    assert len(view["mails"]) <= MAIL_LEDGER_MAX
    assert sum(each["count"] for each in view["templates"].values()) == mails
    newest = [each["message"] for each in view["mails"] if each["status"] != "skipped"][:5]
    assert newest == [f"{number:032x}" for number in range(mails - 1, mails - 6, -1)]


@pytest.mark.parametrize(
    ("types", "status"),
    [
        (("mail_delivered", "mail_sent"), "delivered"),
        (("mail_sent", "mail_opened", "mail_delivered"), "opened"),
        (("mail_sent", "mail_delivered", "mail_bounced"), "bounced"),
        (("mail_sent", "mail_complained", "mail_clicked"), "complained"),
        (("threadline.effect_unknown", "mail_sent"), "sent"),
        (("threadline.effect_parked", "mail_sent", "mail_replied"), "replied"),
    ],
)
def test_the_status_is_what_counts_most(types: tuple[str, ...], status: str) -> None:
    events = [
        Event(
            type=type,
            identifiers=ADA,
            occurred_at=STARTS_AT + at,
            key=type,
            properties={"message": "m", "kind": "mail", "template": "t"},
        )
        for at, type in enumerate(types)
    ]
    state = LEDGER.empty()
    for recorded in scenarios.recorded(events):
        state = LEDGER.after(state, recorded)
    assert [each["status"] for each in LEDGER.view(state, STARTS_AT * 2, [])["mails"]] == [status]


def test_what_a_machine_opened_is_not_opened() -> None:
    stage = MailStage()
    stage.person()
    message = stage.send()
    stage.record("mail_opened", source_type="internal", message=message, machine=True)
    assert stage.ask("mail_history", id="ada").mails[0].status == "sent"
    stage.record("mail_opened", source_type="internal", message=message, machine=False)
    assert stage.ask("mail_history", id="ada").mails[0].status == "opened"
