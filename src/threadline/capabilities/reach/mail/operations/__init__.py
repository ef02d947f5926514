"""What callers ask about mail, and the one that they can send."""

from __future__ import annotations

from threadline.kernel.operation import Group

MAIL_GROUP = Group("mail", "Mail to people: templates, previews, and what was sent.")
