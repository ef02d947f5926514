"""When a marketing mail may go, against a clock on the wall and a count of days that share no code with it."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from typing import Any, get_args
from zoneinfo import ZoneInfo

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from threadline.capabilities.reach.journeys.definition import Journey
from threadline.capabilities.reach.mail.definition import Mail
from threadline.capabilities.reach.messages.limits import Most, QuietHours, capped_until
from threadline.kernel.calendar import quiet_until
from threadline.kernel.time import DAY, MINUTE, SECOND

ZONES = (
    "Europe/Rome",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Kolkata",
    "UTC",
    "America/Sao_Paulo",
)
SPRING = 1_774_746_000 * SECOND
STEP = timedelta(minutes=30)


@cache
def changes(zone: str) -> list[int]:
    """The instants at which the clocks of a zone were or will be set in some years."""
    known = []
    for year in (2011, 2018, 2026):
        first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * SECOND
        instants = range(first, first + 366 * DAY, 30 * MINUTE)
        local = [shown(zone, at) for at in instants]
        known += [at for at, (before, now) in zip(instants[1:], pairwise(local), strict=True) if now - before != STEP]
    return known


def shown(zone: str, at: int) -> datetime:
    """What the clock of a zone shows."""
    return (
        (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    )


def is_night(start: time, stop: time, zone: str, at: int) -> bool:
    """Whether the clock shows a time of the night, or will show one again before the end that it has passed."""
    now = shown(zone, at)
    if start <= now.time() < stop if start < stop else now.time() >= start or now.time() < stop:
        return True
    end = datetime.combine(now.date(), stop)
    end = end if end <= now else end - timedelta(days=1)
    return any(shown(zone, at + later * MINUTE) < end for later in range(1, 180))


def clock_time(minutes: int) -> time:
    return time(minutes // 60, minutes % 60)


@settings(max_examples=100)
@given(
    zone=st.sampled_from(ZONES),
    near=st.integers(0, 100),
    away=st.integers(-30 * 60, 30 * 60),
    start=st.integers(0, 1_439),
    stop=st.integers(0, 1_439),
)
@example("Europe/Rome", 5, 45, 1_260, 150)
@example("Europe/Rome", 5, -15, 150, 165)
@example("Europe/Rome", 4, -15, 120, 180)
@example("Pacific/Apia", 2, -60, 1_260, 480)
def test_quiet_hours_last_until_the_clock_has_passed_their_end_for_good(
    zone: str, near: int, away: int, start: int, stop: int
) -> None:
    if start == stop:
        return
    known = changes(zone) or [SPRING]
    at = known[near % len(known)] + away * MINUTE
    hours, begins, ends = QuietHours(start=start * MINUTE, stop=stop * MINUTE), clock_time(start), clock_time(stop)
    until = quiet_until(hours.start, hours.stop, zone, at)
    assert (until is not None) == is_night(begins, ends, zone, at)
    if until is not None:
        assert at < until
        # A night that lies as a whole in the hour that is shown twice is there twice.
        inside = [each for each in range(at, until, 7 * MINUTE) if is_night(begins, ends, zone, each)]
        assert {quiet_until(hours.start, hours.stop, zone, each) for each in inside} == {until}
        assert shown(zone, until).time() == ends or until in known  # a leap over the end ends it as well


def test_mails_and_journeys_have_the_same_quiet_hours() -> None:
    assert QuietHours in {*_types(Mail), *_types(Journey)}
    assert {kind for kind in (*_types(Mail), *_types(Journey)) if kind.__name__ == "QuietHours"} == {QuietHours}


def _types(struct: type) -> list[type]:
    return [kind for field in msgspec.structs.fields(struct) for kind in _named(field.type)]


def _named(annotation: Any) -> list[type]:
    inner = [kind for part in get_args(annotation) for kind in _named(part)]
    return [*inner, annotation] if isinstance(annotation, type) else inner


@settings(max_examples=150)
@given(
    sent=st.lists(st.integers(0, 40 * DAY), max_size=12),
    caps=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 20 * DAY)), max_size=3),
)
def test_a_capped_mail_goes_as_soon_as_every_cap_allows_it(sent: list[int], caps: list[tuple[int, int]]) -> None:
    now = 40 * DAY

    def is_allowed(at: int) -> bool:
        return all(sum(at - per < each <= at for each in sent) < mails for mails, per in caps)

    until = capped_until([Most(mails, per) for mails, per in caps], sent, now)
    assert (until is None) == is_allowed(now)
    if until is not None:
        assert is_allowed(until)
        assert not is_allowed(until - 1)
