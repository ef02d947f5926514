"""The people in a journey, the ways of one person through journeys, and one way step by step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Identifiers, Instant, PersonRef, instant
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.foundation.events.parameters import AsOf, Next, Page, page_of
from threadline.capabilities.reach.journeys.events import RUN_EVENTS
from threadline.capabilities.reach.journeys.labels import step_label
from threadline.capabilities.reach.journeys.operations import JOURNEYS_GROUP, Journeys, Name, RunId, journey_named
from threadline.capabilities.reach.journeys.operations.definitions import book_of, entries, labels_of
from threadline.capabilities.reach.journeys.projection import Run, is_paused, journeys_in, runs_of
from threadline.capabilities.reach.journeys.reacting import ENDINGS
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.kernel.disclosure import FREE, not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Operation, Params, shaped_operation

HISTORY_MAX = 1_000
"""Events of one way that are shown."""


class JourneyPeopleParams(Page, kw_only=True):
    """Of which journey and step, and which page."""

    name: Name
    step: Annotated[str, Meta(description="Only people who wait at this step.", max_length=500)] = ""


@key_fields("identifiers", "step", "entered_at", "until")
class PersonInJourney(msgspec.Struct, kw_only=True):
    """Somebody who is in a journey."""

    person: str
    identifiers: Identifiers
    run: RunId
    version: int
    step: str
    label: Annotated[str, Meta(description="What the step does; its name, where that is not known any more.")]
    entered_at: Instant
    until: Annotated[Instant | None, Meta(description="When the wait ends by time; null: by an event alone.")]


@not_personal
class JourneyPeopleResult(msgspec.Struct, kw_only=True):
    """People in a journey by step, found in an index."""

    name: str
    people: list[PersonInJourney]
    next: Next = ""


@shaped_operation(
    "GET /v1/journeys/{name}/people", JOURNEYS_GROUP, relies_on=("people",), example=JourneyPeopleParams(name="welcome")
)
def people(journeys: Journeys, context: Context, params: JourneyPeopleParams) -> JourneyPeopleResult:
    """List the people in a journey, or at one of its steps."""
    journey = journey_named(journeys, params.name)
    start, stop = (f"{params.step}/", f"{params.step}0") if params.step else ("", None)  # 0 comes right after /
    start = max(start, f"{params.cursor}\0" if params.cursor else "")
    rows = entries(context.engine.rows, context.workspace, journey.name, start, stop)
    page, following = page_of(rows, params.limit, lambda entry: entry.sort)
    names = context.engine.reader.identifiers_of(context.workspace, [entry.person for entry in page])
    book = book_of(context)
    labels = {version: labels_of(book, journey.name, version) for version in {entry.version for entry in page}}
    shown = [
        PersonInJourney(
            person=entry.person,
            identifiers=names.get(entry.person, []),
            run=entry.run,
            version=entry.version,
            step=entry.step,
            label=labels[entry.version].get(entry.step, entry.step),
            entered_at=instant(entry.entered_at),
            until=_time(entry.until),
        )
        for entry in page
    ]
    return JourneyPeopleResult(name=journey.name, people=shown, next=following)


def _time(at: int) -> Instant | None:
    return instant(at) if at else None


class JourneysOfParams(AsOf, kw_only=True):
    """Whose journeys, and at which instant."""

    id: PersonRef


@key_fields("journey", "step", "entered_at", "until", "ended_at", "reason")
class Execution(msgspec.Struct, kw_only=True):
    """One way of a person through a journey."""

    journey: str
    run: RunId
    version: int
    entered_at: Instant
    step: Annotated[str, Meta(description="Where the person waits; empty: the way has ended.")]
    label: Annotated[str, Meta(description="What the step does; its name, where another version is in force.")]
    until: Annotated[Instant | None, Meta(description="When that wait ends by time.")]
    paused: bool
    holdout: Annotated[bool, Meta(description="Whether no mail is sent, to compare with.")]
    variables: Annotated[dict[str, Any], FREE]
    key: Annotated[
        str | int | float | None,
        Meta(description="What it is about, in a journey with a key; null: it has none."),
        FREE,
    ]
    ended_at: Instant | None
    reason: Annotated[str, Meta(description="Why it ended: completed, or why it was left."), ENDINGS]


class JourneysOfResult(msgspec.Struct, kw_only=True):
    """A person's ways through journeys, by journey, the newest first: the last four, and 64 of a journey with a key."""

    person: str
    as_of: Instant
    executions: list[Execution]


