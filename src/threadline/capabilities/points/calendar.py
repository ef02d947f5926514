"""One calendar for everyone: the days and months of the definitions' time zone as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from threadline.kernel.time import DAY, SECOND, from_datetime, to_datetime

_EPOCH = date(1970, 1, 1)
_LAST = (date.max - _EPOCH).days
_FIRST = (date.min - _EPOCH).days


@dataclass(frozen=True)
class Calendar:
    """Days are counted from 1970-01-01, weeks begin on Monday, months are counted from January of the year 0.

    All people share one zone here, unlike in streaks: a day's leaderboard must be the same day for everyone.
    """

    timezone: str = "UTC"
    _zone: ZoneInfo | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_zone", None if self.timezone == "UTC" else ZoneInfo(self.timezone))

    def day(self, at: int) -> int:
        """The number of the day in which an instant lies."""
        if self._zone is None:
            return at // DAY
        try:
            offset = to_datetime(at).astimezone(self._zone).utcoffset()
        except (OverflowError, ValueError):
            offset = None  # the first and the last representable hours lie outside the zone's own years
        return (at + (0 if offset is None else int(offset.total_seconds()) * SECOND)) // DAY

    def start(self, day: int) -> int:
        """The first instant of a day."""
        day = min(max(day, _FIRST), _LAST)
        if self._zone is None or not _FIRST + 1 < day < _LAST - 1:
            return day * DAY
        moment = datetime.combine(date_of(day), datetime.min.time(), self._zone)
        # Where midnight does not exist the round trip leads to the instant at which the day does begin.
        return from_datetime(moment.astimezone(UTC))

    def start_of_month(self, month: int) -> int:
        """The first instant of a month."""
        year, index = divmod(month, 12)
        if not 1 <= year <= 9_999:
            return self.start(_FIRST if year < 1 else _LAST + 1)
        return self.start((date(year, index + 1, 1) - _EPOCH).days)


def month_of(day: int) -> int:
    """The number of the month of a day."""
    civil = date_of(day)
    return civil.year * 12 + civil.month - 1


def week_of(day: int) -> int:
    """The number of the first day, a Monday, of the week of a day."""
    return day - (day + 3) % 7


def date_of(day: int) -> date:
    """The date of a day's number; the nearest that exists for one beyond the years 1 to 9999."""
    return _EPOCH + timedelta(days=min(max(day, _FIRST), _LAST))


def day_text(day: int) -> str:
    """A day as 2026-03-01."""
    return date_of(day).isoformat()


def month_text(month: int) -> str:
    """A month as 2026-03."""
    return f"{month // 12:04d}-{month % 12 + 1:02d}"
