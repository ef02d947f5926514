"""The event that says what somebody was shown."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from threadline.kernel.event_type import EventType, Properties

FLAG_EXPOSED = "flag_exposed"
SOURCE = "threadline.flags"


class FlagExposed(Properties):
    """Which variant of which flag."""

    flag: Annotated[str, Meta(description="The flag.")]
    variant: Annotated[str, Meta(description="The variant that the person was shown.")]
    reason: Annotated[str, Meta(description="Why: SPLIT, TARGETING_MATCH, STATIC, DEFAULT or DISABLED.")]


EVENT_TYPES = (
    EventType(
        FLAG_EXPOSED,
        "Somebody was shown a variant of a flag: once a day for each.",
        FlagExposed,
        speaker="threadline",
        sentence="Was shown {variant} of the flag {flag}",
        shown=("flag", "variant", "reason"),
        lasts="experiments compare people by what they were shown",
    ),
)
