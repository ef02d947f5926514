"""What the store has of a person about mails that were sent or left out."""

from __future__ import annotations

from threadline.capabilities.reach.mail.events import MAIL_REQUESTED, MAIL_SENT, MAIL_SKIPPED
from threadline.capabilities.reach.mail.timing import WARM_UP
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views

WARM_UP_TABLE = StoreTable(WARM_UP, "event_rows", why="it counts mails of a day, by the ids of events")
MAILS_FILE = PersonFile(
    "mails", "Mails to you", "Mails that were sent to you, or were to be and were left out, and why.",
    joined(shown_views("mail"), shown_events(MAIL_SENT, MAIL_SKIPPED, MAIL_REQUESTED)), ("mail",),
)  # fmt: skip
