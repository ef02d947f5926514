"""Entering and leaving a journey on request, pausing and resuming a journey or one person in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import PersonRef
from threadline.capabilities.events.requests import RequestKey, place_and_key, wish
from threadline.capabilities.journeys.book import PAUSED
from threadline.capabilities.journeys.events import (
    JOURNEY_ENTRY_REQUESTED,
    JOURNEY_EXIT_REQUESTED,
    JOURNEY_PAUSED,
    JOURNEY_RESUMED,
)
from threadline.capabilities.journeys.operations import JOURNEYS_GROUP, Journeys, Name, RunId, journey_named
from threadline.capabilities.journeys.operations.definitions import book_of, entries
from threadline.capabilities.journeys.projection import active_run
from threadline.capabilities.journeys.steps import JOURNEYS
from threadline.kernel.errors import Conflict, InvalidValue, Unavailable
from threadline.kernel.event import Event
from threadline.kernel.operation import Context, Operation
from threadline.kernel.policy import source_of
from threadline.kernel.ports import Person, WithLog, WithReader, WithRecorder, WithRows, WithShared
from threadline.kernel.store import Delete, Key, Put

_WOKEN_AT_ONCE = 200


class Needs(WithReader, WithRecorder, WithLog, WithRows, WithShared, Protocol):
    """What is needed here of the engine."""


class EnterParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who enters which journey, with which variables."""

    id: PersonRef
    name: Name
    variables: Annotated[
        dict[str, Any] | None, Meta(description="Variables of the journey: texts, numbers, switches.")
    ] = None
    request: RequestKey = ""


class ExitParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who leaves which journey, and why."""

    id: PersonRef
    name: Name
    reason: Annotated[str, Meta(description="Why; kept in the event.", max_length=100)] = ""
    request: RequestKey = ""


class RequestResult(msgspec.Struct, kw_only=True):
    """What came of a request."""

    person: str
    journey: str
    done: Annotated[
        bool,
        Meta(description="False: the person was in it already, or may not enter again yet; or was not in it to leave."),
    ]
    run: RunId


def _enter(journeys: Journeys, context: Context[Needs], params: EnterParams) -> RequestResult:
    properties = {"journey": params.name, "properties": params.variables or {}}
    return _requested(journeys, context, params, JOURNEY_ENTRY_REQUESTED, properties, lambda id, run: id)


def _exit(journeys: Journeys, context: Context[Needs], params: ExitParams) -> RequestResult:
    properties = {"journey": params.name, **({"reason": params.reason} if params.reason else {})}
    return _requested(journeys, context, params, JOURNEY_EXIT_REQUESTED, properties, lambda id, run: run)


def _requested(
    journeys: Journeys, context: Context[Needs], params: EnterParams | ExitParams, type: str,
    properties: dict[str, Any], run_of: Callable[[str, str], str],
) -> RequestResult:  # fmt: skip
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


def _record(context: Context[Needs], person: Person, type: str, properties: dict[str, Any], request: str) -> str:
    name = request or f"at {context.engine.recorder.clock()} after {person.position}"
    identifier, key = place_and_key(context, person, type, properties.get("journey", ""), name, named=request)
    event = wish(context, identifier, type, properties, key, vouched=True)
    receipt = context.engine.recorder.record([event], known=True)[0]
    if receipt.status == "conflict":
        raise Conflict(f"the request {request!r} was used for something else; give this one its own name")
    if receipt.status == "rejected":
        raise InvalidValue(receipt.message)
    return receipt.id


class PauseParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which journey, and whether for one person only."""

    name: Name
    person: Annotated[PersonRef | None, Meta(description="Only this person; without it everybody.")] = None


class PauseResult(msgspec.Struct, kw_only=True):
    """What is now so."""

    journey: str
    person: Annotated[str, Meta(description="Whom it is about; empty: everybody.")]
    state: Literal["paused", "running"]
    woken: Annotated[int, Meta(description="People whose wait ended during the pause, who go on now.")] = 0


