"""What was sent to other systems and what they answered: each attempt, and sending one again."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.events.parameters import Next, Page, checked_cursor, next_of
from threadline.capabilities.foundation.webhooks.operations import WEBHOOKS_GROUP
from threadline.kernel.disclosure import FREE, NOT_PERSONAL
from threadline.kernel.errors import Conflict
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Params, operation
from threadline.kernel.outbox import Attempt

_ID = re.compile(r"[0-9a-f]{16}\.[0-9a-f]{32}\.[0-9]{5,}")
Id = Annotated[str, Meta(description="The id of a delivery.", pattern="^[0-9a-f]{16}[.][0-9a-f]{32}[.][0-9]{5,}$")]
State = Literal["delivered", "failed"]
_STATE = {"delivered": True, "failed": False}


class DeliveriesParams(Page, kw_only=True):
    """Which deliveries."""

    destination: Annotated[str, Meta(description="Only those to this destination.", max_length=64)] = ""
    state: Annotated[State | None, Meta(description="Only those that arrived, or only those that did not.")] = None


@key_fields("at", "destination", "state", "status", "problem", "id")
class DeliveryLine(msgspec.Struct, kw_only=True):
    """One attempt to call another system."""

    id: str
    at: Instant
    destination: Annotated[str, Meta(description="`url.` and a number: of an address that a rule names itself.")]
    url: Annotated[str, Meta(description="Without its query, which may hold a secret.")]
    state: State
    status: Annotated[int, Meta(description="Of the answer; 0: there was none.")]
    problem: Annotated[str, Meta(description="Why there was no answer.")] = ""
    milliseconds: int
    attempt: Annotated[int, Meta(description="Which attempt of this call it was, from 1 on.")]
    next_at: Annotated[Instant | None, Meta(description="When it was to be tried again by itself.")] = None
    effect: Annotated[str, Meta(description="The id of the call, which every attempt sends as `webhook-id`.")]
    cause: Annotated[str, Meta(description="The id of the event because of which.")]
    person: Annotated[str, Meta(description="The id of the person; empty if nobody has the thread.")]


class DeliveryPage(msgspec.Struct, kw_only=True):
    """Deliveries, the newest first."""

    deliveries: list[DeliveryLine]
    next: Next = ""


class Delivery(DeliveryLine, kw_only=True):
    """One attempt with its request and answer."""

    method: Annotated[str, NOT_PERSONAL]
    headers: Annotated[dict[str, str], Meta(description="As sent; secrets are hidden.")]
    body: Annotated[str, Meta(description="The beginning of what was sent, 8,000 bytes at most."), FREE]
    answer: Annotated[str, Meta(description="The beginning of an answer that is not a success."), FREE]


def _line(context: Context, attempt: Attempt) -> dict[str, object]:
    pending, sent = attempt.pending, attempt.exchange
    person = context.engine.reader.by_thread(pending.thread)
    return {
        "id": attempt.id,
        "at": instant(attempt.at),
        "destination": attempt.queue,
        "url": sent.url,
        "state": "delivered" if attempt.is_delivered else "failed",
        "status": sent.status,
        "problem": sent.problem,
        "milliseconds": sent.milliseconds,
        "attempt": pending.attempts + 1,
        "next_at": instant(attempt.next_at) if attempt.next_at else None,
        "effect": pending.id,
        "cause": pending.cause,
        "person": "" if person is None else person.id,
    }


@operation(
    "GET /v1/webhooks/deliveries", WEBHOOKS_GROUP, scope="admin", example=DeliveriesParams(state="failed", limit=20)
)
def deliveries(context: Context, params: DeliveriesParams) -> DeliveryPage:
    """List attempts to call other systems, the newest first: the last 1,000 that arrived and the last 1,000 that did
    not, of two weeks."""
    before = checked_cursor(params.cursor, _ID)
    delivered = None if params.state is None else _STATE[params.state]
    attempts = context.engine.delivery.attempts(context.workspace, params.destination, delivered, before, params.limit)
    lines = [msgspec.convert(_line(context, attempt), DeliveryLine) for attempt in attempts]
    return DeliveryPage(deliveries=lines, next=next_of(attempts, params.limit, lambda attempt: attempt.id))


class DeliveryParams(Params, kw_only=True):
    """Which delivery."""

    id: Id


_EXAMPLE = DeliveryParams(id="8006517a5f8c4000.0123456789abcdef0123456789abcdef.00000")


@operation("GET /v1/webhooks/deliveries/{id}", WEBHOOKS_GROUP, scope="admin", example=_EXAMPLE)
def delivery(context: Context, params: DeliveryParams) -> Delivery:
    """Show what was sent in an attempt, and what was answered."""
    attempt = context.engine.delivery.attempt(context.workspace, params.id)
    sent = attempt.exchange
    more = {"method": sent.method, "headers": sent.headers, "body": sent.body, "answer": sent.answer}
    return msgspec.convert({**_line(context, attempt), **more}, Delivery)


class SentAgain(msgspec.Struct, kw_only=True):
    """A call that is due now."""

    effect: str


@operation(
    "POST /v1/webhooks/deliveries/{id}/send-again",
    WEBHOOKS_GROUP,
    done=("Sent the delivery {id} again",),
    scope="admin",
    example=_EXAMPLE,
)
def send_again(context: Context, params: DeliveryParams) -> SentAgain:
    """Send the call of a delivery again, now: of one that waits, was given up on, or has arrived."""
    attempt = context.engine.delivery.attempt(context.workspace, params.id)
    if not context.engine.delivery.send_again(attempt, context.source):
        raise Conflict("somebody else has just sent it again, or it is being sent; look again")
    return SentAgain(effect=attempt.pending.id)
