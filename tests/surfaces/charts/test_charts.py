"""Pictures: every kind is drawn, with all that it says and nothing that a page must not have, on every renderer."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any, get_args
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from threadline.kernel.chart import Axis, Chart, Flow, Kind, Point, Series, Unit, formatted
from threadline.surfaces.charts.palette import DARK, LIGHT, UNSURE, Theme, style_sheet
from threadline.surfaces.charts.scale import in_two, scale, width_of
from threadline.surfaces.charts.svg import svg, svg_file
from threadline.surfaces.charts.terminal import Plot
from threadline.surfaces.charts.vega import vega

HOSTILE = ["</svg><script>alert(1)</script>", "\x00\x1b[2J", "'\" onload=x", "ﷺ" * 40, "", "]]>&amp;"]
TEXTS = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = (
    st.none() | st.floats(-1e9, 1e9).map(lambda value: round(value, 6)) | st.sampled_from([0.0, math.nan, math.inf])
)


@st.composite
def charts(draw: st.DrawFn) -> Chart:
    kind: Kind = draw(st.sampled_from(get_args(Kind)))
    xs: st.SearchStrategy[Any] = st.floats(-1e6, 1e6) if kind == "histogram" else TEXTS
    unsure = st.booleans()
    points = st.builds(Point, xs, VALUES, st.none() | st.floats(-10, 0), st.none() | st.floats(0, 10), unsure, TEXTS)
    series = st.builds(Series, TEXTS, st.lists(points, max_size=5).map(tuple))
    flows = st.builds(Flow, st.integers(0, 3), TEXTS, TEXTS, st.floats(0, 1e6))
    axes = st.builds(Axis, title=TEXTS, unit=st.sampled_from(get_args(Unit)))
    return Chart(
        kind=kind,
        title=draw(TEXTS),
        x=draw(axes),
        y=draw(axes),
        summary=draw(TEXTS),
        uncertain=draw(TEXTS),
        series=() if kind == "flow" else tuple(draw(st.lists(series, max_size=10))),
        flows=tuple(draw(st.lists(flows, max_size=8))) if kind == "flow" else (),
        reference=draw(st.none() | st.just(0.0)),
    )


@given(charts())
def test_any_chart_is_well_formed_svg_without_scripts_styles_or_overflowing_coordinates(chart: Chart) -> None:
    drawn = svg(chart)
    root = ET.fromstring(drawn)
    tags = {each.tag.rpartition("}")[2] for each in root.iter()}
    assert tags <= {"svg", "title", "desc", "text", "line", "rect", "circle", "path"}
    names = {name for each in root.iter() for name in each.attrib}
    assert not {name for name in names if name.startswith("on") or name in ("style", "href")}
    assert root.attrib["role"] == "img"
    assert not re.search(r' (x|y|x1|x2|y1|y2|cx|cy|r|d|width|height)="[^"]*\b(nan|inf)\b', drawn)
    ET.fromstring(svg_file(chart))


@given(charts())
def test_any_chart_is_plotted_without_characters_that_steer_a_terminal(chart: Chart) -> None:
    console = Console(width=80, force_terminal=False, file=open("/dev/null", "w"), record=True)  # noqa: SIM115
    console.print(Plot(chart))
    text = console.export_text()
    assert not any(each not in "\n" and not each.isprintable() for each in text if not 0x2800 <= ord(each) < 0x2900)


@given(charts())
def test_any_chart_has_a_specification_of_vega_lite_that_is_json(chart: Chart) -> None:
    import msgspec

    assert msgspec.json.encode(vega(chart))


@given(
    st.lists(st.floats(-1e12, 1e12).map(lambda value: round(value, 6)), min_size=1),
    st.sampled_from(get_args(Unit)),
    st.booleans(),
)
def test_ticks_are_round_and_bound_all_values(values: list[float], unit: Unit, zero: bool) -> None:
    made = scale(values, unit, zero=zero)
    slack = (made.high - made.low) * 1e-6
    assert made.low - slack <= min(values)
    assert max(values) <= made.high + slack
    assert 2 <= len(made.ticks) <= 9
    steps = {f"{(b - a):.6g}" for a, b in itertools.pairwise(made.ticks)}
    if unit not in ("seconds",) and made.high - made.low > max(abs(made.high), abs(made.low)) * 1e-5:
        assert all(re.fullmatch(r"0*[125]0*", step.replace(".", "").split("e")[0]) for step in steps), steps


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1234, "count", "1,234"),
        (0.1256, "share", "12.6%"),
        (0.00765, "share", "0.77%"),
        (7_500, "seconds", "2 h 5 min"),
        (86_400 * 3, "seconds", "3 d"),
        (-1.5, "number", "−1.5"),
        (0, "seconds", "0"),
        (math.nan, "count", "unknown"),
    ],
)
def test_values_are_written_as_people_read_them(value: float, unit: Unit, text: str) -> None:
    assert formatted(value, unit) == text


def test_the_text_alternative_has_the_values_and_says_how_many_it_leaves_out() -> None:
    points = tuple(Point(f"week {at}", at / 100, is_uncertain=at == 1) for at in range(70))
    chart = Chart(kind="lines", title="t", y=Axis(unit="share"), series=(Series("web", points),), summary="It rises.")
    assert chart.alternative.startswith("It rises. web: week 0 0%, week 1 1% (may still change), week 2 2%")
    assert chart.alternative.endswith("The table has 10 more values.") or "more values" in chart.alternative
    assert "<desc>It rises." in svg(chart)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("wait", ["wait"]),
        ("wait for purchase completed", ["wait for purchase", "completed"]),
        ("wait for purchase completed, at most 4 days", ["wait for purchase", "completed, at most…"]),
        ("purchase_completed_in_the_shop", ["purchase_completed_…"]),
    ],
)
def test_a_label_that_is_too_long_for_a_line_has_two_and_is_cut_beyond(text: str, lines: list[str]) -> None:
    assert in_two(text, 140) == lines
    assert all(width_of(line) <= 140 for line in lines)


def test_the_last_tick_of_an_axis_is_within_the_drawing() -> None:
    bins = tuple(Point(at / 10, at, high=(at + 1) / 10) for at in range(10))
    chart = Chart(
        kind="histogram", title="t", x=Axis(title="x", unit="share"), y=Axis(title="y"), series=(Series("", bins),)
    )
    for text in ET.fromstring(svg(chart, width=320)).iter("{http://www.w3.org/2000/svg}text"):
        if text.get("text-anchor") == "middle":
            assert float(text.get("x", "0")) + width_of(text.text or "") / 2 <= 320


def test_a_step_that_is_there_twice_in_a_funnel_has_two_bars() -> None:
    points = (Point("visit", 9), Point("buy", 4), Point("buy", 1))
    chart = Chart(kind="funnel", title="t", y=Axis(unit="count"), series=(Series("", points),))
    drawn = svg(chart)
    assert [f">{name}<" in drawn for name in ("1  visit", "2  buy", "3  buy")] == [True] * 3
    assert ">1 · 11.1%<" in drawn
    assert [each["x"] for each in vega(chart)["data"]["values"]] == ["1  visit", "2  buy", "3  buy"]


def _linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def _over(colour: str, ground: str, opacity: float) -> str:
    """A colour that lets some of the ground through."""
    mixed = [
        round(opacity * int(colour[at : at + 2], 16) + (1 - opacity) * int(ground[at : at + 2], 16)) for at in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _contrast(one: str, other: str) -> float:
    bright = sorted(
        sum(w * part for w, part in zip((0.2126, 0.7152, 0.0722), _linear(each), strict=True)) for each in (one, other)
    )
    return (bright[1] + 0.05) / (bright[0] + 0.05)


# How colours look to people without red, green or blue cones: Machado, Oliveira and Fernandes, 2009, severity 1.
BLIND = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}


def _lab(rgb: list[float]) -> list[float]:
    rgb = [min(max(part, 0), 1) for part in rgb]
    rows = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    xyz = [
        sum(a * b for a, b in zip(row, rgb, strict=True)) / w
        for row, w in zip(rows, (0.95047, 1, 1.08883), strict=True)
    ]
    f = [v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz]
    return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])]


def differences(theme: Theme) -> Iterator[tuple[float, str, int, int]]:
    for name, matrix in BLIND.items():
        seen = [
            _lab([sum(a * b for a, b in zip(row, _linear(colour), strict=True)) for row in matrix])
            for colour in theme.series
        ]
        for one, other in itertools.combinations(range(8), 2):
            yield math.dist(seen[one], seen[other]), name, one + 1, other + 1


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stand_out_from_the_ground_and_from_each_other(theme: Theme) -> None:
    assert min(_contrast(colour, theme.ground) for colour in theme.series) >= 3
    assert min(_contrast(colour, theme.ground) for colour in (theme.ink, theme.quiet)) >= 4.5
    assert min(_contrast(theme.ink, shade) for shade in theme.heat[:5]) >= 4.5
    assert min(_contrast(theme.strong, shade) for shade in theme.heat[5:]) >= 4.5
    assert min(_contrast(theme.ink, _over(shade, theme.ground, UNSURE)) for shade in theme.heat) >= 4.5
    # Two just differ at 2.3; marks that touch, as bars in a group do, need more. Few pictures have more than five.
    assert min(differences(theme))[0] >= 10, sorted(differences(theme))[:5]


def test_the_style_sheet_has_every_class_that_is_drawn() -> None:
    points = tuple(Point(str(at), float(at), at - 1.0, at + 1.0, at == 3) for at in range(4))
    names: set[str] = set()
    for kind in get_args(Kind):
        chart = Chart(
            kind=kind,
            title="t",
            series=(Series("a", points), Series("b", points)),
            reference=1.0,
            flows=(Flow(0, "a", "b", 1),),
        )
        names |= {name for found in re.findall(r'class="([^"]*)"', svg(chart)) for name in found.split()}
    assert {name for name in names if f".{name}" not in style_sheet()} == set()
