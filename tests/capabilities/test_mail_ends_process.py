"""A mail whose filling in ends the whole process is given up on after some, and all others are sent."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import forked
from tests.capabilities.mail_worker import DEADLY
from threadline.app import open_engine
from threadline.engine.delivery.alone import DEATHS_MAX, ENDED_OFTEN
from threadline.engine.delivery.leases import LEASE
from threadline.engine.engine import Engine
from threadline.engine.scheduled import OUTBOX
from threadline.kernel.event import Event, Identifier
from threadline.kernel.sender import EFFECT_PARKED
from threadline.kernel.store import scan_pages
from threadline.kernel.time import system_clock

ROOT = Path(__file__).parents[2]
SHOP = """
settings: {public_url: "http://shop.example"}
mail:
  senders: {shop: {from: hello@shop.example}}
  templates: {thanks: {subject: "Thanks for {{ event.properties.order }}", text: x, transactional: true}}
rules:
  thank:
    version: 1
    conditions: {field: event.properties.order, exists: true}
    actions: [{send_notification: {template: thanks}}]
rule_sets: {orders: {events: [ordered], rules: [thank]}}
"""


class Shop:
    """A store in a file, and processes that send its mails one after the other."""

    def __init__(self, folder: Path) -> None:
        self.store, self.definitions = str(folder / "shop.db"), str(folder / "threadline.yaml")
        Path(self.definitions).write_text(SHOP)

    def opened(self) -> Engine:
        return open_engine(self.store, definitions=self.definitions)

    def order(self, *orders: str) -> None:
        engine = self.opened()
        for who, order in enumerate(orders):
            for type, properties in (("identify", {"email": f"p{who}@x.example"}), ("ordered", {"order": order})):
                [receipt] = engine.recorder.record(
                    [
                        Event(
                            type=type,
                            identifiers=(Identifier("user_id", f"p{who}"),),
                            occurred_at=system_clock(),
                            key=f"{type} {who} {order}",
                            properties=properties,
                        )
                    ]
                )
                assert receipt.status == "accepted", receipt
        engine.close()

    def work(self) -> int:
        """The end of a process that sends what is due."""
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        command = [forked.python(), "-m", "tests.capabilities.mail_worker", self.store, self.definitions]
        return subprocess.run(command, check=False, cwd=ROOT, env=environment, timeout=120).returncode

    def fates(self, count: int) -> list[str]:
        """What became of the mail of each person, or nothing."""
        engine, fates = self.opened(), []
        for who in range(count):
            person = engine.reader.person("default", f"user_id:p{who}")
            events = sorted(engine.reader.events(person), key=lambda event: event.sequence)
            fates.append(
                next((event.event.type for event in reversed(events) if "effect" in event.event.properties), "")
            )
        engine.close()
        return fates


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


DEATHS = 1 + DEATHS_MAX
"""Nobody knows of what the first one dies; each after it prepares mails alone."""


def test_a_mail_that_ends_every_process_is_a_dead_letter_in_the_end_and_all_others_are_sent(shop: Shop) -> None:
    shop.order("a", "b", DEADLY, "d", "e")
    assert [shop.work() for _ in range(DEATHS + 1)] == [*[-signal.SIGKILL] * DEATHS, 0]
    assert shop.fates(5) == ["mail_sent", "mail_sent", EFFECT_PARKED, "mail_sent", "mail_sent"]
    engine = shop.opened()
    [letter] = engine.delivery.dead_letters("default")
    assert letter.why == ENDED_OFTEN
    assert list(scan_pages(engine.store, OUTBOX)) == []
    engine.close()


def test_a_dead_letter_that_is_sent_again_has_as_many_more_tries_and_stops_nobody(shop: Shop) -> None:
    shop.order(DEADLY)
    for _ in range(DEATHS + 1):
        shop.work()
    engine = shop.opened()
    [letter] = engine.delivery.dead_letters("default")
    assert engine.delivery.redrive([letter], "operator") == 1
    engine.close()
    shop.order("b", "c")
    assert [shop.work() for _ in range(DEATHS + 1)] == [*[-signal.SIGKILL] * DEATHS, 0]
    assert shop.fates(2)[1] == "mail_sent"


def test_a_process_that_ends_in_order_leaves_nothing_to_be_careful_about(shop: Shop) -> None:
    for orders in (("a", "b"), ("c", "d")):
        shop.order(*orders)
        assert shop.work() == 0
    engine = shop.opened()
    assert {item.key.sort for item in scan_pages(engine.store, LEASE)} == {"-"}
    engine.close()
