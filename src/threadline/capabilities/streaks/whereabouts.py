"""Where a person is: the zones that their events name, and the local day that each event counts for.

An event has the zone that its ``context.timezone`` names; one that names none has the zone named last before it, and
before any was named that of the definitions. Its local day is the date in that zone, with one exception: in the 24
hours after a change of zone no event counts for a third day within 24 hours. It then counts for the day that the event
before it counted for, because somebody who stays at home cannot touch three days in that time either.

This depends on the order in which events occurred, and an event may come late. So days are given out when somebody
looks. Of the events of the window, see `state`, no more is kept than that takes: of those of one local day in one zone
the first and the last, and of those that name no zone the quarters of an hour. Only who changes zones back and forth on
one day could tell the difference, and a person whose events alternate between zones costs little more than another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from threadline.capabilities.streaks.civil import local_day, offset
from threadline.capabilities.streaks.state import BLOCK_DAYS, COUNTS, FIRST, FIRST_DAY, LAST, QUARTER, Group
from threadline.kernel.event import Event
from threadline.kernel.time import DAY, HOUR
from threadline.kernel.zones import canonical_zone

CHANGES_MAX = 32
"""Changes of zone that are remembered, the newest."""
LEAPS_MAX = 32
LEAP_FROM = 12 * HOUR
"""How far a change of zone must put the clock forward to leap over a day."""
LEAP_EVERY_DAYS = 7
"""A day that was leapt over is forgiven once in so many days: crossing the date line is not something done daily."""


def named_zone(event: Event) -> str | None:
    """The zone that an event names, by the name that it goes by; None if it names none that exists."""
    name = event.context.get("timezone")
    return canonical_zone(name) if type(name) is str else None


class Dated(NamedTuple):
    """Events that count for one day: a group, or a slot of those that named no zone."""

    day: int
    first: int
    """The instant of the first of them."""
    counts: list[int]
    into: int = -1
    """How far into the day a slot is, microseconds; -1 for a group, which knows itself, and for what is held back."""
    held: bool = False
    """Whether they are held back from a third day."""


class Journey:
    """Where a person is while their events are gone through in order."""

    __slots__ = ("changes", "day_start", "default", "leaps", "recent", "sources")

    def __init__(
        self, default: str, day_start: int, sources: int, changes: list[Any], recent: list[int], leaps: list[int]
    ) -> None:
        self.default = default
        self.day_start = day_start
        self.sources = sources
        """How many counts a slot has."""
        self.changes = changes
        """Zone and instant from which it holds, zone and instant, … in order; the first is no change."""
        self.recent = recent
        """[day, newest event, …] of the two days touched last, newest first."""
        self.leaps = leaps
        """Days leapt over by a change of zone."""

    @property
    def zone(self) -> str | None:
        """The zone named last; None before any was."""
        return self.changes[-2] if self.changes else None

    def zone_at(self, at: int) -> str:
        """The zone in force at an instant."""
        place = len(self.changes)
        while place and self.changes[place - 1] > at:
            place -= 2
        zone: str = self.changes[place - 2] if place else self.default
        return zone

    def stays(self, named: Mapping[str, Sequence[Group]], bare: Sequence[Group]) -> bool:
        """Whether these groups and slots are of somebody who is in one zone all the time, and so all on their days."""
        zone, changes = self.zone, self.changes
        if not named:
            return not changes
        for here, groups in named.items():
            settled = len(changes) <= 2 or groups[0][FIRST] - changes[-1] >= DAY
            return not bare and len(named) == 1 and zone in (None, here) and settled
        return True

    def go(self, named: Mapping[str, Sequence[Group]], bare: Sequence[Group]) -> Iterator[Dated]:
        """Go through groups and slots and give out their days, in no particular order."""
        if not self.stays(named, bare):
            yield from self._travel(named, bare)
            return
        for zone, groups in named.items():
            for group in groups:
                if not self.changes:
                    self.changes += (zone, group[FIRST])
                touch(self.recent, group[FIRST_DAY], group[LAST])
                yield Dated(group[FIRST_DAY], group[FIRST], group[COUNTS:])
        for _, at, day, slot, counts in self._slots(bare):
            yield self._slot(day, slot, at, counts)

    def _travel(self, named: Mapping[str, Sequence[Group]], bare: Sequence[Group]) -> Iterator[Dated]:
        # Blocks one after the other: so they are gone through when they are settled, each for itself.
        stops: list[tuple[int, int, str, int, Any]] = []
        for zone, groups in named.items():
            for group in groups:
                block = group[FIRST_DAY] // BLOCK_DAYS
                stops += ((block, at, zone, 0, group) for at in (group[FIRST], group[LAST]))
        stops += ((block, at, "", slot, (day, counts)) for block, at, day, slot, counts in self._slots(bare))
        stops.sort(key=itemgetter(0, 1, 2, 3))
        firsts: dict[int, int] = {}
        """By identity of a group: the day for which its first event counts."""
        for _, at, zone, slot, group in stops:
            if not zone:
                yield self._slot(group[0], slot, at, group[1])
                continue
            if zone != self.zone:
                self._name(zone, at)
            own, day = group[FIRST_DAY], self._enter(at, group[FIRST_DAY])
            if id(group) not in firsts:
                firsts[id(group)] = day
            else:
                # It counts for its own day if its first or its last event does.
                held = own not in (day, firsts[id(group)])
                yield Dated(day if held else own, group[FIRST], group[COUNTS:], held=held)

    def _slots(self, bare: Sequence[Group]) -> Iterator[tuple[int, int, int, int, list[int]]]:
        """(block, instant, day of UTC, slot, counts) of each slot. A zone that is named in the slot holds for it."""
        for entry in bare:
            day, width = entry[0], entry[1]
            for place in range(2, len(entry), 1 + self.sources):
                slot = entry[place]
                at = day * DAY + (slot + width) * QUARTER + self.day_start - 1
                yield day // BLOCK_DAYS, at, day, slot, entry[place + 1 : place + 1 + self.sources]

    def _slot(self, day: int, slot: int, at: int, counts: list[int]) -> Dated:
        instant = day * DAY + slot * QUARTER + self.day_start
        own, into = divmod(instant + offset(self.zone or self.default, instant) - self.day_start, DAY)
        day = self._enter(at, own)
        return Dated(day, instant, counts, into if day == own else -1, held=day != own)

    def _name(self, zone: str, at: int) -> None:
        """Go to another zone."""
        if self.changes:
            self._note_leap(self.changes[-2], zone, at)
        self.changes += (zone, at)
        del self.changes[: -2 * CHANGES_MAX]

    def _note_leap(self, before: str, after: str, at: int) -> None:
        # Whoever flies from Los Angeles to Auckland has most of a date less in their life: the one before they land.
        if offset(after, at) - offset(before, at) < LEAP_FROM:
            return
        day = local_day(after, at, self.day_start) - 1
        far = all(abs(day - other) >= LEAP_EVERY_DAYS for other in self.leaps)
        if far and day >= local_day(before, at, self.day_start):
            self.leaps.append(day)
            del self.leaps[:-LEAPS_MAX]

    def _enter(self, at: int, day: int) -> int:
        """Be active at an instant that is on a local day; answers the day for which that counts."""
        recent = self.recent
        if len(self.changes) > 2 and 0 <= at - self.changes[-1] < DAY and self._is_third(day, at):
            day = recent[0]
        if recent and recent[0] == day and at >= recent[1]:
            recent[1] = at
        else:
            touch(recent, day, at)
        return day

    def _is_third(self, day: int, at: int) -> bool:
        recent = self.recent
        return len(recent) == 4 and recent[3] > at - DAY and day not in (recent[0], recent[2])


def touch(recent: list[int], day: int, at: int) -> None:
    """Note that a day was touched."""
    known = dict(zip(recent[::2], recent[1::2], strict=True))
    known[day] = max(at, known.get(day, at))
    newest = sorted(known.items(), key=lambda each: (each[1], each[0]), reverse=True)[:2]
    recent[:] = [number for each in newest for number in each]


def changes_near(changes: list[Any], at: int) -> list[int]:
    """The changes of zone whose last 24 hours may be others because of an event at an instant: those in the 24 hours
    from it, and from the change that follows it."""
    instants: list[int] = changes[3::2]
    following = next((each for each in instants if each > at), at)
    return [each for each in instants if at <= each < at + DAY or following <= each < following + DAY]


def hops_within_a_day(changes: list[Any], at: int) -> list[str]:
    """The zones that were changed to in the 24 hours up to an instant, in order."""
    return [zone for zone, when in zip(changes[2::2], changes[3::2], strict=True) if at - DAY < when <= at]
