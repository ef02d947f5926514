"""The tables of docs/worked/streaks.md, and what others have worked out: a test suite of streaks, tables of zones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.streaks import projection, read_streaks
from threadline.kernel.calendar import (
    day_begins,
    day_of,
    day_text,
    days_left_out,
    first_day,
    local_day,
    offset,
    period_of,
)
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, format_time, parse_time

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/worked/streaks.md").read_text(encoding="utf-8")


def tables(title: str) -> list[list[str]]:
    """The rows of the table under a heading, without its head."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


def recorded(at: int, zone: str = "", type: str = "lesson", number: int = 0) -> Recorded:
    context = {"timezone": zone} if zone else {}
    event = Event(type=type, identifiers=(), occurred_at=at, key=f"{at} {number}", context=context)
    return Recorded(event, event_id("default", "direct", event.key), "thread", 1, at)


def view(definitions: str, events: list[Recorded], now: int) -> dict[str, Any]:
    known = projection(read_streaks(Definitions([("threadline.yaml", definitions)])))
    state = known.empty()
    for each in sorted(events, key=lambda each: (each.event.occurred_at, each.id)):
        if each.event.occurred_at < now:
            state = known.after(state, each)
    return known.view(state, now, [])  # type: ignore[no-any-return]


CIVIL = tables("Civil time") + tables("When the day begins")


def test_the_page_has_the_whole_matrix() -> None:
    text = " ".join(" ".join(row) for row in CIVIL)
    zones = (
        "UTC",
        "America/New_York",
        "Europe/London",
        "Asia/Kathmandu",
        "Pacific/Apia",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
        "America/Los_Angeles",
        "Pacific/Auckland",
        "Pacific/Tongatapu",
    )
    assert [zone for zone in zones if zone not in text] == []
    assert len(CIVIL) >= 30


@pytest.mark.parametrize("row", CIVIL, ids=lambda row: row[0])
def test_civil_time(row: list[str]) -> None:
    _, declared, active, current, expires_at = row
    zone, _, day_start = declared.partition(" ")
    definitions = f"timezone: {zone}\n" + (f"calendar: {{day_start: '{day_start}'}}" if day_start else "")
    events = [recorded(parse_time(at), named) for at, _, named in (each.partition(" ") for each in active.split(", "))]
    last = max(each.event.occurred_at for each in events)
    expiry = parse_time(expires_at)
    daily = view(definitions, events, last + 1)["daily"]
    assert (daily["current"], daily["expires_at"]) == (int(current), format_time(expiry))
    before, after = (view(definitions, events, at)["daily"] for at in (expiry - 1, expiry))
    assert (before["current"], before["at_risk"], before["expires_at"]) == (int(current), True, format_time(expiry))
    assert (after["current"], after["at_risk"], after["expires_at"]) == (0, False, None)
    assert after["longest"] >= int(current)


MARCH = "2026-03-"


def march(text: str) -> int:
    """``4`` is noon of the fourth, ``4@01:30`` half past one."""
    day, _, clock = text.partition("@")
    return parse_time(f"{MARCH}{int(day):02}T{clock or '12:00'}:00Z")


@pytest.mark.parametrize("row", tables("Freezes, grace, amnesty"), ids=lambda row: row[0])
def test_freezes_grace_and_amnesty(row: list[str]) -> None:
    _, streak, active, read_on, *expected = row
    declared = yaml.safe_load(streak.replace("{}", "{cadence: day}"))
    amnesty = declared.pop("amnesty", None)
    sections: dict[str, Any] = {"streaks": {"s": {"events": "lesson", **declared}}}
    if amnesty:
        sections["calendar"] = {"amnesty": [{"from": f"{MARCH}{amnesty[0]:02}", "to": f"{MARCH}{amnesty[1]:02}"}]}
    events = [recorded(march(text), number=number) for number, text in enumerate(active.split())]
    shown = view(yaml.safe_dump(sections), events, march(read_on) + 1)["s"]
    frozen = shown["run"]["frozen"] if shown["run"] else 0
    found = [shown["current"], shown["longest"], frozen, shown["freezes"], str(shown["at_risk"]).lower()]
    assert [str(each) for each in found] == expected


