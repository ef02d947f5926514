"""A chart as SVG. Colours come from classes, so that the page decides between light and dark; nothing in it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from threadline.kernel.chart import Chart, Kind
from threadline.surfaces.charts import palette
from threadline.surfaces.charts.along_axes import bars, histogram, intervals, lines
from threadline.surfaces.charts.drawing import Drawing, escaped, number
from threadline.surfaces.charts.figures import flow, funnel, heat
from threadline.surfaces.charts.scale import shortened, width_of

WIDTH = 720
_MARGIN = 8
_DRAWN: Mapping[Kind, Callable[[Drawing, Chart, float], float]] = {
    "bars": bars,
    "lines": lines,
    "heat": heat,
    "funnel": funnel,
    "flow": flow,
    "histogram": histogram,
    "intervals": intervals,
}
"""Each draws below a height and returns the height at which it ends."""


def svg(chart: Chart, *, width: int = WIDTH) -> str:
    """The picture as an element of a page whose style sheet has `palette.style_sheet`.

    It has no visible title: the page has one. Draw it as wide as it is shown, so that its texts stay readable.
    """
    return _drawn(chart, width, "", "")


def svg_file(chart: Chart, *, width: int = WIDTH, dark: bool = False) -> str:
    """The picture as a file that stands by itself: with its title and colours, and the ground."""
    theme = palette.DARK if dark else palette.LIGHT
    style = f"<style>{palette.rules(theme)}</style>"
    return _drawn(chart, width, f"{style}", f'<rect width="100%" height="100%" fill="{theme.ground}"/>')


def _drawn(chart: Chart, width: int, style: str, ground: str) -> str:
    drawing = Drawing(width)
    top = float(_MARGIN)
    if ground:
        drawing.text(_MARGIN, top + 16, shortened(chart.title, width - 2 * _MARGIN, 16), "title")
        top += 32
    if chart.is_empty:
        drawing.text(_MARGIN, top + 18, "There is nothing to show yet.", "quiet")
        top += 30
    else:
        top = _legend(drawing, chart, top)
        top = _DRAWN[chart.kind](drawing, chart, top)
        top = _footnote(drawing, chart, top)
    height = number(top + _MARGIN)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}"'
    )
    named = f"<title>{escaped(chart.title)}</title><desc>{escaped(chart.alternative)}</desc>"
    return f'{head} aria-label="{escaped(chart.title)}">{named}{style}{ground}{"".join(drawing.elements)}</svg>'


def _legend(drawing: Drawing, chart: Chart, top: float) -> float:
    """Which colour is which series, where there are several."""
    if len(chart.series) < 2 or chart.kind == "heat":
        return top
    x = float(_MARGIN)
    for index, series in enumerate(chart.series):
        label = shortened(series.name, 180)
        if x > _MARGIN and x + 18 + width_of(label) > drawing.width - _MARGIN:
            x, top = float(_MARGIN), top + 20
        drawing.bar(x, top + 3, 11, 11, f"s{index % 8 + 1} fill")
        drawing.text(x + 17, top + 13, label)
        x += 17 + width_of(label) + 18
    return top + 26


def _footnote(drawing: Drawing, chart: Chart, top: float) -> float:
    """What the uncertain ones of the marks mean."""
    if not chart.uncertain or not any(point.is_uncertain for series in chart.series for point in series.points):
        return top
    drawing.text(_MARGIN, top + 16, f"Dashed: {chart.uncertain}", "quiet small", width=drawing.width - 2 * _MARGIN)
    return top + 20
