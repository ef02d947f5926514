"""The calendar: local days, weeks, months and times of day of a zone as numbers, and when each begins."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, from_datetime
from threadline.kernel.zones import zone_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIRST, _LAST = 1 - _EPOCH_ORDINAL, date.max.toordinal() - _EPOCH_ORDINAL
"""The days of the years 1 to 9999."""
_YEARS = range(1970, 2038)
"""Where leaps over a day are looked for: within the data of zones."""
_LOCAL_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?")
_DAYS_MAX = 9
"""A week, and the days that a zone may leave out when it is moved over the date line."""

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def offset(zone: str, at: int) -> int:
    """How far local time is ahead of UTC at an instant, microseconds."""
    known = day_offset(zone, at // DAY)
    return _offset(zone, at) if known is None else known


@lru_cache(maxsize=65_536)
def day_offset(zone: str, day: int) -> int | None:
    """The offset all through one UTC day; None on a day with a transition, when the instant decides."""
    first = _offset(zone, day * DAY)
    return first if first == _offset(zone, (day + 1) * DAY - 1) else None


def _offset(zone: str, at: int) -> int:
    try:
        moment = (_EPOCH + timedelta(microseconds=at)).astimezone(zone_of(zone))
    except (OverflowError, ValueError):
        return 0
    ahead = moment.utcoffset() or timedelta()
    return (ahead.days * 86_400 + ahead.seconds) * SECOND


def local_day(zone: str, at: int, day_start: int = 0) -> int:
    """The local day of an instant, counted from 1970-01-01. ``day_start`` after midnight the day begins, microseconds.

    Before that hour the clock on the wall shows the next date already, but it is still the day before.
    """
    return (at + offset(zone, at) - day_start) // DAY


def day_begins(zone: str, day: int, day_start: int = 0) -> int:
    """The first instant from which on it is this local day or a later one, for good.

    Where clocks go back over the beginning of the day it begins twice, and the second time counts. Where they leap
    over it, it is the instant of the leap.
    """
    target = day * DAY + day_start
    for ahead in (offset(zone, target + DAY), offset(zone, target - DAY)):
        at = target - ahead
        if local_day(zone, at, day_start) >= day > local_day(zone, at - 1, day_start):
            return at
    low, high = target - 2 * DAY, target + 2 * DAY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if local_day(zone, middle, day_start) < day else (low, middle)
    return high


@lru_cache(maxsize=1_024)
def days_left_out(zone: str, day_start: int = 0) -> tuple[int, ...]:
    """The local days that this zone has never had, because it was moved over the date line: Samoa's 2011-12-30."""
    left_out: list[int] = []
    for year in _YEARS:
        low, high = ((date(start_year, 1, 1).toordinal() - _EPOCH_ORDINAL) * DAY for start_year in (year, year + 1))
        if abs(offset(zone, high) - offset(zone, low)) < 20 * HOUR:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(zone, middle) - offset(zone, low) < 12 * HOUR else (low, middle)
        left_out += range(local_day(zone, low, day_start) + 1, local_day(zone, high, day_start))
    return tuple(left_out)


# --- times of day ---------------------------------------------------------------------------


def time_of_day(text: str) -> int | None:
    """Microseconds after midnight of ``04:00``; None for anything else."""
    match = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", text, re.ASCII)
    return None if match is None else int(match[1]) * HOUR + int(match[2]) * MINUTE


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


def quiet_until(start: int, stop: int, zone: str, at: int) -> int | None:
    """The end of the quiet hours, from one time of day to another, that an instant lies in; None: it lies in none.

    It is night until the clock on the wall has passed the end for good: where it goes back over the end, until the
    second time.
    """
    day = local_day(zone, at, stop)
    end = day_begins(zone, day, stop)
    if end > at:
        return end
    clock = (at + offset(zone, at)) % DAY
    is_night = start <= clock < stop if start < stop else not stop <= clock < start
    return day_begins(zone, day + 1, stop) if is_night else None


def instant_of(local: str, zone: str) -> int | None:
    """The instant of a local time such as ``2026-11-27T10:00``; None if it is none.

    A time that a change of clocks leaves out is an hour later; of one that clocks show twice it is the first.
    """
    known = zone_of(zone)
    if known is None or not _LOCAL_TIME.fullmatch(local):
        return None
    try:
        return from_datetime(datetime.fromisoformat(local).replace(tzinfo=known))
    except ValueError:
        return None


# --- dates and periods ----------------------------------------------------------------------


def date_of(day: int) -> date:
    """The date of a day; the nearest that exists for one beyond the years 1 to 9999."""
    # An event at the end of time may be a day ahead of it in its zone.
    return date.fromordinal(min(max(day + _EPOCH_ORDINAL, 1), date.max.toordinal()))


@lru_cache(maxsize=32_768)
def day_text(day: int) -> str:
    """A day as ``2026-03-01``."""
    return date_of(day).isoformat()


def day_of(text: object) -> int | None:
    """The day that ``2026-03-01`` names; None for anything else."""
    if type(text) is not str or len(text) != 10:
        return None
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None


def period_of(cadence: str, day: int, week_start: int = 0) -> int:
    """The period that a day lies in: days, weeks and months are each counted from 1970. ``week_start`` 0 is Monday."""
    if cadence == "day":
        return day
    if cadence == "week":
        # 1970-01-01 was a Thursday.
        return (day + 3 - week_start) // 7
    when = date_of(day)
    return (when.year - 1970) * 12 + when.month - 1


def first_day(cadence: str, period: int, week_start: int = 0) -> int:
    """The first day of a period; its last one is the day before the first of the next."""
    if cadence == "day":
        return period
    if cadence == "week":
        return period * 7 - 3 + week_start
    year = min(max(1970 + period // 12, 1), date.max.year)
    return date(year, period % 12 + 1, 1).toordinal() - _EPOCH_ORDINAL


# --- one calendar for everyone --------------------------------------------------------------


def month_of(day: int) -> int:
    """The number of the month of a day, from January of the year 0."""
    return period_of("month", day) + 1970 * 12


def week_of(day: int) -> int:
    """The first day, a Monday, of the week of a day."""
    return first_day("week", period_of("week", day))


def month_text(month: int) -> str:
    """A month as 2026-03."""
    return f"{month // 12:04d}-{month % 12 + 1:02d}"


@dataclass(frozen=True)
class Calendar:
    """The days and months of one zone that everybody shares: a day's leaderboard must be the same day for everyone.

    Days are counted from 1970-01-01, weeks begin on Monday, months are counted from January of the year 0.
    """

    timezone: str = "UTC"

    def day(self, at: int) -> int:
        """The number of the day in which an instant lies."""
        return at // DAY if self.timezone == "UTC" else local_day(self.timezone, at)

    def start(self, day: int) -> int:
        """The first instant of a day."""
        day = min(max(day, _FIRST), _LAST)
        if self.timezone == "UTC" or not _FIRST + 1 < day < _LAST - 1:
            return day * DAY
        return day_begins(self.timezone, day)

    def start_of_month(self, month: int) -> int:
        """The first instant of a month."""
        year, index = divmod(month, 12)
        if not 1 <= year <= 9_999:
            return self.start(_FIRST if year < 1 else _LAST + 1)
        return self.start(date(year, index + 1, 1).toordinal() - _EPOCH_ORDINAL)