def _pause(journeys: Journeys, context: Context[Needs], params: PauseParams) -> PauseResult:
    journey_named(journeys, params.name)
    if params.person is not None:
        id = _of_person(context, params.name, params.person, JOURNEY_PAUSED)
        return PauseResult(journey=params.name, person=id, state="paused")
    if params.name not in book_of(context).paused:
        _change(context, Put(_key(context, params.name), str(context.now).encode()))
    return PauseResult(journey=params.name, person="", state="paused")


def _resume(journeys: Journeys, context: Context[Needs], params: PauseParams) -> PauseResult:
    journey_named(journeys, params.name)
    if params.person is not None:
        id = _of_person(context, params.name, params.person, JOURNEY_RESUMED)
        return PauseResult(journey=params.name, person=id, state="running")
    if params.name in book_of(context).paused:
        _change(context, Delete(_key(context, params.name)))
    # Also where it was not paused any more: a call that died may have come no further.
    return PauseResult(journey=params.name, person="", state="running", woken=_wake(context, params.name))


def _of_person(context: Context[Needs], name: str, ref: str, type: str) -> str:
    person = context.engine.reader.person(context.workspace, ref)
    _record(context, person, type, {"journey": name}, "")
    return person.id


def _key(context: Context[Needs], name: str) -> Key:
    return Key(JOURNEYS, context.workspace, f"{PAUSED}{name}")


def _change(context: Context[Needs], write: Put | Delete) -> None:
    refusal = context.engine.shared.change(context.workspace, JOURNEYS, [write])
    if refusal is not None:
        raise Unavailable("somebody else has paused or resumed a journey at the same moment; ask again")


def _wake(context: Context[Needs], name: str) -> int:
    """Let everybody go on whose wait has ended."""
    due = (
        entry
        for entry in entries(context.engine.rows, context.workspace, name)
        if entry.until and entry.until <= context.now
    )
    woken = 0
    while batch := [*islice(due, _WOKEN_AT_ONCE)]:
        events = [_waking(context, name, entry.person) for entry in batch]
        context.engine.recorder.record(events, known=True)
        woken += len(events)
    return woken


def _waking(context: Context[Needs], name: str, id: str) -> Event:
    person = context.engine.reader.person(context.workspace, id)
    properties = {"journey": name, "whole": True}
    identifier, key = place_and_key(context, person, JOURNEY_RESUMED, name, str(context.now), named="")
    return wish(context, identifier, JOURNEY_RESUMED, properties, key, vouched=True)


def operations(journeys: Journeys) -> list[Operation]:
    """The operations that change where people are."""
    return [
        Operation(
            name="journeys_enter", group=JOURNEYS_GROUP, summary="Let a person enter a journey.",
            params=EnterParams, result=RequestResult, run=partial(_enter, journeys), method="POST",
            path="/v1/people/{id}/journeys/{name}/enter", scope="write",
            example=EnterParams(id="user_id:42", name="welcome"), refused=lambda result: not result.done,
        ),
        Operation(
            name="journeys_exit", group=JOURNEYS_GROUP, summary="Let a person leave a journey.",
            params=ExitParams, result=RequestResult, run=partial(_exit, journeys), method="POST",
            path="/v1/people/{id}/journeys/{name}/exit", scope="write",
            example=ExitParams(id="user_id:42", name="welcome"), refused=lambda result: not result.done,
        ),
        Operation(
            name="journeys_pause", group=JOURNEYS_GROUP, summary="Pause a journey, or one person in it.",
            params=PauseParams, result=PauseResult, run=partial(_pause, journeys), method="POST",
            path="/v1/journeys/{name}/pause", scope="write", example=PauseParams(name="welcome"),
        ),
        Operation(
            name="journeys_resume", relies_on=("people",), group=JOURNEYS_GROUP,
            summary="Resume a journey, or one person in it.",
            params=PauseParams, result=PauseResult, run=partial(_resume, journeys), method="POST",
            path="/v1/journeys/{name}/resume", scope="write", example=PauseParams(name="welcome"),
        ),
    ]  # fmt: skip
