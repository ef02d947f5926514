"""How long which events are stored, read from the section ``retention``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import Given, Named, event_type, listed, struct
from threadline.capabilities.reach.feedback.events import (
    MAIL_CLICKED,
    MAIL_DELAYED,
    MAIL_DELIVERED,
    MAIL_OPENED,
    MAIL_REPLIED,
    MAIL_SENT,
)
from threadline.capabilities.reach.mail.events import MAIL_SKIPPED
from threadline.kernel.limits import RETENTION_DAYS_MAX, RETENTION_RULES_MAX, RETENTION_TYPES_MAX

MAIL_TYPES = (MAIL_SENT, MAIL_SKIPPED, MAIL_DELIVERED, MAIL_DELAYED, MAIL_OPENED, MAIL_CLICKED, MAIL_REPLIED)
"""Send logs and what became of mails, where a rule names no types."""


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
    drops_results: Annotated[
        bool,
        Meta(
            title="Results may go too",
            description="Whether the results of broadcasts and templates may go with the events that they are counted "
            "from: numbers of older mails become 0. Without it a rule about such events is refused.",
        ),
    ] = False
    place: Given = ""


RETENTION = Named(
    "retention",
    "retention rule",
    struct(Retention),
    "How long events are stored, by a name for each rule.",
    "clicks",
    most=RETENTION_RULES_MAX,
)
SECTION = RETENTION.declared


def read_retention(definitions: Definitions) -> tuple[Retention, ...]:
    """The declared rules by name; problems are noted in the documents."""
    return tuple(RETENTION.read(definitions).values.values()) if definitions.section(RETENTION.section) else ()
