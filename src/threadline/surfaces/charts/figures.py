"""Heat maps, funnels and flows: pictures without a pair of axes."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

from threadline.kernel.chart import Chart, Flow, formatted
from threadline.surfaces.charts.along_axes import tip
from threadline.surfaces.charts.drawing import Drawing, number
from threadline.surfaces.charts.scale import finite, thinned, width_of

CELL = 26
BAR = 30
GAP = 16
FLOW_HEIGHT = 300
NODE = 12
_SHADES = 9


def heat(drawing: Drawing, chart: Chart, top: float) -> float:
    """A row for each series, a cell for each point, darker for more. A cell without a value is not there."""
    columns = list(dict.fromkeys(str(point.x) for series in chart.series for point in series.points))
    names = [series.name for series in chart.series]
    left = min(max(map(width_of, [*names, chart.x.title])) + 26, drawing.width * 0.3)
    cell = min((drawing.width - left - 10) / len(columns), 110.0)
    values = finite(point.y for series in chart.series for point in series.points)
    most = max([abs(value) for value in values if value] or [1.0])
    drawing.text(left - 10, top + 12, chart.y.title and chart.x.title, "quiet small", anchor="end", width=left - 14)
    for at in thinned(columns, cell * len(columns)):
        drawing.text(left + (at + 0.5) * cell, top + 12, columns[at], "quiet", anchor="middle")
    top += 20
    shown = [value for value in values if width_of(formatted(value, chart.y.unit, short=True), 11) + 4 <= cell]
    has_texts = len(shown) == len(values)
    for row, series in enumerate(chart.series):
        y = top + row * CELL
        drawing.text(left - 10, y + CELL / 2 + 4, series.name, anchor="end", width=left - 14)
        for point in series.points:
            if point.y is None or not math.isfinite(point.y):
                continue
            x = left + columns.index(str(point.x)) * cell
            shade = min(_SHADES - 1, round(abs(point.y) / most * (_SHADES - 1)))
            unsure = " unsure" if point.is_uncertain else ""
            drawing.bar(x + 1, y + 1, cell - 2, CELL - 2, f"h{shade} cell{unsure}", tip(chart, series, point), 3)
            if has_texts:
                strong = " strong" if shade >= 5 and not point.is_uncertain else ""
                value = formatted(point.y, chart.y.unit, short=True)
                drawing.text(x + cell / 2, y + CELL / 2 + 4, value, f"small{strong}", anchor="middle")
    return top + CELL * len(chart.series) + 6


def steps_of(chart: Chart) -> list[str]:
    """The steps of a funnel, numbered: one may be there twice, such as a purchase after a purchase."""
    longest = max((series.points for series in chart.series), key=len, default=())
    return [f"{number}  {point.x}" for number, point in enumerate(longest, 1)]


def funnel(drawing: Drawing, chart: Chart, top: float) -> float:
    """A bar for each step, as long as the share of those who reached it, with what was lost between two."""
    most = max(finite(point.y for series in chart.series for point in series.points) or [1.0]) or 1.0
    names = steps_of(chart)
    left = min(max(map(width_of, names)) + 28, drawing.width * 0.36)
    room = drawing.width - left - 150
    thick = BAR if len(chart.series) == 1 else 20
    for at, name in enumerate(names):
        height = thick * len(chart.series)
        drawing.label(left - 12, top + height / 2, name, left - 16)
        for index, series in enumerate(chart.series):
            if at >= len(series.points) or series.points[at].y is None:
                continue
            point, y = series.points[at], top + index * thick
            value, first = series.points[at].y or 0, series.points[0].y or 0
            length = value / most * room
            drawing.bar(left, y + 1, max(length, 1), thick - 2, f"s{index % 8 + 1} fill", tip(chart, series, point), 3)
            share = f" · {formatted(value / first, 'share')}" if first else ""
            drawing.text(left + length + 8, y + thick / 2 + 4, f"{formatted(value, chart.y.unit)}{share}")
        top += height
        if at + 1 < len(names):
            if len(chart.series) == 1:
                _lost(drawing, chart, at, left, top, room / most)
            top += GAP
    return top + 4


def _lost(drawing: Drawing, chart: Chart, at: int, left: float, top: float, scale: float) -> None:
    """From one step to the next: the shape of the loss, and its share."""
    points = chart.series[0].points
    if at + 1 >= len(points):
        return
    here, following = points[at].y or 0, points[at + 1].y or 0
    right, below = left + here * scale, left + following * scale
    d = f"M{number(left)} {number(top)}H{number(right)}L{number(below)} {number(top + GAP)}H{number(left)}Z"
    drawing.path(d, "s1 faint")
    if here:
        lost = formatted((following - here) / here, "share")
        drawing.text(left + 8, top + GAP - 4, lost, "quiet small")


class _Node(NamedTuple):
    step: int
    name: str


def flow(drawing: Drawing, chart: Chart, top: float) -> float:
    """Columns of nodes, joined by bands as thick as what goes between them."""
    arriving: defaultdict[_Node, float] = defaultdict(float)
    leaving: defaultdict[_Node, float] = defaultdict(float)
    for band in chart.flows:
        leaving[_Node(band.step, band.source)] += band.value
        arriving[_Node(band.step + 1, band.target)] += band.value
    sizes = {node: max(arriving[node], leaving[node]) for node in {**leaving, **arriving}}
    columns: defaultdict[int, list[_Node]] = defaultdict(list)
    for node in sorted(sizes, key=lambda node: (-sizes[node], node.name)):
        columns[node.step].append(node)
    count = max(columns) + 1
    height = max(FLOW_HEIGHT, 26 * max(map(len, columns.values())))
    fullest = max(sum(sizes[node] for node in nodes) for nodes in columns.values()) or 1.0
    gap = min(14.0, height * 0.3 / max(map(len, columns.values())))
    per_unit = (height - gap * max(map(len, columns.values()))) / fullest
    # The names in the last column stand to the right of it, as all others do.
    pitch = (drawing.width - 20) / count
    colours = {name: at % 8 + 1 for at, name in enumerate(dict.fromkeys(node.name for node in sizes))}
    ys: dict[_Node, float] = {}
    for nodes in columns.values():
        y = top + 4
        for node in nodes:
            ys[node] = y
            y += max(sizes[node] * per_unit, 2) + gap
    _bands(drawing, chart, ys, pitch, per_unit, colours)
    for node, y in ys.items():
        size = max(sizes[node] * per_unit, 2)
        label = f"{node.name}: {formatted(sizes[node], chart.y.unit)}"
        drawing.bar(8 + node.step * pitch, y, NODE, size, f"s{colours[node.name]} fill", label)
        if size >= 8:
            middle = y + size / 2 + 4
            drawing.text(8 + node.step * pitch + NODE + 6, middle, node.name, width=pitch - NODE - 14)
    return top + height + 4


def _bands(
    drawing: Drawing, chart: Chart, ys: dict[_Node, float], pitch: float, per_unit: float, colours: dict[str, int]
) -> None:
    out, into = dict(ys), dict(ys)

    def order(band: Flow) -> tuple[int, float, float]:
        return band.step, ys[_Node(band.step, band.source)], ys[_Node(band.step + 1, band.target)]

    for band in sorted(chart.flows, key=order):
        source, target = _Node(band.step, band.source), _Node(band.step + 1, band.target)
        size = band.value * per_unit
        x1, x2 = 8 + band.step * pitch + NODE, 8 + (band.step + 1) * pitch
        y1, y2, middle = out[source], into[target], (x1 + x2) / 2
        out[source], into[target] = y1 + size, y2 + size
        d = (
            f"M{number(x1)} {number(y1)}C{number(middle)} {number(y1)} {number(middle)} {number(y2)}"
            f" {number(x2)} {number(y2)}"
            f"V{number(y2 + size)}C{number(middle)} {number(y2 + size)} {number(middle)} {number(y1 + size)}"
            f" {number(x1)} {number(y1 + size)}Z"
        )
        text = f"{band.source} → {band.target}: {formatted(band.value, chart.y.unit)}"
        drawing.path(d, f"s{colours[band.source]} faint", text)
