"""Right before a message goes: whether it may, what it says for this person now, and the claim of its occurrence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from threadline.capabilities.reach.consent.refusal import Mailing, refusals
from threadline.capabilities.reach.messages.channel import BELONGS_TO, Channel, F, Made, W, Wanted
from threadline.capabilities.reach.messages.ledger import marketing_sent
from threadline.capabilities.reach.messages.limits import capped_until
from threadline.kernel.errors import InvalidSetting, InvalidValue, NotFound
from threadline.kernel.ids import short_hash
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import Answer, DueEffect, Postponed, Preparation, Prepared
from threadline.kernel.sender import EFFECT_PARKED, Outcome
from threadline.kernel.time import SECOND

TEMPLATE_FAILED = "template_failed"
"""The reason of a message that could not be made; it is a dead letter, sent again once its template is right."""


def preparation(channel: Channel[W, F]) -> Preparation:
    """Makes the messages of a channel: all orders, then all of them filled in at once, then the messages."""

    def prepare(ports: Ports, due: Sequence[DueEffect]) -> list[Answer]:
        orders = [_ordered(channel, *effect) for effect in due]
        asked = [
            mailing_of(order, effect.view)
            for order, effect in zip(orders, due, strict=True)
            if not isinstance(order, Outcome)
        ]
        reasons = iter(refusals(ports, asked))
        ready = [
            order if isinstance(order, Outcome) else _allowed(channel, ports, order, effect, next(reasons))
            for order, effect in zip(orders, due, strict=True)
        ]
        wanted = [order for order in ready if not isinstance(order, (Outcome, Postponed))]
        filled = iter(channel.fill(ports, wanted))
        return [
            order
            if isinstance(order, (Outcome, Postponed))
            else _made(channel, ports, order, next(filled), effect.pending)
            for order, effect in zip(ready, due, strict=True)
        ]

    return Preparation(channel.entries.channel, prepare)


def mailing_of(order: Wanted, view: PersonView) -> Mailing:
    """What consent is asked about it."""
    return Mailing(order.workspace, order.address, order.topic, order.transactional, view)


def _ordered(channel: Channel[W, F], view: PersonView, pending: PendingEffect) -> W | Outcome:
    try:
        order = channel.order(view, pending)
    except (InvalidValue, NotFound) as error:
        return _failed(pending, error)
    if not channel.is_address(order.address):
        return _skipped(channel, pending, "invalid_address" if order.address else "no_address")
    return order


def _allowed(channel: Channel[W, F], ports: Ports, order: W, due: DueEffect, reason: str) -> W | Postponed | Outcome:
    view, pending = due
    if reason:
        return _skipped(channel, pending, reason)
    try:
        postponed = None if order.transactional else _postponed(channel, view, pending)
        if postponed := postponed or channel.paced(ports, order, view.at):
            return postponed
        return channel.complete(ports, order, view, pending.effect.data.get("event") or pending.cause)
    except InvalidSetting:
        raise  # an operator puts it right, and then it is made again
    except (InvalidValue, NotFound) as error:
        return _failed(pending, error)


def _postponed(channel: Channel[W, F], view: PersonView, pending: PendingEffect) -> Postponed | Outcome | None:
    """When it may go, if that is not now; the outcome if that is too late for it."""
    limits, at = channel.limits, view.at
    capped = capped_until(limits.caps, marketing_sent(channel.entries, view), at) if limits.caps else None
    if capped is not None and capped > pending.first_due + limits.give_up_seconds * SECOND:
        return _skipped(channel, pending, "frequency_cap")
    if capped is not None:
        return Postponed(until=capped, why="frequency_cap")
    quiet = limits.quiet_until(view)
    return None if quiet is None else Postponed(until=quiet, why="quiet_hours")


def _made(channel: Channel[W, F], ports: Ports, order: W, filled: F, pending: PendingEffect) -> Answer:
    try:
        made = channel.make(ports, order, filled)
    except InvalidSetting:
        raise  # as above
    except (InvalidValue, NotFound) as error:
        return _failed(pending, error)
    return _prepared(channel, made, pending)


def _prepared(channel: Channel[W, F], made: Made, pending: PendingEffect) -> Prepared:
    data = pending.effect.data
    occurrence, event = str(data.get("occurrence") or pending.id), str(data.get("event") or "")
    record = {**made.record, **({"event": event} if event else {})}
    return Prepared(
        data={**made.data, "record": record},
        claims=(f"{channel.entries.channel}/{short_hash(occurrence, made.address)}",),
        taken=_outcome(channel, pending.id, record, "duplicate"),
        done=Outcome(type=channel.entries.sent, properties=record),
    )


def _skipped(channel: Channel[W, F], pending: PendingEffect, reason: str) -> Outcome:
    return _outcome(channel, pending.id, pending.effect.data, reason)


def _outcome(channel: Channel[W, F], id: str, data: Mapping[str, Any], reason: str) -> Outcome:
    return Outcome(type=channel.entries.skipped, properties={**_named(id, data), "reason": reason})


def _failed(pending: PendingEffect, error: Exception) -> Outcome:
    properties = {**_named(pending.id, pending.effect.data), "reason": TEMPLATE_FAILED, "details": str(error)[:1_000]}
    return Outcome(type=EFFECT_PARKED, properties=properties, parked=f"{TEMPLATE_FAILED}: {error}"[:500])


def _named(id: str, data: Mapping[str, Any]) -> dict[str, Any]:
    names = ("template", "topic", "transactional", *BELONGS_TO)
    return {"message": id, **{name: data[name] for name in names if data.get(name) not in (None, "")}}
