"""Civil time: which local day an instant is in, when a local day is over, and which days a zone has left out."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND
from threadline.kernel.zones import zone_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_YEARS = range(1970, 2038)
"""Where leaps over a day are looked for: within the data of zones."""


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


# --- dates and periods ----------------------------------------------------------------------


def _date(day: int) -> date:
    # An event at the end of time may be a day ahead of it in its zone.
    return date.fromordinal(min(max(day + _EPOCH_ORDINAL, 1), date.max.toordinal()))


@lru_cache(maxsize=32_768)
def date_of(day: int) -> str:
    """A day as ``2026-03-01``."""
    return _date(day).isoformat()


def day_of(text: object) -> int | None:
    """The day that ``2026-03-01`` names; None for anything else."""
    if type(text) is not str or len(text) != 10:
        return None
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None


def time_of_day(text: str) -> int | None:
    """Microseconds after midnight of ``04:00``; None for anything else."""
    match = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", text, re.ASCII)
    return None if match is None else int(match[1]) * HOUR + int(match[2]) * MINUTE


def period_of(cadence: str, day: int, week_start: int = 0) -> int:
    """The period that a day lies in: days, weeks and months are each counted from 1970. ``week_start`` 0 is Monday."""
    if cadence == "day":
        return day
    if cadence == "week":
        # 1970-01-01 was a Thursday.
        return (day + 3 - week_start) // 7
    when = _date(day)
    return (when.year - 1970) * 12 + when.month - 1


def first_day(cadence: str, period: int, week_start: int = 0) -> int:
    """The first day of a period; its last one is the day before the first of the next."""
    if cadence == "day":
        return period
    if cadence == "week":
        return period * 7 - 3 + week_start
    year = min(max(1970 + period // 12, 1), date.max.year)
    return date(year, period % 12 + 1, 1).toordinal() - _EPOCH_ORDINAL
