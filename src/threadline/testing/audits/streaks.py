"""What the shipped streak must say of a person: event by event, day by day, in the words of docs/streaks.md."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Any

from threadline.testing.audits.told import PASSIVE, Told

_OWN = ("streak_milestone_reached", "zone_hopping_detected", "streak_freeze_granted", "streak_amnesty_granted")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_HOURS_24 = 24 * 3_600_000_000
_ONE = dt.timedelta(days=1)
_MIDNIGHT = dt.timedelta()
_OTHER_NAMES = {"Etc/UTC": "UTC", "GMT": "UTC", "+00:00": "UTC", "Asia/Katmandu": "Asia/Kathmandu"}
"""Names of zones that are audited, and the one that the same zone goes by."""

FIELDS = ("current", "longest", "at_risk", "expires_at", "last_active_on", "run", "longest_run", "history")
"""What is audited of the view."""

Dated = list[tuple[int, dt.date]]
"""Instants of events and the local days they count for, in order."""


def streaks(events: list[Told], now: int, day_start: dt.timedelta = _MIDNIGHT) -> dict[str, Any]:
    """The view of the streak ``daily``. ``events`` are one person's in occurred order; from ``now`` on none counts."""
    active = [
        event
        for event in events
        if event["occurred_at"] < now
        and event["type"] not in (*PASSIVE, *_OWN)
        and not event["type"].startswith("threadline.")
        and event.get("source_type") != "internal"
    ]
    dated, zone, leapt = _dated(active, day_start)
    days = sorted({day for _, day in dated})
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
        "run": _told(runs[-1]) if alive else None,
        "longest_run": _told(longest) if longest else None,
        "history": [_told(run) for run in reversed(over[-20:])],
    }


def days(events: list[Told], day_start: dt.timedelta = _MIDNIGHT) -> dict[str, int]:
    """How many active events each local day has."""
    counts: dict[str, int] = {}
    active = [event for event in events if event["type"] not in (*PASSIVE, *_OWN)]
    for _, day in _dated(active, day_start)[0]:
        counts[day.isoformat()] = counts.get(day.isoformat(), 0) + 1
    return counts


def _dated(events: list[Told], day_start: dt.timedelta) -> tuple[Dated, dt.tzinfo, set[dt.date]]:
    """The local day of every event; the zone at the end; the days that changes of zone have leapt over."""
    dated: Dated = []
    leapt: set[dt.date] = set()
    name, changed_at = None, None
    for event in events:
        at, named = event["occurred_at"], event["context"].get("timezone")
        named = _OTHER_NAMES.get(named, named)
        if _zone(named) is not None and named != name:
            if name is not None:
                changed_at = at
                old, new = (_zone(each) or dt.UTC for each in (name, named))
                cut = _date(at, new, day_start) - _ONE
                ahead = (_clock(at, new).utcoffset() or _MIDNIGHT) - (_clock(at, old).utcoffset() or _MIDNIGHT)
                forward = ahead >= dt.timedelta(hours=12) and cut >= _date(at, old, day_start)
                if forward and all(abs((cut - other).days) >= 7 for other in leapt):
                    leapt.add(cut)
            name = named
        day = _date(at, _zone(name) or dt.UTC, day_start)
        lately = {other for when, other in dated if when > at - _HOURS_24}
        if changed_at is not None and at - changed_at < _HOURS_24 and len(lately) > 1 and day not in lately:
            day = max(dated)[1]
        dated.append((at, day))
    return dated, _zone(name) or dt.UTC, leapt


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


def _told(run: list[dt.date]) -> dict[str, Any]:
    return {"from": run[0].isoformat(), "to": run[-1].isoformat(), "length": len(run), "frozen": 0}
