"""How much of the limits a person has used: by the state, and by the ledger for what the state has dropped."""

from __future__ import annotations

from threadline.capabilities.profile.points.events import POINTS_ANOMALY_DETECTED, POINTS_EARNED, amount_of
from threadline.capabilities.profile.points.ledger import CAPS_MAX, COOLS_MAX, HOURS_MAX, State, entry_of
from threadline.kernel.calendar import Calendar
from threadline.kernel.event import Event
from threadline.kernel.limits import POINTS_ANOMALIES_MAX, POINTS_RULES_MAX
from threadline.kernel.policy import PolicyView
from threadline.kernel.projection import Edge
from threadline.kernel.time import DAY, HOUR

# The state is bounded, so it forgets: what lies far behind the newest, or what is too many. Forgotten is not unused. An
# import of another year, or of a file that begins with the newest, would else earn without any limit.


def earned_in_hour(known: PolicyView, hour: int) -> int:
    """How many events have earned in an hour of the clock."""
    state: State = known["points"]
    used: int | None = entry_of(state["hours"], hour, HOURS_MAX, 0)
    return len(_earned(known, hour * HOUR, (hour + 1) * HOUR)) if used is None else used


def earned_on_day(known: PolicyView, calendar: Calendar, rule: str, day: int) -> int:
    """How often a rule has earned on a day of the calendar."""
    state: State = known["points"]
    used: dict[str, int] | None = entry_of(state["caps"], day, CAPS_MAX, {})
    if used is not None and (rule in used or len(used) < POINTS_RULES_MAX):
        return used.get(rule, 0)
    lines = _earned(known, calendar.start(day), calendar.start(day + 1))
    return sum(line.properties.get("rule") == rule for line in lines)


def is_cooling(known: PolicyView, rule: str, cooldown: int, at: int) -> bool:
    """Whether another event that earned by a rule with a cooldown lies too near to an instant."""
    state: State = known["points"]
    times: list[int] = state["cools"].get(rule, [])
    if any(abs(at - other) < cooldown for other in times):
        return True
    if times:
        forgotten = len(times) >= COOLS_MAX and times[0] > at - cooldown
    else:
        forgotten = len(state["cools"]) >= POINTS_RULES_MAX
    lines = _earned(known, at - cooldown + 1, at + cooldown) if forgotten else []
    return any(line.properties.get("rule") == rule and "cooldown" in line.properties for line in lines)


def is_flagged(known: PolicyView, kind: str, of: str, at: int) -> bool:
    """Whether an anomaly was emitted for the hour or the day of an instant."""
    state: State = known["points"]
    if f"{kind}/{of}" in state["flags"] or len(state["flags"]) < POINTS_ANOMALIES_MAX:
        return f"{kind}/{of}" in state["flags"]
    # Two days to either side hold that hour and that day, whatever the zone.
    reported = known.events("points", Edge(at - 2 * DAY, at + 2 * DAY, frozenset({POINTS_ANOMALY_DETECTED})))
    return any(_names(recorded.event) == (kind, of) for recorded in reported)


def _names(event: Event) -> tuple[object, object]:
    return event.properties.get("kind"), event.properties.get("of")


def _earned(known: PolicyView, start: int, stop: int) -> list[Event]:
    """The lines that count as earned in a range, as the fold of the ledger counts them."""
    lines = known.events("points", Edge(start, stop, frozenset({POINTS_EARNED})))
    return [recorded.event for recorded in lines if amount_of(recorded.event) is not None]
