"""What can be asked about webhooks: where they go, what was given up on, and to try that again."""

from __future__ import annotations

import re
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import Instant, instant
from threadline.capabilities.webhooks.definition import NAME, Destination
from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import Context, Operation
from threadline.kernel.outbox import DeadLetter, LaneState
from threadline.kernel.ports import WithDelivery, WithReader
from threadline.kernel.time import format_time

KIND = "webhook"
Name = Annotated[str, Meta(description="A destination's name.", min_length=1, max_length=64)]
Where = Annotated[str, Meta(description="Only those of this destination; empty: all.", max_length=64)]
_SHOWN_WHY_MAX = 500
_CURSOR = re.compile(r"[a-z0-9._-]{1,64}![0-9a-f]{16}\.[0-9a-f]{32}")

# --- destinations -----------------------------------------------------------------------------


class DestinationsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Asks for all of them."""


class DestinationLine(msgspec.Struct, kw_only=True):
    """A destination and how it stands."""

    name: str
    url: Annotated[str, Meta(description="Without its query, which may hold a secret.")]
    state: Annotated[
        str, Meta(description="`open`; `resting` while it is left alone; `testing` before it is believed; `stopped`.")
    ]
    since: Annotated[Instant | None, Meta(description="Since when it is stopped.")] = None
    until: Annotated[Instant | None, Meta(description="Until when it rests.")] = None
    why: Annotated[str, Meta(description="Why it is stopped.")] = ""
    waiting: Annotated[int, Meta(description="Calls that wait for it, of all workspaces; 1,000 is that or more.")]
    oldest: Annotated[Instant | None, Meta(description="When the first of them is due.")] = None


class DestinationList(msgspec.Struct, kw_only=True):
    """The declared destinations by name."""

    destinations: list[DestinationLine]


def _line(context: Context[object], state: LaneState) -> DestinationLine:
    standing = state.circuit
    resting = standing.rest_until > context.now
    return DestinationLine(
        name=state.lane.name,
        url=state.lane.destination.url.partition("?")[0],
        state="stopped" if standing.stopped_at else "resting" if resting else "testing" if standing.rests else "open",
        since=format_time(standing.stopped_at) if standing.stopped_at else None,
        until=format_time(standing.rest_until) if resting else None,
        why=standing.why,
        waiting=state.waiting,
        oldest=None if state.oldest is None else instant(state.oldest),
    )


def _destinations(context: Context[WithDelivery], params: DestinationsParams) -> DestinationList:
    states = context.engine.delivery.lanes()
    return DestinationList(
        destinations=[_line(context, state) for state in states if isinstance(state.lane.destination, Destination)]
    )


DESTINATIONS = Operation(
    name="webhooks_destinations",
    summary="List where webhooks go, whether they arrive, and how many wait.",
    params=DestinationsParams,
    result=DestinationList,
    run=_destinations,
    method="GET",
    path="/v1/webhooks/destinations",
    scope="admin",
    example=DestinationsParams(),
)


class StopParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which destination, and why."""

    name: Name
    why: Annotated[str, Meta(description="For whoever finds it stopped.", max_length=_SHOWN_WHY_MAX)] = ""


class StartParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which destination."""

    name: Name


class Changed(msgspec.Struct, kw_only=True):
    """Whether it stood otherwise before."""

    changed: bool


def _stop(context: Context[WithDelivery], params: StopParams) -> Changed:
    why = params.why or f"stopped by {context.source}"
    return Changed(changed=context.engine.delivery.stop(params.name, why))


def _start(context: Context[WithDelivery], params: StartParams) -> Changed:
    return Changed(changed=context.engine.delivery.start(params.name))


STOP = Operation(
    name="webhooks_stop",
    summary="Stop calls to a destination: what is due there is parked.",
    params=StopParams,
    result=Changed,
    run=_stop,
    method="POST",
    path="/v1/webhooks/destinations/{name}/stop",
    scope="admin",
    example=StopParams(name="crm", why="moves on Monday"),
)

START = Operation(
    name="webhooks_start",
    summary="Resume calls to a destination that was stopped, or is resting.",
    params=StartParams,
    result=Changed,
    run=_start,
    method="POST",
    path="/v1/webhooks/destinations/{name}/start",
    scope="admin",
    example=StartParams(name="crm"),
)

# --- parked -----------------------------------------------------------------------------------


class ParkedParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which page of the calls that were given up on."""

    destination: Where = ""
    cursor: Annotated[str, Meta(description="The `next` of the previous page. Opaque.", max_length=200)] = ""
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class ParkedCall(msgspec.Struct, kw_only=True):
    """A call that was given up on."""

    id: Annotated[str, Meta(description="The `webhook-id` of every attempt.")]
    destination: Annotated[str, Meta(description="Empty for an address in a rule.")]
    person: Annotated[str, Meta(description="The id of the person in whose thread it is told; empty if nobody has it.")]
    why: str
    parked_at: Instant
    attempts: int
    cause: Annotated[str, Meta(description="The id of the event because of which it is made.")]
    data: Annotated[dict[str, Any], Meta(description="What the rule wants told.")]
    last: Annotated[dict[str, Any], Meta(description="What the last attempt came to.")]


