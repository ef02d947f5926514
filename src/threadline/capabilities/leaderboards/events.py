"""The event types of leaderboards; both are Threadline's own and nothing the person did."""

from __future__ import annotations

from threadline.kernel.lasting import Lasting

LEADERBOARD_SCORED = "leaderboard_scored"
"""The number that a ``board`` ranks is another one now: its ``score`` in millionths, the ``end`` until which it counts,
and ``turn``, which grows by one each time, so that of two scores of one instant the later decision stands."""
LEADERBOARDS_REFRESHED = "leaderboards_refreshed"
"""An operator has asked to recompute the person's scores, because boards were declared or changed."""

LASTING = Lasting("leaderboards", {LEADERBOARD_SCORED: "a score is known from it"})
