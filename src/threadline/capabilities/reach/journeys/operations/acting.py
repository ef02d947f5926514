"""Entering and leaving a journey on request, pausing and resuming a journey or one person in it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from threadline.capabilities.foundation.events.forms import PersonRef
from threadline.capabilities.foundation.events.requests import RequestKey, place_and_key, wish
from threadline.capabilities.reach.journeys.book import PAUSED
from threadline.capabilities.reach.journeys.events import (
    JOURNEY_ENTRY_REQUESTED,
    JOURNEY_EXIT_REQUESTED,
    JOURNEY_PAUSED,
    JOURNEY_RESUMED,
)
from threadline.capabilities.reach.journeys.operations import JOURNEYS_GROUP, Journeys, Name, RunId, journey_named
from threadline.capabilities.reach.journeys.operations.definitions import book_of, entries
from threadline.capabilities.reach.journeys.policy import LOOK_AGAIN
from threadline.capabilities.reach.journeys.projection import Entry, active_run, pause_changed_at
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.kernel.errors import Conflict, InvalidValue, Unavailable
from threadline.kernel.event import Event
from threadline.kernel.operation import Context, Operation, Params, shaped_operation
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.policy import source_of
from threadline.kernel.ports import Person
from threadline.kernel.store import Delete, Key, Put
from threadline.kernel.time import LATEST

_WOKEN_AT_ONCE = 200


class EnterParams(Params, kw_only=True):
    """Who enters which journey, with which variables."""

    id: PersonRef
    name: Name
    variables: Annotated[
        dict[str, Any] | None, Meta(description="Variables of the journey: texts, numbers, switches.")
    ] = None
    request: RequestKey = ""


class ExitParams(Params, kw_only=True):
    """Who leaves which journey, and why."""

    id: PersonRef
    name: Name
    reason: Annotated[str, Meta(description="Why; kept in the event.", max_length=100)] = ""
    request: RequestKey = ""


class RequestResult(msgspec.Struct, kw_only=True):
    """The outcome of a request."""

    person: str
    journey: str
    done: Annotated[
        bool,
        Meta(description="False: the person was in it already, or may not enter again yet; or was not in it to leave."),
    ]
    run: RunId


@shaped_operation(
    "POST /v1/people/{id}/journeys/{name}/enter",
    JOURNEYS_GROUP,
    done=("Put somebody into the journey {name}",),
    scope="write",
    example=EnterParams(id="user_id:42", name="welcome"),
    refused=lambda result: not result.done,
)
def enter(journeys: Journeys, context: Context, params: EnterParams) -> RequestResult:
    """Let a person enter a journey."""
    properties = {"journey": params.name, "properties": params.variables or {}}
    return _requested(journeys, context, params, JOURNEY_ENTRY_REQUESTED, properties, lambda id, run: id)


@shaped_operation(
    "POST /v1/people/{id}/journeys/{name}/exit",
    JOURNEYS_GROUP,
    done=("Took somebody out of the journey {name}",),
    scope="write",
    example=ExitParams(id="user_id:42", name="welcome"),
    refused=lambda result: not result.done,
)
def exit_(journeys: Journeys, context: Context, params: ExitParams) -> RequestResult:
    """Let a person leave a journey."""
    properties = {"journey": params.name, **({"reason": params.reason} if params.reason else {})}
    return _requested(journeys, context, params, JOURNEY_EXIT_REQUESTED, properties, lambda id, run: run)


def _requested(
    journeys: Journeys,
    context: Context,
    params: EnterParams | ExitParams,
    type: str,
    properties: dict[str, Any],
    run_of: Callable[[str, str], str],
) -> RequestResult:
    journey_named(journeys, params.name)
    person = context.engine.reader.person(context.workspace, params.id)
    before = active_run(context.engine.reader.state(person, JOURNEYS, context.now), params.name)
    id = _record(context, person, type, properties, params.request)
    run = run_of(id, before.id if before is not None else "")
    # The policy answers in the commit of the request.
    answer = context.engine.log.of_key(context.workspace, source_of(JOURNEYS), f"{id}/{params.name}/{run}")
    return RequestResult(
        person=person.id, journey=params.name, done=answer is not None, run=run if answer is not None else ""
    )


def _record(
    context: Context, person: Person, type: str, properties: dict[str, Any], request: str, not_before: int = 0
) -> str:
    name = request or f"at {context.engine.recorder.clock()} after {person.position}"
    identifier, key = place_and_key(context, person, type, properties.get("journey", ""), name, named=request)
    event = wish(context, identifier, type, properties, key, vouched=True)
    event = replace(event, occurred_at=max(event.occurred_at, not_before))
    receipt = context.engine.recorder.record([event], known=True)[0]
    if receipt.status == "conflict":
        raise Conflict(f"the request {request!r} was used for something else; give this one its own name")
    if receipt.status == "rejected":
        raise InvalidValue(receipt.message)
    return receipt.id


class PauseParams(Params, kw_only=True):
    """Which journey, and whether for one person only."""

    name: Name
    person: Annotated[PersonRef | None, Meta(description="Only this person; without it everybody.")] = None


class PauseResult(msgspec.Struct, kw_only=True):
    """What is now so."""

    journey: str
    person: Annotated[str, Meta(description="Whom it is about; empty: everybody.")]
    state: Literal["paused", "running"]
    woken: Annotated[
        int, Meta(description="People whose wait or whose time in the journey ended during the pause: they go on now.")
    ] = 0
    mails: Annotated[int, Meta(description="Mails that waited for the end of the pause and leave now.")] = 0


@shaped_operation(
    "POST /v1/journeys/{name}/pause",
    JOURNEYS_GROUP,
    done=(
        "Paused the journey {name} for {person}",
        "Paused the journey {name}",
    ),
    scope="write",
    example=PauseParams(name="welcome"),
)
def pause(journeys: Journeys, context: Context, params: PauseParams) -> PauseResult:
    """Pause a journey, or one person in it."""
    journey_named(journeys, params.name)
    if params.person is not None:
        id = _of_person(context, params.name, params.person, JOURNEY_PAUSED)
        return PauseResult(journey=params.name, person=id, state="paused")
    if params.name not in book_of(context).paused:
        _change(context, Put(_key(context, params.name), str(context.now).encode()))
    return PauseResult(journey=params.name, person="", state="paused")


@shaped_operation(
    "POST /v1/journeys/{name}/resume",
    JOURNEYS_GROUP,
    relies_on=("people",),
    done=(
        "Went on with the journey {name} for {person}",
        "Went on with the journey {name}",
    ),
    scope="write",
    example=PauseParams(name="welcome"),
)
def resume(journeys: Journeys, context: Context, params: PauseParams) -> PauseResult:
    """Resume a journey, or one person in it."""
    journey_named(journeys, params.name)
    if params.person is not None:
        id = _of_person(context, params.name, params.person, JOURNEY_RESUMED)
        return PauseResult(journey=params.name, person=id, state="running", mails=_hasten(context, params.name, id))
    if params.name in book_of(context).paused:
        _change(context, Delete(_key(context, params.name)))
    # Also where it was not paused any more: a call that died may have come no further.
    woken = _wake(context, params.name)
    return PauseResult(
        journey=params.name, person="", state="running", woken=woken, mails=_hasten(context, params.name)
    )


def _of_person(context: Context, name: str, ref: str, type: str) -> str:
    reader = context.engine.reader
    person = reader.person(context.workspace, ref)
    # A clock that was ahead has made the last change later than now; the newest one counts.
    last = pause_changed_at(reader.state(person, JOURNEYS, LATEST), name)
    _record(context, person, type, {"journey": name}, "", last + 1)
    return person.id


def _key(context: Context, name: str) -> Key:
    return Key(JOURNEYS, context.workspace, f"{PAUSED}{name}")


def _change(context: Context, write: Put | Delete) -> None:
    refusal = context.engine.shared.change(context.workspace, JOURNEYS, [write])
    if refusal is not None:
        raise Unavailable("somebody else has paused or resumed a journey at the same moment; ask again")


def _wake(context: Context, name: str) -> int:
    """Let everybody go on whose wait has ended, and everybody leave whose time is over."""
    book = book_of(context)

    def is_due(entry: Entry) -> bool:
        compiled = book.version(name, entry.version)
        timeout = compiled.journey.timeout if compiled is not None else None
        ends = [entry.until, entry.entered_at + timeout if timeout else 0]
        return any(0 < end <= context.now for end in ends)

    due = filter(is_due, entries(context.engine.rows, context.workspace, name))
    woken = 0
    while batch := [*islice(due, _WOKEN_AT_ONCE)]:
        events = [_waking(context, name, entry.person) for entry in batch]
        context.engine.recorder.record(events, known=True)
        woken += len(events)
    return woken


def _hasten(context: Context, name: str, person: str = "") -> int:
    """Make the mails due that have waited for the end of the pause, of everybody or of one person."""
    reader = context.engine.reader
    threads = reader.person(context.workspace, person).heads if person else None

    def waits(pending: PendingEffect) -> bool:
        return pending.effect.data.get("journey") == name and (threads is None or pending.thread in threads)

    return context.engine.delivery.hasten(context.workspace, JOURNEYS, LOOK_AGAIN, waits)


def _waking(context: Context, name: str, id: str) -> Event:
    person = context.engine.reader.person(context.workspace, id)
    properties = {"journey": name, "whole": True}
    identifier, key = place_and_key(context, person, JOURNEY_RESUMED, name, str(context.now), named="")
    return wish(context, identifier, JOURNEY_RESUMED, properties, key, vouched=True)


def operations(journeys: Journeys) -> list[Operation]:
    """The operations that change where people are."""
    return [enter(journeys), exit_(journeys), pause(journeys), resume(journeys)]
