"""Where a person is: the zones that their events name, and the local day that each event counts for.

An event has the zone that its ``context.timezone`` names; one that names none has the zone named last before it, and
before any was named that of the definitions. Its local day is the date in that zone, with one exception: in the 24
hours after a change of zone no event counts for a third day within 24 hours. It then counts for the day that the event
before it counted for, because somebody who stays at home cannot touch three days in that time either.

This depends on the order in which events occurred, so the projection is declared as ordered. `settled` says of a late
event that it changes nothing for others, which is so for nearly all: then nothing has to be read again.
"""

from __future__ import annotations

from typing import Any

from threadline.capabilities.streaks.civil import local_day, offset
from threadline.kernel.event import Event
from threadline.kernel.time import DAY, HOUR
from threadline.kernel.zones import canonical_zone

Head = list[Any]
"""Part of the state: the lists and values that stand at the places below."""

ZONES, CHANGES, BARE, RECENT, LEAPS, NEWEST = range(6)
"""Names of zones; [zone's place, instant from which it holds, …] in order; the newest event before any zone was named;
[day, newest event, …] of the two days touched last, newest first; days leapt over by a change of zone; for each set of
a tally its largest member (see `fold.py`)."""

CHANGES_MAX = 32
"""Changes of zone that are remembered, the newest; a late event from before them has the log read again."""
LEAPS_MAX = 32
LEAP_FROM = 12 * HOUR
"""How far a change of zone must put the clock forward to leap over a day."""
LEAP_EVERY_DAYS = 7
"""A day that was leapt over is forgiven once in so many days: crossing the date line is not something done daily."""


def empty_head(sets: int) -> Head:
    """Of a person of whom nothing is known, with room for this many sets of tallies."""
    return [[], [], None, [], [], [None] * sets]


def named_zone(event: Event) -> str | None:
    """The zone that an event names, by the name that it goes by; None if it names none that exists."""
    name = event.context.get("timezone")
    return canonical_zone(name) if type(name) is str else None


def zone_at(head: Head, at: int, default: str) -> str:
    """The zone in force at an instant, by what is known so far."""
    changes = head[CHANGES]
    place = _place(changes, at)
    return head[ZONES][changes[place - 2]] if place else default


def _place(changes: list[int], at: int) -> int:
    """Where in the list of changes those begin that come after an instant."""
    place = len(changes)
    while place and changes[place - 1] > at:
        place -= 2
    return place


def enter(head: Head, event: Event, default: str, day_start: int) -> tuple[int, int]:
    """Take in an event that counts; answers the day it counts for, and how far into that day it was by the clock.

    The second is -1 where the event was held back from a third day.
    """
    at, changes = event.occurred_at, head[CHANGES]
    zone: str = head[ZONES][changes[-2]] if changes else default
    named = event.context.get("timezone")
    if not changes or (named is not None and named != zone) or at < changes[-1]:
        zone = _zone_of_event(head, event, default, day_start)
    local = at + offset(zone, at) - day_start
    day, into = divmod(local, DAY)
    recent = head[RECENT]
    if len(changes) > 2 and 0 <= at - changes[-1] < DAY and _is_third(recent, day, at):
        day, into = recent[0], -1
    if recent and recent[0] == day and at >= recent[1]:
        recent[1] = at
    else:
        _touch(recent, day, at)
    return day, into


def _zone_of_event(head: Head, event: Event, default: str, day_start: int) -> str:
    """The zone of an event that is not simply in the zone in force, noting what it changes."""
    at, zones, changes = event.occurred_at, head[ZONES], head[CHANGES]
    name, place = named_zone(event), _place(changes, at)
    current = zones[changes[place - 2]] if place else None
    if name is None:
        if current is None:
            head[BARE] = at if head[BARE] is None else max(at, head[BARE])
        return current or default
    if name == current:
        return name
    if current is None and changes and zones[changes[0]] == name:
        changes[1] = at
        return name
    if name not in zones:
        zones.append(name)
    changes[place:place] = (zones.index(name), at)
    if current is not None:
        _note_leap(head[LEAPS], current, name, at, day_start)
    if len(changes) > 2 * CHANGES_MAX:
        _forget_oldest(head)
    return name


