"""Bars, lines, histograms and intervals: what is drawn between two axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from threadline.kernel.chart import Axis, Chart, Point, Series, formatted
from threadline.surfaces.charts.drawing import Box, Drawing, number
from threadline.surfaces.charts.scale import Scale, scale, thinned, width_of

HEIGHT = 260
DOTS_MAX = 150
"""Points of a line with more have no dot of their own, which nobody could hit: each is a tenth of a kilobyte."""
_LABEL_MAX = 0.36
"""Of the width, for the labels of rows."""


def bars(drawing: Drawing, chart: Chart, top: float) -> float:
    """A bar for each point, upright where the labels fit below."""
    labels = _labels(chart)
    band = (drawing.width - 70) / max(len(labels), 1)
    if any(width_of(label) + 8 > band for label in labels):
        return _rows_of_bars(drawing, chart, top, labels)
    values = scale((point.y for series in chart.series for point in series.points), chart.y.unit)
    box = _upright(drawing, chart, top, values)
    y = values.along(box.bottom, box.top)
    band = (box.right - box.left) / len(labels)
    thick = min(band * 0.76 / len(chart.series), 64.0)
    for at, label in enumerate(labels):
        middle = box.left + (at + 0.5) * band
        drawing.text(middle, box.bottom + 18, label, "quiet", anchor="middle")
        for index, point in _at(chart, label):
            if point.y is None or not math.isfinite(point.y):
                continue
            x = middle + (index - len(chart.series) / 2) * thick
            upper, lower = min(y(point.y), y(0)), max(y(point.y), y(0))
            drawing.bar(x + 1, upper, thick - 2, lower - upper, _fill(index, point), _tip(chart, index, point))
            value = formatted(point.y, chart.y.unit, short=True)
            if width_of(value, 11) <= thick + 6:
                drawing.text(x + thick / 2, upper - 5, value, "small", anchor="middle")
    _reference(drawing, chart, values, box, upright=True)
    return _x_title(drawing, chart.x, box, box.bottom + 26)


def _rows_of_bars(drawing: Drawing, chart: Chart, top: float, labels: list[str]) -> float:
    values = scale((point.y for series in chart.series for point in series.points), chart.y.unit)
    thick = 20 if len(chart.series) == 1 else 14
    box, rows = _sideways(drawing, chart, top, values, labels, thick * len(chart.series) + 10)
    x = values.along(box.left, box.right)
    for at, label in enumerate(labels):
        for index, point in _at(chart, label):
            if point.y is None or not math.isfinite(point.y):
                continue
            start, stop = min(x(point.y), x(0)), max(x(point.y), x(0))
            y = rows[at] + 5 + index * thick
            drawing.bar(start, y + 1, stop - start, thick - 2, _fill(index, point), _tip(chart, index, point))
            drawing.text(stop + 5, y + thick / 2 + 4, formatted(point.y, chart.y.unit), "small")
    _reference(drawing, chart, values, box, upright=False)
    return _y_below(drawing, chart.y, box)


def lines(drawing: Drawing, chart: Chart, top: float) -> float:
    """A line for each series, in the order of its points; interrupted where a value is not known."""
    bounds = [value for series in chart.series for point in series.points for value in (point.y, point.low, point.high)]
    values = scale(bounds, chart.y.unit)
    box = _upright(drawing, chart, top, values)
    y = values.along(box.bottom, box.top)
    places = _places(drawing, chart, box)
    for index, series in enumerate(chart.series):
        known = [(places[point.x], point) for point in series.points if point.y is not None and math.isfinite(point.y)]
        _band(drawing, index, [(x, point) for x, point in known if point.low is not None], y)
        known_at = {id(point) for _, point in known}
        joined = [pair for pair in pairwise(series.points) if known_at >= {id(point) for point in pair}]
        for is_unsure, run in _runs(joined):
            ends = "L".join(f"{number(places[point.x])} {number(y(point.y or 0))}" for point in run)
            drawing.path(f"M{ends}", f"s{index % 8 + 1} line{' unsure' if is_unsure else ''}")
        radius = 3.0 if len(known) <= 60 else 1.5
        in_line = {id(point) for pair in joined for point in pair} if len(known) > DOTS_MAX else set[int]()
        for x, point in known:
            if id(point) not in in_line or point is known[-1][1]:
                drawing.dot(x, y(point.y or 0), radius, _fill(index, point), _tip(chart, index, point))
    _reference(drawing, chart, values, box, upright=True)
    return _x_title(drawing, chart.x, box, box.bottom + 26)


def _runs(pairs: Iterable[tuple[Point, Point]]) -> Iterator[tuple[bool, list[Point]]]:
    """Pieces of a line that hang together and are drawn alike: whether the ends are uncertain, and the points."""
    run: list[Point] = []
    was_unsure = False
    for start, stop in pairs:
        if run and (run[-1] is not start or was_unsure != stop.is_uncertain):
            yield was_unsure, run
            run = []
        run = run or [start]
        run.append(stop)
        was_unsure = stop.is_uncertain
    if run:
        yield was_unsure, run


def _places(drawing: Drawing, chart: Chart, box: Box) -> dict[str | float, float]:
    """The horizontal coordinate of each x, with the labels or ticks below."""
    xs = list(dict.fromkeys(point.x for series in chart.series for point in series.points))
    numbers = [x for x in xs if not isinstance(x, str)]
    if len(numbers) == len(xs):
        span = scale(numbers, chart.x.unit, zero=False, count=8)
        along = span.along(box.left + 6, box.right - 6)
        for tick in span.ticks:
            label = formatted(tick, chart.x.unit, short=True)
            drawing.tick(along(tick), box.bottom + 18, label, "quiet")
        return {x: along(x) for x in numbers}
    gap = (box.right - box.left) / len(xs)
    places = {x: box.left + (at + 0.5) * gap for at, x in enumerate(xs)}
    labels = [str(x) for x in xs]
    for at in thinned(labels, box.right - box.left):
        drawing.text(places[xs[at]], box.bottom + 18, labels[at], "quiet", anchor="middle")
    return places


def _band(drawing: Drawing, index: int, points: list[tuple[float, Point]], y: Callable[[float], float]) -> None:
    """The area between the lower and upper ends of intervals."""
    if len(points) < 2:
        return
    upper = [f"{number(x)} {number(y(point.high))}" for x, point in points if point.high is not None]
    lower = [f"{number(x)} {number(y(point.low))}" for x, point in reversed(points) if point.low is not None]
    drawing.path(f"M{'L'.join(upper + lower)}Z", f"s{index % 8 + 1} faint")


def histogram(drawing: Drawing, chart: Chart, top: float) -> float:
    """Counts in bins; several series lie over each other."""
    points = [point for series in chart.series for point in series.points]
    values = scale((point.y for point in points), chart.y.unit)
    box = _upright(drawing, chart, top, values)
    y = values.along(box.bottom, box.top)
    ends = [end for point in points for end in (point.x, point.high) if isinstance(end, int | float)]
    span = scale(ends, chart.x.unit, zero=False, count=8)
    x = span.along(box.left, box.right)
    for tick in span.ticks:
        drawing.tick(x(tick), box.bottom + 18, formatted(tick, chart.x.unit, short=True), "quiet")
    for index, series in enumerate(chart.series):
        outline = []
        for point in series.points:
            if isinstance(point.x, str) or point.high is None or point.y is None:
                continue
            start, stop, height = x(point.x), x(point.high), y(point.y)
            if len(chart.series) == 1:
                tip = _tip(chart, index, point)
                drawing.bar(start + 0.5, height, stop - start - 1, box.bottom - height, _fill(index, point), tip, 1)
            else:
                outline += [f"{number(start)} {number(height)}", f"{number(stop)} {number(height)}"]
        if outline:
            first, last = outline[0].split()[0], outline[-1].split()[0]
            d = f"{first} {number(box.bottom)}L{'L'.join(outline)}L{last} {number(box.bottom)}"
            drawing.path(f"M{d}Z", f"s{index % 8 + 1} faint")
            drawing.path(f"M{d}", f"s{index % 8 + 1} line", series.name)
    _reference(drawing, chart, span, box, upright=False)
    return _x_title(drawing, chart.x, box, box.bottom + 26)


def intervals(drawing: Drawing, chart: Chart, top: float) -> float:
    """An estimate with its interval for each point, a row each; a dashed line at what they are compared with."""
    labels = _labels(chart)
    points = [point for series in chart.series for point in series.points]
    bounds = [bound for point in points for bound in (point.y, point.low, point.high)]
    compared = [] if chart.reference is None else [chart.reference]
    values = scale([*bounds, *compared], chart.y.unit, zero=False)
    box, rows = _sideways(drawing, chart, top, values, labels, 12 + 22 * len(chart.series))
    x = values.along(box.left, box.right)
    _reference(drawing, chart, values, box, upright=False)
    for at, label in enumerate(labels):
        for index, point in _at(chart, label):
            y = rows[at] + 6 + 22 * index + 11
            colour = f"s{index % 8 + 1}"
            if point.low is not None and point.high is not None:
                unsure = " unsure" if point.is_uncertain else ""
                low, high = number(x(point.low)), number(x(point.high))
                ends = f"M{low} {number(y - 5)}V{number(y + 5)}M{high} {number(y - 5)}V{number(y + 5)}"
                drawing.path(f"M{low} {number(y)}H{high}", f"{colour} line{unsure}", _tip(chart, index, point))
                drawing.path(ends, f"{colour} line")
            if point.y is not None:
                drawing.dot(x(point.y), y, 5, f"{colour} fill", _tip(chart, index, point))
    return _y_below(drawing, chart.y, box)


def _upright(drawing: Drawing, chart: Chart, top: float, values: Scale) -> Box:
    """Draws the vertical axis, its title above it, and the grid."""
    labels = [formatted(tick, chart.y.unit, short=True) for tick in values.ticks]
    left = max(width_of(label) for label in labels) + 18
    if chart.y.title:
        drawing.text(8, top + 12, chart.y.title, "quiet small")
        top += 24
    box = Box(left, top + 8, drawing.width - 14, top + HEIGHT)
    y = values.along(box.bottom, box.top)
    for tick, label in zip(values.ticks, labels, strict=True):
        drawing.line(box.left, y(tick), box.right, y(tick), "grid" if tick else "axis")
        drawing.text(box.left - 8, y(tick) + 4, label, "quiet", anchor="end")
    return box


def _sideways(
    drawing: Drawing, chart: Chart, top: float, values: Scale, labels: list[str], row: int
) -> tuple[Box, list[float]]:
    """Draws the labels of rows on the left, the horizontal axis below and the grid; with where each row begins."""
    room = drawing.width * _LABEL_MAX
    left = min(max((width_of(label) for label in labels), default=0) + 20, room)
    widest = max(width_of(formatted(tick, chart.y.unit), 11) for tick in values.ticks)
    box = Box(left, top + 4, drawing.width - widest - 18, top + 4 + row * len(labels))
    x = values.along(box.left, box.right)
    for tick in values.ticks:
        drawing.line(x(tick), box.top, x(tick), box.bottom, "grid" if tick else "axis")
        label = formatted(tick, chart.y.unit, short=True)
        drawing.tick(x(tick), box.bottom + 16, label, "quiet small")
    rows = [box.top + at * row for at in range(len(labels))]
    for y, label in zip(rows, labels, strict=True):
        drawing.label(box.left - 10, y + row / 2, label, room - 18)
    return box, rows


def _reference(drawing: Drawing, chart: Chart, values: Scale, box: Box, *, upright: bool) -> None:
    if chart.reference is None or not values.low <= chart.reference <= values.high:
        return
    if upright:
        y = values.along(box.bottom, box.top)(chart.reference)
        drawing.line(box.left, y, box.right, y, "reference")
    else:
        x = values.along(box.left, box.right)(chart.reference)
        drawing.line(x, box.top, x, box.bottom, "reference")


def _x_title(drawing: Drawing, axis: Axis, box: Box, bottom: float) -> float:
    if not axis.title:
        return bottom
    drawing.text((box.left + box.right) / 2, bottom + 10, axis.title, "quiet small", anchor="middle")
    return bottom + 16


def _y_below(drawing: Drawing, axis: Axis, box: Box) -> float:
    return _x_title(drawing, axis, box, box.bottom + 24)


def _labels(chart: Chart) -> list[str]:
    return list(dict.fromkeys(str(point.x) for series in chart.series for point in series.points))


def _at(chart: Chart, label: str) -> list[tuple[int, Point]]:
    pairs = ((index, _named(series, label)) for index, series in enumerate(chart.series))
    return [(index, point) for index, point in pairs if point is not None]


def _named(series: Series, label: str) -> Point | None:
    return next((point for point in series.points if str(point.x) == label), None)


def _fill(index: int, point: Point) -> str:
    return f"s{index % 8 + 1} fill{' unsure' if point.is_uncertain else ''}"


def _tip(chart: Chart, index: int, point: Point) -> str:
    return tip(chart, chart.series[index], point)


def tip(chart: Chart, series: Series, point: Point) -> str:
    """What is shown where somebody points at a mark."""
    x = point.x if isinstance(point.x, str) else formatted(point.x, chart.x.unit)
    value = "unknown" if point.y is None else formatted(point.y, chart.y.unit)
    if chart.kind == "histogram" and point.high is not None:
        x = f"{x} to {formatted(point.high, chart.x.unit)}"
    elif point.low is not None and point.high is not None:
        value += f" ({formatted(point.low, chart.y.unit)} to {formatted(point.high, chart.y.unit)})"
    unsure = f"{chart.uncertain or 'may still change'}" if point.is_uncertain else ""
    return " · ".join(part for part in (series.name, f"{x}: {value}", point.note, unsure) if part)
