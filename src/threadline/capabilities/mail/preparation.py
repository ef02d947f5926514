"""Right before a mail goes: whether it may, what it says for this person now, and the claim of its occurrence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from threadline.capabilities.mail.address import Address, address_of, tagged
from threadline.capabilities.mail.composing import Header, Parties, compose
from threadline.capabilities.mail.context import address_in, context_of
from threadline.capabilities.mail.definition import KIND, Sender
from threadline.capabilities.mail.effect import BELONGS_TO
from threadline.capabilities.mail.events import MAIL_SENT, MAIL_SKIPPED
from threadline.capabilities.mail.links import MailLinks, links_of
from threadline.capabilities.mail.projection import marketing_sent
from threadline.capabilities.mail.rendering import Compiled, Rendered
from threadline.capabilities.mail.signing import signed
from threadline.capabilities.mail.templates import Templates
from threadline.capabilities.mail.timing import WarmUpCounts, capped_until, quiet_until
from threadline.kernel.errors import InvalidSetting, InvalidValue, NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.ids import short_hash
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import Postponed, Preparation, Prepared
from threadline.kernel.sender import EFFECT_PARKED, Outcome
from threadline.kernel.time import SECOND
from threadline.kernel.zones import canonical_zone

TEMPLATE_FAILED = "template_failed"
"""The reason of a mail that could not be made; it is a dead letter, sent again once its template is right."""


class Order(NamedTuple):
    """A mail that somebody has asked for."""

    id: str
    """The id of the effect: the part of the Message-ID before the @."""
    workspace: str
    compiled: Compiled
    sender: Sender
    address: str
    variables: Mapping[str, Any]
    topic: str
    transactional: bool
    about: Mapping[str, Any]
    """What it belongs to."""


class Letter(NamedTuple):
    """A mail that is made."""

    order: Order
    recipient: Address
    rendered: Rendered
    message: bytes
    """With its signature."""
    envelope: str
    """The envelope sender."""

    @property
    def record(self) -> dict[str, Any]:
        """The properties of the event that says that it was sent."""
        order = self.order
        record = {
            "message": order.id, "template": order.compiled.template.name, "version": order.compiled.version,
            "sender": order.sender.id, "domain": order.sender.id_domain, "address": order.address,
            "subject": self.rendered.subject, "topic": order.topic, "transactional": order.transactional, **order.about,
        }  # fmt: skip
        if order.sender.warm_up is not None:
            record["warm_up"] = True
        return record


class Cause:
    """The event behind a mail, read from the log if the template asks for it."""

    def __init__(self, ports: Ports, workspace: str, id: str) -> None:
        self._ports = ports
        self._workspace = workspace
        self._id = id

    def event(self) -> Recorded | None:
        """See `context.Facts`."""
        try:
            return self._ports.log.event(self._workspace, self._id) if self._id else None
        except NotFound:
            return None


def mail_preparation(templates: Templates) -> Preparation:
    """Makes the mails of these templates."""
    counts = WarmUpCounts()

    def prepare(ports: Ports, view: PersonView, pending: PendingEffect) -> Prepared | Postponed | Outcome:
        data = pending.effect.data
        try:
            order = order_of(templates, view, pending.id, data)
            if address_of(order.address) is None:
                return _skipped(pending, "invalid_address" if order.address else "no_address")
            if reason := refusal_of(ports, view, order):
                return _skipped(pending, reason)
            if postponed := _postponed(templates, counts, ports, view, order, pending):
                return postponed
            letter = write(ports, view, order, Cause(ports, order.workspace, data.get("event") or pending.cause))
        except (InvalidValue, NotFound) as error:
            return _failed(pending, error)
        return _prepared(letter, str(data.get("occurrence") or pending.id))

    return Preparation(KIND, prepare)


def order_of(templates: Templates, view: PersonView, id: str, data: Mapping[str, Any]) -> Order:
    """The mail that the data of an effect ask for. Raises `NotFound` or `InvalidValue` for one that nobody can make."""
    compiled = templates.named(str(data.get("template", "")))
    template = compiled.template
    return Order(
        id, view.workspace, compiled, templates.mail.sender_of(template, str(data.get("sender") or "")),
        address_in(view), data.get("variables") or {}, str(data.get("topic") or template.topic),
        bool(data.get("transactional", template.transactional)),
        {name: data[name] for name in BELONGS_TO if data.get(name) not in (None, "")},
    )  # fmt: skip


def refusal_of(ports: Ports, view: PersonView, order: Order) -> str:
    """Why this address gets no such mail; empty if it may."""
    return ""


def write(ports: Ports, view: PersonView, order: Order, cause: Cause) -> Letter:
    """Make the mail. Raises `TemplateFailed` where something that it says is not known."""
    recipient, envelope_sender = address_of(order.address), address_of(order.sender.address)
    if recipient is None or envelope_sender is None:
        raise InvalidValue(f"{order.address[:80]!r} is not an address")
    links = links_of(ports, order.workspace, order.address, order.topic, order.transactional)
    values = {
        **order.variables, "topic": order.topic, "message_id": order.id,
        "unsubscribe_url": links.unsubscribe or None, "preferences_url": links.preferences or None,
    }  # fmt: skip
    rendered = order.compiled.render(context_of(order.compiled, view, cause, order.sender, values))
    parties = Parties(order.sender.display_name, envelope_sender, recipient)
    message_id = f"{order.id}@{order.sender.id_domain.encode('idna').decode()}"
    message = compose(parties, rendered, message_id, view.at, _headers(order, links))
    envelope = tagged(order.sender.bounces, order.id) if order.sender.bounces else envelope_sender.mailbox
    return Letter(order, recipient, rendered, signed(message, order.sender), envelope)


def _headers(order: Order, links: MailLinks) -> list[Header]:
    sender, domain = order.sender, order.sender.id_domain
    headers = []
    if sender.replies or sender.reply_to:
        headers.append(Header("Reply-To", tagged(sender.replies, order.id) if sender.replies else sender.reply_to))
    if order.transactional:
        # Nobody's holiday notice is an answer to a receipt (RFC 3834); marketing mail has List-Id for that.
        headers.append(Header("Auto-Submitted", "auto-generated"))
    else:
        headers.append(Header("List-Unsubscribe", f"<{links.unsubscribe}>"))
        headers.append(Header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"))
        headers.append(Header("List-Id", f"<{order.topic or 'mail'}.{domain}>"))
    campaign = str(order.about.get("journey") or order.about.get("broadcast") or "single")
    kind = "transactional" if order.transactional else "marketing"
    fields = (campaign, order.compiled.template.name, kind, sender.id)
    headers.append(Header("Feedback-ID", ":".join(_token(field) for field in fields)))
    headers.append(Header("X-Threadline-Message", order.id))
    return headers


def _token(text: str) -> str:
    return "".join(each if each.isascii() and (each.isalnum() or each in "-_.") else "_" for each in text)[:60]


def _postponed(
    templates: Templates, counts: WarmUpCounts, ports: Ports, view: PersonView, order: Order, pending: PendingEffect
) -> Postponed | Outcome | None:
    """When it may go, if that is not now; the outcome if that is too late for it."""
    mail, at = templates.mail, view.at
    if not order.transactional:
        capped = capped_until(mail.caps, marketing_sent(view.view("mail") or {}), at) if mail.caps else None
        if capped is not None and capped > pending.since + mail.give_up_seconds * SECOND:
            return _skipped(pending, "frequency_cap")
        if capped is not None:
            return Postponed(until=capped)
        zone = zone_in(view, mail.timezone)
        if mail.quiet_hours is not None and (quiet := quiet_until(mail.quiet_hours, zone, at)) is not None:
            return Postponed(until=quiet)
    warm = counts.until(ports.rows, order.workspace, order.sender, at)
    return None if warm is None else Postponed(until=warm)


def zone_in(view: PersonView, otherwise: str) -> str:
    """The zone of a person: the trait `timezone`, if it is one."""
    trait = (view.view("profile") or {}).get("traits", {}).get("timezone")
    return (canonical_zone(trait) if isinstance(trait, str) else None) or otherwise


def _prepared(letter: Letter, occurrence: str) -> Prepared:
    order, record = letter.order, letter.record
    return Prepared(
        data={
            "message": letter.message, "from": letter.envelope, "to": letter.recipient.mailbox,
            "smtputf8": letter.recipient.smtputf8 or not letter.envelope.isascii(), "sender": order.sender.id,
            "domain": order.sender.id_domain, "workspace": order.workspace, "record": record,
        },
        claims=(f"mail/{short_hash(f'{occurrence}\0{order.address.casefold()}')}",),
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
