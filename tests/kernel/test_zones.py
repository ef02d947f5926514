"""Zones: which names are zones, and which of them are one."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from threadline.capabilities.profile.features.values import week_hour
from threadline.kernel.calendar import canonical_zone, zone_names, zone_of
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.time import HOUR
from threadline.kernel.windows_zones import WINDOWS_ZONES
from threadline.wire.table_mapping import parse_mapping


@pytest.mark.parametrize(
    "name",
    [
        # What an operating system has beside the database.
        "localtime",
        "posixrules",
        "posix/Europe/Rome",
        "right/Europe/Rome",
        "Factory",
        "posix",
        "Europe",
        "../etc/passwd",
        "/etc/localtime",
        "",
        " ",
        "+14:01",
        "+23:59",
        "-12:01",
        "+05:60",
        "UTC+15",
        "a" * 65,
        # A summer time names no place, and what people are shown is in the language of their Windows.
        "CEST",
        "Standard Time",
        "(GMT+01:00) Berlin",
        "Mitteleuropäische Zeit",
    ],
)
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
        ("UTC", ["utc", " UTC", "UTC+0", "GMT+00:00", "etc/gmt"]),
        ("+05:30", ["+05:30", "+5:30", "+0530", "UTC+05:30", "GMT+5:30", "utc+0530"]),
        ("+02:00", ["+2", "+02", "GMT+2", "UTC+2", "UTC+02:00"]),
        ("-03:00", ["-3", "GMT-3", "UTC-03:00"]),
        ("Europe/Rome", ["europe/rome", "EUROPE/ROME", "Europe/Rome ", "\tEurope/Rome\n"]),
        ("Europe/Berlin", ["W. Europe Standard Time", "w. europe standard time"]),
        ("America/Los_Angeles", ["Pacific Standard Time", "US/Pacific"]),
        # The database counts the other way round from everybody else, Windows too.
        ("Etc/GMT+11", ["Etc/GMT+11"]),
        ("-11:00", ["UTC-11"]),
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


def test_every_zone_of_windows_is_one_of_the_database() -> None:
    assert len(WINDOWS_ZONES) > 130
    assert {name: canonical_zone(zone) for name, zone in WINDOWS_ZONES.items()} == WINDOWS_ZONES
    assert {name: canonical_zone(name) for name in WINDOWS_ZONES} == WINDOWS_ZONES


def test_a_clock_that_one_machine_has_is_no_zone_anywhere(tmp_path: Path) -> None:
    """What a producer names goes by the database, whatever the operating system has beside it."""
    (tmp_path / "Office").mkdir()
    (tmp_path / "Office" / "Clock").write_bytes(resources.files("tzdata").joinpath("zoneinfo/Asia/Tokyo").read_bytes())
    zoneinfo.reset_tzpath(to=[str(tmp_path)])
    try:
        assert zoneinfo.ZoneInfo("Office/Clock").utcoffset(datetime(2026, 3, 1)) == timedelta(hours=9)  # noqa: DTZ001
        assert zone_of("Office/Clock") is None
        assert week_hour({"timezone": "Office/Clock"}, 12 * HOUR, "UTC") == week_hour({}, 12 * HOUR, "UTC")
        with pytest.raises(InvalidDefinition, match="IANA"):
            parse_mapping({"type": "t", "user_id": "who", "time": {"column": "at", "zone": "Office/Clock"}})
    finally:
        zoneinfo.reset_tzpath()


def test_offsets_and_names_are_what_they_say() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    assert at.astimezone(zone_of("Europe/Rome")).utcoffset() == timedelta(hours=1)
    assert at.astimezone(zone_of("-09:30")).utcoffset() == timedelta(hours=-9, minutes=-30)
