"""Two people of whom the store has something of every kind, with a mark in everything that is about one of them."""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from zipfile import ZipFile

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.effect import Effect
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_UNKNOWN, Outcome
from threadline.kernel.store import Item, scan_pages
from threadline.kernel.time import SECOND, Clock
from threadline.senders.inbox import InboxSender
from threadline.stores.memory import MemoryStore
from threadline.surfaces.python.embedded import Threadline

STARTS_AT = 1_772_445_600 * SECOND
"""2026-03-02T10:00:00Z, a Monday."""
MARK = re.compile(rb"(ada|bob)mark-[a-z0-9]+", re.IGNORECASE)

DEFINITIONS = """
feature_updates: {}
segments:
  marked: {when: {field: tags, contains: vip}}
consent:
  topics: {letter: {title: The letter, default: opted_in}}
mail:
  senders: {shop: {from: shop@shop.example, warm_up: {starts: 2026-03-01, mails: [50, 100]}}}
  templates:
    hello: {subject: "Hello {{ person.traits.name }}", text: "{{ code }}", variables: {code: {default: x}}}
    lost: {subject: Lost, text: "{{ code }}", variables: {code: {default: x}}, transactional: true}
    later: {subject: Later, text: "{{ code }}", variables: {code: {default: x}}, transactional: true}
destinations:
  crm: {url: "https://crm.example.com/hooks"}
leaderboards:
  points: {score: points.earned, periods: [week, all], per: country}
journeys:
  welcome:
    trigger: {event: signed_up, map: {name: event.properties.name}}
    steps: [{wait: 30d}, {send: hello}]
rules:
  large:
    version: 1
    conditions: {field: event.properties.total, greater_than: 10}
    actions:
      - call_webhook: {destination: crm, payload: {note: "${event.properties.note}"}}
      - store_decision: {result: accept, reason: "${event.properties.note}"}
rule_sets: {orders: {events: [ordered], rules: [large]}}
"""
_DECLARED = Definitions([("threadline.yaml", DEFINITIONS)])
CATALOGUE = Catalogue(discover(definitions=_DECLARED), rules(_DECLARED), _DECLARED)


class _Mail:
    """Keeps copies in the inbox; of one template nobody knows what became."""

    kind = "mail"

    def __init__(self, engine: Engine) -> None:
        self._inbox = InboxSender(engine.store, engine.clock)

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        if effect.data["record"]["template"] == "lost":
            return Outcome(type=EFFECT_UNKNOWN, properties={"why": "no answer"})
        return self._inbox.send(effect, effect_id, person)


class _Refusing:
    """Takes no webhook."""

    kind = "webhook"

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        return Outcome(type=EFFECT_PARKED, properties={"answer": "410 gone"}, parked="410 gone")


