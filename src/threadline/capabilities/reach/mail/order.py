"""A mail that is asked for: by which effect, with what template and person add to it, and what its template sees."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple, Protocol

from threadline.capabilities.reach.consent.links import confirm_url, preferences_url, unsubscribe_url
from threadline.capabilities.reach.consent.refusal import Mailing
from threadline.capabilities.reach.mail.definition import KIND, LINKS, QUEUE, Sender
from threadline.capabilities.reach.mail.pictures.routes import FOLDER
from threadline.capabilities.reach.mail.templates import Compiled, Templates
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Effect
from threadline.kernel.ports import Ports
from threadline.kernel.time import format_time

BELONGS_TO = ("journey", "broadcast", "rule", "step", "arm", "occurrence", "test")
"""What of an effect's data says why there is this mail; it is in every event about the mail."""
EMAIL = "email"
"""The trait, and the kind of identifier, that holds an address."""
UNSUBSCRIBE, PREFERENCES, CONFIRM, PICTURES = LINKS
_EXAMPLE = "https://threadline.invalid/"


def mail_effect(
    key: str, template: str, variables: Mapping[str, Any], occurrence: str, due_at: int = 0, **about: Any
) -> Effect:
    """The effect by which any policy has a mail sent to the person of the event that it reacts to.

    ``occurrence``: nobody gets two mails for one, whoever they are by then; empty: this effect is its only one.
    ``about``: ``sender``, ``subject``, ``topic`` and ``transactional`` where they are not the template's; ``event``,
    the id of the event that the template sees, if not that of the cause; ``address``, if not the person's; and
    `BELONGS_TO`, of which ``test`` marks a mail that no count has.
    """
    given = {name: value for name, value in about.items() if value not in (None, "")}
    data = {"template": template, "variables": dict(variables), "occurrence": occurrence, **given}
    return Effect(kind=KIND, key=key, due_at=due_at, data=data, queue=QUEUE)


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
        compiled = compiled.in_language(str(data.get("language") or "") or compiled.language_for(_traits(view)))
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


def mailing_of(order: Order, view: PersonView) -> Mailing:
    """What consent is asked about it."""
    return Mailing(order.workspace, order.address, order.topic, order.transactional, view)


def address_in(view: PersonView) -> str:
    """The address of a person: the trait `email`, else the identifier of that kind that was used last; empty if there
    is none."""
    trait = _traits(view).get(EMAIL)
    if isinstance(trait, str) and trait.strip():
        return trait.strip()
    return _identifiers(view).get(EMAIL, "")


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


class Facts(Protocol):
    """Reads what a template asks for; each only if it does."""

    def event(self) -> Recorded | None:
        """The event behind the mail; None if there is none."""
        ...


class Cause:
    """The event behind a mail, read from the log if the template asks for it."""

    def __init__(self, ports: Ports, workspace: str, id: str) -> None:
        self._ports = ports
        self._workspace = workspace
        self._id = id

    def event(self) -> Recorded | None:
        """See `Facts`."""
        try:
            return self._ports.log.event(self._workspace, self._id) if self._id else None
        except NotFound:
            return None


def with_context(order: Order, view: PersonView, facts: Facts, links: Mapping[str, str]) -> Order:
    """The order, ready to be rendered: with its links and what its template sees.

    Nulls are left out of that, so that a template fails instead of writing "None".
    """
    compiled, sender = order.compiled, order.sender
    profile = view.view("profile") or {}
    defaults = {name: variable.default for name, variable in compiled.template.variables.items()}
    context: dict[str, Any] = {
        **defaults,
        **order.variables,
        **links,
        "topic": order.topic,
        "message_id": order.id,
        "template": compiled.template.name,
        "sender": {"name": sender.display_name, "address": sender.address},
        "person": {
            "id": view.person,
            "email": address_in(view),
            "traits": _traits(view),
            "tags": profile.get("tags", []),
            "identifiers": _identifiers(view),
        },
    }
    if compiled.read_below("event") and (recorded := facts.event()) is not None:
        context["event"] = _event(recorded)
    if features := compiled.read_below("features"):
        context["features"] = _features(view.view("features") or {}, features)
    if compiled.read_below("segments"):
        context["segments"] = sorted(view.view("segments") or {})
    seen = {name: _without_nulls(value) for name, value in context.items() if value is not None}
    return order._replace(links=links, context=seen)


def _identifiers(view: PersonView) -> dict[str, str]:
    """By kind the identifier that was used last; of several at one instant the last by name."""
    known = sorted(view.identifiers)
    if len({identifier.kind for identifier in known}) < len(known):
        uses = view.view("identifiers") or {}
        known.sort(key=lambda identifier: str(uses.get(str(identifier), {}).get("last_used_at", "")))
    return {identifier.kind: identifier.value for identifier in known}


def _traits(view: PersonView) -> dict[str, Any]:
    return dict((view.view("profile") or {}).get("traits", {}))


def _event(recorded: Recorded) -> dict[str, Any]:
    event = recorded.event
    return {
        "id": recorded.id,
        "type": event.type,
        "occurred_at": format_time(event.occurred_at),
        "properties": event.properties,
    }


def _features(vector: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
    return {name: shown["value"] for name, shown in vector.items() if name in names or "" in names}


def _without_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value if item is not None] if type(value) is list else value
