"""Spending and adjusting points."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import EventId, PersonRef
from threadline.capabilities.foundation.events.requests import derived_key, wish
from threadline.capabilities.profile.points.events import AMOUNT_MAX, POINTS_ADJUSTED, POINTS_SPEND_REQUESTED
from threadline.capabilities.profile.points.operations import POINTS_GROUP
from threadline.capabilities.profile.points.operations.balance import must_be_on, points_view
from threadline.capabilities.profile.points.policy import SOURCE
from threadline.kernel.errors import Conflict, InvalidValue, NotFound
from threadline.kernel.event import Identifier, Recorded, identifier_named
from threadline.kernel.operation import Context, Params, operation
from threadline.kernel.ports import Person

Amount = Annotated[int, Meta(ge=1, le=AMOUNT_MAX)]
Reason = Annotated[str, Meta(description="For what, in the words of the caller; kept in the ledger.", max_length=500)]
Request = Annotated[
    str,
    Meta(
        description="Names this call. Repeating it gives the first answer and moves no points. Required.",
        min_length=1,
        max_length=100,
    ),
]


class SpendParams(Params, kw_only=True):
    """Who spends how much."""

    id: PersonRef
    points: Amount
    request: Request
    reason: Reason = ""


class SpendResult(msgspec.Struct, kw_only=True):
    """The outcome of the wish; asked again, the same."""

    person: str
    status: Literal["spent", "refused"]
    points: Annotated[int, Meta(description="How many were asked for.")]
    balance: Annotated[int, Meta(description="What was there when it was decided, after what was spent.")]
    event: Annotated[EventId, Meta(description="The line of the ledger, or the refusal.")]


@operation(
    "POST /v1/people/{id}/points/spend",
    POINTS_GROUP,
    done=("Spent {points} points",),
    scope="write",
    example=SpendParams(id="user_id:42", points=50, request="order-1001", reason="free shipping"),
    refused=lambda result: result.status == "refused",
)
def spend(context: Context, params: SpendParams) -> SpendResult:
    """Spend a person's points, if there are enough."""
    person, id = _record(context, params.id, POINTS_SPEND_REQUESTED, params.points, params.request, params.reason)
    for outcome in ("spent", "refused"):
        answer: Recorded | None = context.engine.log.of_key(context.workspace, SOURCE, f"{id}/{outcome}")
        if answer is not None:
            balance = answer.event.properties["balance"]
            return SpendResult(person=person, status=outcome, points=params.points, balance=balance, event=answer.id)
    raise NotFound(
        "this was asked for before, and its answer is not stored: it was erased by its age, or points were switched "
        "off by `points: false` then; no points are moved now"
    )


def _record(context: Context, ref: str, type: str, points: int, request: str, reason: str) -> tuple[str, str]:
    """Record the wish; (person id, event id). Sent again it is the same event, whoever has been merged meanwhile."""
    must_be_on(context)
    engine = context.engine
    person = engine.reader.person(context.workspace, ref)
    properties = {"points": points, **({"reason": reason} if reason else {})}
    # The operation vouches for it: an event of this type from a producer is recorded and moves nothing.
    event = wish(context, _named(context, person, ref), type, properties, derived_key(type, request), vouched=True)
    receipt = engine.recorder.record([event], known=True)[0]
    if receipt.status == "conflict":
        raise Conflict(f"the request {request!r} was used for something else; give this one its own name")
    if receipt.status == "rejected":
        raise InvalidValue(receipt.message)
    return receipt.person or person.id, receipt.id


def _named(context: Context, person: Person, ref: str) -> Identifier:
    """The identifier under which the caller knows the person: it stays the same through merges and splits."""
    if ref in person.identifiers:
        own: Identifier = person.identifiers[ref]
        return own
    threads = context.engine.catalogue.rules.threads(person.workspace, identifier_named(ref))
    # Under none, it is an id from before a merge of merges: the person's own founder stands for it.
    identifier: Identifier = person.identifiers[next((t for t in threads if t in person.heads), person.id)]
    return identifier


class AdjustParams(Params, kw_only=True):
    """Whose points are corrected, by how much, and why."""

    id: PersonRef
    points: Annotated[int, Meta(description="Negative takes points.", ge=-AMOUNT_MAX, le=AMOUNT_MAX)]
    request: Request
    reason: Annotated[str, Meta(description="Why; kept in the ledger.", min_length=1, max_length=500)]


class AdjustResult(msgspec.Struct, kw_only=True):
    """What the correction led to."""

    person: str
    points: int
    balance: Annotated[int, Meta(description="The balance now; a correction may leave it below 0.")]
    event: EventId


@operation(
    "POST /v1/people/{id}/points/adjust",
    POINTS_GROUP,
    done=("Changed the balance by {points} points",),
    scope="admin",
    example=AdjustParams(id="user_id:42", points=25, request="ticket-7", reason="the app was down on 2 March"),
)
def adjust(context: Context, params: AdjustParams) -> AdjustResult:
    """Give a person points or take some, with a reason."""
    if params.points == 0:
        raise InvalidValue("`points` must not be 0")
    _, id = _record(context, params.id, POINTS_ADJUSTED, params.points, params.request, params.reason)
    person = context.engine.reader.person(context.workspace, params.id)
    balance = points_view(context, person, context.engine.recorder.now())["balance"]
    return AdjustResult(person=person.id, points=params.points, balance=balance, event=id)
