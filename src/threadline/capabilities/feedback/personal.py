"""What the store has of a person about mails that arrived, were opened or came back."""

from __future__ import annotations

from threadline.capabilities.feedback.events import ENGAGEMENT
from threadline.capabilities.feedback.rows import PROVIDER_TABLE, TABLE
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views

_REPEATS = "it repeats what the person's events say of a mail"
MAIL_TABLE = StoreTable(TABLE, "event_rows", why=_REPEATS)
PROVIDERS_TABLE = StoreTable(PROVIDER_TABLE, "event_rows", why=_REPEATS)
FEEDBACK_FILE = PersonFile(
    "feedback", "What became of mails", "Whether mails to you arrived, were opened, clicked or answered, or came back.",
    joined(shown_views("feedback"), shown_events(*ENGAGEMENT)), ("feedback",),
)  # fmt: skip
