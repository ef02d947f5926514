"""The event types of leaderboards; both are Threadline's own and nothing the person did."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta

from threadline.kernel.event_type import MILLIONTHS, EventType, Maybe, Properties

LEADERBOARD_SCORED = "leaderboard_scored"
LEADERBOARDS_REFRESHED = "leaderboards_refreshed"


class _Scored(Properties, rename={"change": "turn"}):
    board: Annotated[str, Meta(description="The board.")]
    score: Annotated[int, MILLIONTHS, Meta(description="The number, in millionths.")]
    change: Annotated[
        int, Meta(description="Grows by one each time: of two scores of one instant the later decision stands.")
    ]
    end: Maybe[Annotated[int | None, Meta(description="Until when it counts, in microseconds.")]] = UNSET


EVENT_TYPES = (
    EventType(
        LEADERBOARD_SCORED,
        "The number that a board ranks is another one now.",
        _Scored,
        speaker="process",
        sentence="Score on {board} is now {score}",
        shown=("leaderboard", "period", "scope"),
        lasts="a score is known from it",
    ),
    EventType(
        LEADERBOARDS_REFRESHED,
        "An operator has asked to compute the person's scores again, because boards were declared or changed.",
        speaker="process",
    ),
)
