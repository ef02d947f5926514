"""What became of mails, in the order in which screens show it."""

from __future__ import annotations

COUNTED = ("sent", "delivered", "opened", "clicked", "bounced", "complained", "replied")
"""Members of the counts of `feedback_counters`."""
