"""The fold: an event that counts goes into the window, or is settled at once; in time the window is settled as well.

Which day an event counts for is found out when somebody looks, or when the window has moved on and no event that comes
in time can change it any more. So a late event costs no more than another, see `whereabouts`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from threadline.capabilities.conditions import Where
from threadline.capabilities.features.definition import ANY, Source
from threadline.capabilities.streaks import days, told
from threadline.capabilities.streaks.civil import first_day, local_day, offset, period_of
from threadline.capabilities.streaks.definition import StreakSet, Tally, counts
from threadline.capabilities.streaks.events import OURS
from threadline.capabilities.streaks.state import (
    BARE,
    BLOCK,
    BLOCK_DAYS,
    CHANGES,
    COUNTS,
    DAYS_PER_PART,
    EARLY,
    FIRST,
    FIRST_DAY,
    HEAD,
    LAST,
    LATE,
    NAMED,
    QUARTER,
    RECORD_SIZE,
    RECORDED_PARTS_MAX,
    SLOTS_MAX,
    UNNAMED,
    WINDOW_DAYS,
    ZONES_PER_DAY_MAX,
    Group,
    State,
)
from threadline.capabilities.streaks.whereabouts import Dated, Journey, named_zone
from threadline.kernel.event import Event, Recorded
from threadline.kernel.projection import Fold
from threadline.kernel.time import DAY

_day_of = itemgetter(FIRST_DAY)
_NEVER = 1 << 32
"""A block before which everything lies: nothing is settled."""

Columns = tuple[int, ...]
"""The sources of events that an event counts for, by their places among the counts; the first is activity."""


class _Count(NamedTuple):
    """A tally, and where in the counts of a group it is found."""

    part: str
    tally: Tally
    column: int
    early: int
    """The place of those in the first hours of a unit, behind the sources; -1 without a grace."""


class Plan:
    """How events are folded under these declarations."""

    def __init__(self, streaks: StreakSet) -> None:
        self.streaks = streaks
        self.calendar = streaks.calendar
        sources = list(dict.fromkeys([self.calendar.active, *(tally.source for tally in streaks.tallies)]))
        self.sources = sources
        graced = [tally for tally in streaks.tallies if tally.grace]
        self.tallies = tuple(
            _Count(
                f"t{place}", tally, sources.index(tally.source),
                len(sources) + graced.index(tally) if tally.grace else -1,
            )
            for place, tally in enumerate(streaks.tallies)
        )  # fmt: skip
        self.plain = tuple(each for each in self.tallies if each.tally.sets == 1 and each.tally.unit == "day")
        """The tallies that are sets of days."""
        self.width = len(sources) + len(graced)
        """How many counts a group has."""
        self.counting = frozenset(each.column for each in self.tallies if each.tally.levels > 1 or each.tally.grace)
        """The sources of which more than the first event of a day shows."""

    def compile(self, type: str) -> Fold | None:
        """The fold for events of one type; None if they count for nothing."""
        if type in OURS:
            return partial(told.fold, self.streaks)
        found = [(column, _conditions(source, type)) for column, source in enumerate(self.sources)]
        wanted = [(column, where) for column, where in found if where is not None]
        if not wanted:
            return None
        if any(where for _, where in wanted):
            return partial(self._fold_some, wanted)
        return partial(self._fold, tuple(column for column, _ in wanted))

    def fold(self, state: State, recorded: Recorded) -> State | None:
        """The same for events of any type."""
        fold = self.compile(recorded.event.type)
        return None if fold is None else fold(state, recorded)

    def _fold_some(self, wanted: Iterable[tuple[int, Where]], state: State, recorded: Recorded) -> State | None:
        columns = tuple(column for column, where in wanted if where.test(recorded.event))
        return self._fold(columns, state, recorded) if columns else None

    def _fold(self, columns: Columns, state: State, recorded: Recorded) -> State | None:
        event = recorded.event
        # What Threadline made of an event is not a second thing that the person did.
        if event.source_type == "internal":
            return None
        at = event.occurred_at
        if not -EARLY <= recorded.recorded_at - at <= LATE:  # `is_alone`
            return self._settle_alone(columns, state, event)
        named = state.get(NAMED)
        if named is None:
            named = state[NAMED] = {}
            state[HEAD] = [_block((at - self.calendar.day_start) // DAY - 1), [], [], [], 0]
        zone: Any = event.context.get("timezone")
        groups: list[Group] | None = named.get(zone) if type(zone) is str else None
        if groups is None:
            canonical = named_zone(event)
            if canonical is None:
                return self._fold_bare(columns, state, at)
            zone, groups = canonical, named.setdefault(canonical, [])
        local = at + offset(zone, at) - self.calendar.day_start
        day = local // DAY
        place, is_new, moved = len(groups) - 1, False, False
        if place < 0 or groups[place][FIRST_DAY] != day:
            place = bisect_left(groups, day, key=_day_of)
            is_new = place == len(groups) or groups[place][FIRST_DAY] != day
        if is_new:
            group = self._new_group(state, zone, place, day, at)
        else:
            group = groups[place]
            if at > group[LAST]:
                group[LAST], moved = at, True
            elif at < group[FIRST]:
                group[FIRST], moved = at, True
        shows = is_new
        for column in columns:
            shows |= not group[COUNTS + column] or column in self.counting
            group[COUNTS + column] += 1
        if self.width > len(self.sources):
            self._count_early(columns, group, day, local % DAY)
        # Of somebody who stays in one zone no more shows than which days there are.
        return state if shows or (moved and not _stays(state, zone)) else None

    def _count_early(self, columns: Columns, group: Group, day: int, into: int) -> None:
        for each in self.tallies:
            if each.early >= 0 and each.column in columns and self._is_early(each.tally, day, into):
                group[COUNTS + each.early] += 1

    def _is_early(self, tally: Tally, day: int, into: int) -> bool:
        week_start = self.calendar.week_start
        unit = period_of(tally.unit, day, week_start)
        return 0 <= into < tally.grace and day == first_day(tally.unit, unit, week_start)

    def _new_group(self, state: State, zone: str, place: int, day: int, at: int) -> Group:
        """A group for a day in a zone, or the one in whose place it counts."""
        named: dict[str, list[Group]] = state[NAMED]
        group = [day, at, at, *([0] * self.width)]
        named[zone].insert(place, group)
        if len(named) > ZONES_PER_DAY_MAX:
            group = _crowd(named, zone, day, group)
        self._move_on(state, day)
        return group

    def _fold_bare(self, columns: Columns, state: State, at: int) -> State | None:
        """Take in an event that names no zone."""
        shifted = at - self.calendar.day_start
        day, slot = shifted // DAY, shifted % DAY // QUARTER
        bare: list[Group] = state.setdefault(BARE, [])
        place = len(bare)
        while place and bare[place - 1][0] > day:
            place -= 1
        if place and bare[place - 1][0] == day:
            entry = bare[place - 1]
        else:
            entry = [day, 1]
            bare.insert(place, entry)
            self._move_on(state, day)
        shows = _count_slot(entry, slot, columns, len(self.sources))
        return state if shows or not self.counting.isdisjoint(columns) else None

    # --- what is settled ------------------------------------------------------------------------

    def _move_on(self, state: State, day: int) -> None:
        """Settle what lies before the window, now that there is an event on this day."""
        if _block(day) > state[HEAD][BLOCK]:
            self.settle_before(state, _block(day))

    def settle_before(self, state: State, block: int) -> None:
        """Settle what lies before a block, with which the window begins from now on."""
        head, named = state[HEAD], state[NAMED]
        head[BLOCK] = block
        start, before = block * BLOCK_DAYS, dict[int, tuple[dict[str, list[Group]], list[Group]]]()
        for zone, groups in [*named.items()]:
            cut = bisect_left(groups, start, key=_day_of)
            for group in groups[:cut]:
                number = group[FIRST_DAY] // BLOCK_DAYS
                before.setdefault(number, ({}, []))[0].setdefault(zone, []).append(group)
            del groups[:cut]
            if not groups:
                del named[zone]
        bare: list[Group] = state.get(BARE, [])
        cut = bisect_left(bare, start, key=_day_of)
        for entry in bare[:cut]:
            before.setdefault(entry[0] // BLOCK_DAYS, ({}, []))[1].append(entry)
        del bare[:cut]
        head[UNNAMED] |= int(cut > 0)
        if not bare:
            state.pop(BARE, None)
        journey = self.journey(state, copy=False)
        for number in sorted(before):
            for dated in journey.go(*before[number]):
                self._settle(state, dated)

    def _settle(self, state: State, dated: Dated) -> bool:
        """Put what counts for a day into its record and into the sets; answers whether a set has changed."""
        if dated.counts[0]:
            _note(state, dated.day, dated.first, dated.counts[0])
        shows = False
        for each in self.tallies:
            for early, count in enumerate(self._counted(each, dated)):
                shows |= count > 0 and self._add(state, each, dated.day, bool(early), count)
        return shows

    def _counted(self, count: _Count, dated: Dated) -> tuple[int, int]:
        """How many events of a day count for a tally: those after its first hours, and those within."""
        every = dated.counts[count.column]
        if count.early < 0 or dated.held:
            return every, 0
        if dated.into >= 0:  # a slot
            return (0, every) if self._is_early(count.tally, dated.day, dated.into) else (every, 0)
        early = dated.counts[count.early] if len(dated.counts) > count.early else 0
        return every - early, early

    def _add(self, state: State, count: _Count, day: int, early: bool, times: int) -> bool:
        tally = count.tally
        sets = state.get(count.part)
        if sets is None:
            sets = state[count.part] = [[] for _ in range(tally.sets)]
        unit = period_of(tally.unit, day, self.calendar.week_start)
        return add_to_levels(sets[tally.levels :] if early else sets[: tally.levels], unit, times)

    def _settle_alone(self, columns: Columns, state: State, event: Event) -> State | None:
        """An event that has become known too late to say where the person was: its own zone decides, or none."""
        calendar, at = self.calendar, event.occurred_at
        zone = named_zone(event) or calendar.timezone
        day, into = divmod(at + offset(zone, at) - calendar.day_start, DAY)
        counted = [int(column in columns) for column in range(len(self.sources))]
        return state if self._settle(state, Dated(day, at, counted, into)) else None

    # --- what is seen ---------------------------------------------------------------------------

    def journey(self, state: State, *, copy: bool = True) -> Journey:
        """Where the person was when the window began. Without ``copy`` it is the state's own."""
        head = state.get(HEAD) or [0, [], [], [], 0]
        parts = [[*each] for each in head[CHANGES:UNNAMED]] if copy else head[CHANGES:UNNAMED]
        return Journey(self.calendar.timezone, self.calendar.day_start, len(self.sources), *parts)

    def window(self, state: State) -> tuple[Journey, list[Dated]]:
        """The journey up to the newest event, and what the events of the window count for."""
        journey = self.journey(state)
        return journey, list(journey.go(state.get(NAMED, {}), state.get(BARE, ())))

    def seen(self, state: State) -> tuple[Journey, dict[str, list[days.Ranges]]]:
        """The journey up to the newest event, and of each tally, by its part, the sets of all the person's life."""
        journey = self.journey(state)
        named, bare = state.get(NAMED, {}), state.get(BARE, ())
        stays, window = journey.stays(named, bare), list[Dated]()
        if not stays or len(self.plain) < len(self.tallies):
            window = list(journey.go(named, bare))
        found = {}
        for each in self.tallies:
            kept = state.get(each.part)
            sets = found[each.part] = [[*level] for level in kept] if kept else [[] for _ in range(each.tally.sets)]
            if each in self.plain:
                travelled = sorted({dated.day for dated in window if dated.counts[each.column]})
                add_days(sets[0], journey.days(named, bare, each.column) if stays else travelled)
            else:
                self._count_in(sets, each, window)
        if stays:
            journey.arrive(named)
        return journey, found

    def _count_in(self, sets: list[days.Ranges], count: _Count, window: Iterable[Dated]) -> None:
        levels = count.tally.levels
        units: dict[int, list[int]] = {}
        for dated in window:
            own, early = self._counted(count, dated)
            if own or early:
                unit = units.setdefault(period_of(count.tally.unit, dated.day, self.calendar.week_start), [0, 0])
                unit[0] += own
                unit[1] += early
        for number in sorted(units):
            for chosen, times in zip((sets[:levels], sets[levels:]), units[number], strict=True):
                if times:
                    add_to_levels(chosen, number, times)

    def records(self, state: State, since: int, until: int) -> Iterator[tuple[int, int, int]]:
        """(day, first instant, events) of the days from one to another on which the person was active."""
        found: dict[int, tuple[int, int]] = {}
        for number in range(since // DAYS_PER_PART, until // DAYS_PER_PART + 1):
            records = state.get(f"d{number}", [])
            found |= {records[n]: (records[n + 1], records[n + 2]) for n in range(0, len(records), RECORD_SIZE)}
        for dated in self.window(state)[1]:
            if dated.counts[0]:
                first, events = found.get(dated.day, (dated.first, 0))
                found[dated.day] = min(first, dated.first), events + dated.counts[0]
        return ((day, *found[day]) for day in sorted(found) if since <= day <= until)

    # --- questions about events -------------------------------------------------------------------

    def is_alone(self, recorded: Recorded) -> bool:
        """Whether an event has become known too late to have a part in where the person was."""
        return not -EARLY <= recorded.recorded_at - recorded.event.occurred_at <= LATE

    def days_of(self, journey: Journey, events: Iterable[Recorded]) -> dict[str, int]:
        """The days for which the events of a stretch of time count, by id."""
        counted = [recorded for recorded in events if self.counts(recorded.event)]
        start = min((recorded.event.occurred_at for recorded in counted), default=0)
        changes = [*journey.changes]
        while changes and changes[-1] >= start:
            del changes[-2:]
        trial: State = {HEAD: [_NEVER, changes, [], [], 0], NAMED: {}}
        for recorded in counted:
            self.fold(trial, recorded)
        journey, window = self.window(trial)
        held = {dated.first: dated.day for dated in window if dated.held}
        found = ((recorded.id, *self._place(trial, journey, recorded)) for recorded in counted)
        return {id: held.get(first, day) for id, first, day in found}

    def _place(self, trial: State, journey: Journey, recorded: Recorded) -> tuple[int, int]:
        """The first instant of what an event counts together with, and the local day that it lies on."""
        event, calendar = recorded.event, self.calendar
        at, zone = event.occurred_at, named_zone(event)
        slot = at - (at - calendar.day_start) % QUARTER
        if zone is None and not self.is_alone(recorded):
            return slot, local_day(journey.zone_at(slot + QUARTER - 1), at, calendar.day_start)
        day = local_day(zone or calendar.timezone, at, calendar.day_start)
        groups = trial[NAMED].get(zone, ())
        return next((group[FIRST] for group in groups if group[FIRST_DAY] == day), at), day

    def in_place(self, state: State, recorded: Recorded) -> bool:
        """Whether a late event may be folded as it is: unless it lies before the window and is not late itself, as of
        two people who are joined."""
        event = recorded.event
        head = state.get(HEAD)
        if head is None or self.is_alone(recorded) or not self.counts(event):
            return True
        return bool((event.occurred_at - self.calendar.day_start) // DAY >= head[BLOCK] * BLOCK_DAYS + 2)

    def is_active(self, event: Event) -> bool:
        """Whether an event says that the person was active."""
        return self._counts_for(event, self.sources[:1])

    def counts(self, event: Event) -> bool:
        """Whether an event counts for anything here."""
        return self._counts_for(event, self.sources)

    def _counts_for(self, event: Event, sources: Iterable[Source]) -> bool:
        if event.source_type == "internal":
            return False
        return any((where := _conditions(each, event.type)) is not None and where.test(event) for each in sources)


def _conditions(source: Source, type: str) -> Where | None:
    if not counts(source, type):
        return None
    return next(feed.where for feed in source.feeds if feed.type in (type, ANY))


def _block(day: int) -> int:
    """The first block of the window if this is the newest day."""
    return (day - WINDOW_DAYS) // BLOCK_DAYS


def _stays(state: State, zone: str) -> bool:
    """Whether the person was in no other zone than this, as far as a glance shows."""
    changes = state[HEAD][CHANGES]
    return len(state[NAMED]) == 1 and BARE not in state and (not changes or (len(changes) == 2 and changes[0] == zone))


def add_to_levels(levels: list[days.Ranges], unit: int, times: int) -> bool:
    """Count a unit so many times; answers whether a set has changed. Level n holds what was counted n times or more."""
    if levels[0] and levels[0][-1] - unit >= days.SPAN_MAX:
        return False
    shows = False
    for level in levels:
        if times and days.add(level, unit):
            times -= 1
            shows = True
    # What is too old for the first level is too old for all of them, whenever they were reached.
    for level in levels[1:]:
        days.forget(level, levels[0][-1] - days.SPAN_MAX)
    return shows


def add_days(ranges: days.Ranges, numbers: Iterable[int]) -> None:
    """Put days into a set, in ascending order."""
    for number in numbers:
        if ranges and number == ranges[-1] + 1:
            ranges[-1] = number
        elif not ranges or number > ranges[-1]:
            ranges += (number, number)
        else:
            days.add(ranges, number)
    if ranges:
        days.forget(ranges, ranges[-1] - days.SPAN_MAX)


def _crowd(named: dict[str, list[Group]], zone: str, day: int, new: Group) -> Group:
    """The group in whose place a new one counts: itself, unless the day is told apart in enough zones with smaller
    names."""
    found: dict[str, Group] = {}
    for name, groups in named.items():
        place = bisect_left(groups, day, key=_day_of)
        if place < len(groups) and groups[place][FIRST_DAY] == day:
            found[name] = groups[place]
    last = sorted(found)[:ZONES_PER_DAY_MAX][-1]
    for gone in sorted(found)[ZONES_PER_DAY_MAX:]:
        named[gone].remove(found[gone])
        if not named[gone]:
            del named[gone]
        for place in range(COUNTS, len(new)):
            found[last][place] += found[gone][place]
    return new if zone in named and new in named[zone] else found[last]


def part_crowds(named: dict[str, list[Group]]) -> None:
    """Tell no day apart in more zones than that is done for."""
    if len(named) > ZONES_PER_DAY_MAX:
        for day in {group[FIRST_DAY] for groups in named.values() for group in groups}:
            _crowd(named, "", day, [0] * max(len(group) for groups in named.values() for group in groups))


def _count_slot(entry: Group, slot: int, columns: Columns, sources: int) -> bool:
    """Count an event in its slot of a day; answers whether it is the first there for one of its sources."""
    slot -= slot % entry[1]
    place, size = 2, 1 + sources
    while place < len(entry) and entry[place] < slot:
        place += size
    if place == len(entry) or entry[place] != slot:
        entry[place:place] = (slot, *([0] * sources))
    shows = False
    for column in columns:
        shows |= not entry[place + 1 + column]
        entry[place + 1 + column] += 1
    if len(entry) > 2 + SLOTS_MAX * size and entry[1] == 1:
        widen(entry, size)
    return shows


def widen(entry: Group, size: int) -> None:
    """Tell hours apart instead of quarters."""
    merged: dict[int, list[int]] = {}
    for place in range(2, len(entry), size):
        hour = merged.setdefault(entry[place] - entry[place] % 4, [0] * (size - 1))
        for column, count in enumerate(entry[place + 1 : place + size]):
            hour[column] += count
    entry[1:] = (4, *(number for slot, counted in merged.items() for number in (slot, *counted)))


def _note(state: State, day: int, at: int, events: int) -> None:
    """Count events in their day's record."""
    number = day // DAYS_PER_PART
    name = f"d{number}"
    records = state.get(name)
    if records is None:
        records = _new_part(state, number)
        if records is None:
            return
    place = len(records) - RECORD_SIZE
    while place >= 0 and records[place] > day:
        place -= RECORD_SIZE
    if place >= 0 and records[place] == day:
        records[place + 2] += events
        records[place + 1] = min(records[place + 1], at)
    else:
        place += RECORD_SIZE
        records[place:place] = (day, at, events)


def _new_part(state: State, number: int) -> list[int] | None:
    """A part for records of these 32 days; None if they are too far back to be kept."""
    numbers = [int(name[1:]) for name in state if name[0] == "d"]
    oldest = max(number, max(numbers, default=number)) - RECORDED_PARTS_MAX + 1
    for old in numbers:
        if old < oldest:
            del state[f"d{old}"]
    if number < oldest:
        return None
    records: list[int] = []
    state[f"d{number}"] = records
    return records
