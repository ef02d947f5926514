"""The event types of streaks: those that callers send, and those that Threadline emits."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta

from threadline.kernel.event_type import EventType, Maybe, Properties

STREAK_MILESTONE_REACHED = "streak_milestone_reached"
STREAKS_REFRESHED = "threadline.streaks_refreshed"
ZONE_HOPPING_DETECTED = "zone_hopping_detected"
STREAK_FREEZE_GRANTED = "streak_freeze_granted"
STREAK_AMNESTY_GRANTED = "streak_amnesty_granted"

OURS = frozenset({STREAK_MILESTONE_REACHED, ZONE_HOPPING_DETECTED, STREAK_FREEZE_GRANTED, STREAK_AMNESTY_GRANTED})
"""None of these is something the person did, so none is activity."""


class _Milestone(Properties):
    streak: Annotated[str, Meta(description="The streak.")]
    length: Annotated[int, Meta(description="The milestone, in periods.")]
    day: Annotated[str, Meta(description="The local day on which it was reached.")]


class _Refreshed(Properties):
    parts: Maybe[Annotated[list[str], Meta(description="The streaks; all of them if it is left out.")]] = UNSET
    before: Maybe[
        Annotated[int, Meta(description="They are looked at as they were before this instant; microseconds.")]
    ] = UNSET


class _Hopping(Properties):
    changes: Annotated[int, Meta(description="Changes within 24 hours.")]
    zones: Annotated[list[str], Meta(description="The zones, in order.")]


class _OfStreak(Properties):
    streak: Maybe[Annotated[str, Meta(description="The streak; all of them if absent.")]] = UNSET


class _Freeze(_OfStreak):
    freezes: Maybe[Annotated[int, Meta(description="How many; 1 if absent.")]] = UNSET


class _Amnesty(_OfStreak, kw_only=True, rename={"first": "from"}):
    first: Annotated[str, Meta(description="The first local day.")]
    to: Annotated[str, Meta(description="The last local day, included.")]


EVENT_TYPES = (
    EventType(
        STREAK_MILESTONE_REACHED,
        "A streak that is alive has become as long as one of its milestones.",
        _Milestone,
        speaker="threadline",
        sentence="Reached {length} in a row: {streak}",
        shown=("day", "streak"),
    ),
    EventType(
        ZONE_HOPPING_DETECTED,
        "The person's events named another time zone more than twice within 24 hours.",
        _Hopping,
        speaker="threadline",
        sentence="Changed the time zone {changes} times in a day",
        shown=("day",),
    ),
    EventType(
        STREAK_FREEZE_GRANTED,
        "The person was given freezes, bought or as a present.",
        _Freeze,
        is_activity=False,
        sentence="Was given {freezes} freezes",
        shown=("streak",),
        lasts="a streak goes on over the days that it saved",
    ),
    EventType(
        STREAK_AMNESTY_GRANTED,
        "Nobody shall lose a streak over these local days.",
        _Amnesty,
        is_activity=False,
        sentence="Streaks are safe from {from} to {to}",
        shown=("from", "streak", "to"),
        lasts="a streak goes on over the days that it saved",
    ),
    EventType(
        STREAKS_REFRESHED,
        "Somebody asks to look at the milestones of the person again.",
        _Refreshed,
        speaker="threadline",
    ),
)
