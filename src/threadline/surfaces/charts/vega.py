"""A chart as a specification for Vega-Lite, which notebooks and Altair draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.chart import Axis, Chart, Unit
from threadline.surfaces.charts.figures import steps_of
from threadline.surfaces.charts.palette import LIGHT

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH, HEIGHT = 640, 300
_FORMATS: Mapping[Unit, str] = {"number": ",.4~g", "count": ",d", "share": ".1~%", "seconds": ",d", "days": ",.1~f"}


def vega(chart: Chart) -> dict[str, Any]:
    """The specification, with the values in it."""
    values = _flows(chart) if chart.kind == "flow" else _values(chart)
    layers = _LAYERS[chart.kind](chart)
    return {
        "$schema": SCHEMA,
        "title": {"text": chart.title, "anchor": "start"},
        "description": chart.alternative,
        "data": {"values": values},
        "width": WIDTH,
        **({"height": HEIGHT} if chart.kind in ("bars", "lines", "histogram") else {}),
        "layer": layers,
        "config": {"range": {"category": list(LIGHT.series), "heatmap": list(LIGHT.heat)}, "view": {"stroke": None}},
    }


def _values(chart: Chart) -> list[dict[str, Any]]:
    steps = steps_of(chart) if chart.kind == "funnel" else ()
    return [
        {
            "series": series.name,
            "x": steps[at] if steps else point.x,
            "y": point.y,
            "low": point.low,
            "high": point.high,
            "uncertain": point.is_uncertain,
            "note": point.note,
        }
        for series in chart.series
        for at, point in enumerate(series.points)
    ]


def _flows(chart: Chart) -> list[dict[str, Any]]:
    return [
        {
            "series": f"step {flow.step + 1}",
            "x": f"{flow.source} → {flow.target}",
            "y": flow.value,
            "uncertain": False,
            "note": "",
        }
        for flow in chart.flows
    ]


def _bars(chart: Chart) -> list[dict[str, Any]]:
    offset = {"xOffset": _name("series")} if len(chart.series) > 1 else {}
    encoding = {"x": _category("x", chart.x), "y": _measure("y", chart.y), **offset, **_shared(chart)}
    return [{"mark": {"type": "bar", "tooltip": True, "cornerRadiusEnd": 2}, "encoding": encoding}]


def _rows(chart: Chart) -> list[dict[str, Any]]:
    offset = {"yOffset": _name("series")} if len(chart.series) > 1 else {}
    encoding = {"y": _category("x", chart.x), "x": _measure("y", chart.y), **offset, **_shared(chart)}
    return [{"mark": {"type": "bar", "tooltip": True, "cornerRadiusEnd": 2}, "encoding": encoding}]


def _lines(chart: Chart) -> list[dict[str, Any]]:
    is_text = any(isinstance(point.x, str) for series in chart.series for point in series.points)
    x = _category("x", chart.x) if is_text else _measure("x", chart.x)
    layers: list[dict[str, Any]] = []
    if any(point.low is not None for series in chart.series for point in series.points):
        bounds = {"y": _measure("low", chart.y), "y2": {"field": "high"}}
        layers.append({"mark": {"type": "area", "opacity": 0.2}, "encoding": {"x": x, **bounds, **_colour(chart)}})
    line = {"mark": {"type": "line"}, "encoding": {"x": x, "y": _measure("y", chart.y), **_colour(chart)}}
    dots = {
        "mark": {"type": "point", "filled": True, "tooltip": True},
        "encoding": {"x": x, "y": _measure("y", chart.y), **_shared(chart)},
    }
    return [*layers, line, dots, *_reference(chart, "y")]


def _heat(chart: Chart) -> list[dict[str, Any]]:
    encoding = {"x": _category("x", chart.x), "y": {**_category("series", chart.y), "title": None}}
    colour = {"field": "y", "type": "quantitative", "title": chart.y.title, "scale": {"range": list(LIGHT.heat)}}
    shown = {"field": "y", "type": "quantitative", "format": _FORMATS[chart.y.unit]}
    return [
        {"mark": {"type": "rect", "tooltip": True}, "encoding": {**encoding, "color": colour, "opacity": _opacity()}},
        {"mark": {"type": "text", "fontSize": 10}, "encoding": {**encoding, "text": shown}},
    ]


def _histogram(chart: Chart) -> list[dict[str, Any]]:
    edges = {"x": {**_measure("x", chart.x), "bin": {"binned": True}}, "x2": {"field": "high"}}
    encoding = {**edges, "y": {**_measure("y", chart.y), "stack": None}, **_shared(chart)}
    opacity = 0.5 if len(chart.series) > 1 else 1
    encoding["opacity"] = {"value": opacity}
    return [{"mark": {"type": "bar", "tooltip": True}, "encoding": encoding}]


def _intervals(chart: Chart) -> list[dict[str, Any]]:
    y = _category("x", chart.x)
    bounds = {"x": _measure("low", chart.y), "x2": {"field": "high"}}
    return [
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"y": y, **bounds, **_colour(chart)}},
        {
            "mark": {"type": "point", "filled": True, "size": 90, "tooltip": True},
            "encoding": {"y": y, "x": _measure("y", chart.y), **_shared(chart)},
        },
        *_reference(chart, "x"),
    ]


def _reference(chart: Chart, side: str) -> list[dict[str, Any]]:
    if chart.reference is None:
        return []
    return [{"mark": {"type": "rule", "strokeDash": [5, 3]}, "encoding": {side: {"datum": chart.reference}}}]


def _category(field: str, axis: Axis) -> dict[str, Any]:
    return {"field": field, "type": "ordinal", "sort": None, "title": axis.title or None, "axis": {"labelAngle": 0}}


def _name(field: str) -> dict[str, Any]:
    return {"field": field, "sort": None}


def _measure(field: str, axis: Axis) -> dict[str, Any]:
    return {
        "field": field,
        "type": "quantitative",
        "title": axis.title or None,
        "axis": {"format": _FORMATS[axis.unit]},
    }


def _colour(chart: Chart) -> dict[str, Any]:
    if len(chart.series) < 2:
        return {"color": {"value": LIGHT.series[0]}}
    return {"color": {"field": "series", "type": "nominal", "sort": None, "title": None}}


def _opacity() -> dict[str, Any]:
    return {"condition": {"test": "datum.uncertain", "value": 0.45}, "value": 1}


def _shared(chart: Chart) -> dict[str, Any]:
    return {**_colour(chart), "opacity": _opacity()}


_LAYERS = {
    "bars": _bars,
    "funnel": _rows,
    "flow": _rows,
    "lines": _lines,
    "heat": _heat,
    "histogram": _histogram,
    "intervals": _intervals,
}
