"""What the shipped streak must say of a person: event by event, day by day, in the words of docs/streaks.md."""

from __future__ import annotations

import dataclasses
import datetime as dt
import zoneinfo
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from threadline.testing.audits.sent_events import PASSIVE, SentEvent

_OWN = ("streak_milestone_reached", "zone_hopping_detected", "streak_freeze_granted", "streak_amnesty_granted")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_HOURS_24 = 24 * 3_600_000_000
_ONE = dt.timedelta(days=1)
_MIDNIGHT = dt.timedelta()
_OTHER_NAMES = {"Etc/UTC": "UTC", "GMT": "UTC", "+00:00": "UTC", "Asia/Katmandu": "Asia/Kathmandu"}
"""Names of zones that are audited, and the one that the same zone goes by."""

FIELDS = ("current", "longest", "at_risk", "expires_at", "last_active_on", "run", "longest_run", "history")
"""What is audited of the view."""

_LATE = 32 * _HOURS_24
_QUARTER = 15 * 60 * 1_000_000
_BLOCK_DAYS = 32
_ZONES_PER_DAY = 4
_QUARTERS_PER_DAY = 24


def streaks(
    events: list[SentEvent], now: int, day_start: dt.timedelta = _MIDNIGHT, default: dt.tzinfo = dt.UTC
) -> dict[str, Any]:
    """The view of the streak ``daily``. ``events`` are one person's; from ``now`` on none counts. Each became known at
    its ``recorded_at``, or at ``now`` if it has none."""
    active = [event for event in events if event["occurred_at"] < now and _is_active(event)]
    dated, zone, leapt = _dated(active, day_start, default, now)
    days = sorted(dated)
    runs: list[list[dt.date]] = []
    for day in days:
        if runs and _bridged(runs[-1][-1], day, leapt):
            runs[-1].append(day)
        else:
            runs.append([day])
    today = _date(now, zone, day_start)
    alive = bool(runs) and (runs[-1][-1] >= today or _bridged(runs[-1][-1], today, leapt))
    longest = max(runs, key=lambda run: (len(run), run[-1])) if runs else []
    over = runs[:-1] if alive else runs
    return {
        "current": len(runs[-1]) if alive else 0,
        "longest": len(longest),
        "at_risk": alive and today not in days and today not in leapt,
        "expires_at": _expiry(max(runs[-1][-1], today - _ONE), zone, leapt, day_start) if alive else None,
        "last_active_on": days[-1].isoformat() if days else None,
        "run": _shown(runs[-1]) if alive else None,
        "longest_run": _shown(longest) if longest else None,
        "history": [_shown(run) for run in reversed(over[-20:])],
    }


def days(
    events: list[SentEvent], now: int, day_start: dt.timedelta = _MIDNIGHT, default: dt.tzinfo = dt.UTC
) -> dict[str, list[SentEvent]]:
    """The active events of each local day."""
    active = [event for event in events if event["occurred_at"] < now and _is_active(event)]
    return {day.isoformat(): own for day, own in _dated(active, day_start, default, now)[0].items()}


def _is_active(event: SentEvent) -> bool:
    theirs = event["type"] not in (*PASSIVE, *_OWN) and not event["type"].startswith("threadline.")
    return theirs and event.get("source_type") != "internal"


@dataclasses.dataclass
class _Group:
    """Events that stay together: of one day in one zone, or of one quarter of an hour and no zone."""

    zone: str
    """Empty for none."""
    stops: list[int]
    """The instants at which they decide where the person was: of the first and of the last."""
    day: dt.date
    """In their own zone; of those without one, that of UTC."""
    begins: int = 0
    """Of those without a zone the quarter of an hour, or the hour, that they lie in."""
    events: list[SentEvent] = dataclasses.field(default_factory=list)
    counted_days: list[dt.date] = dataclasses.field(default_factory=list)
    """The days for which the events at the stops count."""

    @property
    def block(self) -> int:
        return (self.day - _EPOCH.date()).days // _BLOCK_DAYS


def _dated(
    events: list[SentEvent], day_start: dt.timedelta, default: dt.tzinfo, now: int
) -> tuple[dict[dt.date, list[SentEvent]], dt.tzinfo, set[dt.date]]:
    """The events that count for each local day; the zone at the end; the days that changes of zone have leapt over."""
    counted: defaultdict[dt.date, list[SentEvent]] = defaultdict(list)
    timely = []
    for event in events:
        if event.get("recorded_at", now) - event["occurred_at"] <= _LATE:
            timely.append(event)
        else:
            counted[_date(event["occurred_at"], _zone(_named(event)) or default, day_start)].append(event)
    groups = _groups(timely, day_start)
    stops = sorted(
        (group.block, at, group.zone, index, number)
        for index, group in enumerate(groups)
        for number, at in enumerate(group.stops)
    )
    leapt: set[dt.date] = set()
    name, changed_at = "", None
    been: list[tuple[int, dt.date]] = []
    for _, at, zone, index, _ in stops:
        group = groups[index]
        if zone and zone != name:
            if name:
                changed_at = at
                leapt |= _leap(name, zone, at, day_start, leapt)
            name = zone
        day = group.day if zone else _date(group.begins, _zone(name) or default, day_start)
        lately = {other for when, other in been if when > at - _HOURS_24}
        if changed_at is not None and 0 <= at - changed_at < _HOURS_24 and len(lately) > 1 and day not in lately:
            day = max(been)[1]
        been.append((at, day))
        group.counted_days.append(day)
    for group in groups:
        counted[group.day if group.zone and group.day in group.counted_days else group.counted_days[-1]] += group.events
    return dict(counted), _zone(name) or default, leapt


