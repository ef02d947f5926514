"""Local time of a recipient: the next time of day on certain weekdays, and hours in which no mail is sent."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from threadline.capabilities.mail.definition import QuietHours
from threadline.capabilities.streaks.civil import day_begins, local_day, offset
from threadline.kernel.time import DAY
from threadline.kernel.zones import canonical_zone

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_DAYS_MAX = 9
"""A week, and the days that a zone may leave out when it is moved over the date line."""


def zone_of_recipient(profile: Any, otherwise: str) -> str:
    """The zone of the trait `timezone`, or another one where that names none."""
    traits = profile.get("traits") if isinstance(profile, dict) else None
    named = traits.get("timezone") if isinstance(traits, dict) else None
    return (canonical_zone(named) if type(named) is str else None) or otherwise


def next_time_of_day(zone: str, since: int, time_of_day: int, weekdays: Collection[int] = ()) -> int:
    """The first instant, not before ``since``, at which the clocks of a zone show a time of day on one of these days.

    Where clocks leap over it, it is the instant of the leap; where they show it twice, the second time.
    """
    day = local_day(zone, since, time_of_day)
    for later in range(_DAYS_MAX + 1):
        at = day_begins(zone, day + later, time_of_day)
        # A day that the zone leaves out begins with the day after it.
        is_that_day = local_day(zone, at, time_of_day) == day + later
        if at >= since and is_that_day and (not weekdays or (day + later + 3) % 7 in weekdays):
            return at
    return since


def quiet_until(hours: QuietHours, zone: str, at: int) -> int | None:
    """The end of the quiet hours that an instant lies in, by the clock on the recipient's wall; None: in none.

    It is night until the clock has passed the end for good: where it goes back over the end, until the second time.
    """
    day = local_day(zone, at, hours.stop)
    end = day_begins(zone, day, hours.stop)
    if end > at:
        return end
    clock = (at + offset(zone, at)) % DAY
    is_night = (
        hours.start <= clock < hours.stop
        if hours.start < hours.stop
        else not hours.stop <= clock < hours.start
    )  # fmt: skip
    return day_begins(zone, day + 1, hours.stop) if is_night else None
