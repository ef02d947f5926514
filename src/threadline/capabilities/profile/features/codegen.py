"""One function per event type that does all that `Slot.add` would do, written out: several times as fast.

The source text is made of names and numbers of our own; whatever users declare reaches it as objects in the
namespace only, so that nothing in a definition can become code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from threadline.capabilities.foundation.conditions import Path
from threadline.capabilities.profile.features.cells import add_key, add_money, add_range, add_units, started
from threadline.capabilities.profile.features.definition import ANY, Feed
from threadline.capabilities.profile.features.plan import READERS, Plan, Slot
from threadline.capabilities.profile.features.unread import COUNTED, count_unread
from threadline.capabilities.profile.features.values import MONDAY, day_offset_in, dig, week_hour
from threadline.kernel.calendar import ZONE_NAME_LENGTH_MAX
from threadline.kernel.fixed import read_currency
from threadline.kernel.projection import Fold
from threadline.kernel.time import DAY, HOUR

# What opens a cell with one entry, and the line that adds one: `y` is the tally, `i` the place of the cell in it, `t`,
# `v`, `c` and `h` are the entry's time, value, currency and hour of the week.
_CELLS = {
    "n": ("1", "y[{i}] += 1"),
    "sum": ("{v}", "y[{i}] = add_units(y[{i}], {v})"),
    "min": ("{v}", "if {v} < y[{i}]: y[{i}] = {v}"),
    "max": ("{v}", "if {v} > y[{i}]: y[{i}] = {v}"),
    "first": ("{entry}", "if (t, r.id) < (y[{i}][0], y[{i}][1]): y[{i}] = {entry}"),
    "last": ("{entry}", "if (t, r.id) > (y[{i}][0], y[{i}][1]): y[{i}] = {entry}"),
    "keys": ("[{v}]", "add_key(y[{i}], {v})"),
    "hours": ("started(24, h % 24)", "y[{i}][h % 24] += 1"),
    "days": ("started(7, h // 24)", "y[{i}][h // 24] += 1"),
    "money": ("{{{c}: [1, {v}]}}", "add_money(y[{i}], {v}, {c})"),
    "range": ("{{{c}: [{v}, {v}]}}", "add_range(y[{i}], {v}, {c})"),
}


class _Writer:
    """Collects the lines and the namespace of one function; reads every field once, however many slots want it."""

    def __init__(self, timezone: str) -> None:
        self.names: dict[str, Any] = {
            "add_key": add_key,
            "add_money": add_money,
            "add_range": add_range,
            "add_units": add_units,
            "count_unread": count_unread,
            "day_offset_in": day_offset_in,
            "dig": dig,
            "read_currency": read_currency,
            "started": started,
            "timezone": timezone,
            "week_hour": week_hour,
        }
        self.reads: list[str] = []
        self.lines: list[str] = []
        self.always = False
        """Whether every event touches a slot."""
        self._known: dict[object, str] = {}

    def name(self, value: object, stem: str) -> str:
        """A name in the namespace for a value of ours or of the definitions."""
        name = f"{stem}{len(self.names)}"
        self.names[name] = value
        return name

    def read(self, key: object, expression: str) -> str:
        """A local variable that holds an expression, computed once before all slots."""
        if key not in self._known:
            self._known[key] = f"r{len(self._known)}"
            self.reads.append(f"{self._known[key]} = {expression}")
        return self._known[key]

    def field(self, path: Path) -> str:
        """An expression for the field at a path."""
        if path[0] != "context" and len(path) == 1:
            return f"p.get({self.name(path[0], 'k')})"
        return f"dig(e, {self.name(path, 'path')})"


def fuser(plan: Plan) -> Callable[[str], Fold | None]:
    """Answers the fold for events of one type; None where the type feeds nothing.

    Types are free and without number, but all that no definition names come in through the same feeds, so they share
    one fold and there are no more of these than types named.
    """
    known: dict[tuple[tuple[str, str], ...], Fold] = {}

    def fuse(event_type: str) -> Fold | None:
        fed = [(slot, feed) for slot in plan.slots if (feed := slot.feed(event_type)) is not None]
        if not fed:
            return None
        key = tuple((slot.name, feed.type) for slot, feed in fed)
        if key not in known:
            known[key] = _fused(plan, fed)
        return known[key]

    return fuse


def _fused(plan: Plan, fed: list[tuple[Slot, Feed]]) -> Fold:
    writer = _Writer(plan.timezone)
    for slot, feed in fed:
        _write_slot(writer, slot, feed)
    if any(slot.clocked for slot, _ in fed):
        writer.reads += _hour_lines(plan.timezone)
    body = [
        "e = r.event",
        "t = e.occurred_at",
        "at = r.recorded_at",
        "p = e.properties",
        *writer.reads,
        *(["n = s"] if writer.always else ["n = None"]),
        *writer.lines,
        "return n",
    ]
    text = "def fold(s, r):\n" + "".join(f"    {line}\n" for line in body)
    # The text holds only what this module wrote, see above.
    exec(compile(text, "<fused fold>", "exec"), writer.names)  # noqa: S102
    fold: Fold = writer.names["fold"]
    return fold


def _hour_lines(timezone: str) -> list[str]:
    """`week_hour` without a call for what is so of most events: the offset is that of a whole day, or the zone UTC."""
    known = (
        f"day_offset_in(z, timezone, t // {DAY}) if z.__class__ is str and len(z) <= {ZONE_NAME_LENGTH_MAX} else None"
    )
    return [
        'z = e.context.get("timezone")',
        f"o = 0 if z is None else {known}" if timezone == "UTC" else f"o = {known}",
        f"h = week_hour(e.context, t, timezone) if o is None else (t + o + {MONDAY}) // {HOUR} % 168",
    ]


def _write_slot(writer: _Writer, slot: Slot, feed: Feed) -> None:
    conditions = ["e.is_activity"] if feed.type == ANY else []
    if feed.where:
        conditions.append(writer.read(feed.where, f"{writer.name(feed.where.test, 'where')}(e)"))
    otherwise, value, code = "", "", ""
    if slot.kind != "none":
        reader = READERS[slot.kind]
        field = writer.field(feed.path)
        value = writer.read((reader, feed.path), f"{writer.name(reader, 'read')}({field})")
        if slot.kind in COUNTED:
            counted = f"count_unread(s, {writer.name(slot.name, 'slot')}, at, t, {field})"
            otherwise = f"elif {' and '.join((*conditions, f'{field} is not None', counted))}: n = s"
        if slot.kind != "nullable":
            conditions.append(f"{value} is not None")
    if slot.kind == "money":
        code = writer.read((read_currency, slot.currency), f"read_currency({writer.field(slot.currency)})")
    signed = f"-{value}" if feed.sign < 0 else value
    entry = _entry(slot, signed, code)
    lines = _slot_lines(writer, slot, signed, code, entry)
    if conditions:
        writer.lines.append(f"if {' and '.join(conditions)}:")
        lines = [f"    {line}" for line in ("n = s", *lines)]
    else:
        writer.always = True
    writer.lines += lines
    if otherwise:
        writer.lines.append(otherwise)


def _entry(slot: Slot, value: str, code: str) -> str:
    match slot.kind:
        case "none":
            return "[t, h]" if slot.clocked else "t"
        case "scalar" | "nullable":
            return f"[t, r.id, {value}]"
        case "money":
            return f"[t, {value}, {code}]"
        case _:
            return f"[t, {value}]"


def _slot_lines(writer: _Writer, slot: Slot, value: str, code: str, entry: str) -> list[str]:
    name = writer.name(slot.name, "slot")
    parts = {"v": value, "c": code, "entry": entry}
    opened = ["at", "t"]
    if slot.lifetime:
        opened.append(f"[{', '.join(_CELLS[cell][0].format(**parts) for cell in slot.cells)}]")
    opened += [f"[[t // {series.width}, [{entry}]]]" for series in slot.series]
    lines = [
        f"x = s.get({name})",
        f"if x is None: s[{name}] = [{', '.join(opened)}]",
        "else:",
        "    if at > x[0]: x[0] = at",
        "    if t > x[1]: x[1] = t",
    ]
    if slot.lifetime:
        lines.append("    y = x[2]")
        lines += ["    " + _CELLS[cell][1].format(i=i, **parts) for i, cell in enumerate(slot.cells)]
    for at, series in enumerate(slot.series, slot.series_at):
        lines.append(f"    {writer.name(series.push, 'push')}(x[{at}], t, {entry}, x[1])")
    return lines
