"""The event types of consent, and what each says.

A site may send `subscribed` and `unsubscribed` with a write key: they count for the person of the event. What reaches
further is believed only of Threadline's own operations, pages and policies, and of this process: that an address is
confirmed, suppressed or not suppressed any more, and an `address` that is not among the event's own identifiers.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta

from threadline.kernel.event import CLAIMED_HISTORY, Event
from threadline.kernel.event_type import EventType, Maybe, Properties, may_say
from threadline.kernel.identity import address_in_event
from threadline.kernel.names import NAME

SUBSCRIBED = "subscribed"
UNSUBSCRIBED = "unsubscribed"
ADDRESS_SUPPRESSED = "address_suppressed"
ADDRESS_UNSUPPRESSED = "address_unsuppressed"

SUPPRESSION = frozenset({ADDRESS_SUPPRESSED, ADDRESS_UNSUPPRESSED})
WORDS = frozenset({SUBSCRIBED, UNSUBSCRIBED})

REASONS = ("bounce", "complaint", "manual", "import")
"""Why an address is suppressed."""
NOTE_LENGTH_MAX = 500
REOPENS = "reopens"
"""The property with which an operator lets the subscriptions of a file open again what people have closed."""


class _Subscription(Properties):
    topic: Maybe[Annotated[str, Meta(description="The topic; without one `unsubscribed` is of every topic.")]] = UNSET
    address: Maybe[Annotated[str, Meta(description="The address; any of the person's if absent.")]] = UNSET
    confirmed: Maybe[
        Annotated[bool, Meta(description="Whether the link of a mail confirmed it, here or in vouched history.")]
    ] = UNSET
    reason: Maybe[Annotated[str, Meta(description="Why.")]] = UNSET
    reopens: Maybe[
        Annotated[bool, Meta(description="Of history: whether it opens again what somebody has closed themselves.")]
    ] = UNSET


class _Suppression(Properties):
    address: Annotated[str, Meta(description="The address.")]
    reason: Annotated[str, Meta(description="Why: bounce, complaint, manual or import.")]
    by: Maybe[Annotated[str, Meta(description="Who did it.")]] = UNSET
    note: Maybe[Annotated[str, Meta(description="A note.")]] = UNSET


EVENT_TYPES = (
    EventType(
        SUBSCRIBED,
        "The person wants mail about a topic.",
        _Subscription,
        sentence="Subscribed to {topic}",
        shown=("topic", "via"),
        lasts="it is the proof of a consent",
    ),
    EventType(
        UNSUBSCRIBED,
        "The person wants no mail about a topic, or about none.",
        _Subscription,
        sentence="Unsubscribed from {topic}",
        shown=("topic", "via"),
        lasts="without it mail would be sent again",
    ),
    EventType(
        ADDRESS_SUPPRESSED,
        "No mail of any kind goes to an address any more.",
        _Suppression,
        speaker="process",
        sentence="{address} gets no mail any more: {reason}",
        shown=("by", "reason"),
        lasts="without it mail would be sent again",
    ),
    EventType(
        ADDRESS_UNSUPPRESSED,
        "An operator lifted the suppression of an address.",
        _Suppression,
        speaker="process",
        sentence="{address} may get mail again",
        shown=("by", "reason"),
        lasts="without it a suppression would hold again",
    ),
)


Kind = Literal["confirmed", "subscribed", "unsubscribed"]


class Statement(NamedTuple):
    """What an event says about a subscription."""

    kind: Kind
    topic: str
    """Empty, of `unsubscribed` only: every topic."""
    address: str
    """Empty: whatever address the person has."""
    across: bool
    """Whether it counts for everybody who has that address."""
    is_own: bool = True
    """Whether the sender is known by that address."""
    imported: bool = False
    """Whether it is history: then it opens nothing again that somebody has closed themselves."""


class Suppressed(NamedTuple):
    """What an event says about the suppression of an address."""

    address: str
    reason: str
    lifted: bool
    by: str
    note: str


def is_trusted(event: Event) -> bool:
    """Whether Threadline emitted an event, or this process recorded it."""
    return may_say("process", event)


def statement_of(event: Event) -> Statement | None:
    """What an event says; None for what says nothing about a subscription."""
    topic = event.properties.get("topic")
    if not isinstance(topic, str) or not NAME.fullmatch(topic):
        if event.type != UNSUBSCRIBED:
            return None
        topic = ""  # whoever wants to leave and cannot be understood leaves everything
    own = [
        address
        for identifier in event.identifiers
        if identifier.kind == "email" and (address := address_in_event(identifier.value))
    ]
    named = address_in_event(event.properties.get("address"))
    address, trusted = named or (own[0] if len(own) == 1 else ""), is_trusted(event)
    # Anybody can send this with a key that stands in a page: of others' addresses it says nothing.
    is_own = trusted or not named or named in own
    imported = event.historical and event.properties.get(REOPENS) is not True
    if event.type == UNSUBSCRIBED:
        if not is_own:
            address = own[0] if len(own) == 1 else ""
        return Statement("unsubscribed", topic, address, bool(address), imported=event.historical)
    # History that an operator vouches for, such as a list whose people have confirmed elsewhere, is believed as well.
    is_vouched = trusted or (event.historical and CLAIMED_HISTORY not in event.marks)
    confirmed = is_vouched and event.properties.get("confirmed") is True
    kind: Kind = "confirmed" if confirmed else "subscribed"
    return Statement(kind, topic, address, bool(address) and trusted, is_own, imported)


def suppressed_of(event: Event) -> Suppressed | None:
    """What an event says; None for what is not believed or names no address."""
    address = address_in_event(event.properties.get("address"))
    if not address or not is_trusted(event):
        return None
    reason = _text(event.properties.get("reason")) or "manual"
    by, note = _text(event.properties.get("by")), _text(event.properties.get("note"))
    return Suppressed(address, reason, event.type == ADDRESS_UNSUPPRESSED, by, note)


def _text(value: Any) -> str:
    return value[:NOTE_LENGTH_MAX] if isinstance(value, str) else ""
