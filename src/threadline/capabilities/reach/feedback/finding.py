"""Finds the mail that feedback is about: the event of its effect, in the thread of the person who got it."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.capabilities.reach.feedback.events import MAIL_BOUNCED, MAIL_SENT
from threadline.capabilities.reach.feedback.links import message_in
from threadline.capabilities.reach.feedback.rows import message_of
from threadline.capabilities.reach.messages.outcomes import sent_event
from threadline.kernel.event import Recorded
from threadline.kernel.ports import Ports

_SENT = frozenset({MAIL_SENT, MAIL_BOUNCED})


def find_mail(ports: Ports, workspace: str, names: Iterable[str], provider_id: str = "") -> Recorded | None:
    """The outcome of the mail that one of these names means; None if there is none.

    ``names`` are addresses with a token and Message-IDs. Feedback about a mail of which nobody knew whether it was sent
    says that it was: this settles its effect.
    """
    messages = dict.fromkeys(message for name in names if (message := message_in(name)))
    for message in messages:
        if (outcome := sent_event(ports, workspace, message, _SENT, "feedback")) is not None:
            return outcome
    message = message_of(ports.store, workspace, provider_id) if provider_id else ""
    return sent_event(ports, workspace, message, _SENT, "feedback") if message else None
