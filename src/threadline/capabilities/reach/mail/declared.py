"""What mail puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.reach.feedback.events import MAIL_SENT
from threadline.capabilities.reach.mail.channel import MailChannel
from threadline.capabilities.reach.mail.definition import KIND, QUEUE, Mail, read_mail
from threadline.capabilities.reach.mail.operations import as_sent, domains, pictures, preview, send, testing
from threadline.capabilities.reach.mail.operations import templates as template_operations
from threadline.capabilities.reach.mail.policy import mail_policy
from threadline.capabilities.reach.mail.templates import Templates, read_templates
from threadline.capabilities.reach.messages.preparation import preparation
from threadline.kernel.lasting import Lasting, Until
from threadline.kernel.sender import DESTINATION_FAILURES_MAX, Queue


def declare(definitions: Definitions) -> list[Any]:
    """The operations, and where the section stands its queue, its policy and what makes mails."""
    mail = read_mail(definitions)
    templates = Templates(Mail(), {}) if mail is None else read_templates(definitions, mail)
    made: list[Any] = [
        operation
        for noun in (template_operations, preview, as_sent, send, domains, pictures, testing)
        for operation in noun.operations(templates)
    ]
    if mail is None:
        return made
    return [*made, _lasting(mail), _queue(mail), mail_policy(templates), preparation(MailChannel(templates))]


def _queue(mail: Mail) -> Queue:
    """Claimed before it is sent: nobody gets a mail twice, and one of which nobody knows waits to be resolved."""
    return Queue(
        QUEUE,
        mail.provider.at_once,
        mail.give_up_seconds,
        DESTINATION_FAILURES_MAX,
        mail.provider,
        KIND,
        claims=True,
        per_second=mail.provider.per_second,
        unknown=mail.provider.unknown,
        unknown_seconds=mail.provider.unknown_seconds,
    )


def _lasting(mail: Mail) -> Lasting:
    """Mails that a frequency cap looks back at."""
    longest = max((cap.per for cap in mail.caps), default=0)
    return Lasting("mail", until={MAIL_SENT: Until(longest, "a frequency cap looks back so far")})
