"""How the state of streaks is laid out: what is settled for good, and the window in which an event may still move days.

    "head"     [block, changes, recent, leaps, unnamed]: where the window begins, where the person was before it, and
               whether any event before it named no zone
    "named"    {zone: [group, …]}: the window's events that named a zone; a group is [day, first instant, last instant,
               count, …], one for each local day, in order
    "bare"     [[day, width, slot, count, …, slot, count, …], …]: the window's events that named none, by day of UTC and
               slots of ``width`` quarters of an hour
    "d625"     [day, first instant, events, …]: records of 32 local days before the window
    "t0"       sets of days or periods of a tally before the window, see `days`
    "freezes", "undated", "amnesty", "milestones", "hops": events about streaks themselves, see `grants`

Counts are those of activity and of each other source of events that streaks count; of a group those in its first hours
follow, where a streak has a grace. An event that becomes known more than `LATE` after it occurred is settled at once.
"""

from __future__ import annotations

from typing import Any

from threadline.kernel.time import DAY, MINUTE

State = dict[str, Any]
Group = list[int]

HEAD, NAMED, BARE = "head", "named", "bare"
BLOCK, CHANGES, RECENT, LEAPS, UNNAMED = range(5)
FIRST_DAY, FIRST, LAST, COUNTS = range(4)

LATE = 32 * DAY
"""An event that becomes known later than this has no part in where the person was: it is dated by itself."""
EARLY = 2 * DAY
"""No event of the log lies further ahead of its recording."""
BLOCK_DAYS = 32
WINDOW_DAYS = 36
"""Days of UTC before the newest that the window reaches back at least: `LATE`, a day ahead, and the day of a zone."""

QUARTER = 15 * MINUTE
SLOTS_MAX = 24
"""Quarters of an hour distinguished on one day; on a day with more, hours are."""
ZONES_PER_DAY_MAX = 4
"""Zones distinguished on one local day, those with the smallest names. Events of other zones go with the last."""

DAYS_PER_PART = 32
RECORDED_PARTS_MAX = 13
"""Parts of 32 days that have records: at least 384 days before the newest. The sets reach back for life."""
RECORD_SIZE = 3
"""A day's record is [day, first event, events]; records of a part follow each other in the order of days."""
