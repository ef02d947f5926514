"""Actions summed up for reports, from the log itself: per topic, application, scope and period, exact for all time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from threadline.capabilities.profile.interests.actions import SEPARATOR, Cell, cell_of, reader_of
from threadline.capabilities.profile.interests.definition import Interests
from threadline.capabilities.profile.interests.ranking import credited
from threadline.kernel.event import Recorded
from threadline.kernel.time import DAY


class Total(NamedTuple):
    """One row of the summary."""

    cell: Cell
    period_start: int
    """The period's first day since 1970; the period has the length that is declared for the topic."""
    total: int
    """Actions that count."""
    first_at: int
    last_at: int


class _Slot:
    """The actions of one slot of time."""

    __slots__ = ("count", "first_at", "last_at")

    def __init__(self, at: int) -> None:
        self.count = 0
        self.first_at = self.last_at = at

    def add(self, at: int) -> None:
        """Count one."""
        self.count += 1
        self.first_at, self.last_at = min(self.first_at, at), max(self.last_at, at)


def totals(
    interests: Interests,
    events: Iterable[Recorded],
    first_days: dict[str, int],
    topic: str | None = None,
    application: str | None = None,
) -> list[Total]:
    """The rows of these events, newest period first, then by the names of the cell.

    ``first_days`` says on which day each topic's first period began; a topic that is not there began on day 0.
    """
    readers = {type: reader_of(source) for type, source in interests.sources.items()}
    cells: dict[str, dict[int, _Slot]] = {}
    for recorded in events:
        action = readers[recorded.event.type](recorded.event.properties)
        if action is None or topic not in (None, action[0]):
            continue
        at = recorded.event.occurred_at
        for name in action[1]:
            if application is None or name.split(SEPARATOR)[1] == application:
                slots = cells.setdefault(name, {})
                slots.setdefault(at // interests.topic(action[0]).slot, _Slot(at)).add(at)
    rows = [row for name, slots in cells.items() for row in _rows(interests, cell_of(name), slots, first_days)]
    return sorted(rows, key=lambda row: (-row.period_start, row.cell))


def _rows(interests: Interests, cell: Cell, slots: dict[int, _Slot], first_days: dict[str, int]) -> Iterable[Total]:
    rules = interests.topic(cell.topic)
    first = first_days.get(cell.topic, 0)

    def start_of(day: int) -> int:
        return day - (day - first) % rules.period_days

    counted: dict[int, int] = {}
    for day, count in credited(rules, {slot: content.count for slot, content in slots.items()}).items():
        counted[start_of(day)] = counted.get(start_of(day), 0) + count
    times: dict[int, tuple[int, int]] = {}
    for slot, content in slots.items():
        start = start_of(slot * rules.slot // DAY)
        known = times.get(start, (content.first_at, content.last_at))
        times[start] = min(known[0], content.first_at), max(known[1], content.last_at)
    for start, (first_at, last_at) in times.items():
        yield Total(cell, start, counted.get(start, 0), first_at, last_at)
