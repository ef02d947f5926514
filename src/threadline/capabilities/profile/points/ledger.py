"""The state of one person's points: sums, days, lots. Every line adds to it, in any order."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any

from threadline.capabilities.profile.points.events import (
    POINTS_ADJUSTED,
    POINTS_ANOMALY_DETECTED,
    POINTS_EARNED,
    POINTS_EXPIRED,
    POINTS_SPENT,
    amount_of,
)
from threadline.kernel.calendar import Calendar, month_of
from threadline.kernel.event import Recorded
from threadline.kernel.limits import POINTS_ANOMALIES_MAX, POINTS_RULES_MAX
from threadline.kernel.merging import keep_smallest, merge_entries
from threadline.kernel.time import HOUR

State = dict[str, Any]
"""Short keys, because they are written again with every event of the person:

``sums``   earned, spent, given, taken, expired: the ledger's totals, for life
``days``   day -> [earned, spent, adjusted, expired], of the newest `DAYS_MAX` days
``lots``   month -> points that came in, of the newest `LOTS_MAX` months: what expiry counts
``caps``   day -> rule -> how often it earned, of the newest `CAPS_MAX` days
``hours``  hour -> how many events earned, of the newest `HOURS_MAX` hours
``cools``  rule with a cooldown -> its newest instants
``flags``  kind/of -> when, of the newest anomalies
``streak`` the day on which the streaks were looked at last, and how long the longest was

Of the limits it remembers the last days: `limit_usage.py` tells how much of one is used, and asks the log
about the rest.
"""

EARNED, SPENT, GIVEN, TAKEN, EXPIRED = range(5)

DAYS_MAX = 35
"""Enough for 30 days of history, however the calendar's days lie to the reader's; older lines are in the sums."""
LOTS_MAX = 120
CAPS_MAX = 10
"""Days: seven back, one ahead, and both ends of a day."""
HOURS_MAX = CAPS_MAX * 24
COOLS_MAX = 64

_DAY_COLUMN = {POINTS_EARNED: 0, POINTS_SPENT: 1, POINTS_ADJUSTED: 2, POINTS_EXPIRED: 3}
_NAME_LENGTH_MAX = 200


def empty() -> State:
    """The state of a person without points."""
    return {
        "sums": [0, 0, 0, 0, 0],
        "days": {},
        "lots": {},
        "caps": {},
        "hours": {},
        "cools": {},
        "flags": {},
        "streak": [],
    }


def fold(calendar: Calendar, state: State, recorded: Recorded) -> State | None:
    """Add a line of the ledger, or an anomaly, to the state."""
    event = recorded.event
    if event.type == POINTS_ANOMALY_DETECTED:
        _flag(state["flags"], event.properties, event.occurred_at)
        return state
    points = amount_of(event)
    if points is None:
        return None
    at = event.occurred_at
    day = calendar.day(at)
    sums = state["sums"]
    if event.type == POINTS_EARNED:
        sums[EARNED] += points
        _count(state, event.properties, day, at)
    elif event.type == POINTS_SPENT:
        sums[SPENT] += points
    elif event.type == POINTS_EXPIRED:
        sums[EXPIRED] += points
    elif points > 0:
        sums[GIVEN] += points
    else:
        sums[TAKEN] -= points
    columns = newest(state["days"], day, DAYS_MAX, [0, 0, 0, 0])
    if columns is not None:
        columns[_DAY_COLUMN[event.type]] += points
    if event.type == POINTS_EARNED or (event.type == POINTS_ADJUSTED and points > 0):
        _add(state["lots"], month_of(day), LOTS_MAX, points)
    return state


def newest(table: dict[str, Any], number: int, span: int, first: Any) -> Any:
    """The entry of a number, put there if it is missing; None if it lies ``span`` or more behind the largest.

    What lies so far behind is dropped. Whatever order numbers come in, those that stay are the same: the ones that
    are near enough to the largest of all.
    """
    name = str(number)
    entry = table.get(name)
    if entry is not None:
        return entry
    last = max(map(int, table), default=number)
    if number <= last - span:
        return None
    if number > last:
        for old in [key for key in table if int(key) <= number - span]:
            del table[old]
    table[name] = first
    return first


def entry_of(table: dict[str, Any], number: int, span: int, first: Any) -> Any:
    """The entry of a number, ``first`` if there never was one; None where it may have been dropped as `newest` does."""
    entry = table.get(str(number))
    if entry is not None:
        return entry
    return None if table and number <= max(map(int, table)) - span else first


def _add(table: dict[str, int], number: int, span: int, amount: int) -> None:
    if newest(table, number, span, 0) is not None:
        table[str(number)] += amount


def _count(state: State, properties: dict[str, Any], day: int, at: int) -> None:
    """Count an event that earned towards the limits of its rule and of its hour."""
    _add(state["hours"], at // HOUR, HOURS_MAX, 1)
    seen = properties.get("streak")
    if type(seen) is list and len(seen) == 2 and all(type(item) is int for item in seen):
        state["streak"] = max(state["streak"], seen)
    rule = properties.get("rule")
    if type(rule) is not str or len(rule) > _NAME_LENGTH_MAX:
        return
    rules = newest(state["caps"], day, CAPS_MAX, {})
    if rules is not None:
        rules[rule] = rules.get(rule, 0) + 1
        if len(rules) > POINTS_RULES_MAX:
            del rules[max(rules)]
    if "cooldown" in properties:
        times = state["cools"].setdefault(rule, [])
        times.append(at)
        times.sort()
        del times[:-COOLS_MAX]
        if len(state["cools"]) > POINTS_RULES_MAX:
            del state["cools"][max(state["cools"])]


def _flag(flags: dict[str, int], properties: dict[str, Any], at: int) -> None:
    kind, of = properties.get("kind"), properties.get("of")
    if type(kind) is not str or type(of) is not str or len(kind) + len(of) > _NAME_LENGTH_MAX:
        return
    name = f"{kind}/{of}"
    flags[name] = max(at, flags.get(name, at))
    if len(flags) > POINTS_ANOMALIES_MAX:
        del flags[min(flags, key=lambda flag: (flags[flag], flag))]


# --- merging --------------------------------------------------------------------------------


def merge(first: State, second: State) -> State:
    """The state of the union of two people's lines."""
    flags = merge_entries(first["flags"], second["flags"], max)
    for name in sorted(flags, key=lambda flag: (flags[flag], flag))[:-POINTS_ANOMALIES_MAX]:
        del flags[name]
    return {
        "sums": _added(first["sums"], second["sums"]),
        "days": merge_tables(first["days"], second["days"], DAYS_MAX, _added),
        "lots": merge_tables(first["lots"], second["lots"], LOTS_MAX, add),
        "caps": merge_tables(first["caps"], second["caps"], CAPS_MAX, _merge_caps),
        "hours": merge_tables(first["hours"], second["hours"], HOURS_MAX, add),
        "cools": keep_smallest(merge_entries(first["cools"], second["cools"], _merge_times), POINTS_RULES_MAX),
        "flags": flags,
        "streak": max(first["streak"], second["streak"]),
    }


