"""Ports of what goes on in the background: effects on their way out, jobs, and simulations."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from threadline.kernel.event import Recorded
from threadline.kernel.job import Job
from threadline.kernel.outbox import (
    Attempt,
    CausedEffect,
    DeadLetter,
    DueTimer,
    EffectStatus,
    Foreseen,
    PendingEffect,
    QueueState,
    UnknownEffect,
)
from threadline.kernel.sender import Outcome
from threadline.kernel.simulation import Ending, PageDone, Pages, RecordedDecision, Tally, VariantSpec
from threadline.kernel.store import Check, Delete, Put


class Delivery(Protocol):
    """Effects that wait, that were given up on, and the queues they wait in."""

    def effect(self, workspace: str, policy: str, cause: str, key: str, at: int) -> EffectStatus:
        """The effect that a policy emitted for an event, and its outcomes."""
        ...

    def caused_by(self, events: Sequence[Recorded], without: str) -> list[CausedEffect]:
        """The effects that policies emitted because of these events, those of one policy apart.

        Outcomes are looked for among the same events.
        """
        ...

    def waiting(self, threads: Container[str]) -> Iterator[PendingEffect]:
        """The effects that wait for their first or next attempt, of people who have these threads."""
        ...

    def foresee(self, waiting: Sequence[PendingEffect]) -> dict[str, Foreseen]:
        """By the id of each of these effects what would become of it now, as it is found out right before it is sent;
        nothing is written. Effects of people who have gone are left out."""
        ...

    def hasten(self, workspace: str, policy: str, within: int, wanted: Callable[[PendingEffect], bool]) -> int:
        """Make due now what was postponed, of those effects of a policy that are wanted and due within so many
        microseconds; returns how many are. Whoever has postponed them is asked again."""
        ...

    def attempts(
        self, workspace: str, queue: str = "", delivered: bool | None = None, before: str = "", limit: int = 100
    ) -> list[Attempt]:
        """Attempts whose requests are shown, the newest first, before the id of one; ``delivered`` None: both."""
        ...

    def attempt(self, workspace: str, id: str) -> Attempt:
        """One of them; raises `NotFound`."""
        ...

    def attempts_of(self, threads: Iterable[str]) -> Iterator[Attempt]:
        """Those about somebody who has these threads."""
        ...

    def send_again(self, last: Attempt, by: str) -> bool:
        """Make due now what was attempted last, whatever came of it; whether it is. Raises `Conflict`."""
        ...

    def timers(self, names: Mapping[str, int]) -> list[dict[str, Any]]:
        """Pending timers, of a person's names of them: ``policy``, ``key``, ``due_at`` in microseconds and ``data``."""
        ...

    def pending_timers(self, workspace: str, after: str = "", limit: int = 100) -> list[DueTimer]:
        """The timers of a workspace by due time, after the cursor of one."""
        ...

    def dead_letters(self, workspace: str, queue: str = "", after: str = "", limit: int = 100) -> list[DeadLetter]:
        """A page of the effects that were given up on."""
        ...

    def redrive(self, letters: Sequence[DeadLetter], by: str) -> int:
        """Make dead letters due again; returns how many are."""
        ...

    def unknown(self, workspace: str, after: str = "", limit: int = 100) -> list[UnknownEffect]:
        """A page of the effects that were claimed and of which nobody knows whether they happened."""
        ...

    def resolve(self, workspace: str, effect: str, outcome: Outcome | None, by: str) -> bool:
        """Settle an unknown effect, by its id, as if its sender had returned this outcome; whether it was unknown.

        None: it happened, and what its preparation has noted for that is recorded. With ``retry_after_seconds`` it is
        sent again, in 0 seconds or more; with ``parked`` it becomes a dead letter.
        """
        ...

    def queues(self) -> list[QueueState]:
        """The declared queues, with the state of each and what waits in it."""
        ...

    def stop(self, queue: str, why: str) -> bool:
        """Stop sending in a queue; returns whether that changes anything. Raises `NotFound`."""
        ...

    def start(self, queue: str) -> bool:
        """Resume sending in a queue; returns whether that changes anything. Raises `NotFound`."""
        ...


class Jobs(Protocol):
    """Durable work across people; see `threadline.kernel.job`."""

    def create(
        self,
        workspace: str,
        kind: str,
        id: str,
        params: dict[str, Any],
        *,
        by: str,
        due_at: int = 0,
        writes: Sequence[Put | Delete | Check] = (),
    ) -> Job:
        """A job that begins at an instant (0: now), committed with further writes; one that exists alike is returned.

        Raises `Conflict` for an id under which another job exists, or if a condition of ``writes`` does not hold.
        """
        ...

    def find(self, workspace: str, id: str) -> Job | None:
        """A job of a workspace; None if there is none."""
        ...

    def get(self, workspace: str, id: str) -> Job:
        """A job of a workspace; raises `NotFound`."""
        ...

    def page(self, workspace: str, before: str = "", limit: int = 100) -> tuple[list[Job], str]:
        """Jobs of a workspace, the newest first, and the cursor to go on behind; empty at the end."""
        ...

    def pause(self, workspace: str, id: str) -> Job:
        """Stop a job after the page that it is at, until it is resumed. Raises `Conflict` for one that has ended."""
        ...

    def resume(self, workspace: str, id: str) -> Job:
        """Go on with a job that was paused or has failed. Raises `Conflict` for one that was cancelled."""
        ...

    def cancel(self, workspace: str, id: str) -> Job:
        """Stop a job for good after the page that it is at. Raises `Conflict` for one that is done."""
        ...


class Simulations(Protocol):
    """What-ifs: replaying history in two variants."""

    activation_changed_max: float | None
    """The largest share of decisions that may change when a version of a rule is activated, 0 to 1, by a saved what-if;
    None: no what-if is required."""

    def replay(
        self,
        workspace: str,
        old: VariantSpec,
        new: VariantSpec,
        start: int,
        stop: int,
        tally: Tally,
        *,
        people: Sequence[str] | None = None,
        endings: tuple[Ending, Ending] | None = None,
        recorded_decision: RecordedDecision | None = None,
    ) -> Pages:
        """Replay everybody's history, or that of people by id, in two variants. It only reads."""
        ...

    def run(self, pages: Pages) -> PageDone:
        """Run all pages in this thread; returns the people and events of all. Raises `TooManyRequests`."""
        ...
