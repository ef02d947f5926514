"""The first places of a leaderboard, now or in any past period."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from threadline.capabilities.foundation.events.forms import instant
from threadline.capabilities.profile.leaderboards.definition import Boards
from threadline.capabilities.profile.leaderboards.operations import LEADERBOARDS_GROUP
from threadline.capabilities.profile.leaderboards.operations.board_query import (
    BoardChoice,
    BoardQuery,
    Leaderboard,
    parts_of,
)
from threadline.capabilities.profile.leaderboards.recomputed import Nearest
from threadline.kernel.operation import Context, Operation, shaped_operation


class BoardParams(BoardChoice, kw_only=True):
    """Which board, and how much of it."""

    limit: Annotated[int, Meta(description="How many places.", ge=1, le=1_000)] = 10


@shaped_operation(
    "GET /v1/leaderboards/{name}",
    LEADERBOARDS_GROUP,
    relies_on=("leaderboards",),
    relied_on=parts_of,
    example=BoardParams(name="points", period="week", limit=10),
)
def top(boards: Boards, context: Context, params: BoardParams) -> Leaderboard:
    """List the top of a leaderboard, now or for any past period."""
    asked = BoardQuery(boards, context, params)
    total: int | None = None
    read = 0
    if asked.from_rows:
        places = context.engine.ranks.best(asked.key, context.now, params.limit, expiring=asked.board.expiring)
        total = len(places) if len(places) < params.limit else None
    else:
        best = Nearest(params.limit)
        past = asked.past(best)
        places, total, read = best.places, past.total, past.read
    return Leaderboard(
        name=params.name,
        period=asked.period.text,
        scope=params.scope,
        total=total,
        as_of=instant(context.now),
        people_read=read,
        places=asked.entries(places),
    )


def operations(boards: Boards) -> list[Operation]:
    """The operation that lists the first places of these boards."""
    return [top(boards)]
