"""A chart in a terminal: bars of blocks, lines of braille, heat maps of coloured cells."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from threadline.kernel.chart import Chart, Point, Series, formatted
from threadline.surfaces.charts.scale import Scale, finite, scale

COLOURS = ("blue", "dark_orange3", "dark_cyan", "magenta", "dark_goldenrod", "deep_sky_blue1", "purple", "grey50")
"""As in the pictures: told apart with any of the common kinds of colour blindness."""
ROWS = 12
"""Lines of text that a picture of lines takes."""
WIDTH_MAX = 100
_EIGHTHS = " ▏▎▍▌▋▊▉"
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot of a braille character, by row and column."""
_SHADES = ("grey15", "grey23", "dark_blue", "navy_blue", "dodger_blue3", "dodger_blue1", "deep_sky_blue1", "sky_blue1")


class Plot:
    """A chart that rich prints as wide as there is room."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        chart, width = _written(self.chart), min(options.max_width, WIDTH_MAX)
        yield Text(chart.title, style="bold")
        if chart.is_empty:
            yield Text("There is nothing to show yet.", style="dim")
            return
        if len(chart.series) > 1 and chart.kind != "heat":
            names = ((series.name, COLOURS[at % 8]) for at, series in enumerate(chart.series))
            yield Text("  ").join(Text.assemble(("■ ", colour), name) for name, colour in names)
        match chart.kind:
            case "heat":
                yield _heat(chart)
            case "lines":
                yield from _lines(chart, width)
            case "intervals":
                yield from _intervals(chart, width)
            case "flow":
                yield _bars(_flows(chart), width)
            case _:
                yield _bars(chart, width)
        if chart.uncertain and any(point.is_uncertain for series in chart.series for point in series.points):
            yield Text(f"~ {chart.uncertain}", style="dim")


def _written(chart: Chart) -> Chart:
    """The chart with texts that a terminal shows and does not obey."""

    def clean(text: str) -> str:
        return "".join(character if character.isprintable() else " " for character in text)

    def point(given: Point) -> Point:
        return replace(given, x=clean(given.x) if isinstance(given.x, str) else given.x, note=clean(given.note))

    return replace(
        chart,
        title=clean(chart.title),
        uncertain=clean(chart.uncertain),
        summary=clean(chart.summary),
        x=replace(chart.x, title=clean(chart.x.title)),
        y=replace(chart.y, title=clean(chart.y.title)),
        series=tuple(Series(clean(series.name), tuple(map(point, series.points))) for series in chart.series),
        flows=tuple(replace(flow, source=clean(flow.source), target=clean(flow.target)) for flow in chart.flows),
    )


def _bars(chart: Chart, width: int) -> Table:
    """A bar for each point; in a funnel with its share of the first step."""
    values = finite(point.y for series in chart.series for point in series.points)
    most = max([abs(value) for value in values], default=1.0) or 1.0
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, max_width=width // 3, overflow="ellipsis")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    room = max(10, width - width // 3 - 24)
    for at in range(max(len(series.points) for series in chart.series)):
        for index, series in enumerate(chart.series):
            if at < len(series.points):
                point = series.points[at]
                label = _label(chart, point) if not index else ""
                value = "–" if point.y is None else formatted(point.y, chart.y.unit)
                first = series.points[0].y
                if chart.kind == "funnel" and point.y is not None and first:
                    value += f"  {formatted(point.y / first, 'share'):>6}"
                bar = _bar(abs(point.y or 0) / most * room)
                table.add_row(Text(label), Text(bar, style=COLOURS[index % 8]), f"{'~' * point.is_uncertain}{value}")
    return table


def _bar(length: float) -> str:
    whole, eighth = divmod(round(length * 8), 8)
    return "█" * whole + _EIGHTHS[eighth].strip()


def _label(chart: Chart, point: Point) -> str:
    if isinstance(point.x, str):
        return point.x
    end = f" to {formatted(point.high, chart.x.unit)}" if chart.kind == "histogram" and point.high is not None else ""
    return formatted(point.x, chart.x.unit) + end


def _flows(chart: Chart) -> Chart:
    points = (Point(f"{flow.step + 1}  {flow.source} → {flow.target}", flow.value) for flow in chart.flows)
    return Chart(kind="bars", title=chart.title, y=chart.y, series=(Series("", tuple(points)),))


def _heat(chart: Chart) -> Table:
    columns = list(dict.fromkeys(str(point.x) for series in chart.series for point in series.points))
    values = finite(point.y for series in chart.series for point in series.points)
    most = max([abs(value) for value in values], default=1.0) or 1.0
    table = Table.grid(padding=(0, 0))
    table.add_column(no_wrap=True, max_width=24, overflow="ellipsis")
    for _ in columns:
        table.add_column(no_wrap=True, justify="right")
    table.add_row(Text(f"{chart.x.title} ", style="dim"), *(Text(f" {column} ", style="dim") for column in columns))
    for series in chart.series:
        points = {str(point.x): point for point in series.points}
        cells = [_cell(chart, points.get(column), most) for column in columns]
        table.add_row(Text(f"{series.name} "), *cells)
    return table


def _cell(chart: Chart, point: Point | None, most: float) -> Text:
    if point is None or point.y is None:
        return Text("")
    shade = min(len(_SHADES) - 1, round(abs(point.y) / most * (len(_SHADES) - 1)))
    value = f" {'~' * point.is_uncertain}{formatted(point.y, chart.y.unit, short=True)} "
    return Text(value, style=f"{'black' if shade >= 5 else 'white'} on {_SHADES[shade]}")


def _lines(chart: Chart, width: int) -> Iterable[Text]:
    """Dots of braille: four in height and two in width for each character."""
    values = scale((point.y for series in chart.series for point in series.points), chart.y.unit)
    ticks = [formatted(tick, chart.y.unit, short=True) for tick in values.ticks]
    left = max(map(len, ticks)) + 1
    columns = width - left - 1
    cells, colours = _dotted(chart, values, columns)
    rows = {
        round((values.high - tick) / (values.high - values.low) * (ROWS - 1)): label
        for tick, label in zip(values.ticks, ticks, strict=True)
    }
    for row in range(ROWS):
        line = Text(f"{rows.get(row, ''):>{left}}", style="dim").append("┤" if row in rows else "│")
        for column in range(columns):
            line.append(chr(0x2800 + cells.get((row, column), 0)), style=colours.get((row, column), ""))
        yield line
    xs = [_label(chart, point) for point in max((series.points for series in chart.series), key=len)]
    yield Text(f"{'':>{left}}└{xs[0]}{xs[-1]:>{max(columns - len(xs[0]), 0)}}", style="dim")


def _dotted(chart: Chart, values: Scale, columns: int) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], str]]:
    cells: dict[tuple[int, int], int] = {}
    colours: dict[tuple[int, int], str] = {}
    y_of = values.along(ROWS * 4 - 1, 0)
    places = {x: at for at, x in enumerate(dict.fromkeys(p.x for series in chart.series for p in series.points))}
    last = max(len(places) - 1, 1)
    for index, series in enumerate(chart.series):
        before: tuple[float, float] | None = None
        for point in series.points:
            if point.y is None or point.y != point.y:
                before = None
                continue
            here = (places[point.x] / last * (columns * 2 - 1), y_of(point.y))
            steps = 1 if before is None else max(1, round(max(abs(here[0] - before[0]), abs(here[1] - before[1]))))
            start = before or here
            for step in range(steps + 1):
                x = round(start[0] + (here[0] - start[0]) * step / steps)
                y = round(start[1] + (here[1] - start[1]) * step / steps)
                at = (y // 4, x // 2)
                cells[at] = cells.get(at, 0) | _DOTS[y % 4][x % 2]
                colours[at] = COLOURS[index % 8]
            before = here
    return cells, colours


def _intervals(chart: Chart, width: int) -> Iterable[Text]:
    points = [(series.name, point) for series in chart.series for point in series.points]
    bounds = [bound for _, point in points for bound in (point.y, point.low, point.high, chart.reference)]
    values = scale(bounds, chart.y.unit, zero=False)
    names = [" ".join(part for part in (name, str(point.x)) if part) for name, point in points]
    left = min(max(map(len, names)), width // 3)
    room = width - left - 14
    x = values.along(0, room - 1)
    for name, (_, point) in zip(names, points, strict=True):
        line = [" "] * room
        if point.low is not None and point.high is not None:
            low, high = round(x(point.low)), round(x(point.high))
            line[low : high + 1] = ["─"] * (high + 1 - low)
            line[low], line[high] = "├", "┤"
        if chart.reference is not None:
            line[round(x(chart.reference))] = "┊"
        if point.y is not None:
            line[round(x(point.y))] = "●"
        value = "–" if point.y is None else formatted(point.y, chart.y.unit)
        yield Text.assemble(f"{name[:left]:<{left}} ", ("".join(line), COLOURS[0]), f" {value}")
    yield Text(
        f"{'':<{left}} {formatted(values.low, chart.y.unit)}{formatted(values.high, chart.y.unit):>{room - 4}}",
        style="dim",
    )
