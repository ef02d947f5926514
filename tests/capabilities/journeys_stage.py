"""What tests of journeys share: people whose time passes, and a sink that notes every mail."""

from __future__ import annotations

from typing import Any

from tests.capabilities.asked import Asked
from threadline.capabilities.reach.journeys.events import RUN_EVENTS
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.scheduled import OUTBOX, due_of
from threadline.kernel.policy import Effect
from threadline.kernel.sender import EFFECT_DONE, Outcome
from threadline.kernel.store import scan_pages
from threadline.kernel.time import format_time

Mail = tuple[str, str]
"""(when, template)."""


class Sink:
    """Sends mails nowhere."""

    kind = "mail"

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        record = effect.data.get("record")  # what a mail was made of, where templates are declared
        data = effect.data if record is None else record
        self._stage.mails.append((self._stage.now, person, data))
        named = {name: data[name] for name in ("template", "journey", "step", "arm") if name in data}
        return Outcome(type="mail_sent", properties=record or named)


class Calls:
    """Calls no other system."""

    kind = "webhook"

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        self._stage.calls.append(effect.data)
        return Outcome(type=EFFECT_DONE)


class Stage(Asked):
    """A workspace with journeys, and everything that is due done the moment it is."""

    def __init__(self, definitions: str) -> None:
        super().__init__(definitions=definitions)
        self.engine.public_address.use_local("http://shop.example")
        self.mails: list[tuple[int, str, dict[str, Any]]] = []
        self.calls: list[dict[str, Any]] = []

    def redefined(self, definitions: str) -> Stage:
        """The same store under other definitions, as after a restart."""
        other = Stage(definitions)
        other.engine = Engine(self.engine.store, other.engine.catalogue, lambda: other.now)
        other.engine.public_address.use_local("http://shop.example")
        other.now, other._keys, other.mails = self.now, self._keys, self.mails
        return other

    def work(self) -> None:
        """Do what is due."""
        dispatcher = Dispatcher(self.engine, {"mail": Sink(self), "webhook": Calls(self)}, "test")
        while dispatcher.run_once():
            self.now += 1

    def until(self, at: int) -> None:
        """Let time pass."""
        self.work()
        while (due := min(self._dues(), default=at)) < at:
            self.now = max(self.now, due)
            self.work()
        self.now = at
        self.work()

    def _dues(self) -> list[int]:
        timers = [at for person in self.engine.reader.all_people("default") for at in person.timers.values()]
        waiting = [due_of(item) for item in scan_pages(self.engine.store, OUTBOX)]
        return [*timers, *(at for at in waiting if at > self.now)]

    def told(self, who: str = "ada") -> list[dict[str, Any]]:
        """The events of the person's journeys, each with its type and time."""
        person = self.engine.reader.person("default", f"user_id:{who}")
        events = self.engine.reader.events(person, limit=1_000)
        return [
            {"type": each.event.type, "at": format_time(each.event.occurred_at)[:16], **each.event.properties}
            for each in events
            if each.event.type in RUN_EVENTS
        ]

    def path(self, who: str = "ada") -> list[str]:
        """The steps that the person has done, and why they left."""
        return [step for each in self.told(who) for step in (*each.get("path", ()), each.get("reason")) if step]

    def got(self, who: str = "ada") -> list[Mail]:
        """The mails that the person got, by minute and template."""
        person = self.engine.reader.person("default", f"user_id:{who}").id
        return sorted((format_time(at)[:16], data["template"]) for at, id, data in self.mails if id == person)
