"""Putting everybody on the leaderboards again, after these were declared or changed."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.leaderboards.definition import Boards
from threadline.capabilities.leaderboards.operations import LEADERBOARDS_GROUP
from threadline.capabilities.leaderboards.refresh import refresh
from threadline.kernel.operation import NoParams, Operation


class RefreshResult(msgspec.Struct, kw_only=True):
    """What was done."""

    people: Annotated[int, Meta(description="How many people were read, those of all workspaces.")]


def operations(boards: Boards) -> list[Operation]:
    """The operation that puts everybody on these boards again."""
    return [
        Operation(
            name="leaderboards_refresh",
            group=LEADERBOARDS_GROUP,
            summary="Put everybody on the leaderboards again after these were declared or changed; reads every person.",
            params=NoParams,
            result=RefreshResult,
            run=lambda context, params: RefreshResult(people=refresh(context.engine, boards)),
            method="POST",
            path="/v1/leaderboards/refresh",
            scope="admin",
        ),
    ]
