"""A seeded world: people who browse, sign in, talk and buy, told as the same events for the same seed.

Realistic test data without fixture files: a synthetic event stream of customers with sessions, orders, refunds, several
devices and skewed activity, for tests, demonstrations and benchmarks.

    >>> from threadline.testing.world import World
    >>> world = World(seed=7, people=50, late=0.1, duplicates=0.05)
    >>> events = list(world.events(1_000))
    >>> len(events), len({event.key for event in events}) < 1_000, events == list(world.events(1_000))
    (1000, True, True)

Options: ``people``, ``zipf`` (how unevenly they are active), ``days`` and ``history`` (how many events are
back-filled), ``late``, ``late_days_max`` and ``duplicates`` (fractions), ``workspace``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from random import Random
from typing import Any

from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, MILLISECOND, format_time
from threadline.testing.world_payloads import LOCALES, POOL_SIZE, Payload, contexts, payload_pools

STARTS_AT = 1_735_689_600_000_000
"""2025-01-01T00:00:00Z. Fixed, because a world that follows the clock is another world every day."""

DEVICES_MAX = 3
"""Devices of one person; below the limit of anonymous ids, so that no merge of this world is refused."""

KNOWN_MIX = {
    "product_viewed": 26, "page": 20, "campaign_delivered": 8, "purchase_completed": 7, "sentiment_detected": 6,
    "conversation_started": 5, "conversation_ended": 5, "campaign_engaged": 4, "interest_detected": 4, "identify": 3,
    "purchase_abandoned": 3, "product_asked": 2, "discount_requested": 2, "form_submitted": 1,
    "purchase_refunded": 1, "subscription_created": 1, "agent_insight": 1, "objection_raised": 1,
}  # fmt: skip
"""Events of somebody who has signed in, in per cent."""

ANONYMOUS_MIX = {"page": 45, "product_viewed": 35, "identify": 20}
"""Events of somebody who has not; ``identify`` is the sign-in."""

_CHUNK = 4_096
_RECENT = 4_096
_RECEIPT_LAG = 250 * MILLISECOND
_LIVE_STEP = MILLISECOND
_CHANCE = 2.0**-32


@dataclass(frozen=True, slots=True)
class World:
    """Events of many people, decided by ``seed`` alone and by no clock.

    ``events(n)`` is a prefix of ``events(m)`` for n < m, and each call begins anew. The first ``history`` events fill
    ``days`` days at even steps of `received_at`; what comes beyond is live traffic, one event a millisecond.
    ``late`` and ``duplicates`` are fractions of the events: a late one occurred up to ``late_days_max`` before it was
    received, a duplicate is one of the last few thousand events said again, equal in every field.

    A person browses under an anonymous id, signs in (``identify`` with user id, anonymous id and e-mail),
    and may do so again from another device. People are drawn with weight 1 / rank ** ``zipf``.
    """

    seed: int
    people: int = 100_000
    zipf: float = 1.0
    days: int = 90
    history: int = 1_000_000
    late: float = 0.0
    late_days_max: int = 7
    duplicates: float = 0.0
    workspace: str = "default"
    starts_at: int = STARTS_AT

    def ends_at(self, count: int) -> int:
        """The instant after the last of ``count`` events was received, microseconds: a `now` that sees them all."""
        live = max(0, count - self.history)
        return self.starts_at + (count - live) * self._step() + live * _LIVE_STEP + 2 * _RECEIPT_LAG

    def events(self, count: int) -> Iterator[Event]:
        """The first ``count`` events, in order of `received_at`, duplicates included."""
        return islice(self._events(), count)

    def batches(self, count: int, size: int) -> Iterator[list[Event]]:
        """The first ``count`` events in lists of ``size``; the last may be shorter."""
        stream = self.events(count)
        while batch := list(islice(stream, size)):
            yield batch

    def segment_bodies(self, count: int, size: int) -> Iterator[dict[str, Any]]:
        """The same events as bodies of Segment's ``/v1/batch``, ``size`` messages each, without a write key."""
        for batch in self.batches(count, size):
            yield {"batch": [segment_message(event) for event in batch]}

    def _step(self) -> int:
        return max(1, self.days * DAY // self.history)

    def _events(self) -> Iterator[Event]:
        """Every happening, and now and then an earlier one again."""
        happenings = self._happenings()
        if not self.duplicates:
            yield from happenings
            return
        # A random source of its own: asking for duplicates must not change what happens.
        random = Random(f"{self.seed} duplicates")
        recent: list[Event] = []
        while True:
            if recent and random.random() < self.duplicates:
                yield recent[random.randrange(len(recent))]
                continue
            event = next(happenings)
            if len(recent) < _RECENT:
                recent.append(event)
            else:
                recent[random.randrange(_RECENT)] = event
            yield event

    def _happenings(self) -> Iterator[Event]:
        random, lateness = Random(self.seed), Random(f"{self.seed} lateness")
        cast = _Cast(random, self.people)
        weights = list(accumulate(1.0 / rank**self.zipf for rank in range(1, self.people + 1)))
        everybody = range(self.people)
        step, late, late_max = self._step(), self.late, self.late_days_max * DAY
        workspace, bits, act = self.workspace, random.getrandbits, cast.act
        received_at, live_from = self.starts_at, self.starts_at + self.history * step
        while True:
            for person in random.choices(everybody, cum_weights=weights, k=_CHUNK):
                kind, identifiers, properties, context = act(person)
                received_at += step if received_at < live_from else _LIVE_STEP
                occurred_at = received_at - _RECEIPT_LAG
                if late and lateness.random() < late:
                    occurred_at -= int(lateness.random() * late_max)
                yield Event(
                    type=kind,
                    identifiers=identifiers,
                    occurred_at=occurred_at,
                    # As random as the message ids of real clients: a counter would flatter every index.
                    key=f"{bits(128):032x}",
                    source="world",
                    workspace=workspace,
                    properties=properties,
                    context=context,
                    received_at=received_at,
                )


class _Person:
    """What one person has done so far, as far as it decides what may come next."""

    __slots__ = ("anonymous", "campaign", "conversation", "devices", "email", "number", "order", "user", "visiting")

    def __init__(self, number: int) -> None:
        self.number = number
        self.devices = 0
        """Devices signed in on; 0 means that nobody knows yet who this is."""
        self.visiting = False
        """Whether the next device has been used without signing in."""
        self.conversation = ""
        self.campaign = ""
        self.order: Payload = {}
        """The last purchase, until it is refunded."""
        self.user = Identifier("user_id", f"user-{number:06d}")
        self.email = Identifier("email", f"person.{number:06d}@example.com")
        self.anonymous = self._device(0)

    def _device(self, device: int) -> Identifier:
        return Identifier("anonymous_id", f"{self.number:08x}-{device:04x}-4000-8000-{self.number * 65_537:012x}")

    def next_device(self) -> Identifier:
        """The first device that has not been signed in on."""
        return self._device(self.devices)


_Act = tuple[str, tuple[Identifier, ...], Payload, Payload]


class _Cast:
    """The people of one world and what each does next."""

    def __init__(self, random: Random, people: int) -> None:
        self._random = random
        self._people: list[_Person | None] = [None] * people
        self._pools = payload_pools(random)
        self._contexts = contexts(random)
        self._known = [kind for kind, share in KNOWN_MIX.items() for _ in range(share)]
        self._unknown = [kind for kind, share in ANONYMOUS_MIX.items() for _ in range(share)]
        self._serial = 0

    def act(self, number: int) -> _Act:
        """The next thing that this person does: type, identifiers, properties, context."""
        person = self._people[number]
        if person is None:
            person = self._people[number] = _Person(number)
        # One draw serves several choices, by disjoint bits: drawing is what costs most here.
        draw = self._random.getrandbits(64)
        chance = (draw >> 32) * _CHANCE
        # Another device is another context, of the same place: only a few people ever seem to travel.
        context = self._contexts[(number + len(LOCALES) * person.devices) % POOL_SIZE]
        properties_at = draw % POOL_SIZE
        if not person.devices:
            kind = self._unknown[int(chance * len(self._unknown))]
            if kind != "identify":
                return kind, (person.anonymous,), self._pools[kind][properties_at], context
            return self._identify(person, context)
        kind = self._known[int(chance * len(self._known))]
        if kind == "identify":
            return self._identify(person, context)
        if kind == "page" and (draw >> 16) % 16 == 0 and person.devices < DEVICES_MAX:
            person.visiting = True
            return kind, (person.next_device(),), self._pools[kind][properties_at], context
        return self._signed_in(person, kind, properties_at, context)

    def _identify(self, person: _Person, context: Payload) -> _Act:
        if person.devices == 0 or person.visiting:
            person.anonymous = person.next_device()
            person.devices += 1
            person.visiting = False
        template = self._pools["identify"][person.number % POOL_SIZE]
        traits = {"email": person.email.value, **template, "sign_ins": person.devices}
        return "identify", (person.user, person.anonymous, person.email), traits, context

    def _signed_in(self, person: _Person, kind: str, properties_at: int, context: Payload) -> _Act:
        """An ordinary event; what refers to an earlier one names it, and nothing ends before it began."""
        if kind == "conversation_ended" and not person.conversation:
            kind = "conversation_started"
        elif kind == "campaign_engaged" and not person.campaign:
            kind = "campaign_delivered"
        elif kind == "purchase_refunded" and not person.order:
            kind = "purchase_completed"
        properties = self._pools[kind][properties_at]
        identifiers: tuple[Identifier, ...] = (person.user,)
        if kind == "page":
            identifiers = (person.user, person.anonymous)
        elif kind == "purchase_completed":
            self._serial += 1
            person.order = properties = {"order_id": f"order-{self._serial:08d}", **properties}
        elif kind == "purchase_refunded":
            properties = {name: person.order[name] for name in ("order_id", "total", "currency")} | properties
            person.order = {}
        elif kind == "conversation_started":
            self._serial += 1
            person.conversation = f"conversation-{self._serial:08d}"
            properties = {"conversation_id": person.conversation, **properties}
        elif kind == "conversation_ended":
            properties = {"conversation_id": person.conversation, **properties}
            person.conversation = ""
        elif kind == "campaign_delivered":
            person.campaign = properties["campaign_id"]
            identifiers = (person.user, person.email)
        elif kind == "campaign_engaged":
            identifiers = (person.user, person.email)
            properties = {"campaign_id": person.campaign, **properties}
        return kind, identifiers, properties, context


def segment_message(event: Event) -> dict[str, Any]:
    """One event of a world as the message that a Segment client would send for it.

    An e-mail travels in ``context.traits``, as Segment's clients do it. No ``sentAt``: the times are the world's own
    and must not be corrected by the clock of whoever sends them.
    """
    message: dict[str, Any] = {"messageId": event.key, "timestamp": format_time(event.occurred_at)}
    context = event.context
    for identifier in event.identifiers:
        if identifier.kind == "user_id":
            message["userId"] = identifier.value
        elif identifier.kind == "anonymous_id":
            message["anonymousId"] = identifier.value
        elif event.type != "identify":
            context = {**context, "traits": {"email": identifier.value}}
    if event.type == "identify":
        message.update(type="identify", traits=event.properties)
    elif event.type == "page":
        message.update(type="page", name=event.properties["title"], properties=event.properties)
    else:
        message.update(type="track", event=event.type, properties=event.properties)
    message["context"] = context
    return message
