"""When a broadcast is sent: a local time in a zone, or an instant, however it is written."""

from __future__ import annotations

import pytest

from tests.capabilities.test_broadcasts import World


@pytest.mark.parametrize(
    ("at", "zone", "kept"),
    [
        ("2026-03-03T09:00", "Europe/Rome", ("2026-03-03T09:00", "Europe/Rome")),
        ("2026-03-03 09:00", "Europe/Rome", ("2026-03-03T09:00", "Europe/Rome")),
        ("2026-03-03T08:00:00Z", "UTC", ("2026-03-03T08:00", "UTC")),
        ("2026-03-03T08:00:00.000000Z", "Europe/Rome", ("2026-03-03T08:00", "UTC")),
        ("2026-03-03T09:00:30+01:00", "UTC", ("2026-03-03T08:00:30", "UTC")),
    ],
)
def test_a_time_is_local_in_its_zone_and_an_instant_is_one_in_utc(at: str, zone: str, kept: tuple[str, str]) -> None:
    world = World(people=1)
    world.start(at=at, zone=zone)
    shown = world.call("show", id="sale")
    assert (shown.broadcast.at, shown.broadcast.zone) == kept
    assert shown.begins_at.startswith("2026-03-03T08:00:")
    assert world.call("create", id="sale", template="sale", at=at, zone=zone).state == shown.state
