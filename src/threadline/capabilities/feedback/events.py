"""The event types of feedback. Over a wire none of them counts: a write key must not forge a bounce.

All have the properties ``message`` (the id of the effect that was the mail) and ``address``, and of the mail what is
known: ``template``, ``topic``, ``journey`` or ``broadcast``, ``step``, ``arm``. Their time is that of the provider.
"""

from __future__ import annotations

from threadline.kernel.event import Event
from threadline.kernel.lasting import Lasting, for_life

MAIL_SENT = "mail_sent"
"""The outcome of a mail that a provider has accepted."""
MAIL_SKIPPED = "mail_skipped"
"""A mail that a policy wished for was not sent, to no ``address``; ``reason``: such as ``unsubscribed`` or
``frequency_cap``."""
MAIL_DELIVERED = "mail_delivered"
"""The recipient's server has accepted the mail; ``text``: what it said."""
MAIL_DELAYED = "mail_delayed"
"""A server goes on trying to deliver; ``code`` and ``text``: why."""
MAIL_FETCHED = "mail_fetched"
"""A picture or a link of the mail was asked for, by whom is still to be decided; ``fetch``: ``opened`` or ``clicked``;
``link``, ``agent``: the user agent. With ``count``: so many more like one before, which lead to nothing."""
MAIL_SCANNED = "mail_scanned"
"""A machine has asked for it; ``why``: by what that is known; ``machine`` is true; the rest as in `MAIL_FETCHED`."""
MAIL_OPENED = "mail_opened"
"""The mail was shown to a person; ``machine`` is false, ``agent``: the user agent, ``of``: the fetch's id. Earlier
versions recorded machines' as well, with ``machine`` true and ``why``."""
MAIL_CLICKED = "mail_clicked"
"""A person has followed a link, ``link``; the rest as for an open."""
MAIL_BOUNCED = "mail_bounced"
"""The mail was not delivered; ``bounce``: ``permanent`` (because of the address), ``transient`` (of what may pass, such
as a full mailbox) or ``content`` (of what was sent, which says nothing about the address); ``code``: the enhanced
status code; ``text``: what the server said."""
MAIL_COMPLAINED = "mail_complained"
"""The recipient has marked the mail as spam; ``feedback``: the type of complaint (RFC 5965), such as ``abuse``."""
MAIL_REPLIED = "mail_replied"
"""The recipient has answered; ``subject``, ``text``: the visible part of the answer; ``sender``: who wrote it."""

ENGAGEMENT = frozenset(
    {MAIL_DELIVERED, MAIL_DELAYED, MAIL_OPENED, MAIL_CLICKED, MAIL_BOUNCED, MAIL_COMPLAINED, MAIL_REPLIED}
)
"""What a mail led to."""
COUNTED = ENGAGEMENT | {MAIL_SENT, MAIL_SKIPPED}
"""What is counted under its own name."""
FETCHES = frozenset({MAIL_FETCHED, MAIL_SCANNED})
"""Requests of mail programs, browsers and machines, of which opens and clicks are made."""
ABOUT = ("template", "topic", "journey", "broadcast", "step", "arm", "address")
"""What every one of them says about the mail, where the mail has it."""


SOURCE = "threadline.feedback"
"""The source of what comes in; keys are those of the feedback."""


def is_trusted(event: Event) -> bool:
    """Whether an event counts: Threadline emitted it, or this process recorded it, such as an import."""
    return event.source_type != "external"


LASTING = Lasting(
    "feedback",
    for_life((MAIL_BOUNCED, MAIL_COMPLAINED), "without it mail would be sent again"),
    made=COUNTED | FETCHES,
)
