"""A mail that is asked for: by which effect, with what template and person add to it, and what its template sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from threadline.capabilities.reach.consent.links import confirm_url, preferences_url, unsubscribe_url
from threadline.capabilities.reach.mail.definition import KIND, LINKS, Sender
from threadline.capabilities.reach.mail.pictures.routes import FOLDER
from threadline.capabilities.reach.mail.templates import Compiled, Templates
from threadline.capabilities.reach.messages.channel import BELONGS_TO, message_effect
from threadline.capabilities.reach.messages.context import Facts, context_of, traits
from threadline.capabilities.reach.messages.context import address_in as address_of_kind
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Effect
from threadline.kernel.ports import Ports

EMAIL = "email"
"""The trait, and the kind of identifier, that holds an address."""
UNSUBSCRIBE, PREFERENCES, CONFIRM, PICTURES = LINKS
_EXAMPLE = "https://threadline.invalid/"


def mail_effect(
    key: str, template: str, variables: Mapping[str, Any], occurrence: str, due_at: int = 0, **about: Any
) -> Effect:
    """The effect by which any policy has a mail sent; see `message_effect`.

    ``about``: ``sender``, ``subject``, ``topic`` and ``transactional`` where they are not the template's; ``event``,
    the id of the event that the template sees, if not that of the cause; ``address``, if not the person's; and
    `BELONGS_TO`, of which ``test`` marks a mail that no count has.
    """
    return message_effect(KIND, key, template, variables, occurrence, due_at, **about)


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
    at: int
    """The instant at which the mail is made."""
    links: Mapping[str, str]
    """Those that act for its recipient; empty until `with_context`."""
    context: Mapping[str, Any]
    """What its template sees; empty until `with_context`."""


def order_of(templates: Templates, compiled: Compiled, view: PersonView, id: str, data: Mapping[str, Any]) -> Order:
    """The mail that the data of an effect ask for. Raises `InvalidValue` for a sender that is not declared, or a
    subject that is no template."""
    template = compiled.template
    if compiled.sources.fallback:
        compiled = compiled.in_language(str(data.get("language") or "") or compiled.language_for(traits(view)))
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
        at=view.at,
        links={},
        context={},
    )


def address_in(view: PersonView) -> str:
    """The address of a person: the trait `email`, else the identifier of that kind that was used last; empty if there
    is none."""
    return address_of_kind(view, EMAIL)


# --- links ----------------------------------------------------------------------------------------


def links_of(ports: Ports, view: PersonView, order: Order) -> dict[str, str]:
    """The links that the mail needs, by the names that templates know. Raises `InvalidSetting` without a `public_url`.

    Marketing mail needs the one by which a program unsubscribes, whatever its template says.
    """
    person, address, topic = view.person, order.address, order.topic
    links = {}
    for name in _needed(order):
        if name == UNSUBSCRIBE:
            links[name] = unsubscribe_url(ports, order.workspace, person, address, topic)
        elif name == PREFERENCES:
            links[name] = preferences_url(ports, order.workspace, person, address)
        elif name == PICTURES:
            links[name] = ports.public_address.url(FOLDER)
        elif order.is_confirmation:
            links[name] = confirm_url(ports, order.workspace, person, address, topic)
    return links


def example_links(order: Order) -> dict[str, str]:
    """What stands for them where nobody has said at which address the world reaches this server."""
    return {name: f"{_EXAMPLE}{name}" for name in _needed(order)}


def _needed(order: Order) -> list[str]:
    """The names of the links that the mail needs."""
    return [
        name for name in LINKS if order.compiled.read_below(name) or (name == UNSUBSCRIBE and not order.transactional)
    ]


# --- what its template sees -----------------------------------------------------------------------


def with_context(order: Order, view: PersonView, facts: Facts, links: Mapping[str, str]) -> Order:
    """The order, ready to be rendered: with its links and what its template sees."""
    compiled, sender = order.compiled, order.sender
    defaults = {name: variable.default for name, variable in compiled.template.variables.items()}
    given = {
        **defaults,
        **order.variables,
        **links,
        "topic": order.topic,
        "message_id": order.id,
        "template": compiled.template.name,
        "sender": {"name": sender.display_name, "address": sender.address},
    }
    seen = context_of(view, compiled.read_below, facts, given, email=address_in(view))
    return order._replace(links=links, context=seen)
