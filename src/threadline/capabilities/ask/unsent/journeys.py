"""Mails of journeys that nobody asked for yet: why a person's run has not come to a step, or never began."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from threadline.capabilities.ask.unsent.answer import About, Unsent, failing, unsent
from threadline.capabilities.ask.unsent.asked import Subject, Wanted, of_operation
from threadline.capabilities.ask.unsent.mails import left_reason
from threadline.capabilities.foundation.conditions import All, Conditions, Step
from threadline.capabilities.foundation.conditions import Subject as Conditioned
from threadline.capabilities.profile.segments.operations.person import SegmentParams
from threadline.capabilities.reach.journeys.book import Book, Compiled
from threadline.capabilities.reach.journeys.definition import ALWAYS, ONCE, Journey
from threadline.capabilities.reach.journeys.drawing import on_text
from threadline.capabilities.reach.journeys.events import RUN_EVENTS
from threadline.capabilities.reach.journeys.program import END, Program
from threadline.capabilities.reach.journeys.projection import Run, is_paused, runs_of
from threadline.capabilities.reach.journeys.reacting import LEFT_MERGED, mail_id
from threadline.capabilities.reach.journeys.steps import JOURNEYS, Send, Trigger
from threadline.capabilities.reach.journeys.walk import arm_of
from threadline.kernel.event import Recorded


class _Sending(NamedTuple):
    """A step that sends a mail, or a mail on an event."""

    step: str
    send: Send
    on_event: bool


def of_journeys(subject: Subject, wanted: Wanted, asked: Collection[str]) -> Iterator[Unsent]:
    """The mails of journeys that were not asked for; ``asked`` are the occurrences of those that were."""
    if wanted.broadcast or wanted.rule or subject.engine.catalogue.policy(JOURNEYS) is None:
        return
    book: Book = subject.engine.shared.fresh(subject.context.workspace, JOURNEYS)
    state = subject.engine.reader.state(subject.person, JOURNEYS, subject.now)
    for name, in_force in sorted(book.in_force.items()):
        if wanted.journey in ("", name):
            run = _run_that_counts(runs_of(state, name))
            compiled = (book.version(name, run.version) if run is not None else None) or in_force
            yield from _of_journey(_Way(subject, book, state, compiled, run), wanted, asked)


def _run_that_counts(runs: Sequence[Run]) -> Run | None:
    """The run that goes on, else the last; where two people were merged, not the one that ended because of that."""
    active = next((run for run in runs if not run.reason), None)
    return active or next((run for run in reversed(runs) if run.reason != LEFT_MERGED), runs[-1] if runs else None)


class _Way(NamedTuple):
    """A person and a journey."""

    subject: Subject
    book: Book
    state: Any
    compiled: Compiled
    run: Run | None
    """The one that counts; None: the person was never in it."""

    @property
    def journey(self) -> Journey:
        return self.compiled.journey

    @property
    def is_paused(self) -> bool:
        return self.journey.name in self.book.paused or is_paused(self.state, self.journey.name)


def _of_journey(way: _Way, wanted: Wanted, asked: Collection[str]) -> Iterator[Unsent]:
    sendings = [sending for sending in _sendings(way.compiled) if _is_wanted(sending, wanted)]
    if not sendings:
        return
    run = way.run
    if run is None:
        why = _not_entered(way)
        for sending in sendings[:1] if wanted.is_all else sendings:
            about = _about(way, sending, None, wanted)
            yield unsent(about, why.reason, at=why.at, begins=why.begins, conditions=why.conditions, event=why.event)
        return
    handed = _handed(way, run)
    for sending in sendings:
        of_step = f"{run.journey}/{run.id}/{sending.step}"
        if not any(f"{occurrence}/".startswith(f"{of_step}/") for occurrence in asked):
            yield from _of_step(way, run, sending, handed, wanted)


def _sendings(compiled: Compiled) -> Iterator[_Sending]:
    for node in compiled.program.nodes.values():
        if node.send is not None:
            yield _Sending(node.id, node.send, False)
    for number, mail in enumerate(compiled.journey.events, 1):
        yield _Sending(mail_id(mail, number), mail.send, True)


def _is_wanted(sending: _Sending, wanted: Wanted) -> bool:
    return not wanted.template or any(arm.template == wanted.template for arm in sending.send.arms)


def _about(way: _Way, sending: _Sending, run: Run | None, wanted: Wanted) -> About:
    arms = sending.send.arms
    arm = next((arm for arm in arms if arm.template == wanted.template), arms[0])
    if run is not None:
        arm = arm_of(sending.send, run.draw)
    named = (arm.name or arm.template) if run is not None and sending.send.variants else ""
    return About(template=arm.template, journey=way.journey.name, step=sending.step, arm=named)


# --- somebody who was in it -----------------------------------------------------------------------


def _handed(way: _Way, run: Run) -> dict[str, Recorded]:
    """By step, the event of the run that says that its mail was handed over."""
    events = way.subject.engine.reader.all_events(
        way.subject.person, types=RUN_EVENTS, start=run.entered_at, stop=run.at + 1, counting=True
    )
    handed: dict[str, Recorded] = {}
    for recorded in events:
        given = recorded.event.properties
        if (given.get("journey"), given.get("run")) == (run.journey, run.id):
            handed |= {mail["step"]: recorded for mail in given.get("mails", ()) if "step" in mail}
    return handed


def _of_step(way: _Way, run: Run, sending: _Sending, handed: dict[str, Recorded], wanted: Wanted) -> Iterator[Unsent]:
    about = _about(way, sending, run, wanted)
    if sending.step in handed:
        recorded = handed[sending.step]
        if run.holdout:
            yield unsent(about, "holdout", at=recorded.event.occurred_at, event=recorded.id)
        return  # else it is older than the outcomes that are looked at
    if run.reason:
        reason, detail = left_reason(run.reason)
        if reason == "other_path" and sending.on_event:
            reason = "event_awaited"
        if again := _again(way, run):
            recorded, may = again
            yield unsent(about, "entered_before", at=recorded.event.occurred_at, until=may, event=recorded.id)
        else:
            yield unsent(about, reason, at=run.at, detail=detail)
    elif sending.on_event:
        yield unsent(about, "journey_paused" if way.is_paused else "event_awaited", is_waiting=True)
    elif sending.step not in _ahead(way.compiled.program, run.step):
        yield unsent(about, "other_path", at=run.at)
    else:
        node = way.compiled.program.nodes.get(run.step)
        is_night = run.step == sending.step and node is not None and node.send is not None
        reason = "journey_paused" if way.is_paused else "quiet_hours" if is_night else "journey_waits"
        yield unsent(about, reason, until=run.until, is_waiting=True)


def _ahead(program: Program, step: str) -> set[str]:
    """The steps that a run may still come to from a step, that one included."""
    ahead: set[str] = set()
    left = [step]
    while left:
        id = left.pop()
        if id != END and id not in ahead and id in program.nodes:
            ahead.add(id)
            left += program.nodes[id].ways
    return ahead


def _again(way: _Way, run: Run) -> tuple[Recorded, int] | None:
    """What would have let the person enter after their last run, and from when on it may; None: nothing came."""
    if way.journey.reentry == ALWAYS:
        return None
    for trigger in way.journey.trigger:
        recorded = way.subject.last(trigger.types, **_having(trigger))
        if recorded is not None and recorded.event.occurred_at > run.at and not _unmet(way, trigger, recorded):
            may = 0 if way.journey.reentry == ONCE else run.at + way.journey.reentry
            return (recorded, may) if not may or may > recorded.event.occurred_at else None
    return None


# --- somebody who was never in it -----------------------------------------------------------------


class _Why(NamedTuple):
    """Why a trigger let nobody enter."""

    at: int
    """When its event came; 0: it did not."""
    reason: str
    begins: str
    """The event, in words."""
    conditions: list[Step]
    event: str = ""


def _not_entered(way: _Way) -> _Why:
    """Why nothing let the person enter, by the trigger whose event came last."""
    answers = [_of_trigger(way, trigger) for trigger in way.journey.trigger]
    return max(answers, key=lambda why: (why.at, bool(why.conditions)), default=_Why(0, "by_request", "", []))


def _of_trigger(way: _Way, trigger: Trigger) -> _Why:
    begins = on_text(trigger)
    recorded = way.subject.last(trigger.types, **_having(trigger))
    if recorded is None:
        return _Why(0, "not_triggered", begins, _outside(way.subject, trigger.segment) if trigger.segment else [])
    at, event = recorded.event.occurred_at, recorded.event
    if unmet := _unmet(way, trigger, recorded):
        return _Why(at, "trigger_unmet", begins, unmet, recorded.id)
    if not (event.is_news or way.journey.existing):
        return _Why(at, "trigger_not_news", begins, [], recorded.id)
    is_late = recorded.recorded_at - at > way.journey.late
    return _Why(at, "trigger_late" if is_late else "trigger_before", begins, [], recorded.id)


def _having(trigger: Trigger) -> dict[str, str]:
    return {"segment": trigger.wanted_segment} if trigger.wanted_segment else {}


def _unmet(way: _Way, trigger: Trigger, recorded: Recorded) -> list[Step]:
    """The conditions of a trigger that its event did not meet, with the person as they were right after it."""
    view = way.subject.view_at(recorded)
    asked = Conditioned(view.view, recorded, view.at)
    if trigger.where and not trigger.where.test(recorded.event):
        return failing(Conditions(All(trigger.where.parts)).explain(asked))
    if trigger.conditions is not None and not trigger.conditions.test(asked):
        return failing(trigger.conditions.explain(asked))
    return []


def _outside(subject: Subject, segment: str) -> list[Step]:
    """The conditions of a segment that the person does not meet."""
    answer = of_operation(subject.context, "segments_why", SegmentParams(id=subject.person.id, segment=segment))
    return [] if answer is None or answer.member else failing(answer.steps)
