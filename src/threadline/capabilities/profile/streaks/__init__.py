"""Streaks: how many days, weeks or months in a row a person was active, by their own calendar, exact at the instant.

What it promises: a streak is a function of the set of local days, so no order of arrival can break it and a late event
repairs it; each event has the local day of its own zone, and no day is gained by changing zones; it is 0 once a day is
missed, not when somebody next looks; freezes, grace and amnesty are computed from the same set, so that they are given
back when a late event shows that they were not needed. Milestones are reported once, when they are reached.
"""

from threadline.capabilities.profile.streaks.definition import Streak, StreakSet, read_streaks
from threadline.capabilities.profile.streaks.projection import projection
from threadline.kernel.capability import Capability

CAPABILITY = Capability("streaks", __name__)

__all__ = ["CAPABILITY", "Streak", "StreakSet", "projection", "read_streaks"]
