"""The events of mail that are not feedback. They count only where Threadline itself has recorded them."""

from __future__ import annotations

from threadline.kernel.event import Event

MAIL_SENT = "mail_sent"
"""A provider has taken a mail: ``message`` (the effect's id), ``template``, ``version``, ``sender``, ``address``,
``subject``, ``topic``, ``transactional``, ``occurrence``, what it belongs to (``journey`` or ``broadcast``, ``step``,
``arm``), ``provider`` and ``provider_id``."""
MAIL_SKIPPED = "mail_skipped"
"""A mail that a policy wished for was not sent: ``message``, ``template`` and the ``reason``, such as
``unsubscribed`` or ``template_failed``, with ``details`` where there are any."""
MAIL_REQUESTED = "mail_requested"
"""A caller wants one mail to be sent: ``template``, ``variables``, ``sender``, ``topic``."""


def is_trusted(event: Event) -> bool:
    """Whether the event tells of a mail of ours: nobody reports one with a public write key."""
    return event.source_type != "external"
