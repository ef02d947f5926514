"""How long which events are stored, read from the section ``retention``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.consent.events import (
    ADDRESS_SUPPRESSED,
    ADDRESS_UNSUPPRESSED,
    SUBSCRIBED,
    UNSUBSCRIBED,
)
from threadline.capabilities.definitions import Definitions
from threadline.capabilities.definitions.declaring import Given, Named, Problems, event_type, listed, struct
from threadline.capabilities.feedback.events import (
    MAIL_BOUNCED,
    MAIL_CLICKED,
    MAIL_COMPLAINED,
    MAIL_DELAYED,
    MAIL_DELIVERED,
    MAIL_OPENED,
    MAIL_REPLIED,
    MAIL_SENT,
)
from threadline.capabilities.journeys.events import JOURNEY_ENTERED, JOURNEY_EXITED, JOURNEY_MOVED
from threadline.capabilities.mail.events import MAIL_SKIPPED
from threadline.capabilities.people.events import GROUP, IDENTIFY, TAG_ADDED, TAG_REMOVED
from threadline.kernel.identity import ALIAS, MERGED, SPLIT
from threadline.kernel.limits import RETENTION_DAYS_MAX, RETENTION_RULES_MAX, RETENTION_TYPES_MAX

MAIL_TYPES = (MAIL_SENT, MAIL_SKIPPED, MAIL_DELIVERED, MAIL_DELAYED, MAIL_OPENED, MAIL_CLICKED, MAIL_REPLIED)
"""Send logs and what became of mails, where a rule names no types."""
NEVER = {
    MERGED: "who is one person is known from it", SPLIT: "who is one person is known from it",
    ALIAS: "who is one person is known from it", IDENTIFY: "a profile is made of it", GROUP: "a profile is made of it",
    TAG_ADDED: "a profile is made of it", TAG_REMOVED: "a profile is made of it",
    SUBSCRIBED: "it is the proof of a consent", UNSUBSCRIBED: "without it mail would be sent again",
    ADDRESS_SUPPRESSED: "without it mail would be sent again",
    ADDRESS_UNSUPPRESSED: "without it a suppression would hold again",
    MAIL_BOUNCED: "without it mail would be sent again", MAIL_COMPLAINED: "without it mail would be sent again",
    JOURNEY_ENTERED: "without it a journey would begin again", JOURNEY_MOVED: "where somebody is in a journey is known "
    "from it", JOURNEY_EXITED: "without it a journey would go on",
}  # fmt: skip
"""Event type -> why it is stored as long as the person."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long events of some types are stored."""

    name: Given
    days: Annotated[
        int,
        Meta(
            ge=1,
            le=RETENTION_DAYS_MAX,
            description="Days after which they are erased, counted from when they occurred.",
        ),
    ]
    types: Annotated[
        tuple[str, ...],
        listed(event_type(), 1, RETENTION_TYPES_MAX),
        Meta(description="Which event types; where it is absent the send logs of mail and what became of mails."),
    ] = MAIL_TYPES
    place: Given = ""

    def problems(self, written: Collection[str]) -> Problems:
        """Types that have to stay."""
        for type in self.types:
            if type in NEVER:
                yield "types", f"events of type {type!r} cannot be erased by age: {NEVER[type]}"


RETENTION = Named(
    "retention", "retention rule", struct(Retention), "How long events are stored, by a name for each rule.", "clicks",
    most=RETENTION_RULES_MAX,
)  # fmt: skip
SECTION = RETENTION.declared


def read_retention(definitions: Definitions) -> tuple[Retention, ...]:
    """The declared rules by name; problems are noted in the documents."""
    return tuple(RETENTION.read(definitions).values.values()) if definitions.section(RETENTION.section) else ()
