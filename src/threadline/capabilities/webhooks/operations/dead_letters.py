"""Calls that were given up on: list them, and make them due again."""

from __future__ import annotations

import re
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import Instant
from threadline.capabilities.events.parameters import Next, Page, checked_cursor, next_of
from threadline.capabilities.webhooks.definition import KIND, NAME
from threadline.capabilities.webhooks.operations import WEBHOOKS_GROUP
from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import Context, Operation
from threadline.kernel.outbox import DeadLetter
from threadline.kernel.ports import WithDelivery, WithReader
from threadline.kernel.time import format_time

Where = Annotated[str, Meta(description="Only those of this destination; empty: all.", max_length=64)]
_CURSOR = re.compile(r"[a-z0-9._-]{1,64}![0-9a-f]{16}\.[0-9a-f]{32}")


class ParkedParams(Page, kw_only=True, forbid_unknown_fields=True):
    """Which page of the calls that were given up on."""

    destination: Where = ""


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
    next: Next = ""


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
    cursor = checked_cursor(params.cursor, _CURSOR)
    if params.destination and not NAME.fullmatch(params.destination):
        raise InvalidValue(f"{params.destination!r} is not a valid destination name", param="destination")
    return context.engine.delivery.dead_letters(context.workspace, params.destination, cursor, params.limit)


class Needs(WithReader, WithDelivery, Protocol):
    """What is needed here of the engine."""


def _parked(context: Context[Needs], params: ParkedParams) -> ParkedPage:
    found = _page(context, params)
    calls = [_call(context, each) for each in found if each.one.effect.kind == KIND]
    return ParkedPage(calls=calls, next=next_of(found, params.limit, lambda each: each.cursor))


PARKED = Operation(
    name="webhooks_parked",
    group=WEBHOOKS_GROUP,
    summary="List calls that were given up on, and why.",
    params=ParkedParams,
    result=ParkedPage,
    run=_parked,
    method="GET",
    path="/v1/webhooks/parked",
    scope="admin",
    example=ParkedParams(limit=20),
)


class RedriveParams(Page, kw_only=True, forbid_unknown_fields=True):
    """Which calls are to be made after all."""

    destination: Where = ""
    ids: Annotated[list[str], Meta(description="Only these; empty: all.", max_length=500)] = msgspec.field(
        default_factory=list
    )


class Redriven(msgspec.Struct, kw_only=True):
    """How many are due again."""

    redriven: int
    next: Annotated[str, Meta(description="Where to go on, for the rest; empty at the end.")] = ""


def _redrive(context: Context[WithDelivery], params: RedriveParams) -> Redriven:
    looked_at = _page(context, params)
    wanted = set(params.ids)
    found = [each for each in looked_at if each.one.effect.kind == KIND and (not wanted or each.one.id in wanted)]
    done = context.engine.delivery.redrive(found, context.source)
    return Redriven(redriven=done, next=next_of(looked_at, params.limit, lambda each: each.cursor))


REDRIVE = Operation(
    name="webhooks_redrive",
    group=WEBHOOKS_GROUP,
    summary="Make calls that were given up on due again.",
    params=RedriveParams,
    result=Redriven,
    run=_redrive,
    method="POST",
    path="/v1/webhooks/redrive",
    scope="admin",
    example=RedriveParams(destination="crm"),
)
