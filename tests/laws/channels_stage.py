"""Channels as they are found, and an engine with one of them whose sender keeps what it is given."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from threadline.capabilities import reach
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.capabilities.reach.messages.channel import message_effect
from threadline.capabilities.reach.messages.ledger import Entries
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.policy import Effect, Policy, PolicyView, Wish
from threadline.kernel.sender import EFFECT_RETRIED, Outcome
from threadline.kernel.store import Store
from threadline.kernel.time import SECOND
from threadline.stores.memory import MemoryStore

STARTS_AT = 1_772_445_600 * SECOND
"""2026-03-02T10:00:00Z, a Monday."""
WISHED = "wished"


class Staged(NamedTuple):
    """What a channel needs on the stage."""

    definitions: str
    """Its section, with the templates ``note`` (marketing) and ``receipt`` (transactional), and more to be appended."""
    trait: str
    """The trait with an address."""
    address: Callable[[int], str]
    cap: str
    """What caps count."""
    consent: dict[str, str]
    """What events of consent say beside the address."""


STAGES = {
    "mail": Staged(
        """
mail:
  senders: {shop: {from: hello@shop.example}}
  templates:
    note: {subject: Note, text: "Hello {{ person.id }}", topic: news}
    receipt: {subject: Receipt, text: Thanks, transactional: true}
""",
        "email",
        lambda number: f"p{number}@example.com",
        "mails",
        {},
    ),
}
"""By channel. A law below fails for a channel that is not here."""


def channels() -> dict[str, Entries]:
    """The ledgers of all channels, by name: whatever a module below `reach` declares."""
    names = [info.name for info in pkgutil.walk_packages(reach.__path__, f"{reach.__name__}.")]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    return {value.channel: value for value in values if isinstance(value, Entries)}


def wishes(channel: str) -> Policy:
    """A policy that has one message sent for each event."""

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        given = recorded.event.properties
        effect: Effect = message_effect(channel, "one", given["template"], {}, given.get("occurrence", ""), 0)
        return [effect]

    return Policy("wishes", frozenset({WISHED}), react, sends=frozenset({channel}))


@cache
def catalogue(channel: str, more: str = "") -> Catalogue:
    """The catalogue of a program that has this channel."""
    definitions = Definitions([("shop.yaml", STAGES[channel].definitions + more)])
    return Catalogue([*discover("threadline.capabilities", definitions=definitions), wishes(channel)], rules())


class Sink:
    """A sender that notes each message that has left, and answers as it is told."""

    def __init__(self, entries: Entries) -> None:
        self.kind = entries.channel
        self.answer = "sent"
        self.left: list[dict[str, Any]] = []
        self.calls = 0
        self._entries = entries

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Let it leave, unless it is refused for a while."""
        self.calls += 1
        record = effect.data["record"]
        if self.answer == "refused":
            return Outcome(type=EFFECT_RETRIED, properties={"message": effect_id}, retry_after_seconds=1.0)
        self.left.append(record)
        if self.answer == "lost":
            raise ConnectionError("after everything was sent")
        return Outcome(type=self._entries.sent, properties=record)


class ChannelStage:
    """Records wishes, and sends what is due."""

    def __init__(self, channel: str, more: str = "", store: Store | None = None) -> None:
        self.entries = channels()[channel]
        self.staged = STAGES[channel]
        self.now = STARTS_AT
        self.sink = Sink(self.entries)
        self.engine = Engine(store or MemoryStore(), catalogue(channel, more), lambda: self.now)
        self.engine.public_address.use_local("http://localhost:8787")
        self.dispatcher = Dispatcher(self.engine, {channel: self.sink}, owner="test")
        self._keys = 0

    def record(self, type: str, who: str, source_type: str = "external", /, **properties: Any) -> None:
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
        assert self.engine.recorder.record([event])[0].status == "accepted"

    def person(self, number: int, address: int | None = None) -> str:
        """Somebody who wants news at an address; that of somebody else, if one is given."""
        given = self.staged.address(number if address is None else address)
        who = f"p{number}"
        self.record("identify", who, **{self.staged.trait: given})
        self.record("subscribed", who, "direct", topic="news", address=given, **self.staged.consent)
        return who

    def wish(self, who: str, occurrence: str = "", template: str = "receipt") -> None:
        """Ask for one message."""
        self.record(WISHED, who, template=template, occurrence=occurrence)

    def work(self) -> None:
        """Send what is due now."""
        while self.dispatcher.run_once():
            pass

    def outcomes(self, who: str) -> list[Recorded]:
        """What came of the messages of somebody, in the order of the log."""
        events = self.engine.reader.all_events(self.engine.reader.person("default", who))
        return [recorded for recorded in events if recorded.event.source == "threadline.dispatch"]

    def statuses(self, who: str) -> list[str]:
        """The statuses in the ledger, the newest message first."""
        person = self.engine.reader.person("default", who)
        shown = self.engine.reader.views(person, self.now + 1, names=[self.entries.channel])[self.entries.channel]
        return [message["status"] for message in shown[self.entries.listed]]
