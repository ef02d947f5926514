"""The events of mail that are not feedback. They count only where Threadline itself has recorded them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from threadline.capabilities.reach.feedback.events import MAIL_SENT, MAIL_SKIPPED
from threadline.kernel.event import Event
from threadline.kernel.event_counter import EventCounter
from threadline.kernel.event_type import EventType, Maybe, Properties

__all__ = ["MAIL_REQUESTED", "MAIL_SENT", "MAIL_SKIPPED"]

MAIL_REQUESTED = "mail_requested"


class _Requested(Properties):
    template: Annotated[str, Meta(description="The template.")]
    variables: Annotated[dict[str, Any], Meta(description="What it is filled in with.")]
    sender: Maybe[Annotated[str, Meta(description="The sender, where it is not the template's.")]] = UNSET
    topic: Maybe[Annotated[str, Meta(description="The topic, where it is not the template's.")]] = UNSET
    event: Maybe[Annotated[str, Meta(description="The event that the template sees.")]] = UNSET
    subject: Maybe[Annotated[str, Meta(description="The subject, where it is not the template's.")]] = UNSET
    transactional: Maybe[Annotated[bool, Meta(description="Whether it is one that is always sent.")]] = UNSET
    language: Maybe[Annotated[str, Meta(description="The language, where it is not the person's.")]] = UNSET
    address: Maybe[Annotated[str, Meta(description="Where it goes, if not to the person's address.")]] = UNSET
    test: Maybe[Annotated[bool, Meta(description="Whether it is a test, which no count has.")]] = UNSET


EVENT_TYPES = (
    EventType(
        MAIL_REQUESTED,
        "A caller asks to send the person one mail.",
        _Requested,
        speaker="process",
        sentence="Asked to send the mail “{template}”",
        shown=("journey", "rule", "sender", "template", "topic"),
    ),
)


def _reason(event: Event) -> tuple[str, ...] | None:
    return (str(event.properties.get("reason", "")),)


SUPPRESSIONS = EventCounter(
    "suppressions_total",
    "Mails that were not sent because they may not be.",
    ("reason",),
    frozenset({MAIL_SKIPPED}),
    _reason,
)
