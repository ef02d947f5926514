"""Tests of your own definitions over time: given these events, at this instant, these mails.

A `ManualClock` shows the instant that you set, and a `Rehearsal` carries out whatever is due while you move it: timers,
steps of journeys, broadcasts, jobs. Mail and webhooks leave the process nowhere; what would have left is a list.

    >>> import threadline
    >>> from threadline.testing.rehearsal import ManualClock, Rehearsal
    >>> clock = ManualClock("2026-03-02T09:00:00Z")
    >>> with threadline.open("memory:", clock=clock) as shop:
    ...     rehearsal = Rehearsal(shop, clock)
    ...     receipt = shop.track("ada", "purchase_completed", {"total": 30})
    ...     rehearsal.advance("8d")
    ...     shop.person("ada").features["days_since_last_purchase"].value, rehearsal.mails
    (8, [])
"""

from __future__ import annotations

import email
import email.policy
from email.message import EmailMessage
from typing import Any, Protocol

import msgspec

from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.next_due import next_due
from threadline.engine.engine import Engine
from threadline.kernel.effect import Effect
from threadline.kernel.errors import InvalidValue
from threadline.kernel.sender import EFFECT_DONE, Outcome
from threadline.kernel.time import format_time, parse_duration, parse_time

MAIL = "mail"
MAIL_SENT = "mail_sent"
ROUNDS_MAX = 100_000
"""Rounds of work at one instant after which something is taken to set itself off for ever."""
LOCAL_ADDRESS = "http://shop.example"
"""Where links in mails lead if the setting `public_url` names nothing."""


class ManualClock:
    """A clock that shows what you set, in UTC; pass it as ``clock`` to `threadline.open`."""

    def __init__(self, start: str) -> None:
        """``start``: an instant in ISO 8601, such as ``2026-03-02T09:00:00Z``."""
        self.at = parse_time(start)
        """Microseconds since 1970."""

    def __call__(self) -> int:
        """The instant that it shows, in microseconds since 1970."""
        return self.at

    def show(self, at: int) -> None:
        """Show another instant; use `Rehearsal.advance` where anything may be due before it."""
        self.at = at

    def __repr__(self) -> str:
        return f"ManualClock({format_time(self.at)!r})"


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """A mail that would have left."""

    at: str
    """When, in ISO 8601 and UTC, to the second."""
    person: str
    """The id of the recipient."""
    to: str
    subject: str
    template: str
    journey: str = ""
    step: str = ""
    broadcast: str = ""
    variant: str = ""
    text: str = ""
    html: str = ""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """Something else that would have left, such as a webhook."""

    at: str
    """When, in ISO 8601 and UTC, to the second."""
    person: str
    """The id of the person whom it is about."""
    kind: str
    """The kind of effect, such as ``webhook``."""
    data: dict[str, Any]


class Opened(Protocol):
    """What `threadline.open` returns, as far as it is needed here."""

    @property
    def engine(self) -> Engine:
        """Its engine."""
        ...


class Rehearsal:
    """Moves the clock of an open store, and does on the way what `threadline serve` would have done at each instant.

    The store has to be open with the same `ManualClock`, in this process, and nothing else may work on it. What is due
    already is carried out first.
    """

    def __init__(self, shop: Opened, clock: ManualClock) -> None:
        engine = shop.engine
        if engine.clock is not clock:
            raise InvalidValue("clock: the store has another one; open it with `threadline.open(…, clock=clock)`")
        engine.public_address.use_local(LOCAL_ADDRESS)
        self.clock = clock
        self.mails: list[Mail] = []
        """What would have been mailed so far, in order."""
        self.sent: list[Sent] = []
        """What else would have left so far, in order."""
        self._engine = engine
        senders = {factory.name: _Noted(factory.name, self._note) for factory in engine.catalogue.senders}
        self._dispatcher = Dispatcher(engine, senders, "rehearsal")
        self._work()

    def advance(self, duration: str) -> None:
        """Let time pass, such as ``90m``, ``12h`` or ``7d``."""
        self._until(self.clock.at + parse_duration(duration))

    def advance_to(self, instant: str) -> None:
        """Let time pass until an instant in ISO 8601. Raises `InvalidValue` for one that is over."""
        at = parse_time(instant)
        if at < self.clock.at:
            raise InvalidValue(f"instant: {instant} is before {format_time(self.clock.at)}, and time only goes on")
        self._until(at)

    def _until(self, at: int) -> None:
        self._work()
        while (due := next_due(self._engine.store, self._engine.catalogue.queues, self.clock.at)) is not None:
            if due >= at:
                break
            self.clock.show(max(self.clock.at, due))
            self._work()
        self.clock.show(max(self.clock.at, at))
        self._work()

    def _work(self) -> None:
        for _ in range(ROUNDS_MAX):
            if not self._dispatcher.run_once():
                return
            self.clock.show(self.clock.at + 1)  # what a round leads to is after it, as on any real clock
        raise InvalidValue(f"{format_time(self.clock.at)}: something is due again each time that it was done")

    def _note(self, kind: str, effect: Effect, person: str) -> Outcome:
        at = f"{format_time(self.clock.at)[:19]}Z"
        if kind != MAIL:
            self.sent.append(Sent(at=at, person=person, kind=kind, data=dict(effect.data)))
            return Outcome(type=EFFECT_DONE)
        record = dict(effect.data["record"])
        message = email.message_from_bytes(bytes(effect.data["message"]), policy=email.policy.default)
        named = {name: str(record[name]) for name in ("journey", "step", "broadcast", "variant") if name in record}
        self.mails.append(
            Mail(
                at=at,
                person=person,
                to=str(effect.data["to"]),
                subject=str(message["subject"]),
                template=str(record.get("template", "")),
                text=_part(message, "plain"),
                html=_part(message, "html"),
                **named,
            )
        )
        return Outcome(type=MAIL_SENT, properties=record)


class _Noted:
    """A sender that sends nothing."""

    def __init__(self, kind: str, note: Any) -> None:
        self.kind = kind
        self._note = note

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """See `Sender`."""
        outcome: Outcome = self._note(self.kind, effect, person)
        return outcome


def _part(message: EmailMessage, subtype: str) -> str:
    body = message.get_body((subtype,))
    return "" if body is None else str(body.get_content()).replace("\r\n", "\n").rstrip("\n")
