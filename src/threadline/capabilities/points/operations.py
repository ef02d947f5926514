"""Points as callers ask for them: balance and ledger of a person, spending, correcting."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import (
    Cursor,
    EventId,
    Instant,
    PersonRef,
    instant,
    read_cursor,
    write_cursor,
)
from threadline.capabilities.events.instants import AsOf, then
from threadline.capabilities.events.wishes import derived_key, wish
from threadline.capabilities.points.events import (
    AMOUNT_MAX,
    LEDGER,
    POINTS_ADJUSTED,
    POINTS_EARNED,
    POINTS_SPEND_REQUESTED,
    amount_of,
    is_trusted,
)
from threadline.capabilities.points.policy import SOURCE
from threadline.kernel.errors import Conflict, InvalidValue, NotFound
from threadline.kernel.event import Identifier, Recorded
from threadline.kernel.operation import Context, Operation
from threadline.kernel.ports import Person, WithCatalogue, WithLog, WithReader, WithRecorder

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

# --- reading --------------------------------------------------------------------------------


class PointsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose points, and at which instant."""

    id: PersonRef
    as_of: AsOf = None


class Expiry(msgspec.Struct, kw_only=True):
    """Points that will be gone if they are not spent before."""

    at: Instant
    points: int


class PointsDay(msgspec.Struct, kw_only=True):
    """What the ledger says of one day."""

    day: Annotated[str, Meta(description="2026-03-01, in the calendar of the definitions.")]
    earned: int
    spent: int
    adjusted: int
    expired: int


class Anomaly(msgspec.Struct, kw_only=True):
    """Something that looked wrong."""

    kind: str
    of: Annotated[str, Meta(description="The hour or the day in which it was noticed.")]
    at: Instant


class PointsView(msgspec.Struct, kw_only=True):
    """A person's points at one position."""

    person: str
    position: int
    as_of: Annotated[Instant | None, Meta(description="The instant that was asked for; null for the present.")] = None
    balance: Annotated[int, Meta(description="What can be spent then.")]
    earned: Annotated[int, Meta(description="All points ever earned, whatever became of them.")]
    spent: int
    adjusted: Annotated[int, Meta(description="The sum of all corrections; may be negative.")]
    expired: int
    expires_next: Expiry | None
    days: Annotated[list[PointsDay], Meta(description="Days with lines, the newest first.")]
    anomalies: list[Anomaly]


class Reads(WithReader, WithCatalogue, Protocol):
    """What reading points needs of the engine."""


class Needs(Reads, WithLog, WithRecorder, Protocol):
    """What changing points needs of the engine."""


def points_view(context: Context[Reads], person: Person, now: int) -> dict[str, Any]:
    """What the projection says of a person. Raises `NotFound` where there are no points."""
    _must_be_on(context)
    view: dict[str, Any] = context.engine.reader.views(person, now, names=["points"])["points"]
    return view


def _must_be_on(context: Context[WithCatalogue]) -> None:
    if not context.engine.catalogue.has("points"):
        raise NotFound("points are switched off by `points: false`")


def _points(context: Context[Reads], params: PointsParams) -> PointsView:
    _must_be_on(context)
    asked = then(context, params.id, params.as_of)
    told = {"as_of": None if asked.as_of is None else asked.shown_at, **asked.views("points")["points"]}
    return msgspec.convert({"person": asked.person.id, "position": asked.person.position, **told}, PointsView)


POINTS = Operation(
    name="points",
    summary="Show a person's points: balance, lifetime earned, the newest days, and anomalies.",
    params=PointsParams,
    result=PointsView,
    run=_points,
    method="GET",
    path="/v1/people/{id}/points",
    example=PointsParams(id="user_id:42"),
)


class LedgerParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose ledger, and which page of it."""

    id: PersonRef
    after: Cursor = ""
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class LedgerLine(msgspec.Struct, kw_only=True):
    """One line: an event and what it adds to the balance."""

    id: EventId
    type: str
    points: Annotated[int, Meta(description="What it adds; negative for what was spent, taken or has expired.")]
    occurred_at: Instant
    cause: Annotated[str, Meta(description="The event that made it; for an adjustment empty.")]
    rule: Annotated[str, Meta(description="By which rule it was earned.")] = ""
    table: Annotated[str, Meta(description="The version of the table with that rule.")] = ""
    reason: str = ""


class LedgerPage(msgspec.Struct, kw_only=True):
    """Lines, the newest first."""

    person: str
    lines: list[LedgerLine]
    next: Annotated[str, Meta(description="Where the next page begins; empty at the end.")] = ""


def _ledger(context: Context[WithReader], params: LedgerParams) -> LedgerPage:
    engine = context.engine
    person = engine.reader.person(context.workspace, params.id)
    after = read_cursor(params.after)
    lines: list[LedgerLine] = []
    for recorded in engine.reader.all_events(person, types=LEDGER, after=after, reverse=True, size=params.limit):
        if is_trusted(recorded.event) and (points := amount_of(recorded.event)) is not None:
            lines.append(_line(recorded, points))
            if len(lines) == params.limit:
                return LedgerPage(person=person.id, lines=lines, next=write_cursor(recorded))
    return LedgerPage(person=person.id, lines=lines)


def _line(recorded: Recorded, points: int) -> LedgerLine:
    event = recorded.event
    said = {name: event.properties.get(name) for name in ("rule", "table", "reason")}
    texts = {name: value for name, value in said.items() if isinstance(value, str)}
    adds = event.type in (POINTS_EARNED, POINTS_ADJUSTED)
    return LedgerLine(
        id=recorded.id, type=event.type, points=points if adds else -points, occurred_at=instant(event.occurred_at),
        cause=recorded.cause, **texts,
    )  # fmt: skip


LEDGER_PAGE = Operation(
    name="points_ledger",
    summary="List the lines of a person's ledger of points, the newest first.",
    params=LedgerParams,
    result=LedgerPage,
    run=_ledger,
    method="GET",
    path="/v1/people/{id}/points/ledger",
    example=LedgerParams(id="user_id:42", limit=20),
)

# --- moving points --------------------------------------------------------------------------


class SpendParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who spends how much."""

    id: PersonRef
    points: Amount
    request: Request
    reason: Reason = ""


