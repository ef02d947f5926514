"""What the store has of a person about mails that arrived, were opened or came back."""

from __future__ import annotations

from threadline.capabilities.reach.feedback.events import ENGAGEMENT, FETCHES
from threadline.capabilities.reach.feedback.repetitions import COUNTING
from threadline.capabilities.reach.feedback.rows import PROVIDER_TABLE, TABLE
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views

_REPEATS = "it repeats what the person's events say of a mail"
MAIL_TABLE = StoreTable(TABLE, "event_rows", why=_REPEATS)
PROVIDERS_TABLE = StoreTable(PROVIDER_TABLE, "event_rows", why=_REPEATS)
COUNTING_TABLE = StoreTable(COUNTING, "nobody", why="how often events were repeated within an hour, by their ids")
FEEDBACK_FILE = PersonFile(
    "feedback",
    "What became of mails",
    "Whether mails to you arrived, were opened, clicked or answered, or came back.",
    joined(shown_views("feedback", "mail_fetches"), shown_events(*ENGAGEMENT, *FETCHES)),
    ("feedback", "mail_fetches"),
)