def merge_tables(
    first: dict[str, Any], second: dict[str, Any], span: int, merge: Callable[[Any, Any], Any]
) -> dict[str, Any]:
    """The entries of both tables that lie less than ``span`` behind the largest number, as `newest` keeps them."""
    merged = merge_entries(first, second, merge)
    last = max(map(int, merged), default=0)
    return {name: entry for name, entry in merged.items() if int(name) > last - span}


def _added(first: list[int], second: list[int]) -> list[int]:
    return [a + b for a, b in zip(first, second, strict=True)]


def _merge_caps(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return keep_smallest(merge_entries(first, second, add), POINTS_RULES_MAX)


def _merge_times(first: list[int], second: list[int]) -> list[int]:
    return sorted(first + second)[-COOLS_MAX:]


# --- computing ------------------------------------------------------------------------------


def lot_ends(calendar: Calendar, month: int, expires_after: int) -> int:
    """The instant at which the points that came in during a month are gone, if they are not spent by then."""
    return calendar.start_of_month(month + 1) + expires_after


def gone(state: State) -> int:
    """All points that went out: spent, taken, expired."""
    sums: list[int] = state["sums"]
    return sums[SPENT] + sums[TAKEN] + sums[EXPIRED]


def overdue(state: State, calendar: Calendar, expires_after: int | None, at: int, taken: int = 0) -> int:
    """Points that are over their time at an instant and not booked as expired yet, before so many were taken.

    What goes out takes the oldest points first. So of all that came in up to some month, whatever is more than all that
    ever went out is still there, and is overdue once that month's time is up.
    """
    if expires_after is None:
        return 0
    sums: list[int] = state["sums"]
    lots: dict[str, int] = state["lots"]
    fresh = sum(points for month, points in lots.items() if lot_ends(calendar, int(month), expires_after) > at)
    return max(0, sums[EARNED] + sums[GIVEN] - fresh - gone(state) + taken)


def booked(state: State) -> int:
    """The sum of all lines, whether or not points among them are overdue."""
    sums: list[int] = state["sums"]
    return sums[EARNED] + sums[GIVEN] - gone(state)


def spendable(state: State, calendar: Calendar, expires_after: int | None, at: int) -> int:
    """The balance at an instant; below 0 after a correction, or where a split left the spending and not the earning."""
    return booked(state) - overdue(state, calendar, expires_after, at)


def next_expiry(state: State, calendar: Calendar, expires_after: int | None, at: int) -> tuple[int, int] | None:
    """(instant, points) of the next expiry after an instant if nothing is spent until then; None if there is none."""
    if expires_after is None:
        return None
    sums, lots = state["sums"], state["lots"]
    taken = gone(state) + overdue(state, calendar, expires_after, at)
    came = sums[EARNED] + sums[GIVEN] - sum(lots.values())
    for month in sorted(map(int, lots)):
        came += lots[str(month)]
        ends_at = lot_ends(calendar, month, expires_after)
        if came > taken and ends_at > at:
            return ends_at, came - taken
    return None


def is_jump(state: State, today: int, streak: int) -> bool:
    """Whether a streak has grown by more than the days that went by, as when a day of long ago arrives today."""
    if not state["streak"]:
        return False
    day, length = state["streak"]
    # One day more, because days of a streak are the person's and these are the calendar's.
    return bool(streak - length > today - day + 1)


def is_spike(state: State, day: int, points: int, times: int, days_min: int) -> bool:
    """Whether ``points`` more lift a day above ``times`` the mean of the days before, for the first time that day."""
    days = state["days"]
    before = [columns[0] for name, columns in days.items() if int(name) < day and columns[0] > 0]
    earned = days[str(day)][0] if str(day) in days else 0
    bound = times * sum(before)
    return len(before) >= days_min and earned * len(before) <= bound < (earned + points) * len(before)
