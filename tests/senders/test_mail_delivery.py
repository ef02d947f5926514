"""The whole way of a mail: asked for, rendered, claimed, sent over SMTP, and what its outcome does to the person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.servers.mail_sink import MailSink, mail_sink
from threadline.app import open_dispatcher, open_engine
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.time import HOUR, SECOND
from threadline.settings import Settings
from threadline.surfaces.python.embedded import Threadline

DEFINITIONS = """
mail:
  provider: {{url: "smtp://127.0.0.1:{port}?tls=off&timeout=2", {more}}}
  senders: {{shop: {{from: news@shop.example, name: The Shop}}}}
  templates:
    news: {{subject: "Hello {{{{ person.email }}}}", text: "{{{{ unsubscribe_url }}}}", topic: news}}
"""


class Stage(NamedTuple):
    shop: Threadline
    engine: Engine
    dispatcher: Dispatcher
    sink: MailSink
    clock: list[int]

    def asks_for(self, address: str) -> str:
        self.shop.identify(address, {"email": address})
        return self.shop.mail.send(f"user_id:{address}", template="news").message

    def works(self, seconds: int = 1) -> None:
        self.clock[0] += seconds * SECOND
        while self.dispatcher.run_once():
            pass

    def types(self, address: str) -> list[str]:
        events = self.shop.events.of(f"user_id:{address}").events
        wanted = ("mail_", "threadline.effect")
        return sorted(each.type for each in events if each.type.startswith(wanted) and each.type != "mail_requested")


@contextmanager
def staged(folder: Path, port: int, sink: MailSink, **options: str) -> Iterator[Stage]:
    """An engine that sends to this port, by these options of the provider."""
    file = folder / "mail.yaml"
    more = ", ".join(f"{name}: {value}" for name, value in options.items())
    file.write_text(DEFINITIONS.format(port=port, more=more))
    settings = Settings(store="memory:", definitions=str(file), public_url="https://shop.example")
    clock = [1_772_445_600 * SECOND]
    engine = open_engine(None, settings, lambda: clock[0])
    dispatcher = open_dispatcher(engine, settings)
    yield Stage(Threadline(engine, workspace="default", source="shop"), engine, dispatcher, sink, clock)
    engine.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with mail_sink(tmp_path, whole=True) as sink, staged(tmp_path, sink.port, sink) as made:
        yield made


def test_a_mail_is_sent_once_under_the_id_of_its_effect(stage: Stage) -> None:
    message = stage.asks_for("fine-1@b.example")
    stage.works()
    stage.works(HOUR // SECOND)
    (accepted,) = stage.sink.accepted()
    assert accepted.id == f"{message}@shop.example"
    assert stage.types("fine-1@b.example") == ["mail_sent"]


def test_a_recipient_refused_for_good_gets_no_further_mail(stage: Stage) -> None:
    stage.asks_for("gone-1@b.example")
    stage.works()
    stage.clock[0] += SECOND
    stage.asks_for("gone-1@b.example")
    stage.works()
    types = stage.types("gone-1@b.example")
    assert [type for type in types if type.startswith("mail_")] == ["mail_bounced", "mail_skipped"]


def test_a_greylisted_mail_arrives_later(stage: Stage) -> None:
    stage.asks_for("greylist-1@b.example")
    stage.works()
    assert stage.sink.accepted() == []
    stage.works(301)
    assert len(stage.sink.accepted()) == 1
    assert stage.types("greylist-1@b.example") == ["mail_sent", "threadline.effect_retried"]


@pytest.mark.parametrize("behaviour", ["drop_accepted", "drop_after"])
def test_a_mail_whose_fate_is_unknown_waits_for_somebody_who_knows(stage: Stage, behaviour: str) -> None:
    address = f"{behaviour}-1@b.example"
    message = stage.asks_for(address)
    stage.works()
    stage.works(24 * HOUR // SECOND)
    assert stage.types(address) == ["threadline.effect_unknown"]
    assert len(stage.sink.accepted()) == int(behaviour == "drop_accepted")
    assert stage.engine.delivery.resolve("default", message, None, "the server's log")
    assert "mail_sent" in stage.types(address)
    assert stage.engine.delivery.unknown("default") == []


@pytest.mark.parametrize(("unknown", "messages"), [("wait", 1), ("assume_done", 1), ("send_again", 2)])
def test_a_mail_whose_fate_stays_unknown_goes_the_way_that_is_declared(
    tmp_path: Path, unknown: str, messages: int
) -> None:
    with mail_sink(tmp_path) as sink, staged(tmp_path, sink.port, sink, unknown=unknown, unknown_after="2h") as stage:
        stage.asks_for("drop_accepted-1@b.example")
        stage.works()
        stage.works(HOUR // SECOND)
        assert stage.types("drop_accepted-1@b.example") == ["threadline.effect_unknown"]
        stage.works(2 * HOUR // SECOND)
        stage.works()
        stage.works(HOUR // SECOND)
        assert ("mail_sent" in stage.types("drop_accepted-1@b.example")) == (unknown != "wait")
        assert len(sink.accepted()) == messages
