"""From one step to the next: how far a run goes at an instant, what it sends on the way, and where it waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions import Subject
from threadline.capabilities.foundation.conditions.fields import reader
from threadline.capabilities.reach.journeys.actions import Action
from threadline.capabilities.reach.journeys.book import Book, Compiled
from threadline.capabilities.reach.journeys.definition import Journey
from threadline.capabilities.reach.journeys.program import END, Node
from threadline.capabilities.reach.journeys.projection import COMPLETED, Run
from threadline.capabilities.reach.journeys.steps import JOURNEYS, Arm, Send, Wait
from threadline.kernel.arms import arm_at
from threadline.kernel.calendar import next_time_of_day, zone_of_person
from threadline.kernel.errors import InvalidValue
from threadline.kernel.time import LATEST, format_time

NEVER = 0
STEP_REMOVED = "step_removed"
"""The reason of a run whose step the version that it moved to does not have."""


class Mail(NamedTuple):
    """A mail that a walk sends."""

    step: str
    send: Send
    arm: Arm
    due_at: int = 0
    """When it may leave, where that is not at once."""


class Done(NamedTuple):
    """An action that a walk has done."""

    step: str
    action: Action
    given: dict[str, Any]
    problem: str = ""
    """Why it could not be done; empty: it could."""


@dataclass
class Walk:
    """Where a run has come to."""

    path: list[str] = field(default_factory=list)
    """The steps that are done, in order."""
    mails: list[Mail] = field(default_factory=list)
    actions: list[Done] = field(default_factory=list)
    step: str = END
    """Where it waits."""
    began: int = NEVER
    until: int = NEVER
    reason: str = ""
    """Why it has ended; empty: it waits."""


class Walker:
    """One run at an instant."""

    def __init__(self, book: Book, compiled: Compiled, subject: Subject, run: Run, now: int) -> None:
        self._journey, self._program = compiled
        self._subject = subject
        self._run = run
        self._now = now
        self._zone_otherwise = self._journey.timezone or book.zone
        self.walk = Walk()

    def go(self, step: str) -> Walk:
        """Go on from the beginning of a step, to where the run waits or ends."""
        while step != END:
            node = self._program.nodes[step]
            until = self._now if self._asks_what_is_done(node) else self._waits_until(node, self._now)
            if until is not None:
                self._wait(step, self._now, until)
                return self.walk
            self.walk.path.append(step)
            if node.step.exit:
                self.walk.reason = node.step.exit
                return self.walk
            if node.send is not None:
                self._send(Mail(step, node.send, arm_of(node.send, self._run.draw)))
            if node.action is not None and not self._run.holdout:
                self._do(step, node.action)
            step = self._way(node)
        self.walk.reason = COMPLETED
        return self.walk

    def wake(self, step: str, began: int, until: int, *, came: bool) -> Walk:
        """Go on from a step at which the run waits, because time has passed, the person's zone is another one, or
        ``came``: the event has."""
        node = self._program.nodes.get(step)
        if node is None:
            self.walk.reason = STEP_REMOVED
            return self.walk
        if node.wait is None:
            return self.go(step)
        if not came:
            # In another zone than when the wait began it may not be over yet, or over long since.
            until = until if node.wait.is_for_event else self._due(node.wait, began)
            if not until or until > self._now:
                self._wait(step, began, until)
                return self.walk
        self.walk.path.append(step)
        if not node.wait.is_for_event:
            return self.go(node.following)
        return self.go(node.then if came else node.otherwise)

    def due_at(self, step: str, began: int, until: int) -> int:
        """When the wait at a step ends by the zone that the person has now; ``until`` is as it was."""
        node = self._program.nodes.get(step)
        if node is None or (node.wait is not None and node.wait.is_for_event):
            return until
        if node.wait is not None:
            return min(self._due(node.wait, began), LATEST)
        quiet = self.quiet_until(self._now) if node.send is not None else None
        return quiet or min(until, self._now)

    def _wait(self, step: str, began: int, until: int) -> None:
        self.walk.step, self.walk.began, self.walk.until = step, began, min(until, LATEST)

    def _asks_what_is_done(self, node: Node) -> bool:
        """Whether a step goes by what an action before it changes: it is done right after the commit of that."""
        if not self.walk.actions:
            return False
        if node.action is not None:
            return node.action.asks_person
        return bool(node.step.choice) or node.step.condition is not None

    def _do(self, step: str, action: Action) -> None:
        try:
            given = action.filled(lambda path: reader(path)(self._subject))
        except InvalidValue as error:
            self.walk.actions.append(Done(step, action, {}, str(error)))
        else:
            self.walk.actions.append(Done(step, action, given))

    def _send(self, mail: Mail) -> None:
        self.walk.mails.append(mail)
        if self._run.holdout:
            return
        before, sent = self._subject, {mail.arm.template: format_time(self._now)}

        def view(name: str) -> Any:
            shown = before.view(name)
            return {**shown, "sent": {**shown["sent"], **sent}} if name == JOURNEYS else shown

        # The events do not say yet that it was sent; the next step may ask.
        self._subject = Subject(view, before.recorded, before.at)

    def _waits_until(self, node: Node, now: int) -> int | None:
        """Until when a run waits at the beginning of a step, `NEVER` for an event alone; None: it does not."""
        if node.wait is not None:
            if node.wait.is_for_event:
                return now + node.wait.timeout if node.wait.timeout else NEVER
            until = self._due(node.wait, now)
            return until if until > now else None
        return self.quiet_until(now) if node.send is not None else None

    def quiet_until(self, at: int) -> int | None:
        """The end of the journey's quiet hours that an instant lies in; None: it lies in none."""
        return quiet_hours_until(self._journey, self._zone, at)

    def _due(self, wait: Wait, began: int) -> int:
        ends = began + (wait.size or 0)
        return ends if wait.until is None else next_time_of_day(self._zone, ends, wait.until, wait.weekdays)

    @property
    def _zone(self) -> str:
        return zone_of_person(self._subject.view("profile"), self._zone_otherwise)

    def _way(self, node: Node) -> str:
        if node.step.choice:
            ways = (way for conditions, way in node.branches if conditions.test(self._subject))
            return next(ways, node.otherwise)
        if node.step.condition is not None:
            return node.then if node.step.condition.test(self._subject) else node.otherwise
        return node.following


def quiet_hours_until(journey: Journey, zone: str, at: int) -> int | None:
    """The end of the quiet hours of a journey that an instant lies in; None: it lies in none."""
    if journey.quiet_hours is None or journey.transactional:
        return None
    return journey.quiet_hours.until(zone, at)


STORED_SHIFT = 32
"""A run stores the first 16 of the 48 bits of its draw."""


def arm_of(send: Send, draw: int) -> Arm:
    """The variant of a mail that somebody gets, by their draw from 0 to 65,535."""
    return send.arms[arm_at([arm.weight for arm in send.arms], draw << STORED_SHIFT)]


def mails_of(mails: list[Mail]) -> list[dict[str, Any]]:
    """Mails as the events tell them."""
    return [
        {"step": mail.step, "template": mail.arm.template}
        | ({"arm": mail.arm.name or mail.arm.template} if mail.send.variants else {})
        for mail in mails
    ]


def actions_of(actions: list[Done]) -> list[dict[str, Any]]:
    """Actions as the events tell them."""
    return [
        {"step": done.step, "action": done.action.kind} | ({"problem": done.problem} if done.problem else {})
        for done in actions
    ]
