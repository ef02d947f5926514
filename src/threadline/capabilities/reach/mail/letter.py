"""A mail that is made: who it is for, what it says, and the bytes of the message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from threadline.capabilities.reach.feedback.links import track
from threadline.capabilities.reach.mail.address import Address, address_of, tagged
from threadline.capabilities.reach.mail.composing import Header, Parties, compose
from threadline.capabilities.reach.mail.context import Facts, context_of
from threadline.capabilities.reach.mail.links import UNSUBSCRIBE
from threadline.capabilities.reach.mail.order import Order
from threadline.capabilities.reach.mail.rendering import Rendered, TemplateFailed, render
from threadline.capabilities.reach.mail.signing import signed
from threadline.kernel.address import ascii_domain_of
from threadline.kernel.confined import WithConfined
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports


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
        if order.variables:
            record["variables"] = order.variables
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


class Draft(NamedTuple):
    """A mail before its template is filled in."""

    order: Order
    recipient: Address
    sender: Address
    links: Mapping[str, str]
    context: Mapping[str, Any]
    """What its template sees."""
    at: int


def draft(view: PersonView, order: Order, facts: Facts, links: Mapping[str, str]) -> Draft:
    """What the mail is made of. Raises `InvalidValue` for what is no address."""
    recipient, sender = address_of(order.address), address_of(order.sender.address)
    if recipient is None or sender is None:
        raise InvalidValue(f"{order.address[:80]!r} is not an address")
    values = {**order.variables, **links, "topic": order.topic, "message_id": order.id}
    context = context_of(order.compiled, view, facts, order.sender, values)
    return Draft(order, recipient, sender, links, context, view.at)


def filled_in(ports: WithConfined, drafts: Sequence[Draft]) -> list[Rendered | TemplateFailed]:
    """What each of them says, or why it cannot."""
    return render(ports.confined, [(draft.order.compiled, draft.context) for draft in drafts])


def write(ports: Ports, draft: Draft, rendered: Rendered | TemplateFailed, *, is_tracked: bool = True) -> Letter:
    """Make the mail. Raises `TemplateFailed` where something that it says is not known."""
    if isinstance(rendered, TemplateFailed):
        raise rendered
    order = draft.order
    if is_tracked:
        html, text = track(ports, order.workspace, order.id, rendered.html, rendered.text)
        # A mail of text alone stays one: without HTML there is no picture to load.
        rendered = rendered._replace(html=html if rendered.html else "", text=text)
    parties = Parties(order.sender.display_name, draft.sender, draft.recipient)
    message_id = f"{order.id}@{ascii_domain_of(order.sender.id_domain)}"
    message = compose(parties, rendered, message_id, draft.at, _headers(order, draft.links))
    bounces = address_of(tagged(order.sender.bounces, order.id)) if order.sender.bounces else None
    envelope = (bounces or draft.sender).mailbox
    return Letter(order, draft.recipient, rendered, signed(message, order.sender), envelope)


def _headers(order: Order, links: Mapping[str, str]) -> list[Header]:
    sender, domain = order.sender, order.sender.id_domain
    headers = []
    answers = order.reply_to or (tagged(sender.replies, order.id) if sender.replies else sender.reply_to)
    if (reply_to := address_of(answers)) is not None:
        headers.append(Header("Reply-To", reply_to.mailbox))
    if order.transactional:
        # Nobody's holiday notice is an answer to a receipt (RFC 3834); marketing mail has List-Id for that.
        headers.append(Header("Auto-Submitted", "auto-generated"))
    else:
        headers.append(Header("List-Unsubscribe", f"<{links[UNSUBSCRIBE]}>"))
        headers.append(Header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"))
        headers.append(Header("List-Id", f"<{order.topic or 'mail'}.{domain}>"))
    campaign = str(order.about.get("journey") or order.about.get("broadcast") or "single")
    kind = "transactional" if order.transactional else "marketing"
    fields = (campaign, order.compiled.template.name, kind, sender.id)
    headers.append(Header("Feedback-ID", ":".join(_token(field) for field in fields)))
    headers.append(Header("X-Threadline-Message", order.id))
    return headers


@lru_cache(1_024)  # those of few templates and senders
def _token(text: str) -> str:
    return "".join(
        character if character.isascii() and (character.isalnum() or character in "-_.") else "_" for character in text
    )[:60]
