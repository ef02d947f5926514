"""The operations of webhooks, a file for each noun."""

from __future__ import annotations

from threadline.kernel.operation import Group

WEBHOOKS_GROUP = Group("webhooks", "Destinations of webhooks, and whether calls to them succeed.")