# --- what others have worked out ----------------------------------------------------------------

CASES = json.loads((ROOT / "tests/data/streaks/cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_contributions_as_another_project_reckons_them(case: dict[str, Any]) -> None:
    days: dict[str, int] = case["contributions"]
    events = [
        recorded(parse_time(day) + 12 * HOUR + number, number=number)
        for day, count in days.items()
        for number in range(count)
    ]
    daily = view("", events, parse_time(max(days)) + 20 * HOUR)["daily"]
    longest, current = case["expected"]["longestStreak"], case["expected"]["currentStreak"]
    assert (daily["longest"], daily["current"]) == (longest["length"], current["length"])
    run = daily["longest_run"]
    assert (run["from"], run["to"]) == (longest["start"], longest["end"])
    if current["length"]:
        assert (daily["run"]["from"], daily["run"]["to"]) == (current["start"], current["end"])


TRANSITIONS = [
    json.loads(line)
    for line in (ROOT / "tests/data/timezones/transitions_2000_2037.jsonl").read_text(encoding="utf-8").splitlines()
]


def test_local_time_around_every_transition() -> None:
    assert len(TRANSITIONS) == 1_452
    for zone, text, local, _, seconds in TRANSITIONS:
        at = parse_time(text)
        ahead = offset(zone, at)
        assert ahead == seconds * SECOND, (zone, text)
        shown = format_time(at + ahead)
        assert shown[11:19] == local, (zone, text)
        assert day_text(local_day(zone, at)) == shown[:10]


@pytest.mark.parametrize("day_start", [0, 2 * HOUR + 30 * MINUTE, 4 * HOUR])
@pytest.mark.slow
def test_days_around_every_transition_begin_when_they_begin(day_start: int) -> None:
    for zone, text, *_ in TRANSITIONS:
        for day in (local_day(zone, parse_time(text), day_start) + each for each in (0, 1)):
            begins = day_begins(zone, day, day_start)
            assert local_day(zone, begins - 1, day_start) < day
            # From then on it is that day or a later one, for good.
            for at in range(begins, begins + DAY, 15 * MINUTE):
                assert local_day(zone, at, day_start) >= day, (zone, text)


def test_days_that_never_were() -> None:
    zones = ("Pacific/Apia", "Pacific/Fakaofo", "Pacific/Kiritimati", "Pacific/Kwajalein", "Europe/Rome", "+05:30")
    found = {zone: [day_text(day) for day in days_left_out(zone)] for zone in zones}
    assert found == {
        "Pacific/Apia": ["2011-12-30"],
        "Pacific/Fakaofo": ["2011-12-30"],
        "Pacific/Kiritimati": ["1994-12-31"],
        "Pacific/Kwajalein": ["1993-08-21"],
        "Europe/Rome": [],
        "+05:30": [],
    }


@pytest.mark.parametrize(
    ("cadence", "week_start", "day", "first", "last"),
    [
        ("day", 0, "2026-03-01", "2026-03-01", "2026-03-01"),
        ("week", 0, "2026-03-01", "2026-02-23", "2026-03-01"),
        ("week", 6, "2026-03-01", "2026-03-01", "2026-03-07"),
        ("week", 0, "1969-12-28", "1969-12-22", "1969-12-28"),
        ("month", 0, "2024-02-29", "2024-02-01", "2024-02-29"),
        ("month", 0, "1969-12-31", "1969-12-01", "1969-12-31"),
    ],
)
def test_periods(cadence: str, week_start: int, day: str, first: str, last: str) -> None:
    number = day_of(day)
    assert number is not None
    period = period_of(cadence, number, week_start)
    assert day_text(first_day(cadence, period, week_start)) == first
    assert day_text(first_day(cadence, period + 1, week_start) - 1) == last
