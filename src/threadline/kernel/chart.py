"""A picture as a value: what it shows, with units and a text for those who cannot see it. Surfaces draw it."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

Kind = Literal["bars", "lines", "heat", "funnel", "flow", "histogram", "intervals"]
Unit = Literal["number", "count", "share", "seconds", "days"]
"""``share``: between 0 and 1, shown in per cent. ``seconds``: a duration, shown in minutes, hours or days."""
ALTERNATIVE_POINTS_MAX = 60
"""Points that the text alternative lists; the table beside a picture has all of them."""


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured along a side."""

    title: str = ""
    unit: Unit = "number"


class Point(msgspec.Struct, frozen=True):
    """One value. ``x`` is a category, a period or a number."""

    x: str | float
    y: float | None = None
    """None: not known, which is not 0."""
    low: float | None = None
    high: float | None = None
    """The ends of the interval about ``y``, or in a histogram the upper end of the bin that begins at ``x`` as
    ``high``."""
    is_uncertain: bool = False
    """Whether it may still change, as a cohort does whose time is not over."""
    note: str = ""
    """What is shown beside the value, such as the number of people that it is of."""

    def __post_init__(self) -> None:
        # A number that is none, as of a model that was not fitted, has no place in a picture.
        for name in ("y", "low", "high"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                msgspec.structs.force_setattr(self, name, None)


class Series(msgspec.Struct, frozen=True):
    """Points of one colour; a row in a heat map; a group of people in a funnel."""

    name: str
    points: tuple[Point, ...]


class Flow(msgspec.Struct, frozen=True):
    """What goes from a node in column ``step`` to one in the next column. Columns count from 0."""

    step: int
    source: str
    target: str
    value: float


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A picture. ``flows`` are set for ``flow`` only, ``series`` for all others."""

    kind: Kind
    title: str
    x: Axis = Axis()
    y: Axis = Axis()
    series: tuple[Series, ...] = ()
    flows: tuple[Flow, ...] = ()
    reference: float | None = None
    """A value that others are compared with, as 0 is for a difference."""
    uncertain: str = ""
    """What it means here that a point is uncertain."""
    summary: str = ""
    """What a reader should see in it, in a sentence. The text alternative begins with it."""

    @property
    def alternative(self) -> str:
        """The picture in words: its summary, then its values."""
        lines = [self.summary] if self.summary else []
        if self.kind == "flow":
            flows = self.flows[:ALTERNATIVE_POINTS_MAX]
            lines += [f"{flow.source} to {flow.target}: {formatted(flow.value, self.y.unit)}." for flow in flows]
            left = len(self.flows) - len(flows)
        else:
            left = sum(len(series.points) for series in self.series)
            for series in self.series:
                points = series.points[: ALTERNATIVE_POINTS_MAX - sum(line.count(",") + 1 for line in lines)]
                if points:
                    values = ", ".join(self._worded(point) for point in points)
                    lines.append(f"{series.name}: {values}." if series.name else f"{values}.")
                    left -= len(points)
        if left > 0:
            lines.append(f"The table has {left} more values.")
        return " ".join(lines) or "There is nothing to show yet."

    @property
    def is_empty(self) -> bool:
        """Whether there is no value in it."""
        known = (point.y is not None for series in self.series for point in series.points)
        return not self.flows and not any(known)

    def _worded(self, point: Point) -> str:
        value = "unknown" if point.y is None else formatted(point.y, self.y.unit)
        if point.low is not None and point.high is not None:
            value += f" ({formatted(point.low, self.y.unit)} to {formatted(point.high, self.y.unit)})"
        x = point.x if isinstance(point.x, str) else formatted(point.x, self.x.unit)
        if self.kind == "histogram" and point.high is not None:
            x, value = f"{x} to {formatted(point.high, self.x.unit)}", formatted(point.y or 0, self.y.unit)
        return f"{x} {value}{' (may still change)' if point.is_uncertain else ''}"


def formatted(value: float, unit: Unit, *, short: bool = False) -> str:
    """A value as people read it: 1,234; 12.5%; 2 h 5 min. ``short`` is for axes: 1.2k."""
    if not math.isfinite(value):
        return "unknown"
    if unit == "share":
        digits = 0 if short and abs(value * 100 - round(value * 100)) < 1e-9 else 2 if abs(value) < 0.01 else 1
        return f"{_trimmed(value * 100, digits)}%"
    if unit == "seconds":
        return _duration(value)
    if unit == "count" and float(value).is_integer() and not short:
        return f"{int(value):,}"
    if short and abs(value) >= 1_000:
        for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= size:
                return f"{_trimmed(value / size, 2)}{suffix}"
    if unit == "days":
        return f"{_trimmed(value, 1)} d"
    digits = 0 if abs(value) >= 1_000 else 2 if abs(value) >= 1 else 4
    return _trimmed(value, digits)


def _trimmed(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text.replace("-", "−")


def _duration(seconds: float) -> str:
    """The two largest units."""
    sign, rest, parts = ("−" if seconds < 0 else ""), round(abs(seconds)), []
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count:,} {name}")
        elif parts:
            break
    return sign + " ".join(parts[:2]) if parts else "0"
