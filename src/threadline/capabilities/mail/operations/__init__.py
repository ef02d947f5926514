"""What callers ask about mail, and the one that they can send."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.mail.operations.group import MAIL_GROUP as MAIL_GROUP
from threadline.capabilities.mail.templates import Templates


def operations(templates: Templates) -> list[Any]:
    """All operations on mail."""
    return []
