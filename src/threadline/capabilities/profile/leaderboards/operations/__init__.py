"""What can be asked about leaderboards: the top, a person's own place, the definitions."""

from __future__ import annotations

from threadline.kernel.operation import Group

LEADERBOARDS_GROUP = Group("leaderboards", "Ranks of people, now or in any past period.")
