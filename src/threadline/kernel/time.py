"""Time as integers: microseconds since 1970-01-01 UTC, with text forms at the edges only.

Timestamps, durations and RFC 3339 text, without time zones; local days and weeks are in `threadline.kernel.calendar`.

    >>> from threadline.kernel.time import DAY, format_time, parse_duration, parse_time
    >>> at = parse_time("2026-01-01T00:00:00Z")
    >>> at, format_time(at + DAY), parse_duration("90m")
    (1767225600000000, '2026-01-02T00:00:00.000000Z', 5400000000)

What "at an instant" means, the same for every reader (docs/time.md; the law is tests/laws/test_instants.py):

- A view at ``t`` counts the events with ``occurred_at < t``, and no others. As of ``t``, those also known at ``t``
  (`Recorded.known_at`) or before.
- What follows from an event is decided right after it, at ``max(recorded_at, occurred_at) + 1`` (`PersonView.at`).
- A read without an instant is made at `Engine.now()`: the clock, or the instant right after the newest commit of this
  process, whichever is later. So it counts what was recorded a moment ago, also where a clock stands still.
- A timer is due at the first instant at which a view differs: ``occurred_at + 1`` for an event ahead of the clock.
"""

from __future__ import annotations

import re
import time as _time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache

from threadline.kernel.errors import InvalidValue

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
YEAR = 365 * DAY

EARLIEST = -62_135_596_800 * SECOND
"""0001-01-01T00:00:00Z."""
LATEST = 253_402_300_800 * SECOND - 1
"""9999-12-31T23:59:59.999999Z."""

CLOCK_SKEW_MAX = MINUTE
"""By how much clocks may differ, or be set, without anybody looking: what is no further ahead is waited for."""

Clock = Callable[[], int]
"""Returns the current instant in microseconds. Only the composition root and the edges hold a real one."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK, "y": YEAR}
_UNIT_TEXTS = {
    "us": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "m": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "y": "year",
}
_DURATION = re.compile(r"([0-9]{1,9})(us|ms|s|m|h|d|w|y)")
_TIME = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)"
    r"(?:[Tt ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,12}))?)?\s*([Zz]|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_USUAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:[0-5]\d)", re.ASCII)


def system_clock() -> int:
    """The machine's clock, microseconds UTC. For composition roots; everything else is handed a clock."""
    return _time.time_ns() // 1_000


def believed_until(until: int, now: int, longest: int) -> int:
    """The end of a wait that never lasts longer than ``longest``: ``until``; ``now`` if that is too far ahead.

    A clock that was ahead when the wait began leaves an end that comes days later once the clock is set right.
    """
    return until if until - now <= longest else now


def is_over(until: int, now: int, longest: int) -> bool:
    """Whether something that one process gives to another for ``longest`` at most, such as a session, has ended.

    What a clock that was ahead has given until a later day is over.
    """
    return now >= believed_until(until, now, longest + CLOCK_SKEW_MAX)


def parse_time(text: str) -> int:
    """Microseconds of an RFC 3339 / ISO 8601 instant; a date alone is its midnight, no offset means UTC.

    Digits beyond microseconds are cut. A leap second (``:60``) reads as the first instant of the next minute.
    Raises `InvalidValue` for anything else, and for what is not between `EARLIEST` and `LATEST`.
    """
    # The interpreter reads nearly all times on a wire several times faster than we do. On its own it would also read
    # much that is not RFC 3339, so the form is checked first.
    try:
        moment = datetime.fromisoformat(text) if _USUAL.fullmatch(text) else None
    except ValueError:  # such as a leap second
        moment = None
    at = _parse_any_time(text) if moment is None else from_datetime(moment)
    if not EARLIEST <= at <= LATEST:
        raise InvalidValue(f"{text[:64]!r} is not between the years 1 and 9999 in UTC")
    return at


def _parse_any_time(text: str) -> int:
    match = _TIME.fullmatch(text.strip()) if len(text) <= 64 else None
    if match is None:
        raise InvalidValue(f"{text[:64]!r} is not a time; write it like 2026-03-01T12:00:00Z")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    try:
        leap = second == "60"
        moment = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            59 if leap else int(second or 0),
            tzinfo=UTC,
        )
        micro = int((fraction or "0").ljust(6, "0")[:6]) if not leap else SECOND
    except ValueError as error:
        raise InvalidValue(f"{text[:64]!r} is not a time: {error}") from None
    return from_datetime(moment) + micro - _offset(offset)


