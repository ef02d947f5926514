"""What the auditors start from: events as they were told, and their ids; it shares no code with the engine either."""

from __future__ import annotations

import hashlib
from typing import Any

SentEvent = dict[str, Any]
"""An event as it was told: workspace, source, key, type, identifiers, occurred_at, properties, context, object_ref; and
recorded_at where it matters when it became known."""

DAY = 86_400_000_000
"""Microseconds."""
PASSIVE = (
    "campaign_delivered",
    "campaign_ignored",
    "tag_added",
    "tag_removed",
    "fact_remembered",
    "fact_computed",
    "fact_retracted",
    "fact_restored",
    "agent_insight",
)
"""What only happens to a person, or is noted of them."""


def event_id(event: SentEvent) -> str:
    """The id of an event: a hash of what makes it unique."""
    text = event["workspace"] + "\0" + event["source"] + "\0" + event["key"]
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
