"""The event that asks for a test of a destination."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from threadline.kernel.event_type import EventType, Properties

WEBHOOK_TEST_REQUESTED = "webhook_test_requested"


class _Requested(Properties):
    destination: Annotated[str, Meta(description="The destination.")]
    payload: Annotated[dict[str, Any], Meta(description="What the test brings.")]


EVENT_TYPES = (
    EventType(
        WEBHOOK_TEST_REQUESTED,
        "An operator asks to send a destination one call as a test.",
        _Requested,
        speaker="process",
        sentence="Asked to send a test to “{destination}”",
        shown=("destination",),
    ),
)