class ParkedPage(msgspec.Struct, kw_only=True):
    """Calls that were given up on, by destination and time, the oldest first."""

    calls: list[ParkedCall]
    next: Annotated[str, Meta(description="Where the next page begins; empty at the end.")] = ""


def _call(context: Context[WithReader], each: DeadLetter) -> ParkedCall:
    one = each.one
    person = context.engine.reader.by_thread(one.thread)
    return ParkedCall(
        id=one.id,
        destination=str(one.effect.data.get("destination", "")),
        person="" if person is None else person.id,
        why=each.why,
        parked_at=format_time(each.at),
        attempts=one.attempts,
        cause=one.cause,
        data=one.effect.data,
        last=each.outcome,
    )


def _page(context: Context[WithDelivery], params: ParkedParams | RedriveParams) -> list[DeadLetter]:
    if params.cursor and not _CURSOR.fullmatch(params.cursor):
        raise InvalidValue("this cursor did not come from an earlier page; pass `next` as it is")
    if params.destination and not NAME.fullmatch(params.destination):
        raise InvalidValue(f"{params.destination!r} is not a valid destination name")
    return context.engine.delivery.dead_letters(context.workspace, params.destination, params.cursor, params.limit)


class Needs(WithReader, WithDelivery, Protocol):
    """What is needed here of the engine."""


def _parked(context: Context[Needs], params: ParkedParams) -> ParkedPage:
    found = _page(context, params)
    calls = [_call(context, each) for each in found if each.one.effect.kind == KIND]
    return ParkedPage(calls=calls, next=found[-1].cursor if len(found) == params.limit else "")


PARKED = Operation(
    name="webhooks_parked",
    summary="List calls that were given up on, and why.",
    params=ParkedParams,
    result=ParkedPage,
    run=_parked,
    method="GET",
    path="/v1/webhooks/parked",
    scope="admin",
    example=ParkedParams(),
)


class RedriveParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which calls are to be made after all."""

    destination: Where = ""
    ids: Annotated[list[str], Meta(description="Only these; empty: all.", max_length=500)] = []
    cursor: Annotated[str, Meta(description="The `next` of the previous page. Opaque.", max_length=200)] = ""
    limit: Annotated[int, Meta(description="Parked calls that are looked at.", ge=1, le=500)] = 100


class Redriven(msgspec.Struct, kw_only=True):
    """How many are due again."""

    redriven: int
    next: Annotated[str, Meta(description="Where to go on, for the rest; empty at the end.")] = ""


def _redrive(context: Context[WithDelivery], params: RedriveParams) -> Redriven:
    looked_at = _page(context, params)
    wanted = set(params.ids)
    found = [each for each in looked_at if each.one.effect.kind == KIND and (not wanted or each.one.id in wanted)]
    done = context.engine.delivery.redrive(found, context.source)
    return Redriven(redriven=done, next=looked_at[-1].cursor if len(looked_at) == params.limit else "")


REDRIVE = Operation(
    name="webhooks_redrive",
    summary="Make calls that were given up on due again.",
    params=RedriveParams,
    result=Redriven,
    run=_redrive,
    method="POST",
    path="/v1/webhooks/redrive",
    scope="admin",
    example=RedriveParams(destination="crm"),
)
