"""What tests of streaks share: an application in memory whose clock stands where the last event was told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

import threadline
from threadline.kernel.time import SECOND, format_time, parse_time
from threadline.surfaces.python.embedded import Threadline

MILESTONE, HOPPING = "streak_milestone_reached", "zone_hopping_detected"


class Stage:
    """An application in memory whose clock stands where the last event was told."""

    def __init__(self, folder: Path, definitions: str = "") -> None:
        self.now = parse_time("2026-03-01T00:00:00Z")
        self._keys = 0
        file = folder / "threadline.yaml"
        file.write_text(definitions)
        self.app: Threadline = threadline.open("memory:", definitions=file, clock=lambda: self.now)

    def tell(self, type: str, at: str, who: str = "ada", **fields: Any) -> dict[str, Any]:
        """Tell of an event at once; with ``late=True`` the clock stays where it is."""
        self._keys += 1
        instant = parse_time(at)
        if not fields.pop("late", False):
            self.now = max(self.now, instant + SECOND)
        if "zone" in fields:
            fields["context"] = {"timezone": fields.pop("zone")}
        event = {"type": type, "occurred_at": format_time(instant), "identifiers": {"user_id": who}}
        (receipt,) = self.app.record([{"key": f"key-{self._keys}", **event, **fields}])
        plain: dict[str, Any] = msgspec.to_builtins(receipt)
        return plain

    def days(self, *days: int, who: str = "ada", hour: int = 12, **fields: Any) -> None:
        """Active on these days of March at an hour, UTC."""
        for day in days:
            self.tell("lesson", f"2026-03-{day:02}T{hour:02}:00:00Z", who, **fields)

    def streak(self, who: str = "ada", name: str = "daily", at: str = "") -> dict[str, Any]:
        """One streak as callers read it, at the clock's instant or at another not before it."""
        if at:
            self.now = max(self.now, parse_time(at))
        plain: dict[str, Any] = msgspec.to_builtins(self.app.streaks.of(who, as_of=at or None).streaks[name])
        return plain

    def told(self, type: str, who: str = "ada") -> list[dict[str, Any]]:
        """The properties of all events of a type, in the order in which they occurred."""
        page = self.app.events.of(f"user_id:{who}", order="asc", type=type, limit=1_000)
        return [each.properties for each in page.events]
