"""Fields: how a path reaches into the event and into whatever is known of the person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor
from typing import Any

from threadline.capabilities.foundation.conditions.operators import decimal_of, instant_of
from threadline.capabilities.foundation.conditions.tree import Path, Test
from threadline.kernel.event import Event, Recorded
from threadline.kernel.time import DAY, EARLIEST, HOUR, LATEST, format_time

EVENT = "event"
"""The first step of a field of the event itself."""

PROFILE = "profile"
"""The projection whose parts are named without it."""
PROFILE_PARTS = ("traits", "tags", "groups")

ALSO_CALLED: Mapping[Path, Path] = {("traits", "tags"): ("tags",)}
"""Paths by which others know a field: who sends tags among the traits looks for them there."""

RELATIVE: dict[str, tuple[int, int]] = {
    "days_since": (1, DAY),
    "hours_since": (1, HOUR),
    "days_until": (-1, DAY),
    "hours_until": (-1, HOUR),
}
"""First steps that make a number of the time at the rest of the path: whole units from it until now, or from now until
it. Below 0 the time lies on the other side of now."""

Read = Callable[["Subject"], Any]
"""The value of a field; None where it is missing or null, which no condition tells apart."""


class Subject:
    """What a tree is asked about: one event, or none, and views of its person, each made when a field needs it."""

    __slots__ = ("_made", "_make", "at", "memo", "recorded")

    def __init__(self, view: Callable[[str], Any], recorded: Recorded | None = None, at: int | None = None) -> None:
        self.recorded = recorded
        self.at = at
        """The instant of the views, which `RELATIVE` fields count from; None: there are no such fields."""
        self.memo: dict[str, Any] = {}
        """What tracers have read, by the name of the field: each is read once for all trees."""
        self._make = view
        self._made: dict[str, Any] = {}

    def view(self, name: str) -> Any:
        """The view of a projection by its name; None if there is none."""
        try:
            return self._made[name]
        except KeyError:
            made = self._made[name] = self._make(name)
            return made


def viewed(path: Path) -> tuple[str, Path]:
    """The projection that a path reads and the steps inside its view; ("", …) for a field of the event."""
    first = path[0]
    if first in RELATIVE:
        return viewed(path[1:])
    if first in PROFILE_PARTS:
        return PROFILE, path
    return ("", path) if first == EVENT else (first, path[1:])


def reader(path: Path) -> Read:
    """How a field is read. Its path has passed `wrong_path`."""
    if path[0] in RELATIVE:
        return _relative_reader(path)
    name, steps = viewed(path)
    if not name:
        return _event_field(path)
    if steps and steps[-1].endswith("_at") and name != PROFILE:
        return lambda subject: _time_of(value_at(subject.view(name), steps))
    if len(steps) == 1:
        return _part_reader(name, steps[0])
    if name == PROFILE:
        return lambda subject: _walk(subject.view(PROFILE), steps)
    return lambda subject: value_at(subject.view(name), steps)[0]


def _part_reader(name: str, step: str) -> Read:
    """`value_at` for a single step, which most fields are: it is called more often than anything else here."""

    def read(subject: Subject) -> Any:
        view = subject.view(name)
        part = view.get(step) if type(view) is dict else None
        if type(part) is dict and "value" in part and name != PROFILE:
            return part["value"]
        return part if part is not None else value_at(view, (step,))[0]

    return read


def value_at(view: Any, steps: Path) -> tuple[Any, Any]:
    """What stands at the end of some steps into a view, and the object around it that says more, None without one.

    A view may hold a value with details about it, as ``{"value": 80, "changes_at": …}``. Such an
    object stands for its value wherever the path does not name another part of it.
    """
    around = None
    for step in steps:
        if around is None and type(view) is dict and "value" in view and step not in view:
            around, view = view, view["value"]
        view = view.get(step) if type(view) is dict else None
        if view is None:
            return None, around
    if around is None and type(view) is dict and "value" in view:
        return view["value"], view
    return view, around


def reason_of(subject: Subject, path: Path) -> str:
    """Why a view has no value at a path, or an incomplete one; empty if it gives no reason."""
    if path[0] in RELATIVE and (value := reader(path[1:])(subject)) is not None:
        return "" if type(value) is str and instant_of(value) is not None else f"{str(value)[:100]!r} is not a time"
    name, steps = viewed(path)
    around = value_at(subject.view(name), steps)[1] if name not in ("", PROFILE) else None
    reason = around.get("reason") if around is not None else None
    return reason if type(reason) is str else ""


def _relative_reader(path: Path) -> Read:
    read, (sign, unit) = reader(path[1:]), RELATIVE[path[0]]

    def read_relative(subject: Subject) -> int | None:
        time = _time_at(read, subject)
        if time is None:
            return None
        assert subject.at is not None, "a subject with times has an instant to count from"
        return sign * (subject.at - time) // unit

    return read_relative


def _time_at(read: Read, subject: Subject) -> int | None:
    value = read(subject)
    return instant_of(value) if type(value) is str else None


def relative_change(subject: Subject, test: Test) -> int | None:
    """The next instant at which a test of a `RELATIVE` field may turn because time passes; None: never.

    Not whenever the number changes: a timer that fires every day for every member would cost more than all events.
    """
    time = _time_at(reader(test.path[1:]), subject)
    if time is None:
        return None
    assert subject.at is not None
    sign, unit = RELATIVE[test.path[0]]
    operands = test.operand if isinstance(test.operand, tuple) else (test.operand,)
    numbers = [number for operand in operands if (number := decimal_of(operand)) is not None]
    if sign > 0:
        instants = [time + units * unit for n in numbers for units in (ceil(n), floor(n) + 1)]
    else:
        instants = [time - (units + 1) * unit + 1 for n in numbers for units in (floor(n), ceil(n) - 1)]
    return min((at for at in instants if subject.at < at <= LATEST), default=None)


def _walk(value: Any, steps: Path) -> Any:
    for step in steps:
        value = value.get(step) if type(value) is dict else None
    return value


def _time_of(pair: tuple[Any, Any]) -> Any:
    # What a view tells as a value is somebody's own, whatever it is called: it stays as it is.
    value, around = pair
    return _as_time(value) if around is None else value


def _as_time(value: Any) -> Any:
    # Inside, times are integers of microseconds; a condition compares them with times that somebody wrote.
    return format_time(value) if type(value) is int and EARLIEST <= value <= LATEST else value


# --- the event ------------------------------------------------------------------------------

_NESTED: dict[str, Callable[[Event], dict[str, Any]]] = {
    "properties": lambda event: event.properties,
    "context": lambda event: event.context,
}
_PLAIN: dict[str, Callable[[Event], Any]] = {
    "type": lambda event: event.type,
    "source": lambda event: event.source,
    "source_type": lambda event: event.source_type,
    "key": lambda event: event.key,
    "historical": lambda event: event.historical,
    "why": lambda event: event.why,
    "object_ref": lambda event: event.object_ref or None,
    "schema_version": lambda event: event.schema_version or None,
    "identifiers": lambda event: [str(identifier) for identifier in event.identifiers],
    "occurred_at": lambda event: _as_time(event.occurred_at),
    "received_at": lambda event: _as_time(event.received_at),
}
RECORDED_FIELDS: dict[str, Callable[[Recorded], Any]] = {
    "id": lambda recorded: recorded.id,
    "recorded_at": lambda recorded: _as_time(recorded.recorded_at),
}
"""Fields that an event has only once it is recorded."""
EVENT_FIELDS = (*_PLAIN, *RECORDED_FIELDS, *_NESTED)


def event_reader(path: Path) -> Callable[[Event], Any]:
    """How a field of the event is read that is not one of `RECORDED_FIELDS`."""
    _, first, *steps = path
    if first not in _NESTED:
        return _PLAIN[first]
    payload, name = _NESTED[first], steps[0]
    if len(steps) > 1:
        return lambda event: _walk(payload(event), tuple(steps))
    # Nearly every field is one of these two, so they take no detour.
    if first == "properties":
        return lambda event: event.properties.get(name)
    return lambda event: event.context.get(name)


def _event_field(path: Path) -> Read:
    recorded_field = RECORDED_FIELDS.get(path[1])
    if recorded_field is not None:
        return lambda subject: None if subject.recorded is None else recorded_field(subject.recorded)
    if path[1] == "properties" and len(path) == 3:
        # Nearly every field is one of these.
        name = path[2]
        return lambda subject: None if subject.recorded is None else subject.recorded.event.properties.get(name)
    read = event_reader(path)
    return lambda subject: None if subject.recorded is None else read(subject.recorded.event)


def wrong_path(path: Path) -> str:
    """What is wrong with a path and what to write instead; empty if nothing is.

    Whether there is a projection of that name is for the catalogue to say.
    """
    if not path or not all(path):
        return "a field is a path such as features.monetary_total or event.properties.total, or a list of its steps"
    if path[0] in RELATIVE:
        if len(path) == 1 or path[1] in RELATIVE:
            return f"name a time after {path[0]}, such as {path[0]}.traits.renewal"
        return wrong_path(path[1:])
    if path[0] == EVENT:
        if len(path) == 1 or path[1] not in EVENT_FIELDS:
            return f"an event has {', '.join(EVENT_FIELDS)}; write event.properties.total for what it carries"
        if path[1] in _NESTED and len(path) == 2:
            return f"event.{path[1]} is a whole object; name a field in it, such as event.{path[1]}.total"
        if path[1] not in _NESTED and len(path) > 2:
            return f"event.{path[1]} is a plain value; nothing is inside it"
    if path[0] in ("traits", PROFILE) and len(path) == 1:
        return "name one trait, such as traits.plan"
    return ""
