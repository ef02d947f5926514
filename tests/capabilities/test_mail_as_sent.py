"""A mail as it was sent, beside the bytes that left."""

from __future__ import annotations

import re

import pytest

from tests.capabilities.mail_stage import SHOP, MailStage
from threadline.engine.engine import Engine
from threadline.kernel.errors import NotFound
from threadline.kernel.time import DAY

NAMED = SHOP.replace("<p>Code {{ code }}</p>", "<p>{{ person.traits.first_name }}: {{ code }}</p>")
LINKS = re.compile(r"https?://[^\s'\"<>]+")


def plain(text: str) -> str:
    """A mail without its links, which are signed for one recipient."""
    return LINKS.sub("", text).strip()


def left(stage: MailStage, number: int, kind: str) -> str:
    """A part of the message that the sender was given."""
    part = stage.box.messages[number].get_body((kind,))
    assert part is not None
    return str(part.get_content())


def test_a_mail_is_shown_as_it_was_although_person_and_template_have_changed() -> None:
    stage = MailStage(NAMED)
    stage.person(first_name="Ada")
    message = stage.send(variables={"code": "X1"})
    stage.now += DAY
    stage.person(first_name="Augusta", email="augusta@example.com")
    changed = MailStage(NAMED.replace("{{ code }}</p>", "{{ code }} again</p>"))
    changed.engine = Engine(stage.engine.store, changed.engine.catalogue, lambda: stage.now)
    changed.now = stage.now
    shown = changed.ask("mail_as_sent", id="ada", message=message)
    assert (shown.subject, shown.recipient) == ("Welcome Ada", "ada@example.com")
    sent = plain(left(stage, 0, "html"))  # ends with what tells machines from people
    assert sent.startswith(plain(shown.html))
    assert "Ada: X1</p>" in shown.html
    assert "again" in changed.ask("mail_preview", template="welcome", person="ada").html


def test_a_mail_about_an_event_is_shown_with_that_event() -> None:
    stage = MailStage()
    stage.person()
    events = [stage.record("purchase_completed", order=order, total=9).id for order in ("1001", "1002")]
    message = stage.send("receipt", event=events[0])
    stage.person(email="other@example.com")
    shown = stage.ask("mail_as_sent", id="ada", message=message)
    assert (shown.subject, shown.html, shown.recipient) == ("Order 1001", "", "ada@example.com")
    assert plain(shown.text) == plain(left(stage, 0, "plain")) == "Thanks, ada@example.com."


def test_nobody_unsubscribes_by_looking_at_a_mail() -> None:
    stage = MailStage()
    stage.person()
    shown = stage.ask("mail_as_sent", id="ada", message=stage.send())
    assert "unsubscribe_url" in shown.html
    assert "localhost" not in shown.html + shown.text


def test_a_mail_of_somebody_else_and_one_that_was_not_sent_are_not_found() -> None:
    stage = MailStage()
    stage.person()
    stage.person("bob")
    message = stage.send()
    skipped = stage.ask("mail_send", id="bob", template="welcome").message
    for who, wanted in (("bob", message), ("bob", skipped), ("ada", "0" * 32)):
        with pytest.raises(NotFound, match="was sent to this person"):
            stage.ask("mail_as_sent", id=who, message=wanted)
