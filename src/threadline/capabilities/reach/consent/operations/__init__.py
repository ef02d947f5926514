"""What can be asked about consent: topics, a person's subscriptions, and suppressed addresses."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from threadline.kernel.operation import Group

CONSENT_GROUP = Group("consent", "Topics, and who is subscribed to them.")
SUPPRESSION_GROUP = Group("suppression", "Addresses that get no mail of any kind.")

Address = Annotated[
    str,
    Meta(
        description="A mail address, such as ada@example.com.",
        min_length=3,
        max_length=254,
        extra_json_schema={"pattern": r"^[^@\s]+@[^@\s]+$"},
    ),
]
