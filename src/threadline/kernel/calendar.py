"""The calendar: time zones by name; local days, weeks, months and times of day as numbers, and when each begins."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo

from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, from_datetime
from threadline.kernel.windows_zones import WINDOWS_ZONES

# --- zones -----------------------------------------------------------------------------------------

ZONE_NAME_LENGTH_MAX = 64

_FIXED = re.compile(r"(?:utc|gmt)?([+-])([01]?\d)(?::?([0-5]\d))?", re.ASCII)
_LEAST, _MOST = timedelta(hours=-12), timedelta(hours=14)
"""No clock on earth is further behind or ahead."""
_NO_PLACE = frozenset({"Factory"})
"""Names in the database that stand for a clock which nobody has set."""
_PLAIN = frozenset({"Etc/UTC", "Etc/GMT"})
"""Two zones of the database that differ in what they call themselves only; here both are ``UTC``."""


@lru_cache(maxsize=1)
def zone_names() -> Mapping[str, str]:
    """Every name of a zone of the IANA database, and the one that the zone goes by.

    Both are read from the package ``tzdata``: what an operating system has besides, such as ``localtime`` or
    ``right/UTC``, means something else on every machine. A former or other name goes by the one that it links to,
    ``Asia/Calcutta`` by ``Asia/Kolkata``. A name that the database lists for a place stands for itself, even where its
    clocks are those of another: Oslo is not Berlin.
    """
    package = resources.files("tzdata")
    names, rules, table = (
        package.joinpath(*path).read_text(encoding="utf-8").splitlines()
        for path in (("zones",), ("zoneinfo", "tzdata.zi"), ("zoneinfo", "zone.tab"))
    )
    links = {name: target for _, target, name in (line.split() for line in rules if line[:2] == "L ")}
    places = {line.split("\t")[2] for line in table if line and line[0] != "#"}

    def goes_by(name: str) -> str:
        while name not in places and name in links:
            name = links[name]
        return "UTC" if name in _PLAIN else name

    return {name: goes_by(name) for name in names if name not in _NO_PLACE}


@lru_cache(maxsize=1)
def _names_in_small_letters() -> Mapping[str, str]:
    return {name.lower(): name for name in (*WINDOWS_ZONES, *zone_names())}


@lru_cache(maxsize=4_096)
def zone_of(name: str) -> tzinfo | None:
    """The zone that a text names, None if it names none.

    That is an IANA name such as ``Europe/Rome``, one of Windows such as ``W. Europe Standard Time``, or an offset from
    ``-12:00`` to ``+14:00``, which may follow ``UTC`` or ``GMT``: ``+05:30``, ``+0530``, ``UTC+2``. Capitals and
    blanks around it make no difference. Clients write what their system calls its zone, and a day that is counted by
    UTC instead is wrong without anybody seeing it.
    """
    if len(name) > ZONE_NAME_LENGTH_MAX:
        return None
    text = name.strip().lower()
    # A name goes before an offset: the database has `GMT+0`, and Windows `UTC-11`.
    known = _names_in_small_letters().get(text)
    if known is not None:
        return ZoneInfo(WINDOWS_ZONES.get(known, known))
    fixed = _FIXED.fullmatch(text)
    if fixed is None:
        return None
    size = timedelta(hours=int(fixed[2]), minutes=int(fixed[3] or 0)) * (-1 if fixed[1] == "-" else 1)
    return timezone(size) if _LEAST <= size <= _MOST else None


# --- whose zone -----------------------------------------------------------------------------
#
# An event counts in the zone that it names itself (`zone_named` of ``context.timezone``), a person is written to in
# the zone that they are known to have (`zone_of_person`), and what everybody shares goes by the zone of the
# definitions (`threadline.kernel.calendar.Calendar`).


def zone_named(name: Any) -> str | None:
    """The zone that a value of an event or a profile names, by the name that it goes by; None: it names none."""
    return canonical_zone(name) if type(name) is str else None


def zone_translated(name: Any) -> str | None:
    """The IANA name of the zone that Windows calls so; None for all else, also for an IANA name."""
    known = _names_in_small_letters().get(name.strip().lower(), "") if type(name) is str else ""
    return WINDOWS_ZONES.get(known)


def zone_of_person(profile: Any, otherwise: str) -> str:
    """The zone of the trait `timezone` of a profile, or another one where that names none."""
    traits = profile.get("traits") if isinstance(profile, dict) else None
    return zone_named(traits.get("timezone") if isinstance(traits, dict) else None) or otherwise


@lru_cache(maxsize=4_096)
def canonical_zone(name: str) -> str | None:
    """The name that a zone goes by, the same for all its names: an IANA name or ``+05:30``; None for what is no
    zone."""
    zone = zone_of(name)
    if zone is None:
        return None
    if zone == UTC:
        return "UTC"
    if isinstance(zone, ZoneInfo):
        return zone_names()[zone.key]
    return f"{zone.tzname(None)}"[len("UTC") :]


# --- days and times --------------------------------------------------------------------------------

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


def month_text(month: int) -> str:
    """A month as 2026-03."""
    return f"{month // 12:04d}-{month % 12 + 1:02d}"


@dataclass(frozen=True)
class Calendar:
    """The days and months of one zone that everybody shares: a day's leaderboard must be the same day for everyone.

    Days are counted from 1970-01-01, months from January of the year 0.
    """

    timezone: str = "UTC"
    week_start: int = 0
    """The weekday on which a week begins, 0 is Monday."""

    def day(self, at: int) -> int:
        """The number of the day in which an instant lies."""
        return at // DAY if self.timezone == "UTC" else local_day(self.timezone, at)

    def start(self, day: int) -> int:
        """The first instant of a day."""
        day = min(max(day, _FIRST), _LAST)
        if self.timezone == "UTC" or not _FIRST + 1 < day < _LAST - 1:
            return day * DAY
        return day_begins(self.timezone, day)

    def week(self, day: int) -> int:
        """The first day of the week of a day."""
        return first_day("week", period_of("week", day, self.week_start), self.week_start)

    def day_before(self, at: int) -> int:
        """The instant at which clocks showed the same time of day, a day before."""
        moment = (_EPOCH + timedelta(microseconds=at)).astimezone(zone_of(self.timezone))
        # Where clocks leapt over that time or showed it twice: an hour later, and the first time.
        return from_datetime((moment - timedelta(days=1)).replace(fold=0))

    def start_of_month(self, month: int) -> int:
        """The first instant of a month."""
        year, index = divmod(month, 12)
        if not 1 <= year <= 9_999:
            return self.start(_FIRST if year < 1 else _LAST + 1)
        return self.start(date(year, index + 1, 1).toordinal() - _EPOCH_ORDINAL)
