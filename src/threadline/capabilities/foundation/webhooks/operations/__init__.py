"""The operations of webhooks, a file for each noun."""

from __future__ import annotations

from threadline.kernel.operation import Group

WEBHOOKS_GROUP = Group("webhooks", "Where events are sent, and whether they arrive.")
