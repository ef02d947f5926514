"""Topics, and a person's subscriptions to them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import PersonRef
from threadline.capabilities.foundation.events.requests import RequestKey, derived_key, name_of, place_and_key, wish
from threadline.capabilities.reach.consent.definition import Consent
from threadline.capabilities.reach.consent.events import SUBSCRIBED, UNSUBSCRIBED
from threadline.capabilities.reach.consent.links import Recipient, preferences_url
from threadline.capabilities.reach.consent.operations import CONSENT_GROUP
from threadline.capabilities.reach.consent.recording import after, standings, statements_for
from threadline.capabilities.reach.consent.rows import suppression_of
from threadline.capabilities.reach.consent.standing import GETS_MAIL
from threadline.kernel.address import checked_address, normal_address
from threadline.kernel.canonical import canonical_json
from threadline.kernel.disclosure import PERSONAL, not_personal
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Receipt
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, NoParams, Operation, Params, operation, shaped_operation
from threadline.kernel.ports import Person
from threadline.kernel.suggestion import suggestion

OptionalAddress = Annotated[
    str,
    Meta(
        description="One of the person's mail addresses; without it the one that mail goes to.",
        max_length=254,
        extra_json_schema={"pattern": r"^([^@\s]+@[^@\s]+)?$"},
    ),
]
TopicName = Annotated[str, Meta(min_length=1, max_length=64)]


@key_fields("name", "title", "default")
@not_personal
class TopicView(msgspec.Struct, kw_only=True):
    """A topic as it is declared."""

    name: str
    title: str
    description: str
    default: Annotated[str, Meta(description="opted_in or opted_out: what counts for who has said nothing.")]
    double_opt_in: bool


class TopicList(msgspec.Struct):
    """The declared topics, in the order of the preferences page."""

    topics: list[TopicView]


@shaped_operation("GET /v1/consent/topics", CONSENT_GROUP)
def topics(consent: Consent, context: Context, params: NoParams) -> TopicList:
    """List the topics that people may subscribe to."""
    return TopicList(
        [
            TopicView(
                name=name,
                title=topic.shown,
                description=topic.description,
                default=topic.default,
                double_opt_in=bool(topic.confirm),
            )
            for name, topic in consent.topics.items()
        ]
    )


class ConsentParams(Params, kw_only=True):
    """Whose subscriptions, and at which address."""

    id: PersonRef
    address: OptionalAddress = ""


@key_fields("topic", "status", "subscribed")
@not_personal
class Subscription(msgspec.Struct, kw_only=True):
    """How an address of a person stands to a topic."""

    topic: str
    status: Annotated[str, Meta(description="subscribed, unsubscribed, unconfirmed, or the default of the topic.")]
    subscribed: Annotated[bool, Meta(description="Whether mail about the topic may be sent.")]
    subscribed_at: Annotated[str, Meta(description="When that was last asked for; empty: never.")]
    confirmed_at: Annotated[str, Meta(description="When that was last confirmed; empty: never.")]
    unsubscribed_at: Annotated[str, Meta(description="Empty: never.")]


@not_personal
class ConsentResult(msgspec.Struct, kw_only=True):
    """Whether a person may be written to at an address, and about what."""

    person: str
    address: Annotated[str, PERSONAL]
    suppressed: Annotated[str, Meta(description="Why the address gets no mail of any kind; empty: it does.")]
    subscriptions: list[Subscription]


@shaped_operation("GET /v1/people/{id}/consent", CONSENT_GROUP, example=ConsentParams(id="user_id:42"))
def of(consent: Consent, context: Context, params: ConsentParams) -> ConsentResult:
    """Show what a person is subscribed to."""
    person = context.engine.reader.person(context.workspace, params.id)
    return _result(consent, context, person, _address(context, person, params.address))


def _address(context: Context, person: Person, given: str) -> str:
    """The address that is asked about, in its normal form; empty if the person has none. Raises `InvalidValue`."""
    if given:
        return checked_address(given, "address")
    views = context.engine.reader.views(person, context.engine.recorder.now(), names=["profile"])
    emails = (identifier.value for identifier in person.identifiers.values() if identifier.kind == "email")
    candidates = (views["profile"]["traits"].get("email"), *sorted(emails))
    return next((address for candidate in candidates if (address := normal_address(candidate))), "")


def _result(consent: Consent, context: Context, person: Person, address: str) -> ConsentResult:
    engine, workspace = context.engine, context.workspace
    standing = standings(engine, consent, Recipient(workspace, person.id, address, ""))
    suppression = suppression_of(engine.store, workspace, address)
    return ConsentResult(
        person=person.id,
        address=address,
        suppressed="" if suppression is None else suppression.reason,
        subscriptions=[
            Subscription(
                topic=name,
                status=status,
                subscribed=status in GETS_MAIL,
                subscribed_at=entry.subscribed,
                confirmed_at=entry.confirmed,
                unsubscribed_at=entry.unsubscribed,
            )
            for name, (status, entry) in standing.items()
        ],
    )


class ChangeParams(Params, kw_only=True):
    """What a person wants mail about, and what not."""

    id: PersonRef
    subscribe: Annotated[list[TopicName], Meta(max_length=50)] = []
    unsubscribe: Annotated[list[TopicName], Meta(max_length=50)] = []
    everything: Annotated[bool, Meta(description="Unsubscribe from every topic.")] = False
    address: OptionalAddress = ""
    confirmed: Annotated[
        bool, Meta(description="The address was proved to be the person's, so that double opt-in asks no more.")
    ] = False
    request: RequestKey = ""


class ChangeResult(ConsentResult, kw_only=True):
    """The subscriptions after the change, and a receipt for each event that it took."""

    receipts: list[Receipt]


_CHANGED = (
    "Subscribed to {subscribe}, unsubscribed from {unsubscribe}",
    "Subscribed to {subscribe}",
    "Unsubscribed from {unsubscribe}",
    "Changed what may be sent",
)


@shaped_operation(
    "POST /v1/people/{id}/consent",
    CONSENT_GROUP,
    done=_CHANGED,
    scope="write",
    example=ChangeParams(id="user_id:42", everything=True),
    refused=lambda result: any(receipt.status == "rejected" for receipt in result.receipts),
)
def change(consent: Consent, context: Context, params: ChangeParams) -> ChangeResult:
    """Subscribe a person to topics, or unsubscribe them."""
    for param, topics in (("subscribe", params.subscribe), ("unsubscribe", params.unsubscribe)):
        for topic in topics:
            if topic not in consent.topics:
                message = f"there is no topic {topic!r}; {suggestion(topic, consent.topics)}"
                raise InvalidValue(message, param=param)
    if both := set(params.subscribe) & set(params.unsubscribe) or (params.subscribe if params.everything else []):
        raise InvalidValue(f"{min(both)!r} cannot be both subscribed to and unsubscribed from", param="subscribe")
    engine = context.engine
    person = engine.reader.person(context.workspace, params.id)
    address = _address(context, person, params.address)
    named: dict[str, Any] = {"address": address} if address else {}
    confirmed = {"confirmed": True} if params.confirmed else {}
    wishes = [(UNSUBSCRIBED, named | {"via": "api"})] if params.everything else []
    wishes += [(UNSUBSCRIBED, named | {"topic": topic, "via": "api"}) for topic in dict.fromkeys(params.unsubscribe)]
    wishes += [
        (SUBSCRIBED, named | {"topic": topic, "via": "api"} | confirmed) for topic in dict.fromkeys(params.subscribe)
    ]
    name = None
    if params.request:
        content = derived_key(*sorted(canonical_json([type, properties]).decode() for type, properties in wishes))
        name = name_of(context, person, "consent_change", params.request, content)
    statements = statements_for(engine, Recipient(context.workspace, person.id, address, ""), ["", *consent.topics])
    last = max(max(statement) for statement in statements.values())
    events = [after(last, _event(context, person, type, properties, params.request)) for type, properties in wishes]
    if name is not None and events and (name.first is not None or not _is_known(context, events[0])):
        events[0] = name.given_to(events[0])
    receipts = engine.recorder.record(events, known=True) if events else []
    if name is not None and any(receipt.status == "conflict" for receipt in receipts):
        raise name.conflict()
    person = engine.reader.person(context.workspace, person.id)
    return ChangeResult(receipts=receipts, **msgspec.structs.asdict(_result(consent, context, person, address)))


def _event(context: Context, person: Person, type: str, properties: dict[str, Any], request: str) -> Event:
    parts = (type, str(properties.get("topic", "")), properties.get("address", ""), request or f"at {person.position}")
    identifier, key = place_and_key(context, person, *parts, named=request)
    # The operation vouches for the address, which a site could name with a public key as well.
    return wish(context, identifier, type, properties, key, vouched=True)


def _is_known(context: Context, event: Event) -> bool:
    """Whether an earlier version, which gave no event the name of its request, has recorded it."""
    return context.engine.log.of_key(context.workspace, event.source, event.key) is not None


class LinkParams(ConsentParams, kw_only=True):
    """Whose preferences page, and for which address."""


class LinkResult(msgspec.Struct, kw_only=True):
    """A link that never expires. Anyone who has it can change these subscriptions, and nothing else."""

    url: str


@operation(
    "POST /v1/people/{id}/consent/link",
    CONSENT_GROUP,
    done=("Made a link to the preferences",),
    scope="write",
    example=LinkParams(id="user_id:42", address="ada@example.com"),
)
def link(context: Context, params: LinkParams) -> LinkResult:
    """Make the link to a person's preferences page."""
    person = context.engine.reader.person(context.workspace, params.id)
    address = _address(context, person, params.address)
    if not address:
        raise InvalidValue("this person has no mail address; name one", param="address")
    return LinkResult(url=preferences_url(context.engine, context.workspace, person.id, address))


def operations(consent: Consent) -> list[Operation]:
    """The operations of these topics."""
    return [topics(consent), of(consent), change(consent)]
