"""What the store has of a person's places on leaderboards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from threadline.capabilities.profile.leaderboards.definition import Boards
from threadline.capabilities.profile.leaderboards.events import LEADERBOARD_SCORED
from threadline.capabilities.profile.leaderboards.operations.standing import StandingParams, standing
from threadline.capabilities.profile.leaderboards.projection import NAME
from threadline.kernel.errors import Conflict
from threadline.kernel.personal import PersonFile, StoreTable, Subject, joined, shown_events, shown_views
from threadline.kernel.ranking import TABLE

BOARD_TABLE = StoreTable(TABLE, "state_rows", shown_in="leaderboards")


def leaderboards_file(boards: Boards) -> PersonFile:
    """The file of a person's scores on these boards, with the ranks of the present periods."""
    standing_on = standing(boards)

    def ranks(subject: Subject) -> Iterator[dict[str, Any]]:
        shown = subject.views.get(NAME, {})
        for board in boards.boards:
            for period in board.periods:
                for scope in ("", *shown.get(board.name, {}).get("scopes", ())):
                    asked = {"id": subject.person.id, "name": board.name, "period": period, "scope": scope}
                    params = msgspec.convert(asked, StandingParams)
                    try:
                        place = standing_on(subject, params)
                    except Conflict:
                        return  # not everybody is on the boards yet, so that nobody has a rank
                    if place.rank is not None:
                        yield {
                            "name": board.name,
                            "period": place.period,
                            "among": scope,
                            "rank": place.rank,
                            "of": place.total,
                            "score": place.score,
                        }

    return PersonFile(
        "leaderboards",
        "Your places on leaderboards",
        "Your scores and ranks on leaderboards, without the names of others.",
        joined(shown_views(NAME), ranks, shown_events(LEADERBOARD_SCORED)),
        (NAME,),
    )
