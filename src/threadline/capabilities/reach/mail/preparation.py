"""Right before a mail goes: whether it may, what it says for this person now, and the claim of its occurrence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from threadline.capabilities.reach.consent.refusal import refusals
from threadline.capabilities.reach.mail.address import address_of
from threadline.capabilities.reach.mail.definition import KIND
from threadline.capabilities.reach.mail.effect import BELONGS_TO
from threadline.capabilities.reach.mail.events import MAIL_SENT, MAIL_SKIPPED
from threadline.capabilities.reach.mail.letter import Cause, Draft, Letter, draft, filled_in, write
from threadline.capabilities.reach.mail.links import links_of
from threadline.capabilities.reach.mail.order import Order, mailing_of, order_of
from threadline.capabilities.reach.mail.projection import marketing_sent
from threadline.capabilities.reach.mail.rendering import Rendered, TemplateFailed
from threadline.capabilities.reach.mail.templates import Templates
from threadline.capabilities.reach.mail.timing import WarmUpCounts, capped_until
from threadline.kernel.errors import InvalidSetting, InvalidValue, NotFound
from threadline.kernel.ids import short_hash
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import Answer, DueEffect, Postponed, Preparation, Prepared
from threadline.kernel.sender import EFFECT_PARKED, Outcome
from threadline.kernel.time import SECOND
from threadline.kernel.zones import zone_of_person

TEMPLATE_FAILED = "template_failed"
"""The reason of a mail that could not be made; it is a dead letter, sent again once its template is right."""


def mail_preparation(templates: Templates) -> Preparation:
    """Makes the mails of these templates."""
    counts = WarmUpCounts()

    def prepare(ports: Ports, due: Sequence[DueEffect]) -> list[Answer]:
        ordered = [_ordered(templates, *effect) for effect in due]
        pairs = list(zip(ordered, due, strict=True))
        reasons = iter(
            refusals(ports, [mailing_of(order, effect.view) for order, effect in pairs if isinstance(order, Order)])
        )
        drafts = [
            order if isinstance(order, Outcome) else drafted(ports, order, effect, next(reasons))
            for order, effect in pairs
        ]
        filled = iter(filled_in(ports, [made for made in drafts if isinstance(made, Draft)]))
        return [
            _written(ports, made, next(filled), effect.pending) if isinstance(made, Draft) else made
            for made, effect in zip(drafts, due, strict=True)
        ]

    def drafted(ports: Ports, order: Order, due: DueEffect, reason: str) -> Draft | Postponed | Outcome:
        view, pending = due
        if reason:
            return _skipped(pending, reason)
        try:
            if postponed := _postponed(templates, counts, ports, view, order, pending):
                return postponed
            cause = Cause(ports, order.workspace, pending.effect.data.get("event") or pending.cause)
            return draft(view, order, cause, links_of(ports, view, order))
        except InvalidSetting:
            raise  # an operator puts it right, and then it is made again
        except (InvalidValue, NotFound) as error:
            return _failed(pending, error)

    return Preparation(KIND, prepare)


def _written(ports: Ports, draft: Draft, filled: Rendered | TemplateFailed, pending: PendingEffect) -> Answer:
    data = pending.effect.data
    try:
        letter = write(ports, draft, filled)
    except InvalidSetting:
        raise  # as above
    except (InvalidValue, NotFound) as error:
        return _failed(pending, error)
    return _prepared(letter, str(data.get("occurrence") or pending.id), str(data.get("event") or ""))


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
            return Postponed(until=capped)
        zone = zone_of_person(view.view("profile"), mail.timezone)
        if mail.quiet_hours is not None and (quiet := mail.quiet_hours.until(zone, at)) is not None:
            return Postponed(until=quiet)
    warm = counts.until(ports.rows, order.workspace, order.sender, at)
    return None if warm is None else Postponed(until=warm)


def _prepared(letter: Letter, occurrence: str, event: str) -> Prepared:
    order, record = letter.order, letter.record | ({"event": event} if event else {})
    return Prepared(
        data={
            "message": letter.message, "from": letter.envelope, "to": letter.recipient.mailbox,
            "smtputf8": not (letter.message.isascii() and letter.envelope.isascii()), "sender": order.sender.id,
            "domain": order.sender.id_domain, "workspace": order.workspace, "record": record,
        },
        claims=(f"mail/{short_hash(occurrence, letter.recipient.mailbox.casefold())}",),
        taken=_outcome(order.id, record, "duplicate"),
        done=Outcome(type=MAIL_SENT, properties=record),
    )  # fmt: skip


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
