"""A shop that holds mails back in every way there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.capabilities.asked import Asked
from tests.capabilities.journeys_stage import Sink, Stage
from threadline.capabilities.foundation.definitions import Definitions
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.policy import Effect
from threadline.kernel.ports import Person
from threadline.kernel.sender import Outcome
from threadline.kernel.time import HOUR

DEFINITIONS = """
consent:
  topics:
    news: {default: opted_in}
    club: {default: opted_out}
    letter: {confirm: please_confirm}
segments:
  vips: {when: {field: traits.plan, equals: vip}}
mail:
  quiet_hours: {from: "21:00", to: "08:00"}
  caps: [{mails: 1, per: 5d}, {mails: 2, per: 20d}]
  give_up_after: 6d
  senders:
    shop: {from: shop@shop.example}
    young: {from: young@young.example, warm_up: {starts: 2026-01-01, mails: [1, 1, 1, 1, 1]}}
  templates:
    hello: {subject: Hello, text: Hello, topic: news, sender: shop}
    offer: {subject: Offer, text: Offer, topic: news, sender: shop}
    club_news: {subject: Club, text: Club, topic: club, sender: shop}
    letter: {subject: Letter, text: Letter, topic: letter, sender: shop}
    please_confirm: {subject: Confirm, text: "{{ confirm_url }}", transactional: true, sender: shop}
    receipt: {subject: Receipt, text: Thanks, transactional: true, sender: shop}
    strict: {subject: Strict, text: "{{ person.traits.nothing }}", transactional: true, sender: shop}
    young: {subject: Young, text: Young, topic: news, sender: young}
    nobody_sends: {subject: Nobody, text: Nobody, topic: news, sender: shop}
    by_rule: {subject: Rule, text: Rule, transactional: true, sender: shop}
journeys:
  welcome:
    trigger: {event: signed_up, where: {channel: web}}
    late: 1d
    reentry: 90d
    quiet_hours: {from: "21:00", to: "08:00"}
    timeout: 60d
    exit_on: {event: gone}
    events: [{id: thanks, event: thanked, send: receipt}]
    steps:
      - {id: first, send: receipt}
      - {wait: 2d}
      - if: {field: traits.plan, equals: vip}
        then: [{id: vip, send: receipt}]
        else: [{id: other, send: receipt}]
      - {wait: 1d}
      - {id: night, send: hello}
  quiet:
    trigger: {event: compared}
    holdout: 0.999999
    steps: [{id: one, send: receipt}]
  by_hand:
    steps: [{id: one, send: receipt}]
  for_vips:
    trigger: {segment: vips}
    steps: [{id: one, send: receipt}]
rules:
  big:
    version: 1
    conditions: {field: event.properties.total, greater_than: 100}
    actions: [{send_notification: {template: by_rule}}]
  expired:
    version: 1
    conditions: {field: event.properties.total, greater_than: 100}
    actions: [{send_notification: {template: by_rule}}]
    effective_until: 2025-06-01
  lonely:
    version: 1
    conditions: {field: event.properties.total, greater_than: 100}
    actions: [{send_notification: {template: by_rule}}]
  later:
    version: 1
    conditions: {field: traits.plan, equals: vip}
    actions: [{send_notification: {template: by_rule}}]
  first:
    version: 1
    priority: 9
    conditions: {field: event.properties.total, greater_than: 100}
    actions: [{store_decision: {result: first}}]
  second:
    version: 1
    conditions: {field: event.properties.total, greater_than: 100}
    actions: [{send_notification: {template: by_rule}}]
  broken:
    version: 1
    conditions: {field: event.properties.total, greater_than: 100}
    actions: [{send_notification: {template: "${event.properties.items}"}}]
rule_sets:
  after: {events: [bought], rules: [big, expired, later, broken]}
  only_one: {events: [bought], rules: [first, second], policy: first}
"""
_DECLARED = Definitions([("threadline.yaml", DEFINITIONS)])


class World(Stage):
    """One store; it is one in the morning of 2026-01-01 in UTC, and noon for Ada, who is in Tokyo."""

    def __init__(self, definitions: str = DEFINITIONS) -> None:
        Asked.__init__(self, definitions=definitions)
        self.engine.public_address.use_local("http://shop.example")
        self.mails = []
        self.outcome: Outcome | None = None
        self.now += 10 * HOUR
        self.tell("identify", user_id="ada", properties={"email": "ada@example.com"})

    def work(self) -> None:
        """Do what is due."""
        dispatcher = Dispatcher(self.engine, {"mail": _Provider(self)}, "test")
        while dispatcher.run_once():
            self.now += 1

    def send(self, template: str, **more: Any) -> dict[str, str]:
        """Ask for one mail."""
        self.ask("mail_send", id="user_id:ada", template=template, **more)
        self.work()
        return {"template": template}

    def later(self, microseconds: int) -> None:
        """Let time pass."""
        self.until(self.now + microseconds)

    def broadcast(self, *, start: bool = True, **more: Any) -> dict[str, str]:
        """Create a broadcast to everybody, and start it."""
        self.ask("broadcasts_create", id="sale", **{"template": "receipt", **more})
        if start:
            self.ask("broadcasts_start", id="sale")
        return {"broadcast": "sale"}

    def works_until(self, is_so: Callable[[], bool]) -> None:
        """Do what is due, a step at a time, until something is so."""
        dispatcher = Dispatcher(self.engine, {}, "test")
        while not is_so():
            assert dispatcher.run_once(), "nothing more is due"
            self.now += 1

    def ada(self) -> Person:
        """The person."""
        return self.engine.reader.person("default", "user_id:ada")

    def why_not(self, **asked: str) -> dict[str, Any]:
        """The answer about Ada."""
        answer: dict[str, Any] = self.ask("mail_why_not", id="user_id:ada", **asked)
        return answer


class _Provider(Sink):
    """Takes every mail, or answers as it is told to."""

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Answer."""
        world = self._stage
        assert isinstance(world, World)
        return world.outcome or super().send(effect, effect_id, person)
