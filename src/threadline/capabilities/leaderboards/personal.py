"""What the store has of a person's places on leaderboards."""

from __future__ import annotations

from threadline.capabilities.leaderboards.events import LEADERBOARD_SCORED
from threadline.capabilities.leaderboards.projection import NAME
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views
from threadline.kernel.ranking import TABLE

BOARD_TABLE = StoreTable(TABLE, "state_rows", shown_in="leaderboards")
LEADERBOARDS_FILE = PersonFile(
    "leaderboards", "Your places on leaderboards", "Your scores on leaderboards, without the names of others.",
    joined(shown_views(NAME), shown_events(LEADERBOARD_SCORED)), (NAME,),
)  # fmt: skip
