"""The development inbox as it lies in the store: written by its sender, read by its page and operations."""

from __future__ import annotations

import msgspec

from threadline.kernel.store import Key
from threadline.kernel.typed import prepared

INBOX = "inbox"
"""Table: for each workspace a partition of summaries by time, and one of the messages themselves."""
PROVIDER_URL = "inbox:"
"""The provider of mail in the definitions that selects the inbox."""
MESSAGES_MAX = 1_000
"""Messages of a workspace; older ones are removed."""
MESSAGE_BYTES_MAX = 350_000
"""Of a message; what is beyond is not stored. Every store holds items of this size."""


@prepared
class InboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What the list shows of a message."""

    id: str
    """Sorts by time."""
    message: str
    """The id of its effect, as in its Message-ID."""
    to: str
    sender: str
    """The envelope sender."""
    subject: str
    template: str
    at: int
    size: int
    """In bytes, of the whole message."""


def summaries(workspace: str) -> str:
    """The partition of the summaries."""
    return f"summaries/{workspace}"


def summary_key(workspace: str, id: str) -> Key:
    """Where the summary of a message lies."""
    return Key(INBOX, summaries(workspace), id)


def body_key(workspace: str, id: str) -> Key:
    """Where the bytes of a message lie."""
    return Key(INBOX, f"messages/{workspace}", id)
