"""Times and durations: exact to the microsecond, in every form that clients write."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.kernel import time
from threadline.kernel.errors import InvalidValue
from threadline.kernel.time import (
    DAY,
    EARLIEST,
    HOUR,
    LATEST,
    MINUTE,
    SECOND,
    YEAR,
    format_duration,
    format_time,
    from_datetime,
    parse_duration,
    parse_time,
    to_datetime,
)

NOON = 1_772_366_400 * SECOND
"""2026-03-01T12:00:00Z, by `date -d … +%s`."""

instants = st.integers(EARLIEST, LATEST)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2026-03-01T12:00:00Z", NOON),
        ("2026-03-01T12:00:00.123Z", NOON + 123_000),
        ("2026-03-01T12:00:00.123456789Z", NOON + 123_456),
        ("2026-03-01T12:00:00,5Z", NOON + 500_000),
        ("2026-03-01t12:00:00z", NOON),
        (" 2026-03-01 12:00:00 ", NOON),
        ("2026-03-01T12:00Z", NOON),
        ("20260301T120000Z", NOON),
        ("2026-03-01", NOON - 12 * HOUR),
        ("20260301", NOON - 12 * HOUR),
        ("2026-03-01T09:00:00.000-03:00", NOON),
        ("2026-03-01T17:30:00+0530", NOON),
        ("2026-03-01T14:00:00+02", NOON),
        ("2026-03-01T12:00:00.000000+00:00", NOON),
        ("2016-12-31T23:59:60Z", 1_483_228_800 * SECOND),
        ("2016-12-31T23:59:60.9Z", 1_483_228_800 * SECOND),
        ("0001-01-01T00:00:00Z", EARLIEST),
        ("9999-12-31T23:59:59.999999Z", LATEST),
    ],
)
def test_forms_of_an_instant(text: str, at: int) -> None:
    assert parse_time(text) == at


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026",
        "2026-03",
        "2026-02-30",
        "2026-13-01",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:60:00Z",
        "2026-03-01T12:00:61Z",
        "2026-W09-7",
        "2026-W09-7T12:00:00Z",
        "1772366400",
        "2026-03-01T12:00:00+25:00",
        "2026-03-01T12:00:00+01:60",
        "2026-03-01T12:00:00+00:00:30",
        "2026-03-01T12:00:00 CET",
        "٢٠٢٦-03-01",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "2026-03-01T12:00:00.Z",
        "2026-03-01T12:00:00Z" + " " * 60,
        # Valid by themselves, but not between the first and the last instant that can be written back.
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59.999999-00:01",
        "9999-12-31T23:59:60Z",
    ],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_time(text)


@given(instants)
def test_an_instant_comes_back_to_the_microsecond(at: int) -> None:
    text = format_time(at)
    assert parse_time(text) == at
    assert from_datetime(to_datetime(at)) == at
    assert text.endswith("Z")
    assert len(text) == len("2026-03-01T12:00:00.000000Z")


@given(instants, instants)
def test_written_instants_sort_as_text(one: int, other: int) -> None:
    assert (format_time(one) < format_time(other)) == (one < other)


@given(st.datetimes(), st.integers(-23 * 60 - 59, 23 * 60 + 59))
def test_offsets_agree_with_the_standard_library(moment: datetime, minutes: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if EARLIEST <= expected <= LATEST:
        assert parse_time(aware.isoformat()) == expected
        assert from_datetime(aware) == expected
    else:
        with pytest.raises(InvalidValue):
            parse_time(aware.isoformat())


near_times = st.from_regex(
    r"\A[0-9]{3}[1-9]-[01][0-9]-[0-2][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]([.,][0-9]{0,8})?"
    r"(Z|z|[+-][0-2][0-9]:?[0-9]{0,2}(:[0-9]{2})?)?\Z"
)


@given(near_times)
def test_the_fast_way_reads_nothing_differently_from_the_general_one(text: str) -> None:
    def read(how: Callable[[str], int]) -> int | None:
        try:
            at = how(text)
        except InvalidValue:
            return None
        return at if EARLIEST <= at <= LATEST else None

    assert read(parse_time) == read(time._parse_any_time)


def test_the_fast_way_is_taken_by_what_clients_send() -> None:
    for text in ("2026-11-21T00:48:41.969Z", "2026-11-21T00:46:25.242+00:00", "2024-02-29T23:30:00.123456-03:00"):
        assert time._USUAL.fullmatch(text) is not None


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no time zone"):
        from_datetime(datetime(2026, 3, 1))  # noqa: DTZ001 — the very thing under test


def test_to_datetime_shifts_the_clock_and_not_the_instant() -> None:
    moment = to_datetime(NOON, 5 * 3600 + 1800)
    assert moment.isoformat() == "2026-03-01T17:30:00+05:30"
    assert moment.date() == date(2026, 3, 1)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("30d", 30 * DAY),
        ("12h", 12 * HOUR),
        ("1y", YEAR),
        ("1d12h", 36 * HOUR),
        ("90m", 90 * MINUTE),
        ("1us", 1),
        ("2w", 14 * DAY),
        ("1500ms", 1_500_000),
    ],
)
def test_durations(text: str, size: int) -> None:
    assert parse_duration(text) == size


@pytest.mark.parametrize("text", ["", "0d", "d", "1", "-1d", "1.5h", "1 d", "1D", "30 days", "1d,2h", "9999999999d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_duration(text)


@given(st.integers(1, 100 * YEAR))
def test_a_duration_comes_back(size: int) -> None:
    text = format_duration(size)
    assert parse_duration(text) == size
    assert re.fullmatch(r"([0-9]+[a-z]+)+", text)