def _groups(events: list[SentEvent], day_start: dt.timedelta) -> list[_Group]:
    named: dict[tuple[dt.date, str], _Group] = {}
    bare: defaultdict[dt.date, list[SentEvent]] = defaultdict(list)
    for event in events:
        at, zone = event["occurred_at"], _named(event)
        tz = _zone(zone)
        if tz is None:
            bare[_date(at, dt.UTC, day_start)].append(event)
        else:
            day = _date(at, tz, day_start)
            group = named.setdefault((day, zone), _Group(zone, [at, at], day))
            group.stops = [min(at, group.stops[0]), max(at, group.stops[1])]
            group.events.append(event)
    for day in {day for day, _ in named}:
        zones = sorted(zone for other, zone in named if other == day)
        for zone in zones[_ZONES_PER_DAY:]:
            named[day, zones[_ZONES_PER_DAY - 1]].events += named.pop((day, zone)).events
    return [*named.values(), *(group for day, own in bare.items() for group in _slots(day, own, day_start))]


def _slots(day: dt.date, events: list[SentEvent], day_start: dt.timedelta) -> Iterator[_Group]:
    """The events of a day that name no zone, by quarters of an hour; by hours, if they lie in too many of those."""
    shift = day_start // dt.timedelta(microseconds=1)
    quarters = {(event["occurred_at"] - shift) // _QUARTER for event in events}
    size = _QUARTER if len(quarters) <= _QUARTERS_PER_DAY else 4 * _QUARTER
    slots: dict[int, _Group] = {}
    for event in events:
        begins = event["occurred_at"] - (event["occurred_at"] - shift) % size
        slots.setdefault(begins, _Group("", [begins + size - 1], day, begins)).events.append(event)
    yield from slots.values()


def _leap(old: str, new: str, at: int, day_start: dt.timedelta, leapt: set[dt.date]) -> set[dt.date]:
    """The date that a change of zone puts the clock over, unless another one was forgiven within seven days."""
    before, after = (_zone(name) or dt.UTC for name in (old, new))
    cut = _date(at, after, day_start) - _ONE
    ahead = (_clock(at, after).utcoffset() or _MIDNIGHT) - (_clock(at, before).utcoffset() or _MIDNIGHT)
    forward = ahead >= dt.timedelta(hours=12) and cut >= _date(at, before, day_start)
    return {cut} if forward and all(abs((cut - other).days) >= 7 for other in leapt) else set()


def _named(event: SentEvent) -> str:
    name = event["context"].get("timezone")
    return _OTHER_NAMES.get(name, name) if isinstance(name, str) else ""


def _zone(name: Any) -> dt.tzinfo | None:
    if not isinstance(name, str) or name == "localtime":
        return None  # the latter is whatever a machine is set to
    if len(name) == 6 and name[0] in "+-" and name[3] == ":":
        return dt.datetime.strptime(name, "%z").tzinfo
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _clock(at: int, zone: dt.tzinfo) -> dt.datetime:
    return (_EPOCH + dt.timedelta(microseconds=at)).astimezone(zone)


def _date(at: int, zone: dt.tzinfo, day_start: dt.timedelta) -> dt.date:
    return (_clock(at, zone).replace(tzinfo=None) - day_start).date()


def _bridged(earlier: dt.date, later: dt.date, leapt: set[dt.date]) -> bool:
    """Whether every day between the two was leapt over."""
    between = (earlier + _ONE * number for number in range(1, (later - earlier).days))
    return all(day in leapt for day in between)


def _expiry(last: dt.date, zone: dt.tzinfo, leapt: set[dt.date], day_start: dt.timedelta) -> str:
    """The end of the first day after ``last`` that has to be active. No zone that is audited skips a midnight."""
    missed = last + _ONE
    while missed in leapt:
        missed += _ONE
    end = (dt.datetime.combine(missed + _ONE, dt.time(), zone) + day_start).astimezone(dt.UTC)
    return end.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _shown(run: list[dt.date]) -> dict[str, Any]:
    return {"from": run[0].isoformat(), "to": run[-1].isoformat(), "length": len(run), "frozen": 0}
