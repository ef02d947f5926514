"""What the leaderboards capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.conditions.values_read import merged, traits_read
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.jobs.refreshing import refresh_by_job
from threadline.capabilities.profile.leaderboards.definition import read_boards
from threadline.capabilities.profile.leaderboards.operations import LEADERBOARDS_GROUP, definitions, standing, top
from threadline.capabilities.profile.leaderboards.personal import leaderboards_file
from threadline.capabilities.profile.leaderboards.policy import boards_policy
from threadline.capabilities.profile.leaderboards.projection import TRAIT_LENGTH_MAX, boards_projection
from threadline.capabilities.profile.leaderboards.refresh import boards_refresh
from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.kernel.reading import Reading, Readings


def declare(declared: Definitions) -> list[Any]:
    """The operations, and where there are boards the projection and the policy of them; none costs nothing."""
    boards = read_boards(declared)
    refresh = boards_refresh(boards)
    made: list[Any] = [
        *(operation for noun in (top, standing, definitions) for operation in noun.operations(boards)),
        *refresh_by_job(
            LEADERBOARDS_GROUP,
            refresh,
            "Rank everybody again, in a job.",
            "Put everybody on the leaderboards again",
        ),
        leaderboards_file(boards),
    ]
    if boards.boards:
        policy = boards_policy(boards)
        grouped = {IDENTIFY: [Reading((board.per,), "label", TRAIT_LENGTH_MAX) for board in boards.boards if board.per]}
        made.append(Readings("leaderboards", merged(traits_read(board.path for board in boards.boards), grouped)))
        made += [boards_projection(boards), refresh, *([] if policy is None else [policy])]
    return made
