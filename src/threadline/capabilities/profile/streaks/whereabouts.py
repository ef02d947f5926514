"""Where a person is: the zones that their events name, and the local day that each event counts for.

An event has the zone that its ``context.timezone`` names; one that names none has the zone named last before it, and
before any was named that of the definitions. Its local day is the date in that zone, with one exception: in the 24
hours after a change of zone no event counts for a third day within 24 hours. It then counts for the day that the event
before it counted for, because somebody who stays at home cannot touch three days in that time either.

This depends on the order in which events occurred, and an event may come late. So days are given out when somebody
looks. Of the events of the window, see `state`, no more is stored than that takes: the first and the last of those of
one local day in one zone, and the quarters of an hour of those that name no zone. Only somebody with three or more
zones within a day or two sees a difference, and a person whose events alternate between zones costs little more than
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from threadline.capabilities.profile.streaks.state import BLOCK_DAYS, COUNTS, FIRST, FIRST_DAY, LAST, QUARTER, Group
from threadline.kernel.calendar import day_offset, local_day, offset
from threadline.kernel.time import DAY, HOUR

CHANGES_MAX = 32
"""Changes of zone that are remembered, the newest."""
LEAPS_MAX = 32
LEAP_FROM = 12 * HOUR
"""How far a change of zone must put the clock forward to leap over a day."""
LEAP_EVERY_DAYS = 7
"""A day that was leapt over is forgiven once in so many days: crossing the date line is not something done daily."""


class Dated(NamedTuple):
    """Events that count for one day: a group, or a slot of those that named no zone."""

    day: int
    first: int
    """The instant of the first of them."""
    counts: Sequence[int]
    into: int = -1
    """How far into its own day a slot is, microseconds; -1 for a group."""
    deferred: bool = False
    """Whether they are kept from counting for a third day."""


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
        position = len(self.changes)
        while position and self.changes[position - 1] > at:
            position -= 2
        zone: str = self.changes[position - 2] if position else self.default
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

    def days(self, named: Mapping[str, Sequence[Group]], bare: Sequence[Group], column: int) -> Iterator[int]:
        """The days on which somebody who stays has events of one source, in order."""
        for groups in named.values():
            yield from (group[FIRST_DAY] for group in groups if group[COUNTS + column])
        size, last = 1 + self.sources, None
        for entry in bare:
            slots = [slot for slot, count in zip(entry[2::size], entry[3 + column :: size], strict=True) if count]
            for slot in (slots[0], slots[-1]) if slots else ():
                instant = entry[0] * DAY + slot * QUARTER + self.day_start
                day = (instant + offset(self.default, instant) - self.day_start) // DAY
                if day != last:
                    yield day
                last = day

    def arrive(self, named: Mapping[str, Sequence[Group]]) -> None:
        """Note the zone that somebody who stays has named, if it is the first."""
        for zone, groups in named.items() if not self.changes else ():
            self.changes += (zone, groups[0][FIRST])

    def go(self, named: Mapping[str, Sequence[Group]], bare: Sequence[Group]) -> Iterator[Dated]:
        """Go through groups and slots and give out their days, in no particular order."""
        return self._stay(named, bare) if self.stays(named, bare) else self._travel(named, bare)

    def _stay(self, named: Mapping[str, Sequence[Group]], bare: Sequence[Group]) -> Iterator[Dated]:
        self.arrive(named)
        for groups in named.values():
            for group in groups:
                touch(self.recent, group[FIRST_DAY], group[LAST])
                yield Dated(group[FIRST_DAY], group[FIRST], group[COUNTS:])
        for _, at, day, slot, counts in self._slots(bare):
            instant = day * DAY + slot * QUARTER + self.day_start
            own, into = divmod(instant + offset(self.default, instant) - self.day_start, DAY)
            touch(self.recent, own, at)
            yield Dated(own, instant, counts, into)

    def _travel(self, named: Mapping[str, Sequence[Group]], bare: Sequence[Group]) -> Iterator[Dated]:
        firsts: dict[int, int] = {}
        """By identity of a group: the day for which its first event counts."""
        here, day_start, changes, recent = self.zone, self.day_start, self.changes, self.recent
        known: tuple[str | None, int] = (None, 0)
        ahead: int | None = 0
        # All in one loop: a person who changes zones all the time has many stops.
        for _, at, zone, slot, group in self._stops(named, bare):
            if zone:
                if zone != here:
                    if here is not None:
                        self._note_leap(here, zone, at)
                    changes += (zone, at)
                    del changes[: -2 * CHANGES_MAX]
                    here = zone
                own = group[FIRST_DAY]
            else:
                instant = group[0] * DAY + slot * QUARTER + day_start
                if known != (here, instant // DAY):
                    known = (here, instant // DAY)
                    ahead = day_offset(here or self.default, instant // DAY)
                shift = offset(here or self.default, instant) if ahead is None else ahead
                own, into = divmod(instant + shift - day_start, DAY)
            day = own
            if (
                len(changes) > 2
                and len(recent) == 4
                and 0 <= at - changes[-1] < DAY
                and recent[3] > at - DAY
                and own != recent[0]
                and own != recent[2]
            ):
                day = recent[0]  # not a third day
            if recent and recent[0] == day and at >= recent[1]:
                recent[1] = at
            else:
                touch(recent, day, at)
            if not zone:
                yield Dated(day, instant, group[1], into, day != own)
            elif id(group) not in firsts:
                firsts[id(group)] = day
            else:
                # It counts for its own day if its first or its last event does.
                deferred = own != day and own != firsts[id(group)]
                yield Dated(day if deferred else own, group[FIRST], group[COUNTS:], -1, deferred)

    def _stops(
        self, named: Mapping[str, Sequence[Group]], bare: Sequence[Group]
    ) -> list[tuple[int, int, str, int, Any]]:
        """(block, instant, zone or none, slot, group or day of a slot with its counts), in order."""
        # Blocks one after the other: so they are gone through when they are settled, each for itself.
        stops: list[tuple[int, int, str, int, Any]] = []
        for zone, groups in named.items():
            for group in groups:
                block = group[FIRST_DAY] // BLOCK_DAYS
                stops += ((block, group[FIRST], zone, 0, group), (block, group[LAST], zone, 0, group))
        stops += [(block, at, "", slot, (day, counts)) for block, at, day, slot, counts in self._slots(bare)]
        stops.sort(key=itemgetter(0, 1, 2, 3))
        return stops

    def _slots(self, bare: Sequence[Group]) -> Iterator[tuple[int, int, int, int, list[int]]]:
        """(block, instant, day of UTC, slot, counts) of each slot. A zone that is named in the slot holds for it."""
        for entry in bare:
            day, width = entry[0], entry[1]
            for position in range(2, len(entry), 1 + self.sources):
                slot = entry[position]
                at = day * DAY + (slot + width) * QUARTER + self.day_start - 1
                yield day // BLOCK_DAYS, at, day, slot, entry[position + 1 : position + 1 + self.sources]

    def _note_leap(self, before: str, after: str, at: int) -> None:
        # Whoever flies from Los Angeles to Auckland has most of a date less in their life: the one before they land.
        ahead, own = day_offset(after, at // DAY), day_offset(before, at // DAY)
        if (offset(after, at) if ahead is None else ahead) - (offset(before, at) if own is None else own) < LEAP_FROM:
            return
        day = local_day(after, at, self.day_start) - 1
        far = all(abs(day - other) >= LEAP_EVERY_DAYS for other in self.leaps)
        if far and day >= local_day(before, at, self.day_start):
            self.leaps.append(day)
            del self.leaps[:-LEAPS_MAX]


def touch(recent: list[int], day: int, at: int) -> None:
    """Note that a day was touched."""
    if not recent:
        recent += (day, at)
    elif day == recent[0]:
        recent[1] = max(at, recent[1])
    elif (at, day) > (recent[1], recent[0]):
        recent[:] = [day, at, *recent[:2]]
    elif len(recent) == 2 or (at, day) > (recent[3], recent[2]):
        recent[2:] = (day, at)


def changes_near(changes: list[Any], at: int) -> list[int]:
    """The changes of zone whose last 24 hours may be others because of an event at an instant: those in the 24 hours
    from it, and from the change that follows it."""
    instants: list[int] = changes[3::2]
    following = next((instant for instant in instants if instant > at), at)
    return [instant for instant in instants if at <= instant < at + DAY or following <= instant < following + DAY]


def hops_within_a_day(changes: list[Any], at: int) -> list[str]:
    """The zones that were changed to in the 24 hours up to an instant, in order."""
    return [zone for zone, when in zip(changes[2::2], changes[3::2], strict=True) if at - DAY < when <= at]
