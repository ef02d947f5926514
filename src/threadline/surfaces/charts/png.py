"""A chart as PNG, drawn from its SVG by vl-convert, with fonts that it brings along."""

from __future__ import annotations

from threadline.kernel.chart import Chart
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.extra import from_source
from threadline.surfaces.charts.svg import svg_file

SCALE = 2
"""Pixels for each unit of the SVG."""


def png(chart: Chart, *, dark: bool = False) -> bytes:
    """The picture as PNG. Raises `InvalidSetting` without vl-convert."""
    try:
        import vl_convert
    except ImportError:
        hint = from_source("analytics") + "; --svg needs nothing"
        raise InvalidSetting("pictures as PNG need vl-convert, which is not installed", hint=hint) from None
    made: bytes = vl_convert.svg_to_png(svg_file(chart, dark=dark), scale=SCALE)
    return made
