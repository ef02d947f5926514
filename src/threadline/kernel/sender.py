"""The sender port: carries one effect out and reports the outcome.

A channel adapter, such as SMTP, an SMS provider, a webhook or a push service, is one method. Queue, retry with
back-off, circuit breaker, rate limit, dead letters and idempotency are the dispatcher's, the same for every sender.

    >>> from threadline.kernel.sender import EFFECT_DONE, Outcome
    >>> class Pager:
    ...     kind = "pager"
    ...     def send(self, effect, effect_id, person):
    ...         # Here the provider is called, with effect_id as its idempotency key.
    ...         return Outcome(type=EFFECT_DONE, properties={"to": person})
    >>> Pager().send(None, "e1", "ada").properties
    {'to': 'ada'}

An `Outcome` with ``retry_after_seconds`` is tried again, one that is ``parked`` is a dead letter; ``destination``
counts for the circuit breaker. Options of a `Queue`: ``at_once`` (concurrency), ``per_second`` (rate limit),
``give_up_seconds``, ``failures_max``, ``claims`` (at most once instead of at least once). A `SenderFactory` declares
a sender for discovery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from threadline.kernel.effect import Effect
from threadline.kernel.store import Store
from threadline.kernel.time import Clock
from threadline.kernel.typed import prepared

DESTINATION_FAILURES_MAX = 5
"""Failures in a row after which a destination is left alone for a while."""
REST_SECONDS_FIRST = 10
REST_SECONDS_MAX = 600
POSTPONED_SECONDS_MAX = 86_400
"""An effect that is postponed for longer is prepared again after this long, which postpones it once more."""

EFFECT_DONE = "threadline.effect_done"
"""Type of the event that says an effect happened."""
EFFECT_PRINTED = "threadline.effect_printed"
"""Type of the event that says an effect was only printed: nobody received it, and it is not tried again."""
EFFECT_RETRIED = "threadline.effect_retried"
"""Type of the event that says an effect did not happen yet and when it is tried again."""
EFFECT_PARKED = "threadline.effect_parked"
"""Type of the event that says an effect was given up on, and why, until somebody drives it again."""
EFFECT_REDRIVEN = "threadline.effect_redriven"
"""Type of the event that says a dead letter is due again."""
EFFECT_WITHDRAWN = "threadline.effect_withdrawn"
"""Type of the event that says an effect is not sent any more, and why: nothing has left."""
EFFECT_UNKNOWN = "threadline.effect_unknown"
"""Type of the event that says an effect was claimed and nobody knows whether it happened. A later event about the same
effect settles it."""


def rest_seconds(times: int) -> int:
    """How long something is left alone that was so many times in a row before: longer and longer, to a bound."""
    return int(min(REST_SECONDS_FIRST * 2 ** min(times, 20), REST_SECONDS_MAX))


@prepared
class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request to another system and its answer, short and without secrets, for operators to look at."""

    url: str
    """Without its query."""
    headers: dict[str, str]
    body: str
    """Its beginning."""
    milliseconds: int
    status: int = 0
    """0: no answer came."""
    answer: str = ""
    """The beginning of the body of an answer that is not a success."""
    problem: str = ""
    """Why no answer came."""
    method: str = "POST"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an effect. It becomes an event in the person's thread."""

    type: str
    """The event's type, e.g. `EFFECT_DONE`."""
    properties: dict[str, Any] = {}
    retry_after_seconds: float | None = None
    """Set when the effect did not happen and should be tried again after this long."""
    parked: str = ""
    """Why it did not happen and will not happen by itself; it is a dead letter until somebody redrives it."""
    exchange: Exchange | None = None
    """What was sent and what came back, where a sender shows that."""
    destination: Literal["healthy", "failing", "gone"] = "healthy"
    """What this says about the destination: ``failing`` counts towards leaving the queue alone for a while; after
    ``gone`` nothing is sent there until somebody allows it again."""


class Sender(Protocol):
    """Carries out effects of one kind. May block; is called with a lease held and must return within it.

    Effects of a queue with more than one at once are sent by several threads. In a queue that claims, a sender raises
    `OutcomeUnknown` where it cannot say whether the effect happened, such as after a connection that broke once
    everything was sent; any other exception counts as that too. What surely did not happen is an `Outcome` that says
    so.
    """

    kind: str

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Carry it out once. ``effect_id`` is the same on every retry: pass it on as idempotency key.

        ``effect.data`` is what the policy wished for, or what the `Preparation` of this kind has made of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Queue:
    """A separate queue in the outbox, so that a slow destination holds up no other. Declared like a projection."""

    name: str
    at_once: int = 1
    """Effects that are sent at the same time."""
    give_up_seconds: float | None = None
    """How long, in seconds, a failing effect is retried after it was first due, before it is given up. None: always."""
    failures_max: int = 0
    """Consecutive failures of the destination after which it is left alone for a while; 0: never."""
    destination: Any = None
    """Where it leads; only the sender of ``kind`` knows its type."""
    kind: str = ""
    """The kind of effect that ``destination`` is for."""
    claims: bool = False
    """Whether each effect is claimed in a commit before its sender is called, so that it is sent at most once. An
    effect whose claimer has gone without an outcome is not sent again: it waits as unknown, see `unknown`. Without
    claims it is sent again, at least once in all. As many are claimed together as are sent `at_once`."""
    unknown: Literal["wait", "assume_done", "send_again"] = "wait"
    """What becomes of an unknown effect after `unknown_seconds`: it waits for an operator or a sign from outside, is
    taken for done, or is sent again, at the risk of a second time."""
    unknown_seconds: float = 86_400.0
    per_second: float | None = None
    """Effects that are sent in a second at most; None: as many as can be. One process at a time sends a queue, so it
    is the rate of the destination."""
    title: str = ""
    """What people call it, in a sentence; empty: by its name."""


S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class SenderPorts(Generic[S]):
    """What a sender is made of. ``S`` has the settings that it reads, such as `threadline.settings.Settings`."""

    settings: S
    queues: Mapping[str, Queue]
    clock: Clock
    environment: Callable[[str], str]
    """Variable -> its value, empty if it is not set: secrets that definitions name as ``env:NAME``."""
    store: Store
    """For a sender that carries nothing away, such as the development inbox."""

    def destinations(self, kind: str) -> list[Any]:
        """The declared destinations of effects of a kind."""
        return [queue.destination for queue in self.queues.values() if queue.kind == kind]


@dataclass(frozen=True, slots=True)
class SenderFactory:
    """A declared sender. Found by discovery in `threadline.senders` and in the folders of capabilities."""

    name: str
    """The kind of effects that it sends."""
    make: Callable[[SenderPorts[Any]], Sender]
    """Called once, when a dispatcher is opened; raises `InvalidSetting` for a setting or a secret that is missing."""
