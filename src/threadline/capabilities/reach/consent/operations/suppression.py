"""Suppressed addresses: list them, look one up, add, import and lift."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant
from threadline.capabilities.foundation.events.parameters import Next, Page, checked_cursor, page_of
from threadline.capabilities.foundation.events.requests import WISHES, derived_key, wish
from threadline.capabilities.reach.consent.addresses import KnownAddress
from threadline.capabilities.reach.consent.events import ADDRESS_SUPPRESSED, ADDRESS_UNSUPPRESSED, NOTE_LENGTH_MAX
from threadline.capabilities.reach.consent.operations import SUPPRESSION_GROUP, Address
from threadline.capabilities.reach.consent.recording import after, identifier_for
from threadline.capabilities.reach.consent.rows import Suppression, newest_suppression, suppressions
from threadline.kernel.address import checked_address
from threadline.kernel.disclosure import PERSONAL, not_personal
from threadline.kernel.errors import InvalidAddress, NotFound, Unavailable
from threadline.kernel.event import Event
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import SUPPRESSIONS_PER_CALL_MAX
from threadline.kernel.operation import Context, Params, operation

_CURSOR = re.compile(r"[0-9a-f]{32}")
_RECORDED_AT_ONCE = 500
Reason = Annotated[
    Literal["bounce", "complaint", "manual", "import"], Meta(description="Why the address gets no mail any more.")
]
Note = Annotated[str, Meta(description="What else is known of it; kept with the address.", max_length=NOTE_LENGTH_MAX)]


@key_fields("address", "reason", "suppressed_at")
@not_personal
class SuppressedAddress(msgspec.Struct, kw_only=True):
    """An address that gets no mail of any kind."""

    address: Annotated[str, PERSONAL]
    reason: str
    suppressed_at: Instant
    by: str
    note: Annotated[str, PERSONAL]
    event: Annotated[str, Meta(description="The id of the event that says so; empty if its person was erased since.")]


def _shown(suppression: Suppression) -> SuppressedAddress:
    return SuppressedAddress(
        address=suppression.address,
        reason=suppression.reason,
        suppressed_at=suppression.at,
        by=suppression.by,
        note=suppression.note,
        event=suppression.event,
    )


def _suppression_of(context: Context, address: str) -> Suppression:
    suppression = newest_suppression(context.engine.store, context.workspace, address)
    if suppression is None or suppression.lifted:
        raise NotFound(f"{address} is not suppressed")
    return suppression


def _event(context: Context, type: str, address: str, before: Suppression | None, **details: str) -> Event:
    properties: dict[str, Any] = {"address": address, "by": context.source} | {k: v for k, v in details.items() if v}
    # What was there before names it: asked for twice at once, it is recorded once.
    key = derived_key(type, address, "" if before is None else before.event or before.at)
    key = context.engine.log.unerased_key(context.workspace, WISHES, key)
    identifier = identifier_for(context.engine, KnownAddress(context.workspace, address))
    event = wish(context, identifier, type, properties, key, vouched=True)
    return event if before is None else after(before.at, event)


# --- reading ------------------------------------------------------------------------------------


class SuppressionPage(msgspec.Struct, kw_only=True):
    """Suppressed addresses, in a stable order that is not that of the alphabet."""

    addresses: list[SuppressedAddress]
    next: Next = ""


class ListParams(Page, kw_only=True):
    """Which page of the suppressed addresses."""


@operation("GET /v1/suppression", SUPPRESSION_GROUP, example=ListParams(limit=50))
def list_(context: Context, params: ListParams) -> SuppressionPage:
    """List the addresses that get no mail of any kind."""
    rows = suppressions(context.engine.store, context.workspace, checked_cursor(params.cursor, _CURSOR))
    page, following = page_of(rows, params.limit, lambda row: row[0])
    return SuppressionPage(addresses=[_shown(suppression) for _, suppression in page], next=following)


class AddressParams(Params, kw_only=True):
    """Which address."""

    address: Address


@operation("GET /v1/suppression/{address}", SUPPRESSION_GROUP, example=AddressParams(address="ada@example.com"))
def get(context: Context, params: AddressParams) -> SuppressedAddress:
    """Show why an address gets no mail."""
    return _shown(_suppression_of(context, checked_address(params.address, "address")))


# --- writing ------------------------------------------------------------------------------------


class AddParams(AddressParams, kw_only=True):
    """Which address gets no mail any more, and why."""

    reason: Reason = "manual"
    note: Note = ""


@operation(
    "POST /v1/suppression",
    SUPPRESSION_GROUP,
    done=("Suppressed the address {address}",),
    scope="write",
    example=AddParams(address="ada@example.com", note="asked by phone"),
)
def add(context: Context, params: AddParams) -> SuppressedAddress:
    """Send no more mail of any kind to an address."""
    address = checked_address(params.address, "address")
    before = newest_suppression(context.engine.store, context.workspace, address)
    if before is None or before.lifted:
        _record(context, [_event(context, ADDRESS_SUPPRESSED, address, before, reason=params.reason, note=params.note)])
    return _shown(_suppression_of(context, address))


class LiftParams(AddressParams, kw_only=True):
    """Which address may get mail again, and why."""

    reason: Annotated[
        str, Meta(description="Why; kept in the event.", min_length=1, max_length=NOTE_LENGTH_MAX, pattern=r"\S")
    ]


@not_personal
class LiftResult(msgspec.Struct, kw_only=True):
    """The address, which may get mail again, and why it could not before."""

    address: Annotated[str, PERSONAL]
    was: str


@operation(
    "POST /v1/suppression/{address}/lift",
    SUPPRESSION_GROUP,
    done=("Let the address {address} get mail again",),
    scope="admin",
    example=LiftParams(address="ada@example.com", reason="the mailbox is back, ticket 7"),
)
def lift(context: Context, params: LiftParams) -> LiftResult:
    """Let an address get mail again, with a reason."""
    suppression = _suppression_of(context, checked_address(params.address, "address"))
    _record(context, [_event(context, ADDRESS_UNSUPPRESSED, suppression.address, suppression, reason=params.reason)])
    return LiftResult(address=suppression.address, was=suppression.reason)


class ImportParams(Params, kw_only=True):
    """Addresses of a list that another system has kept."""

    addresses: Annotated[
        list[Annotated[str, Meta(max_length=1_024)]], Meta(min_length=1, max_length=SUPPRESSIONS_PER_CALL_MAX)
    ]
    reason: Reason = "import"
    note: Note = ""


@key_fields("number", "text", "reason")
class WrongAddress(msgspec.Struct, kw_only=True):
    """An entry of the list that is no address."""

    number: Annotated[int, Meta(description="Its place in the list, from 1.")]
    text: str
    reason: Annotated[str, Meta(description="What is wrong with it.")] = ""


class ImportResult(msgspec.Struct, kw_only=True):
    """The outcome of each address. Imported again, all of them are there already."""

    added: int
    already: Annotated[int, Meta(description="Were suppressed before, or stand in the list twice.")]
    wrong: list[WrongAddress]


@operation(
    "POST /v1/suppression-import",
    SUPPRESSION_GROUP,
    done=("Suppressed the addresses of a list",),
    scope="write",
    example=ImportParams(addresses=["ada@example.com", "bob@example.com"]),
)
def import_(context: Context, params: ImportParams) -> ImportResult:
    """Suppress the addresses of another system's list."""
    normal: list[str] = []
    wrong: list[WrongAddress] = []
    for number, text in enumerate(params.addresses, 1):
        try:
            normal.append(checked_address(text, "addresses"))
        except InvalidAddress as error:
            wrong.append(WrongAddress(number=number, text=text[:100], reason=str(error)))
    events = []
    for address in dict.fromkeys(normal):
        before = newest_suppression(context.engine.store, context.workspace, address)
        if before is None or before.lifted:
            details = {"reason": params.reason, "note": params.note}
            events.append(_event(context, ADDRESS_SUPPRESSED, address, before, **details))
    _record(context, events)
    return ImportResult(added=len(events), already=len(normal) - len(events), wrong=wrong)


def _record(context: Context, events: Iterable[Event]) -> None:
    given = list(events)
    for start in range(0, len(given), _RECORDED_AT_ONCE):
        for receipt in context.engine.recorder.record(given[start : start + _RECORDED_AT_ONCE], known=True):
            if receipt.status == "rejected":
                raise Unavailable(f"an address could not be recorded: {receipt.message}")