class Stage:
    """A store with everything about ada and bob."""

    def __init__(
        self, opened: Callable[[Clock], Engine] = lambda clock: Engine(MemoryStore(), CATALOGUE, clock)
    ) -> None:
        self.now = STARTS_AT
        self.engine = opened(self._clock) if opened else Engine(MemoryStore(), CATALOGUE, self._clock)
        self.engine.public_address.use_local("http://shop.example")
        self.shop = Threadline(self.engine, source="shop")
        self.dispatcher = Dispatcher(self.engine, {"mail": _Mail(self.engine), "webhook": _Refusing()}, "test")
        for who in ("ada", "bob"):
            self._live(who)
        self.shop.what_if.run(rule="large", content=_STRICTER, save=True, wait=True, note="stricter")
        self._broadcast()
        for who in ("ada", "bob"):
            self._wait(who)

    def _clock(self) -> int:
        self.now += 1
        return self.now

    def work(self) -> None:
        """Do what is due."""
        while self.dispatcher.run_once():
            pass

    def record(self, who: str, type: str, key: str, **properties: Any) -> dict[str, Any]:
        event = {"type": type, "key": f"{who}-{key}", "identifiers": {"user_id": f"{who}mark-id"}}
        [receipt] = self.shop.record([{**event, "properties": properties}])
        return {"status": receipt.status, "id": receipt.id}

    def _live(self, who: str) -> None:
        id, shop = f"{who}mark-id", self.shop
        named = {"user_id": id, "email": f"{who}mark-mail@example.com", "anonymous_id": f"{who}mark-phone"}
        traits = {"name": f"{who}mark-name", "email": f"{who}mark-mail@example.com", "country": f"{who}mark-land"}
        shop.record([{"type": "page", "key": f"{who}-0", "identifiers": {"anonymous_id": f"{who}mark-phone"}}])
        shop.record([{"type": "identify", "key": f"{who}-1", "identifiers": named, "properties": traits}])
        shop.people.tag(id, add=["vip", f"{who}mark-tag"])
        self.record(who, "signed_up", "in", name=f"{who}mark-variable")
        self.record(who, "tool_used", "used")
        self.record(who, "ordered", "order", total=99, note=f"{who}mark-payload")
        self.record(who, "product_viewed", "viewed", category=f"{who}mark-topic")
        shop.record(
            [{"type": "group", "key": f"{who}-g", "identifiers": {"user_id": id}, "object_ref": f"{who}mark-group"}]
        )
        shop.memory.remember(id, type="preference", key="colour", value=f"{who}mark-colour")
        shop.points.adjust(id, points=7, request=f"{who}-r", reason=f"{who}mark-reason")
        shop.alerts.write("sale", title="Sale")
        shop.alerts.dismiss(id, "sale")
        shop.consent.change(id, unsubscribe=["letter"], request=f"{who}mark-consent")
        shop.consent.change(id, subscribe=["letter"], request=f"{who}-again")
        shop.mail.send(id, template="hello", variables={"code": f"{who}mark-code"})
        shop.mail.send(id, template="lost", variables={"code": f"{who}mark-lost"})
        self.now += SECOND
        self.work()
        [sent] = [each for each in shop.mail.history(id).mails if each.status == "sent"]
        # Refused: another payload under a known key, a body that is no event, and one that only its text names.
        self.record(who, "signed_up", "in", name=f"{who}mark-conflict")
        shop.record([{"type": 7, "key": "k", "identifiers": {"user_id": id}, "properties": f"{who}mark-rejected"}])
        shop.record([{"type": "x", "key": "n", "identifiers": {"user_id": id}, "properties": {"n": float("nan")}}])
        # A device that two people use: who it is waits for a decision.
        shop.record([{"type": "page", "key": f"{who}-d", "identifiers": {"user_id": id, "anonymous_id": "device"}}])
        assert sent.template == "hello"

    def _broadcast(self) -> None:
        self.shop.broadcasts.create("all", template="later", audience={"tags": ["vip"]}, topic="")
        self.shop.broadcasts.start("all")
        self.work()

    def _wait(self, who: str) -> None:
        """What is still to be sent."""
        self.shop.suppression.add(address=f"{who}mark-mail@example.com", note=f"{who}mark-note")
        self.shop.mail.send(f"{who}mark-id", template="later", variables={"code": f"{who}mark-waits"})

    def archive(self, who: str) -> dict[str, bytes]:
        """The files of the archive of somebody."""
        operation = self.engine.catalogue.operation("people_export")
        context = Context(self.engine, "default", self.now)
        return self.unzipped(b"".join(operation.run(context, operation.params(id=f"{who}mark-id"))))

    @staticmethod
    def unzipped(data: bytes) -> dict[str, bytes]:
        """The files of an archive, by name."""
        with ZipFile(io.BytesIO(data)) as zipped:
            assert zipped.testzip() is None
            return {name: zipped.read(name) for name in zipped.namelist()}

    def items(self) -> Iterator[tuple[Item, bytes]]:
        """Every item of the store, and all that can be read in it."""
        for table in self.engine.store.tables():
            for item in scan_pages(self.engine.store, table):
                yield item, b" ".join((*(part.encode() for part in item.key), item.value, _inflated(item.value)))


def _inflated(value: bytes) -> bytes:
    try:
        return zlib.decompress(value)
    except zlib.error:
        return b""


def lines(data: bytes) -> list[dict[str, Any]]:
    """The lines of a file of an archive."""
    return [json.loads(line) for line in data.splitlines()]


_STRICTER = {
    "conditions": {"field": "event.properties.total", "greater_than": 1000},
    "actions": [{"store_decision": {"result": "reject"}}],
}
