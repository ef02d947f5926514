"""The picture of an answer: below it in the terminal, or as a file."""

from __future__ import annotations

from pathlib import Path

import click

from threadline.kernel.chart import Chart
from threadline.surfaces.cli.session import Session


def show_picture(chart: Chart, session: Session, png: Path | None, svg: Path | None, *, plotted: bool) -> None:
    """Write the files that are asked for; without any, and if ``plotted``, draw in the terminal."""
    try:
        if svg is not None:
            from threadline.surfaces.charts.svg import svg_file

            svg.write_text(svg_file(chart), "utf-8")
        if png is not None:
            from threadline.surfaces.charts.png import png as png_of

            png.write_bytes(png_of(chart))
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None
    if plotted and png is None and svg is None:
        from threadline.surfaces.charts.terminal import Plot

        session.console.print(Plot(chart))
