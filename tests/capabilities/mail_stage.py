"""An engine with mail, a clock moved by hand, and a sender that keeps what it is given."""

from __future__ import annotations

from collections.abc import Callable
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.event import Event, Identifier, Receipt
from threadline.kernel.policy import Effect
from threadline.kernel.sender import Outcome
from threadline.kernel.store import Store
from threadline.kernel.time import SECOND
from threadline.stores.memory import MemoryStore

STARTS_AT = 1_772_445_600 * SECOND
"""2026-03-02T10:00:00Z, a Monday."""

SHOP = """
mail:
  senders:
    shop: {from: hello@shop.example, name: The Shop}
  templates:
    welcome:
      subject: "Welcome {{ person.traits.first_name | default('you') }}"
      html: "<p>Code {{ code }}</p><a href='{{ unsubscribe_url }}'>Unsubscribe</a>"
      topic: news
      variables: {code: {default: none, example: A1}}
    receipt:
      subject: "Order {{ event.properties.order }}"
      text: "Thanks, {{ person.email }}."
      transactional: true
"""


class Box:
    """A sender that keeps what it is given and answers as it is told."""

    kind = "mail"

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Outcome] = lambda data: Outcome(
            type="mail_sent", properties={**data["record"], "provider": "box"}
        )

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Keep the data."""
        self.sent.append(effect.data)
        return self.answer(effect.data)

    @property
    def messages(self) -> list[EmailMessage]:
        """What was sent, as the standard library reads it."""
        return [parsed(each["message"]) for each in self.sent]


def parsed(message: bytes) -> EmailMessage:
    """A message as the standard library reads it."""
    return message_from_bytes(message, policy=policy.default)  # type: ignore[return-value]


@cache
def _catalogue(definitions: str, folder: str) -> Catalogue:
    found = Definitions([(str(Path(folder) / "shop.yaml"), definitions)])
    return Catalogue(discover("threadline.capabilities", definitions=found), rules())


class MailStage:
    """Records events, asks operations, and sends what is due."""

    def __init__(self, definitions: str = SHOP, folder: str | Path = ".", store: Store | None = None) -> None:
        self.now = STARTS_AT
        self.box = Box()
        self.engine = Engine(store or MemoryStore(), _catalogue(definitions, str(folder)), lambda: self.now)
        self.engine.public_address.use_local("http://localhost:8787")
        self.dispatcher = Dispatcher(self.engine, {"mail": self.box}, owner="test")
        self._operations = {each.name: each for each in self.engine.catalogue.operations}
        self._keys = 0

    def record(self, type: str, /, who: str = "ada", source_type: str = "external", **properties: Any) -> Receipt:
        """Record one event of somebody."""
        self._keys += 1
        event = Event(
            type=type,
            identifiers=(Identifier("user_id", who),),
            occurred_at=self.now,
            key=f"key-{self._keys}",
            properties=properties,
            source_type=source_type,
        )
        [receipt] = self.engine.recorder.record([event])
        return receipt

    def person(self, who: str = "ada", **traits: Any) -> None:
        """Somebody with an address."""
        self.record("identify", who, **{"email": f"{who}@example.com", **traits})

    def ask(self, operation: str, /, **params: Any) -> Any:
        """Run an operation as a surface does."""
        self.now += 1
        declared = self._operations[operation]
        return declared.run(Context(self.engine, "default", self.now, "shop"), msgspec.convert(params, declared.params))

    def send(self, template: str = "welcome", who: str = "ada", **params: Any) -> str:
        """Ask for a mail, and send what is due."""
        message: str = self.ask("mail_send", id=who, template=template, **params).message
        self.work()
        return message

    def work(self) -> None:
        """Send what is due now."""
        while self.dispatcher.run_once():
            pass

    def outcomes(self, who: str = "ada") -> list[tuple[str, dict[str, Any]]]:
        """What came of effects, in order."""
        person = self.engine.reader.person("default", who)
        found = self.engine.reader.all_events(person)
        return [
            (each.event.type, each.event.properties) for each in found if each.event.source == "threadline.dispatch"
        ]
