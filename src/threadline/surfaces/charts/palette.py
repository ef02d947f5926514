"""Colours of pictures on light and dark ground, and the style sheet that gives them to the classes of the SVG."""

from __future__ import annotations

from typing import NamedTuple


class Theme(NamedTuple):
    """Colours on one ground."""

    ground: str
    ink: str
    """Texts."""
    quiet: str
    """Labels of axes."""
    grid: str
    series: tuple[str, ...]
    """``s1`` to ``s8``. They differ for people with any of the common kinds of colour blindness."""
    heat: tuple[str, ...]
    """``h0`` to ``h8``, from little to much."""
    strong: str
    """Texts on ``h5`` and above."""


LIGHT = Theme(
    ground="#ffffff",
    ink="#1b2330",
    quiet="#566172",
    grid="#e3e7ed",
    series=("#2e70af", "#ff3306", "#0b8f6c", "#971662", "#798615", "#448df1", "#6820ae", "#625f8d"),
    heat=("#f3f7fb", "#e0ecf7", "#c8dff1", "#a6cbe8", "#7bb0da", "#3874aa", "#24659e", "#135591", "#0a3a6b"),
    strong="#ffffff",
)
DARK = Theme(
    ground="#12161d",
    ink="#e8ecf2",
    quiet="#a3adbb",
    grid="#2a313c",
    series=("#6388ff", "#f58a42", "#2fc79b", "#ee83c1", "#d8dd2e", "#9bd5f7", "#a994f2", "#6f7c93"),
    heat=("#18202b", "#1c2c40", "#1f3a58", "#234b74", "#2a6093", "#5e9ccf", "#83b6de", "#abcfec", "#d8eaf8"),
    strong="#0c1118",
)

UNSURE = 0.35
"""How opaque a cell is whose value may still change: what stands on it is legible on either ground."""
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"


def rules(theme: Theme, within: str = ".chart") -> str:
    """The style sheet of a picture on one ground, with plain values only: not every reader of SVG knows more."""
    lines = []
    for number, colour in enumerate(theme.series, 1):
        lines.append(f"{within} .s{number} {{ fill: {colour}; stroke: {colour}; stroke-width: 0; }}")
    lines += [f"{within} .h{number} {{ fill: {colour}; }}" for number, colour in enumerate(theme.heat)]
    # After the colours, which they change.
    lines += [
        f"{within} text {{ fill: {theme.ink}; font-family: {_FONT}; font-size: 12px; }}",
        f"{within} text.quiet {{ fill: {theme.quiet}; }}",
        f"{within} text.title {{ font-size: 16px; font-weight: 600; }}",
        f"{within} text.small {{ font-size: 12px; }}",
        f"{within} text.strong {{ fill: {theme.strong}; }}",
        f"{within} .grid {{ stroke: {theme.grid}; stroke-width: 1; }}",
        f"{within} .axis {{ stroke: {theme.quiet}; stroke-width: 1; }}",
        f"{within} .reference {{ stroke: {theme.ink}; stroke-width: 1.5; stroke-dasharray: 5 3; }}",
        f"{within} .line {{ fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }}",
        f"{within} .line.unsure {{ stroke-dasharray: 2 5; }}",
        f"{within} .fill.unsure {{ fill-opacity: .4; stroke-width: 1.5; stroke-dasharray: 4 3; }}",
        f"{within} circle.fill.unsure {{ fill: {theme.ground}; fill-opacity: 1; stroke-dasharray: none; }}",
        f"{within} .cell.unsure {{ fill-opacity: {UNSURE}; stroke: {theme.quiet}; stroke-width: 1; }}",
        f"{within} .cell.unsure {{ stroke-dasharray: 3; }}",
        f"{within} .faint {{ opacity: .22; }}",
        f"{within} .missing {{ fill: {theme.grid}; opacity: .35; }}",
    ]
    return "\n".join(lines) + "\n"


def style_sheet() -> str:
    """The style sheet of a page with pictures: light, or dark where the reader or the page asks for it."""
    dark = rules(DARK, ":root:not([data-theme=light]) .chart")
    chosen = rules(DARK, ":root[data-theme=dark] .chart")
    return f"{rules(LIGHT)}@media (prefers-color-scheme: dark) {{\n{dark}}}\n{chosen}"
