"""Leaderboards: who has most of something, among everyone, of a region or of a tag, by day, week, month or for ever.

What it promises: a board is declared, and its rows are written in the commit that changes a score. The first places,
the places around somebody and everybody's rank are exact as of that commit; equal scores share a rank. A streak that
has died is on no board from that very instant. Any past period can be had again, from rows or from the log.
"""

from threadline.capabilities.profile.leaderboards.definition import BoardDefinition, Boards, read_boards
from threadline.capabilities.profile.leaderboards.policy import boards_policy
from threadline.capabilities.profile.leaderboards.projection import boards_projection
from threadline.kernel.capability import Capability

CAPABILITY = Capability("leaderboards", __name__)

__all__ = ["CAPABILITY", "BoardDefinition", "Boards", "boards_policy", "boards_projection", "read_boards"]
