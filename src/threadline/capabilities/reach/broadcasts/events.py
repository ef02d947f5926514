"""The event of broadcasts; Threadline itself records it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from threadline.capabilities.reach.feedback.events import COUNTED, FETCHES, MAIL_BOUNCED, MAIL_COMPLAINED
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Recorded
from threadline.kernel.event_type import EventType, Maybe, Properties
from threadline.kernel.lasting import Lasting
from threadline.kernel.names import NAME
from threadline.kernel.sender import EFFECT_WITHDRAWN
from threadline.kernel.time import parse_time

BROADCAST_ADDRESSED = "broadcast_addressed"
HOLDOUT = "holdout"
"""The arm of those who are in the audience and get nothing, so that the others can be compared with them."""
SOURCE = "threadline.broadcasts"
DUE_AT = "due_at"
"""The property that says when the mail is due, where that is not at once."""


class _Addressed(Properties):
    broadcast: Annotated[str, Meta(description="The broadcast.")]
    arm: Annotated[str, Meta(description="The variant; `holdout`: nothing is sent.")]
    template: Maybe[Annotated[str, Meta(description="What is sent.")]] = UNSET
    subject: Maybe[Annotated[str, Meta(description="Its subject, where it is not the template's.")]] = UNSET
    sender: Maybe[Annotated[str, Meta(description="Its sender, where it is not the template's.")]] = UNSET
    topic: Maybe[Annotated[str, Meta(description="Its topic, where it is not the template's.")]] = UNSET
    variables: Maybe[Annotated[dict[str, Any], Meta(description="What it is filled in with.")]] = UNSET
    due_at: Maybe[Annotated[str, Meta(description="When it is due, or would be, by the recipient's clock.")]] = UNSET


EVENT_TYPES = (
    EventType(
        BROADCAST_ADDRESSED,
        "Somebody is a recipient of a broadcast.",
        _Addressed,
        speaker="process",
        sentence="Addressed by the broadcast {broadcast}",
        shown=("arm", "broadcast", "template", "topic"),
        lasts="whom a broadcast has addressed is known from it",
    ),
)
LASTING = Lasting(
    "broadcasts",
    results=dict.fromkeys(
        (COUNTED | FETCHES) - {MAIL_BOUNCED, MAIL_COMPLAINED},
        "the results of broadcasts and templates are made of them",
    ),
)


def due_at(event: Event) -> int:
    """When the mail of somebody who is addressed is due; 0: at once."""
    text = event.properties.get(DUE_AT)
    try:
        return parse_time(text) if type(text) is str else 0
    except InvalidValue:
        return 0


def broadcast_of(recorded: Recorded) -> str:
    """The id of the broadcast that an event belongs to; empty if it belongs to none."""
    event = recorded.event
    properties = event.properties.get("data") if event.type == EFFECT_WITHDRAWN else event.properties
    id = properties.get("broadcast") if type(properties) is dict else None
    return id if type(id) is str and NAME.fullmatch(id) else ""
