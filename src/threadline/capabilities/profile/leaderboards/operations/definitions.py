"""The leaderboards that are declared."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.profile.leaderboards.definition import Boards
from threadline.capabilities.profile.leaderboards.operations import LEADERBOARDS_GROUP
from threadline.capabilities.profile.streaks.definition import WEEKDAYS
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, NoParams, Operation, shaped_operation


@key_fields("name", "description", "periods")
@not_personal
class BoardView(msgspec.Struct, kw_only=True):
    """What a board ranks, and among whom."""

    name: str
    description: str
    score: str
    periods: list[str]
    per: Annotated[str, Meta(description="The trait whose values have boards of their own; empty: none.")]
    tags: list[str]
    segments: Annotated[list[str], Meta(description="The segments whose members have boards of their own.")] = []


class BoardsResult(msgspec.Struct, kw_only=True):
    """Every board in force."""

    timezone: Annotated[str, Meta(description="The zone whose days, weeks and months these are.")]
    week_starts_on: Annotated[str, Meta(description="The first day of a week.")]
    boards: list[BoardView]


@shaped_operation("GET /v1/leaderboards", LEADERBOARDS_GROUP)
def list_(boards: Boards, context: Context, params: NoParams) -> BoardsResult:
    """List the leaderboards that are declared."""
    return BoardsResult(
        timezone=boards.timezone,
        week_starts_on=WEEKDAYS[boards.week_start],
        boards=[
            BoardView(
                name=b.name,
                description=b.description,
                score=".".join(b.path),
                periods=list(b.periods),
                per=b.per,
                tags=list(b.tags),
                segments=list(b.segments),
            )
            for b in boards.boards
        ],
    )


def operations(boards: Boards) -> list[Operation]:
    """The operation that lists these definitions."""
    return [list_(boards)]
