"""When a marketing mail may go, against a clock on the wall and a count of days that share no code with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from threadline.capabilities.mail.definition import Cap, QuietHours
from threadline.capabilities.mail.timing import capped_until, quiet_until
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND

ZONES = (
    "Europe/Berlin",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Kolkata",
    "UTC",
    "America/Sao_Paulo",
)
SPRING, AUTUMN = 1_774_746_000 * SECOND, 1_792_890_000 * SECOND
"""Where the clocks of Berlin change in 2026: to 03:00 on March 29th, back to 02:00 on October 25th."""


def wall(zone: str, at: int) -> int:
    """Minutes since midnight on the clock of a zone."""
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).astimezone(ZoneInfo(zone))
    return local.hour * 60 + local.minute


def is_quiet(hours: QuietHours, zone: str, at: int) -> bool:
    start, stop, now = hours.start // MINUTE, hours.stop // MINUTE, wall(zone, at)
    return start <= now < stop if start < stop else now >= start or now < stop


@settings(max_examples=150)
@given(
    zone=st.sampled_from(ZONES), at=st.integers(1_767_225_600, 1_798_761_600), start=st.integers(0, 1_439),
    stop=st.integers(0, 1_439),
)  # fmt: skip
@example("Europe/Berlin", SPRING // SECOND - 60, 60, 150)
@example("Europe/Berlin", AUTUMN // SECOND - 60, 60, 150)
@example("Europe/Berlin", AUTUMN // SECOND + 60, 1_320, 480)
def test_quiet_hours_end_by_the_clock_on_the_wall(zone: str, at: int, start: int, stop: int) -> None:
    if start == stop:
        return
    hours = QuietHours(start=start * MINUTE, stop=stop * MINUTE)
    at *= SECOND
    until = quiet_until(hours, zone, at)
    assert (until is not None) == is_quiet(hours, zone, at)
    if until is None:
        return
    assert not is_quiet(hours, zone, until)
    assert at < until <= at + DAY + 2 * HOUR
    minutes = [minute for minute in range(at, until, MINUTE) if not is_quiet(hours, zone, minute)]
    # Where the clock goes back over the end, they end a second time; no mail goes in the hour between.
    assert len(minutes) <= 60


@settings(max_examples=150)
@given(
    sent=st.lists(st.integers(0, 40 * DAY), max_size=12),
    caps=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 20 * DAY)), max_size=3),
)
def test_a_capped_mail_goes_as_soon_as_every_cap_allows_it(sent: list[int], caps: list[tuple[int, int]]) -> None:
    now = 40 * DAY

    def is_allowed(at: int) -> bool:
        return all(sum(at - per < each <= at for each in sent) < mails for mails, per in caps)

    until = capped_until([Cap(mails=mails, per=per) for mails, per in caps], sent, now)
    assert (until is None) == is_allowed(now)
    if until is not None:
        assert is_allowed(until)
        assert not is_allowed(until - 1)