def _offset(text: str | None) -> int:
    if text is None or text in "Zz":
        return 0
    digits = text[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:4] or 0)
    if hours > 23 or minutes > 59:
        raise InvalidValue(f"{text!r} is not an offset from UTC; write it like +02:00")
    size = hours * HOUR + minutes * MINUTE
    return -size if text[0] == "-" else size


def format_time(at: int) -> str:
    """RFC 3339 UTC with microseconds, e.g. ``2026-03-01T12:00:00.000000Z``; sorts as text."""
    # An answer about a person holds hundreds of times, most on a few days. Arithmetic costs a third of a datetime.
    day, rest = divmod(at, DAY)
    second, microsecond = divmod(rest, SECOND)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"{_day_text(day)}{_TWO[hour]}:{_TWO[minute]}:{_TWO[second]}.{microsecond:06}Z"


_TWO = [f"{number:02}" for number in range(60)]


@lru_cache(maxsize=4_096)
def _day_text(day: int) -> str:
    # strftime does not pad years below 1000 on every platform; isoformat does.
    return f"{(_EPOCH + timedelta(day)).date().isoformat()}T"


def to_datetime(at: int, offset_seconds: int = 0) -> datetime:
    """An aware datetime of an instant, by integer arithmetic, so that no microsecond is lost."""
    zone = UTC if offset_seconds == 0 else timezone(timedelta(seconds=offset_seconds))
    return (_EPOCH + timedelta(microseconds=at)).astimezone(zone)


def from_datetime(moment: datetime) -> int:
    """Microseconds of an aware datetime. A naive one is refused: its zone would be a guess."""
    if moment.tzinfo is None:
        raise InvalidValue(f"{moment!r} has no time zone; attach one, e.g. tzinfo=timezone.utc")
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds


_KEY_OFFSET = 1 << 62
"""Added to instants in keys, so that those before 1970 sort as well."""


TIME_KEY_LENGTH = 16


def time_key(at: int) -> str:
    """An instant as text of fixed width that sorts like the instant, before 1970 too."""
    return f"{at + _KEY_OFFSET:016x}"


def time_of_key(key: str) -> int:
    """The instant of a `time_key`."""
    return int(key, 16) - _KEY_OFFSET


def newest_first_key(at: int) -> str:
    """An instant as text of fixed width that sorts later instants first."""
    return f"{_KEY_OFFSET - at:016x}"


def check_date(text: str) -> None:
    """Raise `InvalidValue` for what is no date such as 2026-03-01."""
    try:
        if len(text) == len("2026-03-01") and text[4] == text[7] == "-":
            date.fromisoformat(text)
            return
    except ValueError:
        pass
    raise InvalidValue(f"{text!r} is not a date; write it like 2026-03-01")


def parse_duration(text: str) -> int:
    """Microseconds of a duration such as ``30d``, ``12h``, ``1y`` (365 days) or ``1d12h``.

    Units: us ms s m h d w y. Raises `InvalidValue` for anything else and for zero.
    """
    parts = _DURATION.findall(text)
    total = sum(int(count) * _UNITS[unit] for count, unit in parts)
    if not parts or "".join(count + unit for count, unit in parts) != text or total == 0:
        raise InvalidValue(f"{text[:32]!r} is not a duration; write it like 30d, 12h or 1y")
    return total


def format_duration(size: int) -> str:
    """The shortest text that `parse_duration` reads back to the same size."""
    parts = []
    for unit in ("y", "w", "d", "h", "m", "s", "ms", "us"):
        count, size = divmod(size, _UNITS[unit])
        if count and not (unit in "yw" and size):
            parts.append(f"{count}{unit}")
        elif count:
            size += count * _UNITS[unit]
    return "".join(parts) or "0s"


def duration_text(size: int) -> str:
    """A duration in words, such as ``2 days`` or ``1 day 12 hours``."""
    counts = [(int(count), unit) for count, unit in _DURATION.findall(format_duration(size))]
    return " ".join(f"{count:,} {_UNIT_TEXTS[unit]}{'' if count == 1 else 's'}" for count, unit in counts)
