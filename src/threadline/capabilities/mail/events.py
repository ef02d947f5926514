"""The events of mail that are not feedback. They count only where Threadline itself has recorded them."""

from __future__ import annotations

from threadline.capabilities.feedback.events import MAIL_SENT, MAIL_SKIPPED, is_trusted

__all__ = ["MAIL_REQUESTED", "MAIL_SENT", "MAIL_SKIPPED", "is_trusted"]

MAIL_REQUESTED = "mail_requested"
"""A caller wants one mail to be sent: ``template``, ``variables``, ``sender``, ``topic``, ``event``."""
