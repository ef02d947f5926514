"""What a provider or a mail server says about a mail, in one form for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from threadline.kernel.errors import InvalidValue

Kind = Literal["sent", "delivered", "delayed", "opened", "clicked", "bounced", "complained", "replied"]
Bounce = Literal["permanent", "transient", "content"]
"""Because of the address; of what may pass; of what was sent, which says nothing about the address."""
COMPLAINT_TYPES_WITHOUT_BLAME = frozenset({"not-spam", "auth-failure", "dmarc"})
"""Types of feedback that are no recipient's complaint: somebody took one back, or a server reports its checks."""
OWN_HEADER = "x-threadline-message"
"""The header of our mails that names the mail."""


class UnreadableFeedback(InvalidValue):
    """This is not what its sender claims it to be; nothing of it was recorded."""

    code = "unreadable_feedback"


class Feedback(NamedTuple):
    """One thing that happened to a mail on its way to one recipient."""

    kind: Kind
    key: str
    """What is the same whenever the same thing is said again."""
    at: int | None
    """When it happened, microseconds; None if nobody says."""
    about: tuple[str, ...]
    """Addresses and Message-IDs that may name the mail, the likeliest first."""
    provider_id: str = ""
    """The provider's own id of the mail."""
    recipient: str = ""
    """The address that it is about; empty: that of the mail."""
    workspace: str = ""
    """The workspace that the mail bears; empty if it bears none."""
    reached: tuple[str, ...] = ()
    """The addresses that the mail has reached, as the same report says."""
    details: Mapping[str, Any] = MappingProxyType({})
    """More properties of the event."""


class Received(NamedTuple):
    """A mail that has come in."""

    raw: bytes
    recipients: tuple[str, ...]
    sender: str
