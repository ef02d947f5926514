"""Streaks of those who travel: what is hopping and what is not, and what a late event from elsewhere moves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from tests.capabilities.streaks_stage import HOPPING, Stage
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.time import parse_time


@pytest.fixture
def stage(tmp_path: Path) -> Callable[[str], Stage]:
    return lambda definitions="": Stage(tmp_path, definitions)


def test_hopping_is_flagged_once_a_day_and_refused_never(stage: Callable[..., Stage]) -> None:
    on = stage()
    zones = ("UTC", "Asia/Tokyo", "America/New_York", "Europe/Rome", "Asia/Tokyo", "UTC")
    for hour, zone in enumerate(zones):
        assert on.tell("lesson", f"2026-03-02T{hour + 8:02}:00:00Z", zone=zone)["status"] == "accepted"
    (flag,) = on.told(HOPPING)
    assert flag == {"changes": 3, "zones": ["Asia/Tokyo", "America/New_York", "Europe/Rome"]}
    assert on.app.streaks.days("user_id:ada").zone == "UTC"


@pytest.mark.parametrize("together", [1, 2, 3, 5])
def test_what_does_not_count_brings_nothing_about_whatever_shares_its_call(
    stage: Callable[..., Stage], together: int
) -> None:
    days = stage()
    days.now = parse_time("2026-03-04T00:00:00Z")
    told = [
        ("lesson", "2026-03-01T12:00:00Z", "UTC"),
        ("lesson", "2026-03-03T12:00:00Z", "UTC"),
        ("lesson", "2026-03-03T11:50:00Z", "Europe/Rome"),
        ("lesson", "2026-03-03T11:40:00Z", "Asia/Kathmandu"),
        # At the very instant of a change of zone, but no activity.
        ("tag_added", "2026-03-03T12:00:00Z", "Asia/Kathmandu"),
    ]
    events = [
        {
            "key": f"{number}",
            "type": type,
            "occurred_at": at,
            "identifiers": {"user_id": "ada"},
            "context": {"timezone": zone},
            "properties": {"tag": "vip"} if type == "tag_added" else {},
        }
        for number, (type, at, zone) in enumerate(told)
    ]
    for first in range(0, len(events), together):
        receipts = days.app.record(events[first : first + together])
        assert {receipt.status for receipt in receipts} == {"accepted"}
    # By the third lesson it is hopping; the tag adds nothing to that.
    (flag,) = days.app.events.of("user_id:ada", type=HOPPING).events
    assert flag.cause == days.app.events.of("user_id:ada", type="lesson", order="desc").events[2].id
    assert flag.properties["zones"] == ["Asia/Kathmandu", "Europe/Rome", "UTC"]


HOPS = {"A": (10, "Europe/Rome"), "B": (11, "Asia/Tokyo"), "C": (12, "America/New_York"), "D": (13, "UTC")}


@pytest.mark.parametrize("order", ["".join(each) for each in permutations(HOPS)])
@pytest.mark.slow
def test_hopping_is_flagged_in_whatever_order_it_becomes_known(stage: Callable[..., Stage], order: str) -> None:
    on = stage()
    on.now = parse_time("2026-03-03T00:00:00Z")
    for name in order:
        hour, zone = HOPS[name]
        on.tell("lesson", f"2026-03-02T{hour}:00:00Z", zone=zone, late=True)
    (flag,) = on.app.events.of("user_id:ada", type=HOPPING).events
    assert flag.occurred_at == "2026-03-02T13:00:00.000000Z"
    assert flag.properties == {"changes": 3, "zones": ["Asia/Tokyo", "America/New_York", "UTC"]}


@pytest.mark.parametrize("names", [("Asia/Kolkata", "Asia/Calcutta"), ("UTC", "Etc/UTC", "GMT", "+00:00")])
def test_another_name_of_the_same_zone_is_no_change(stage: Callable[..., Stage], names: tuple[str, ...]) -> None:
    on = stage()
    for hour in range(6):
        on.tell("lesson", f"2026-03-02T{hour + 8:02}:00:00Z", zone=names[hour % len(names)])
    assert on.told(HOPPING) == []
    assert on.app.streaks.days("user_id:ada").zone == names[0]


def test_travelling_is_not_hopping(stage: Callable[..., Stage]) -> None:
    on = stage()
    for day, zone in enumerate(("UTC", "Asia/Tokyo", "America/New_York", "Europe/Rome"), 2):
        on.tell("lesson", f"2026-03-{day:02}T12:00:00Z", zone=zone)
    assert on.told(HOPPING) == []


def test_a_late_event_from_another_zone_moves_what_came_after_it(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.tell("lesson", "2026-03-01T12:00:00Z", zone="UTC")
    on.tell("lesson", "2026-03-05T23:30:00Z")
    assert on.streak()["last_active_on"] == "2026-03-05"
    on.tell("lesson", "2026-03-03T12:00:00Z", zone="Asia/Tokyo", late=True)
    assert on.streak()["last_active_on"] == "2026-03-06"
    assert refold_everybody(on.app.engine.store, on.app.engine.catalogue).events > 0
    assert on.streak()["last_active_on"] == "2026-03-06"
