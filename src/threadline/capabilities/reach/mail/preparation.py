"""Right before a mail goes: whether it may, what it says for this person now, and the claim of its occurrence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from threadline.capabilities.reach.consent.refusal import refusals
from threadline.capabilities.reach.mail.definition import KIND, Cap, Sender
from threadline.capabilities.reach.mail.events import MAIL_SENT, MAIL_SKIPPED
from threadline.capabilities.reach.mail.message import Message, address_of, message_of
from threadline.capabilities.reach.mail.order import (
    BELONGS_TO,
    Cause,
    Order,
    links_of,
    mailing_of,
    order_of,
    with_context,
)
from threadline.capabilities.reach.mail.projection import WARM_UP, marketing_sent, warm_up_partition
from threadline.capabilities.reach.mail.templates import Rendered, TemplateFailed, Templates, render
from threadline.kernel.calendar import zone_of_person
from threadline.kernel.errors import InvalidSetting, InvalidValue, NotFound
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import IndexRows, Ports
from threadline.kernel.preparation import Answer, DueEffect, Postponed, Preparation, Prepared
from threadline.kernel.sender import EFFECT_PARKED, Outcome
from threadline.kernel.store import beyond
from threadline.kernel.time import DAY, SECOND

TEMPLATE_FAILED = "template_failed"
"""The reason of a mail that could not be made; it is a dead letter, sent again once its template is right."""
_DAYS_COUNTED = 100


def mail_preparation(templates: Templates) -> Preparation:
    """Makes the mails of these templates: all orders, then all of them rendered at once, then their messages."""
    counts = WarmUpCounts()

    def prepare(ports: Ports, due: Sequence[DueEffect]) -> list[Answer]:
        ordered = [_ordered(templates, *effect) for effect in due]
        pairs = list(zip(ordered, due, strict=True))
        reasons = iter(
            refusals(ports, [mailing_of(order, effect.view) for order, effect in pairs if isinstance(order, Order)])
        )
        ready = [
            order if isinstance(order, Outcome) else allowed(ports, order, effect, next(reasons))
            for order, effect in pairs
        ]
        orders = [order for order in ready if isinstance(order, Order)]
        rendered = iter(render(ports.confined, [(order.compiled, order.context) for order in orders]))
        return [
            _made(ports, order, next(rendered), effect.pending) if isinstance(order, Order) else order
            for order, effect in zip(ready, due, strict=True)
        ]

    def allowed(ports: Ports, order: Order, due: DueEffect, reason: str) -> Order | Postponed | Outcome:
        view, pending = due
        if reason:
            return _skipped(pending, reason)
        try:
            if postponed := _postponed(templates, counts, ports, view, order, pending):
                return postponed
            cause = Cause(ports, order.workspace, pending.effect.data.get("event") or pending.cause)
            return with_context(order, view, cause, links_of(ports, view, order))
        except InvalidSetting:
            raise  # an operator puts it right, and then it is made again
        except (InvalidValue, NotFound) as error:
            return _failed(pending, error)

    return Preparation(KIND, prepare)


def _made(ports: Ports, order: Order, rendered: Rendered | TemplateFailed, pending: PendingEffect) -> Answer:
    data = pending.effect.data
    try:
        message = message_of(ports, order, rendered)
    except InvalidSetting:
        raise  # as above
    except (InvalidValue, NotFound) as error:
        return _failed(pending, error)
    return _prepared(message, str(data.get("occurrence") or pending.id), str(data.get("event") or ""))


def _ordered(templates: Templates, view: PersonView, pending: PendingEffect) -> Order | Outcome:
    data = pending.effect.data
    try:
        order = order_of(templates, templates.named(str(data.get("template", ""))), view, pending.id, data)
    except (InvalidValue, NotFound) as error:
        return _failed(pending, error)
    if address_of(order.address) is None:
        return _skipped(pending, "invalid_address" if order.address else "no_address")
    return order


def _postponed(
    templates: Templates, counts: WarmUpCounts, ports: Ports, view: PersonView, order: Order, pending: PendingEffect
) -> Postponed | Outcome | None:
    """When it may go, if that is not now; the outcome if that is too late for it."""
    mail, at = templates.mail, view.at
    if not order.transactional:
        capped = capped_until(mail.caps, marketing_sent(view.view("mail") or {}), at) if mail.caps else None
        if capped is not None and capped > pending.first_due + mail.give_up_seconds * SECOND:
            return _skipped(pending, "frequency_cap")
        if capped is not None:
            return Postponed(until=capped, why="frequency_cap")
        zone = zone_of_person(view.view("profile"), mail.timezone)
        if mail.quiet_hours is not None and (quiet := mail.quiet_hours.until(zone, at)) is not None:
            return Postponed(until=quiet, why="quiet_hours")
    warm = counts.until(ports.rows, order.workspace, order.sender, at)
    return None if warm is None else Postponed(until=warm, why="warm_up")


def _prepared(message: Message, occurrence: str, event: str) -> Prepared:
    order, record = message.order, message.record | ({"event": event} if event else {})
    return Prepared(
        data={
            "message": message.octets,
            "from": message.envelope,
            "to": message.recipient.mailbox,
            "smtputf8": not (message.octets.isascii() and message.envelope.isascii()),
            "sender": order.sender.id,
            "domain": order.sender.id_domain,
            "workspace": order.workspace,
            "record": record,
        },
        claims=(f"mail/{short_hash(occurrence, message.recipient.mailbox.casefold())}",),
        taken=_outcome(order.id, record, "duplicate"),
        done=Outcome(type=MAIL_SENT, properties=record),
    )


def _skipped(pending: PendingEffect, reason: str) -> Outcome:
    return _outcome(pending.id, pending.effect.data, reason)


def _outcome(id: str, data: Mapping[str, Any], reason: str) -> Outcome:
    return Outcome(type=MAIL_SKIPPED, properties={**_named(id, data), "reason": reason})


def _failed(pending: PendingEffect, error: Exception) -> Outcome:
    properties = {**_named(pending.id, pending.effect.data), "reason": TEMPLATE_FAILED, "details": str(error)[:1_000]}
    return Outcome(type=EFFECT_PARKED, properties=properties, parked=f"{TEMPLATE_FAILED}: {error}"[:500])


def _named(id: str, data: Mapping[str, Any]) -> dict[str, Any]:
    names = ("template", "topic", "transactional", *BELONGS_TO)
    return {"message": id, **{name: data[name] for name in names if data.get(name) not in (None, "")}}


# --- when it may go ------------------------------------------------------------------------------


def capped_until(caps: Iterable[Cap], sent: Sequence[int], at: int) -> int | None:
    """When all caps allow another mail, if one forbids it now; ``sent``: the instants of mails, in any order."""
    ordered = sorted(sent, reverse=True)
    ends = [ordered[cap.mails - 1] + cap.per for cap in caps if len(ordered) >= cap.mails]
    latest = max(ends, default=at)
    return latest if latest > at else None


class WarmUpCounts:
    """Mails of new domains by day. Rows are read once: a day only grows, and each count is replaced as a whole."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, str]] = {}

    def until(self, rows: IndexRows, workspace: str, sender: Sender, at: int) -> int | None:
        """The next day, if the domain of a sender has sent what it may today; None: it may send."""
        most = sender.warm_up.most(at) if sender.warm_up is not None else None
        if most is None:
            return None
        day = at // DAY
        partition = warm_up_partition(workspace, sender.id_domain, day)
        count, last = self._counts.get(partition, (0, ""))
        while page := rows.read(WARM_UP, partition, last, None, PAGE_ITEMS_MAX):
            count, last = count + len(page), beyond(page[-1].sort)
        if len(self._counts) >= _DAYS_COUNTED:
            self._counts.clear()
        self._counts[partition] = (count, last)
        return (day + 1) * DAY if count >= most else None
