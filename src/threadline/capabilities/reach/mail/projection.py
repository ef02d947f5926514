"""The ledger of mail: what was sent to a person and what became of it, and how much a new domain sent on a day."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.capabilities.reach.feedback.events import (
    MAIL_BOUNCED,
    MAIL_CLICKED,
    MAIL_COMPLAINED,
    MAIL_DELAYED,
    MAIL_DELIVERED,
    MAIL_OPENED,
    MAIL_REPLIED,
    MAIL_SENT,
)
from threadline.capabilities.reach.mail.definition import KIND, TEMPLATE
from threadline.capabilities.reach.mail.events import MAIL_REQUESTED, MAIL_SKIPPED
from threadline.capabilities.reach.messages.ledger import Entries, ledger
from threadline.kernel.event import Recorded
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views
from threadline.kernel.projection import Index, Row
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_UNKNOWN
from threadline.kernel.time import DAY

WARM_UP = "mail_warm_up"
"""Table of the mails that a new domain has sent on a day."""
STATUSES = (
    (MAIL_SKIPPED, "skipped"),
    (EFFECT_PARKED, "failed"),
    (EFFECT_UNKNOWN, "unknown"),
    (MAIL_SENT, "sent"),
    (MAIL_DELAYED, "delayed"),
    (MAIL_DELIVERED, "delivered"),
    (MAIL_OPENED, "opened"),
    (MAIL_CLICKED, "clicked"),
    (MAIL_REPLIED, "replied"),
    (MAIL_BOUNCED, "bounced"),
    (MAIL_COMPLAINED, "complained"),
)
"""What is known of a mail, by event type; of several what stands last counts."""
_DOMAIN_LENGTH_MAX = 255


def warm_up_partition(workspace: str, domain: str, day: int) -> str:
    """The partition of the mails of a domain on a day, counted from 1970-01-01 in UTC."""
    return f"{workspace}/{domain}/{day}"


def _event_rows(recorded: Recorded) -> Iterable[Row]:
    event = recorded.event
    domain = event.properties.get("domain")
    counts = event.type == MAIL_SENT and event.properties.get("warm_up") is True
    if counts and type(domain) is str and 0 < len(domain) <= _DOMAIN_LENGTH_MAX:
        partition = warm_up_partition(event.workspace, domain, event.occurred_at // DAY)
        yield Row(WARM_UP, partition, f"{event.occurred_at:020d}.{recorded.id}")


ENTRIES = Entries(
    channel=KIND,
    listed="mails",
    statuses=STATUSES,
    sent=MAIL_SENT,
    skipped=MAIL_SKIPPED,
    template_kind=TEMPLATE.name,
    by_machines=frozenset({MAIL_OPENED, MAIL_CLICKED}),
)
LEDGER = ledger(ENTRIES, Index(event_rows=_event_rows))

WARM_UP_TABLE = StoreTable(WARM_UP, "event_rows", why="it counts mails of a day, by the ids of events")
MAILS_FILE = PersonFile(
    "mails",
    "Mails to you",
    "Mails that were sent to you, or were to be and were left out, and why.",
    joined(shown_views("mail"), shown_events(MAIL_SENT, MAIL_SKIPPED, MAIL_REQUESTED)),
    ("mail",),
)
