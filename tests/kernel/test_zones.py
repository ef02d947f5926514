"""Zones: which names are zones, and which of them are one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from threadline.kernel.zones import canonical_zone, zone_names, zone_of


@pytest.mark.parametrize(
    "name",
    [
        # What an operating system has beside the database.
        "localtime", "posixrules", "posix/Europe/Rome", "right/Europe/Rome", "Factory", "posix", "Europe",
        "europe/rome", "../etc/passwd", "/etc/localtime", " UTC", "", "UTC+2", "+5:30", "+0530", "+14:01", "+23:59",
        "-12:01", "+05:60", "a" * 65,
    ],
)  # fmt: skip
def test_what_is_no_zone(name: str) -> None:
    assert zone_of(name) is None
    assert canonical_zone(name) is None


@pytest.mark.parametrize(
    ("canonical", "others"),
    [
        ("Asia/Kolkata", ["Asia/Kolkata", "Asia/Calcutta"]),
        ("Asia/Kathmandu", ["Asia/Kathmandu", "Asia/Katmandu"]),
        ("America/New_York", ["America/New_York", "US/Eastern"]),
        ("Europe/Kyiv", ["Europe/Kyiv", "Europe/Kiev"]),
        ("UTC", ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Universal", "Greenwich", "+00:00", "-00:00"]),
        ("+05:30", ["+05:30"]),
        ("+14:00", ["+14:00"]),
        ("-12:00", ["-12:00"]),
        ("Etc/GMT+12", ["Etc/GMT+12"]),
        # Their clocks agree since 1970, but they are two places.
        ("Europe/Oslo", ["Europe/Oslo"]),
        ("Atlantic/Reykjavik", ["Atlantic/Reykjavik"]),
    ],
)
def test_names_of_one_zone(canonical: str, others: list[str]) -> None:
    assert [canonical_zone(name) for name in others] == [canonical] * len(others)


def test_a_name_shows_the_same_clock_as_the_one_that_it_goes_by() -> None:
    instants = [datetime(year, month, 1, 12, tzinfo=UTC) for year in (2011, 2026) for month in (1, 7)]
    assert len(zone_names()) > 500
    for name, canonical in zone_names().items():
        assert canonical_zone(canonical) == canonical
        for at in instants:
            assert at.astimezone(zone_of(name)).utcoffset() == at.astimezone(zone_of(canonical)).utcoffset(), name


def test_offsets_and_names_are_what_they_say() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    assert at.astimezone(zone_of("Europe/Rome")).utcoffset() == timedelta(hours=1)
    assert at.astimezone(zone_of("-09:30")).utcoffset() == timedelta(hours=-9, minutes=-30)
