"""What an advance of a run becomes: one event, its mails, and the timer that wakes the run again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.capabilities.foundation.webhooks.definition import KIND as WEBHOOK
from threadline.capabilities.foundation.webhooks.definition import queue_of
from threadline.capabilities.profile.memory.events import FACT_COMPUTED
from threadline.capabilities.profile.people.events import IDENTIFY, TAG_ADDED, TAG_REMOVED
from threadline.capabilities.profile.points.events import POINTS_EARNED
from threadline.capabilities.reach.journeys.definition import Journey
from threadline.capabilities.reach.journeys.events import JOURNEY_ENTERED, JOURNEY_EXITED, JOURNEY_MOVED
from threadline.capabilities.reach.journeys.projection import Run
from threadline.capabilities.reach.journeys.walk import Done, Mail, Walk, actions_of, mails_of
from threadline.capabilities.reach.mail.order import mail_effect
from threadline.kernel.policy import CancelTimer, Effect, Emit, Timer, Wish
from threadline.kernel.time import LATEST, format_time

EMITTED = {
    "tag": TAG_ADDED,
    "untag": TAG_REMOVED,
    "trait": IDENTIFY,
    "fact": FACT_COMPUTED,
    "points": POINTS_EARNED,
}
"""Kind of action -> the type of the event that it puts into the thread."""
JOURNEY_STEP = "journey_step"
"""What the body of a webhook says happened."""
REST = "rest"
"""Begins the key of a timer for what is not done in the commit of its cause."""


def entered(run: Run, journey: Journey, walk: Walk, now: int) -> list[Wish]:
    """A run begins, and goes as far as it gets at once."""
    more = {"since": format_time(run.since), "draw": run.draw, "variables": run.variables}
    ending = [] if walk.reason else timer(run, journey, walk.until, now)
    event = _event(JOURNEY_ENTERED, run, journey.version, walk, now, 0, more)
    return [event, *_mails(run, journey, walk), *_actions(run, walk, now), *ending]


def moved(run: Run, journey: Journey, walk: Walk, now: int, occurrence: str = "") -> list[Wish]:
    """A run goes on, to where it waits or ends; ``occurrence`` tells mails of one step apart."""
    type = JOURNEY_EXITED if walk.reason else JOURNEY_MOVED
    ending: list[Wish] = [CancelTimer(key=timer_key(run))] if walk.reason else timer(run, journey, walk.until, now)
    event = _event(type, run, journey.version, walk, now, run.number + 1, {})
    return [event, *_mails(run, journey, walk, occurrence), *_actions(run, walk, now), *ending]


def came_while_paused(run: Run, now: int) -> list[Wish]:
    """The event has come that a paused run waits for: it goes on once it is resumed."""
    waiting = Walk(step=run.step, began=run.began, until=now)
    return [_event(JOURNEY_MOVED, run, run.version, waiting, now, run.number + 1, {"came": True})]


def left(run: Run, reason: str, now: int) -> list[Wish]:
    """A run ends before its last step."""
    walk = Walk(step=run.step, reason=reason)
    event = _event(JOURNEY_EXITED, run, run.version, walk, now, run.number + 1, {"interrupted": True})
    return [event, CancelTimer(key=timer_key(run))]


def timer(run: Run, journey: Journey, until: int, now: int, *, unless_earlier: bool = False) -> list[Wish]:
    """The timer of a run that waits until an instant, or with 0 for an event; see `Timer.unless_earlier`."""
    dues = [at for at in (until, run.entered_at + journey.timeout if journey.timeout else 0) if at]
    if not dues:
        return [CancelTimer(key=timer_key(run))]
    # A timer of one instant fires once: what is due already fires a microsecond later.
    due_at = min(max(min(dues), now + 1), LATEST)
    return [Timer(key=timer_key(run), due_at=due_at, unless_earlier=unless_earlier)]


def timer_key(run: Run) -> str:
    """The key of the one timer of a run."""
    return f"{run.journey}/{run.id}"


def _event(type: str, run: Run, version: int, walk: Walk, now: int, number: int, more: Mapping[str, Any]) -> Emit:
    properties: dict[str, Any] = {
        "journey": run.journey,
        "run": run.id,
        "n": number,
        "version": version,
        "entered_at": format_time(run.entered_at),
        "path": walk.path,
        "mails": mails_of(walk.mails),
        "step": walk.step,
        **more,
    }
    if run.key is not None:
        properties["key"] = run.key
    if walk.actions:
        properties["actions"] = actions_of(walk.actions)
    if run.holdout:
        properties["holdout"] = True
    if walk.reason:
        properties["reason"] = walk.reason
    else:
        properties["began"] = format_time(walk.began)
        if walk.until:
            properties["until"] = format_time(walk.until)
    return Emit(type=type, key=f"{run.journey}/{run.id}", occurred_at=now, properties=properties)


def _actions(run: Run, walk: Walk, now: int) -> list[Wish]:
    return [_action(run, done, now) for done in walk.actions if not done.problem]


def _action(run: Run, done: Done, now: int) -> Wish:
    kind, given, key = done.action.kind, done.given, f"{run.journey}/{run.id}/{done.step}"
    if kind in ("start", "leave"):
        # By a timer, so that journeys which start each other never come to more than one commit takes.
        other = done.action.journey
        what = ["enter", other, "", [given, now]] if kind == "start" else ["leave", other, "", given.get("reason", "")]
        return Timer(key=f"{REST}/{key}", due_at=now + 1, data={"acts": [what], "own": True})
    if kind == "webhook":
        about = {"type": JOURNEY_STEP, "at": format_time(now), "journey": run.journey, "run": run.id, "step": done.step}
        return Effect(kind=WEBHOOK, key=key, data={**about, **given}, queue=queue_of(given))
    if kind == "points":
        given = {"reason": f"journey {run.journey}", **given}
    return Emit(type=EMITTED[kind], key=key, occurred_at=now, properties=given)


def _mails(run: Run, journey: Journey, walk: Walk, occurrence: str = "") -> list[Wish]:
    return [] if run.holdout else [_mail(run, journey, mail, occurrence) for mail in walk.mails]


def _mail(run: Run, journey: Journey, mail: Mail, occurrence: str) -> Effect:
    arm, send = mail.arm, mail.send
    occurrence = "/".join(filter(None, (journey.name, run.id, mail.step, occurrence)))
    return mail_effect(
        occurrence,
        arm.template,
        {**run.variables, **({} if run.key is None else {"key": run.key}), **send.variables},
        occurrence,
        mail.due_at,
        # The template sees the event that let the person enter, however long ago that was.
        event=run.id,
        journey=journey.name,
        journey_version=journey.version,
        run=run.id,
        step=mail.step,
        arm=(arm.name or arm.template) if send.variants else "",
        subject=arm.subject or send.subject,
        topic=journey.topic,
        sender=journey.sender,
        reply_to=journey.reply_to,
        transactional=True if journey.transactional else None,
    )
