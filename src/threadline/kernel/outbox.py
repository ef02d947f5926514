"""Effects on their way out as operators see them: pending, delivered or given up on, and the state of each queue."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from threadline.kernel.effect import Effect
from threadline.kernel.event import Recorded
from threadline.kernel.sender import EFFECT_DONE, Exchange, Queue, rest_seconds
from threadline.kernel.store import Item
from threadline.kernel.time import SECOND, TIME_KEY_LENGTH, is_over, time_key, time_of_key
from threadline.kernel.typed import prepared


class Claim(NamedTuple):
    """Somebody is about to send an effect, or has sent it; see `threadline.kernel.sender.Queue.claims`."""

    token: str
    """Of this one claim."""
    at: int
    type: str
    """The type of the event that says that it happened, and its properties."""
    properties: dict[str, Any]


class PendingEffect(NamedTuple):
    """An effect in the outbox."""

    item: Item
    workspace: str
    thread: str
    policy: str
    cause: str
    attempts: int
    """Attempts so far: the number of the next event about it."""
    effect: Effect
    """Without its queue, except where it waits elsewhere because that queue is not declared."""
    since: int
    """When it was first due, or due again after a redrive or a postponement."""
    began: int = 0
    """Attempts before that redrive."""
    claim: Claim | None = None
    postponed: int = 0
    """When it was first due, if it was postponed since; 0: it was not."""

    @property
    def id(self) -> str:
        """The same through every attempt and redrive."""
        return self.item.key.sort.partition(".")[2]

    @property
    def order(self) -> str:
        """Sorts effects of one person by when they were requested; empty, which is before all others, where that is
        not known: of those of earlier releases, and those that an operator has sent again."""
        return self.item.key.sort.partition(".")[0][TIME_KEY_LENGTH:]

    @property
    def due_at(self) -> int:
        """When its next attempt is due."""
        return time_of_key(self.item.key.sort[:TIME_KEY_LENGTH])

    @property
    def first_due(self) -> int:
        """When it was first due, or due again after a redrive, however often it was postponed."""
        return self.postponed or self.since


class DueTimer(NamedTuple):
    """A timer that a policy has set, and that has not fired yet."""

    thread: str
    policy: str
    key: str
    due_at: int
    data: dict[str, Any]
    cursor: str


class DeadLetter(NamedTuple):
    """An effect that was given up on."""

    item: Item
    pending: PendingEffect
    partition: str
    """Where in the outbox it was."""
    why: str
    at: int
    outcome: dict[str, Any]
    """The outcome of its last attempt."""

    @property
    def queue(self) -> str:
        """The queue it was in; empty for none."""
        name = self.item.key.sort.partition("!")[0]
        return "" if name == "-" else name

    @property
    def cursor(self) -> str:
        """Where the page after it begins."""
        return self.item.key.sort


class UnknownEffect(NamedTuple):
    """An effect that was claimed and of which nobody knows whether it happened."""

    item: Item
    pending: PendingEffect
    queue: str
    """The queue it was in; empty for none."""
    why: str
    at: int
    """When it became unknown."""

    @property
    def cursor(self) -> str:
        """Where the page after it begins."""
        return self.item.key.sort


class Attempt(NamedTuple):
    """An attempt to carry out an effect, with what was sent and what came back. Kept for a while; see
    `threadline.engine.delivery.attempts`."""

    at: int
    pending: PendingEffect
    """As it was before the attempt."""
    queue: str
    """The queue that it was in."""
    outcome: str
    """The type of its event."""
    next_at: int
    """When it was to be tried again; 0: not by itself."""
    exchange: Exchange

    @property
    def id(self) -> str:
        """Of this attempt; sorts by time."""
        return attempt_id(self.at, self.pending)

    @property
    def is_delivered(self) -> bool:
        """Whether the other side took it."""
        return self.outcome == EFFECT_DONE


def attempt_id(at: int, pending: PendingEffect) -> str:
    """The id of an attempt at an instant."""
    return f"{time_key(at)}.{pending.id}.{pending.attempts:05}"


class EffectStatus(NamedTuple):
    """An effect that a policy emitted, and its outcomes."""

    id: str
    waits: bool
    """Whether it will be sent, for the first time or again."""
    parked: bool
    """Whether it was given up on, until somebody redrives it."""
    outcomes: list[Recorded]
    """The event of each attempt. An effect without any that neither waits nor is parked was never in the outbox."""
    unknown: bool = False
    """Whether it was claimed and nobody knows yet whether it happened."""


class Foreseen(NamedTuple):
    """What would become of an effect that waits, if it was due now."""

    outcome: str = ""
    """The type of the event that would settle it without sending it; empty: it would be sent, or postponed."""
    why: str = ""
    """The reason of that event, or of the postponement."""
    until: int = 0
    """Until when it would be postponed; 0: it would not."""


class CausedEffect(NamedTuple):
    """An effect that a policy emitted because of an event."""

    cause: str
    policy: str
    kind: str
    data: dict[str, Any]
    """Kept only as long as it waits."""
    status: EffectStatus


@prepared
class CircuitState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a queue: open, backing off, or stopped."""

    stopped_at: int = 0
    """Since when it is stopped; 0: it is not."""
    why: str = ""
    rests: int = 0
    """Back-offs in a row; above 0 the next effect that is sent is the test whether the destination is well."""
    rest_until: int = 0

    def rests_at(self, now: int) -> bool:
        """Whether the destination is left alone at an instant; an end that this rest cannot have is not believed."""
        return not is_over(self.rest_until, now, rest_seconds(self.rests - 1) * SECOND)


class QueueState(NamedTuple):
    """A queue as operators see it."""

    queue: Queue
    circuit: CircuitState
    waiting: int
    """Effects in it, of all workspaces, counted to a page."""
    oldest: int | None
    """When the first of them is due."""
    unknown: int = 0
    """Effects of it of which nobody knows whether they happened, of all workspaces, counted to a page."""
    retried: int = 0
    """Of those that wait, how many were tried."""
    parked: int = 0
    """Effects of it that were given up on, of all workspaces, counted to a page."""
    since: int | None = None
    """When the one that has waited longest was first due, or due again after a redrive or a postponement."""

    def waits_since(self, now: int) -> int:
        """How long something has waited in it, microseconds; 0 while nothing is due."""
        return 0 if self.since is None else max(0, now - self.since)


class Backlog(NamedTuple):
    """Everything that waits in a store."""

    queues: list[QueueState]
    """The declared ones by name, and last, without a name, what is in none."""
    oldest_timer: int | None
    """When the first timer that has not fired was due."""
    jobs: int
    """Jobs that are due, counted to a page."""
    oldest_job: int | None
    timers: int = 0
    """Timers that are due, counted to a page in each shard."""
