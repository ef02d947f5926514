"""Bounces that a real Postfix writes come out of its Maildir as what they are."""

from __future__ import annotations

import time

import pytest

from tests.capabilities.feedback_stage import Stage
from tests.senders.test_smtp import kind_of, sender_of, sent
from tests.servers.mail_sink import mail_sink
from tests.servers.postfix import postfix
from tests.surfaces.test_mail_intake import intake_of
from threadline.surfaces.mail_intake.maildir import Maildir

pytestmark = pytest.mark.slow
SECONDS_MAX = 60.0
EXPECTED = {
    # what the last server says to Postfix: (bounce, code, why the address is suppressed)
    "gone": ("permanent", "5.1.1", "bounce"),
    "nobody": ("permanent", "5.0.0", "bounce"),
    "full": ("transient", "5.2.2", ""),
    "policy": ("content", "5.7.1", ""),
    "spam": ("content", "5.7.1", ""),
    "late_gone": ("permanent", "5.1.1", "bounce"),
}


def test_bounces_of_postfix_become_events_of_the_right_people(tmp_path_factory) -> None:
    stage = Stage()
    with mail_sink(tmp_path_factory.mktemp("sink")) as sink, postfix(sink.port) as server:
        sender = sender_of(f"smtp://127.0.0.1:{server.port}?tls=off")
        for name in (*EXPECTED, "fine"):
            message = stage.mail(f"{name}-x@b.example", name)
            assert kind_of(sent(sender, f"{name}-x@b.example", id=message))[0] == "mail_sent"
        sender.close()
        deadline = time.monotonic() + SECONDS_MAX
        while sum(len(stage.events(name, "mail_bounced")) for name in EXPECTED) < len(EXPECTED):
            assert time.monotonic() < deadline, server.log()
            time.sleep(0.1)
            if server.mailbox():
                Maildir(server.folder / "mailboxes" / "news", intake_of(stage)).take_all()
        assert server.mailbox() == []
    for name, (bounce, code, reason) in EXPECTED.items():
        (event,) = stage.events(name, "mail_bounced")
        assert (event.properties["bounce"], event.properties["code"]) == (bounce, code), name
        assert stage.suppressed(f"{name}-x@b.example") == reason, name
    assert stage.events("fine", "mail_bounced") == []
    assert stage.engine.rejected.page("default") == []