def _note_leap(leaps: list[int], before: str, after: str, at: int, day_start: int) -> None:
    # Whoever flies from Los Angeles to Auckland has most of a date less in their life: the one before they land.
    if offset(after, at) - offset(before, at) < LEAP_FROM:
        return
    day = local_day(after, at, day_start) - 1
    if day >= local_day(before, at, day_start) and all(abs(day - other) >= LEAP_EVERY_DAYS for other in leaps):
        leaps.append(day)
        del leaps[:-LEAPS_MAX]


def _forget_oldest(head: Head) -> None:
    zones, kept = head[ZONES], head[CHANGES][2:]
    used = [name for place, name in enumerate(zones) if place in kept[::2]]
    head[CHANGES] = [used.index(zones[each]) if not place & 1 else each for place, each in enumerate(kept)]
    head[ZONES] = used


def _is_third(recent: list[int], day: int, at: int) -> bool:
    return len(recent) == 4 and recent[3] > at - DAY and day not in (recent[0], recent[2])


def _touch(recent: list[int], day: int, at: int) -> None:
    known = dict(zip(recent[::2], recent[1::2], strict=True))
    known[day] = max(at, known.get(day, at))
    newest = sorted(known.items(), key=lambda each: (each[1], each[0]), reverse=True)[:2]
    recent[:] = [number for each in newest for number in each]


def settled(head: Head, event: Event) -> bool:
    """Whether folding this event now gives what folding it in its place would give."""
    at, changes, recent, bare = event.occurred_at, head[CHANGES], head[RECENT], head[BARE]
    if not recent or at > recent[1]:
        return True
    # What a change of zone brings about ends with the day after it, and looks back a day.
    if any(abs(at - change) < DAY for change in changes[3::2]):
        return False
    if len(changes) >= 2 * CHANGES_MAX and at < changes[1]:
        return False
    name = named_zone(event)
    if changes and at == changes[1] and (name is None or bare == at):
        return False  # of what occurred at one instant, ids decide which comes first
    if name is None:
        return True
    place = _place(changes, at)
    if place:
        return bool(name == head[ZONES][changes[place - 2]])
    # Before the first zone: it would now hold earlier, also for what had none.
    return (not changes or name == head[ZONES][changes[0]]) and (bare is None or bare < at)


def hops_within_a_day(head: Head, at: int) -> list[str]:
    """The zones that were changed to in the 24 hours up to an instant, in order."""
    changes = head[CHANGES]
    return [head[ZONES][changes[i]] for i in range(2, len(changes), 2) if at - DAY < changes[i + 1] <= at]


def changes_within_a_day(head: Head, at: int) -> list[int]:
    """When the zone was changed in the 24 hours from an instant on, in order."""
    return [each for each in head[CHANGES][3::2] if at <= each < at + DAY]


def held_within(head: Head) -> list[tuple[int, int]]:
    """From when to when an event may have been held back from a third day, in order.

    Times that lie less than a day apart are one: what is held back in the later one may depend on the earlier.
    """
    spans: list[tuple[int, int]] = []
    for at in head[CHANGES][3::2]:
        if spans and at - DAY < spans[-1][1]:
            spans[-1] = (spans[-1][0], at + DAY)
        else:
            spans.append((at, at + DAY))
    return spans


def head_before(head: Head, at: int) -> Head:
    """What was known of a person's whereabouts before an instant, to enter the events of the day before it anew."""
    before = empty_head(0)
    before[ZONES], before[CHANGES] = list(head[ZONES]), head[CHANGES][: _place(head[CHANGES], at - 1)]
    return before