class SpendResult(msgspec.Struct, kw_only=True):
    """What came of the wish; asked again, the same."""

    person: str
    status: Literal["spent", "refused"]
    points: Annotated[int, Meta(description="How many were asked for.")]
    balance: Annotated[int, Meta(description="What was there when it was decided, after what was spent.")]
    event: Annotated[EventId, Meta(description="The line of the ledger, or the refusal.")]


def _spend(context: Context[Needs], params: SpendParams) -> SpendResult:
    person, id = _tell(context, params.id, POINTS_SPEND_REQUESTED, params.points, params.request, params.reason)
    for outcome in ("spent", "refused"):
        answer: Recorded | None = context.engine.log.of_key(context.workspace, SOURCE, f"{id}/{outcome}")
        if answer is not None:
            balance = answer.event.properties["balance"]
            return SpendResult(
                person=person, status=outcome, points=params.points, balance=balance, event=answer.id
            )  # fmt: skip
    raise NotFound("points were switched off by `points: false` when this was asked for, so nothing came of it")


def _tell(context: Context[Needs], ref: str, type: str, points: int, request: str, reason: str) -> tuple[str, str]:
    """Record the wish; (person id, event id). Sent again it is the same event, whoever has been merged meanwhile."""
    _must_be_on(context)
    engine = context.engine
    person = engine.reader.person(context.workspace, ref)
    properties = {"points": points, **({"reason": reason} if reason else {})}
    # The operation vouches for it: what a producer tells under this type is kept and moves nothing.
    event = wish(context, _named(context, person, ref), type, properties, derived_key(type, request), vouched=True)
    receipt = engine.recorder.record([event], known=True)[0]
    if receipt.status == "conflict":
        raise Conflict(f"the request {request!r} was used for something else; give this one its own name")
    if receipt.status == "rejected":
        raise InvalidValue(receipt.message)
    return receipt.person or person.id, receipt.id


def _named(context: Context[WithCatalogue], person: Person, ref: str) -> Identifier:
    """The identifier under which the caller knows the person: it stays the same through merges and splits."""
    if ref in person.identifiers:
        own: Identifier = person.identifiers[ref]
        return own
    kind, colon, value = ref.partition(":")
    named = context.engine.catalogue.rules.normalise(Identifier(kind, value)) if colon else None
    if named is None:
        # An id from before a merge of merges: the person's own founder stands for it.
        named = person.identifiers[person.id]
    found: Identifier = named
    return found


SPEND = Operation(
    name="points_spend",
    summary="Spend a person's points, if there are enough; decided inside the commit.",
    params=SpendParams,
    result=SpendResult,
    run=_spend,
    method="POST",
    path="/v1/people/{id}/points/spend",
    scope="write",
    example=SpendParams(id="user_id:42", points=50, request="order-1001", reason="free shipping"),
    refused=lambda result: result.status == "refused",
)


class AdjustParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
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


def _adjust(context: Context[Needs], params: AdjustParams) -> AdjustResult:
    if params.points == 0:
        raise InvalidValue("`points` must not be 0")
    _, id = _tell(context, params.id, POINTS_ADJUSTED, params.points, params.request, params.reason)
    person = context.engine.reader.person(context.workspace, params.id)
    balance = points_view(context, person, context.engine.recorder.now())["balance"]
    return AdjustResult(person=person.id, points=params.points, balance=balance, event=id)


ADJUST = Operation(
    name="points_adjust",
    summary="Give a person points or take some, with a reason.",
    params=AdjustParams,
    result=AdjustResult,
    run=_adjust,
    method="POST",
    path="/v1/people/{id}/points/adjust",
    scope="admin",
    example=AdjustParams(id="user_id:42", points=25, request="ticket-7", reason="the app was down on 2 March"),
)