@shaped_operation(
    "GET /v1/people/{id}/journeys", JOURNEYS_GROUP, relies_on=("people",), example=JourneysOfParams(id="user_id:42")
)
def of(journeys: Journeys, context: Context, params: JourneysOfParams) -> JourneysOfResult:
    """Show the journeys of a person, now or at an instant."""
    asked = person_as_of(context, params.id, params.as_of)
    state = asked.state(JOURNEYS)
    shown = [
        _execution(journeys, run, paused=not run.reason and is_paused(state, run.journey))
        for journey in journeys_in(state)
        for run in reversed(runs_of(state, journey))
    ]
    return JourneysOfResult(person=asked.person.id, as_of=asked.shown_at, executions=shown)


def _execution(journeys: Journeys, run: Run, *, paused: bool) -> Execution:
    return Execution(
        journey=run.journey,
        run=run.id,
        version=run.version,
        entered_at=instant(run.entered_at),
        step="" if run.reason else run.step,
        label="" if run.reason else step_label(journeys, run.journey, run.version, run.step),
        until=None if run.reason else _time(run.until),
        paused=paused,
        holdout=run.holdout,
        variables=run.variables,
        key=run.key,
        ended_at=instant(run.at) if run.reason else None,
        reason=run.reason,
    )


class JourneyHistoryParams(Params, kw_only=True):
    """Whose way through which journey."""

    id: PersonRef
    name: Name
    run: Annotated[RunId, Meta(description="Which of several; without it the newest.")] = ""


class SentMail(msgspec.Struct, kw_only=True):
    """A mail that a step handed over."""

    step: str
    template: str
    arm: str = ""


@key_fields("at", "step", "mails", "label", "reason")
@not_personal
class Advance(msgspec.Struct, kw_only=True):
    """What happened at one instant."""

    at: Instant
    type: str
    event: str
    path: Annotated[list[str], Meta(description="The steps that were done.")]
    labels: Annotated[list[str], Meta(description="What each of them does.")]
    mails: list[SentMail]
    step: Annotated[str, Meta(description="Where the person waits after it.")]
    label: Annotated[str, Meta(description="What the step does; its name, where another version is in force.")]
    until: Instant | None
    reason: Annotated[str, Meta(description="Why the way ended; empty: it goes on."), ENDINGS]


class JourneyHistoryResult(msgspec.Struct, kw_only=True):
    """One way through a journey, from the first event on."""

    person: str
    execution: Execution
    history: list[Advance]


@shaped_operation(
    "GET /v1/people/{id}/journeys/{name}",
    JOURNEYS_GROUP,
    relies_on=("people",),
    example=JourneyHistoryParams(id="user_id:42", name="welcome"),
)
def history(journeys: Journeys, context: Context, params: JourneyHistoryParams) -> JourneyHistoryResult:
    """Show a person's path through a journey, step by step."""
    person = context.engine.reader.person(context.workspace, params.id)
    state = context.engine.reader.state(person, JOURNEYS, context.now)
    runs = [run for run in runs_of(state, params.name) if params.run in ("", run.id)]
    if not runs:
        raise NotFound(f"this person was never in the journey {params.name!r}, or the way is forgotten")
    run = runs[-1]
    # From its first event to its last: everything else of the person stays unread.
    events = context.engine.reader.all_events(
        person, types=RUN_EVENTS, start=run.entered_at, stop=run.at + 1, counting=True
    )
    own = (event for event in events if _is_of(event, run))
    labels = partial(step_label, journeys, run.journey, run.version)
    history = [_advance(labels, event) for event in islice(own, HISTORY_MAX)]
    paused = not run.reason and is_paused(state, run.journey)
    return JourneyHistoryResult(person=person.id, execution=_execution(journeys, run, paused=paused), history=history)


def _is_of(recorded: Recorded, run: Run) -> bool:
    given = recorded.event.properties
    return (given.get("journey"), given.get("run")) == (run.journey, run.id)


def _advance(label: Callable[[str], str], recorded: Recorded) -> Advance:
    given = recorded.event.properties
    return Advance(
        at=instant(recorded.event.occurred_at),
        type=recorded.event.type,
        event=recorded.id,
        path=given.get("path", []),
        labels=[label(step) for step in given.get("path", [])],
        label=label(given.get("step", "")),
        mails=[SentMail(**mail) for mail in given.get("mails", [])],
        step=given.get("step", ""),
        until=given.get("until"),
        reason=given.get("reason", ""),
    )


def operations(journeys: Journeys) -> list[Operation]:
    """The operations on people in journeys."""
    return [people(journeys), of(journeys), history(journeys)]
