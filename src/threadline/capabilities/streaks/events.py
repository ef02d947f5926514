"""The event types of streaks: those that callers send, and those that Threadline emits."""

from __future__ import annotations

from threadline.kernel.lasting import Lasting, for_life

STREAK_MILESTONE_REACHED = "streak_milestone_reached"
"""A streak that is alive has become as long as one of its milestones; ``streak``, ``length``, ``day``. Ours."""
ZONE_HOPPING_DETECTED = "zone_hopping_detected"
"""The person's events named another time zone more than twice within 24 hours; ``changes``, ``zones``. Ours."""
STREAK_FREEZE_GRANTED = "streak_freeze_granted"
"""The person was given freezes, bought or as a present: ``freezes``, 1 if absent; ``streak``, all of them if absent."""
STREAK_AMNESTY_GRANTED = "streak_amnesty_granted"
"""Nobody shall lose a streak over these local days: ``from`` and ``to``, both included; ``streak``, all if absent."""

OURS = frozenset({STREAK_MILESTONE_REACHED, ZONE_HOPPING_DETECTED, STREAK_FREEZE_GRANTED, STREAK_AMNESTY_GRANTED})
"""None of these is something the person did, so none is activity."""

LASTING = Lasting(
    "streaks",
    for_life((STREAK_FREEZE_GRANTED, STREAK_AMNESTY_GRANTED), "a streak goes on over the days that it saved"),
    made=OURS,
)
