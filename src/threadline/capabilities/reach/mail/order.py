"""A mail that somebody has asked for, before it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from threadline.capabilities.reach.consent.refusal import Mailing
from threadline.capabilities.reach.mail.context import address_in
from threadline.capabilities.reach.mail.definition import Sender
from threadline.capabilities.reach.mail.effect import BELONGS_TO
from threadline.capabilities.reach.mail.rendering import Compiled
from threadline.capabilities.reach.mail.templates import Templates
from threadline.kernel.person_view import PersonView


class Order(NamedTuple):
    """What is asked for, with what the template and the person add to it."""

    id: str
    """The id of the effect: the part of the Message-ID before the @."""
    workspace: str
    compiled: Compiled
    sender: Sender
    reply_to: str
    """Where answers go; empty: where the sender says."""
    address: str
    """As it was given; empty for a person without one."""
    variables: Mapping[str, Any]
    topic: str
    transactional: bool
    is_confirmation: bool
    """Whether it asks if somebody really wants its topic."""
    about: Mapping[str, Any]
    """What it belongs to."""


def order_of(templates: Templates, compiled: Compiled, view: PersonView, id: str, data: Mapping[str, Any]) -> Order:
    """The mail that the data of an effect ask for. Raises `InvalidValue` for a sender that is not declared, or a
    subject that is no template."""
    template = compiled.template
    subject = data.get("subject")
    if isinstance(subject, str) and subject:
        compiled = compiled.with_subject(subject)
    return Order(
        id=id,
        workspace=view.workspace,
        compiled=compiled,
        sender=templates.mail.sender_of(template, str(data.get("sender") or "")),
        reply_to=str(data.get("reply_to") or ""),
        address=str(data.get("address") or "") or address_in(view),
        variables=data.get("variables") or {},
        topic=str(data.get("topic") or template.topic),
        transactional=bool(data.get("transactional", template.transactional)),
        is_confirmation=data.get("confirm") is True,
        about={name: data[name] for name in BELONGS_TO if data.get(name) not in (None, "")},
    )


def mailing_of(order: Order, view: PersonView) -> Mailing:
    """What consent is asked about it."""
    return Mailing(order.workspace, order.address, order.topic, order.transactional, view)
