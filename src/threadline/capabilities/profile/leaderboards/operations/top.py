"""The first places of a leaderboard, now or in any past period."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from msgspec import Meta

from threadline.capabilities.foundation.events.forms import instant
from threadline.capabilities.profile.leaderboards.definition import Boards
from threadline.capabilities.profile.leaderboards.operations import LEADERBOARDS_GROUP
from threadline.capabilities.profile.leaderboards.operations.board_query import (
    BoardChoice,
    BoardQuery,
    Leaderboard,
    Needs,
    parts_of,
)
from threadline.capabilities.profile.leaderboards.recomputed import Nearest
from threadline.kernel.operation import Context, Operation


class BoardParams(BoardChoice, kw_only=True, forbid_unknown_fields=True):
    """Which board, and how much of it."""

    limit: Annotated[int, Meta(description="How many places.", ge=1, le=1_000)] = 10


def _leaderboard(boards: Boards, context: Context[Needs], params: BoardParams) -> Leaderboard:
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
        name=params.name, period=asked.period.text, scope=params.scope, total=total, as_of=instant(context.now),
        people_read=read, places=asked.entries(places),
    )  # fmt: skip


def operations(boards: Boards) -> list[Operation]:
    """The operation that lists the first places of these boards."""
    return [
        Operation(
            name="leaderboards_top",
            relies_on=("leaderboards",),
            relied_on=parts_of,
            group=LEADERBOARDS_GROUP,
            summary="List the top of a leaderboard, now or for any past period.",
            params=BoardParams,
            result=Leaderboard,
            run=partial(_leaderboard, boards),
            method="GET",
            path="/v1/leaderboards/{name}",
            example=BoardParams(name="points", period="week", limit=10),
        ),
    ]
