"""The times that lists are usually asked for, as days of the zone that is declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from threadline.kernel.calendar import day_begins, first_day, local_day, period_of
from threadline.kernel.counted import counted
from threadline.kernel.time import format_time

DAYS = (7, 30, 90)
"""So many days, of which today is the last."""


class Preset(NamedTuple):
    """A range of time by its name; both ends are empty of all time."""

    label: str
    start: str = ""
    """From this instant on."""
    stop: str = ""
    """Before this instant; empty: up to now."""


def presets(now: int, zone: str) -> Iterator[Preset]:
    """Today, yesterday, the last days, this month and the last, and all time."""
    today = local_day(zone, now)
    month = period_of("month", today)

    def begin(day: int) -> str:
        return format_time(day_begins(zone, day)).replace(".000000", "")

    yield Preset("Today", begin(today))
    yield Preset("Yesterday", begin(today - 1), begin(today))
    for days in DAYS:
        yield Preset(counted(days, "day"), begin(today - days + 1))
    this_month = begin(first_day("month", month))
    yield Preset("This month", this_month)
    yield Preset("Last month", begin(first_day("month", month - 1)), this_month)
    yield Preset("All")
