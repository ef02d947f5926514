"""The results as a page: what was measured, on what, beside whom."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import sysconfig
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.row import Row

PARTS = ("apsw", "msgspec", "uvicorn", "uvloop", "starlette", "eventsourcing", "sqlalchemy")


def machine() -> list[str]:
    """What the numbers depend on, one line each."""
    model = next(
        (line.partition(":")[2].strip() for line in _read("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    memory = next((int(line.split()[1]) for line in _read("/proc/meminfo") if line.startswith("MemTotal")), 0)
    parts = ", ".join(f"{part} {version(part)}" for part in PARTS)
    return [
        f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"- {model}, {os.cpu_count()} cores, {memory / 1024**2:.0f} GiB, {platform.system()} {platform.release()}",
        f"- load average when it began {os.getloadavg()[0]:.2f}",
        f"- {python_build()}",
        f"- SQLite {sqlite3.sqlite_version} (standard library's)",
        f"- {parts}",
    ]


def python_build() -> str:
    """Version and build of this Python: optimised ones are up to a fifth faster."""
    arguments = str(sysconfig.get_config_var("CONFIG_ARGS"))
    optimised = {"PGO": "--enable-optimizations" in arguments, "LTO": "--with-lto" in arguments}
    configured = ", ".join(f"{name} {'on' if on else 'off'}" for name, on in optimised.items())
    if sys.base_prefix == "/usr" and not any(optimised.values()):
        # Distributions may ask for both when they call make, which leaves no trace in the configuration.
        configured = "the system's, PGO and LTO not recorded"
    return f"Python {platform.python_version()} in {sys.base_prefix}: {platform.python_compiler()}, {configured}"


def _read(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def table(rows: Sequence[Row]) -> list[str]:
    """The rows as a Markdown table."""
    lines = [
        "| what | ours | theirs | unit | ratio | must | aim | | note |",
        "|---|---:|---:|---|---:|---:|---:|---|---|",
    ]
    for row in rows:
        theirs = "" if row.theirs is None else number(row.theirs)
        ratio = "" if row.ratio is None else f"{row.ratio:.2f} ×"
        verdict = "**missed**" if row.verdict == "missed" else row.verdict
        goal, aim = ("" if each is None else str(each) for each in (row.goal, row.aim))
        cells = (row.name, number(row.ours), theirs, row.unit, ratio, goal, aim, verdict, row.note)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def number(value: float) -> str:
    """A number with about three digits that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def page(head: Sequence[str], settings: str, sections: dict[str, list[Row]], remarks: str) -> str:
    """The whole page. ``remarks`` is what people wrote below the tables, kept from the page before."""
    lines = ["# Results", "", "Written by `make bench`; do not edit above the remarks.", "", *head, f"- {settings}"]
    for name, rows in sections.items():
        lines += ["", f"## {name}", "", *table(rows)]
    return "\n".join(lines) + "\n\n" + remarks


REMARKS = "## Remarks"


def write(path: Path, head: Sequence[str], settings: str, sections: dict[str, list[Row]]) -> None:
    """Write the page; whatever follows the heading of the remarks stays as it was."""
    path.write_text(page(head, settings, sections, _remarks(path)), encoding="utf-8")


def write_some(path: Path, head: Sequence[str], sections: dict[str, list[Row]]) -> None:
    """Put sections into a page, each with when it was measured, in place of those of the same name or behind all."""
    before = path.read_text(encoding="utf-8").partition(REMARKS)[0].rstrip()
    begin, *others = before.split("\n## ")
    texts = {other.partition("\n")[0]: other for other in others}
    measured = "; ".join(line.removeprefix("- ") for line in (head[0], head[2]))
    for name, rows in sections.items():
        texts[name] = "\n".join([name, "", f"Measured apart: {measured}.", "", *table(rows), ""])
    blocks = [begin, *(f"## {text}" for text in texts.values()), _remarks(path)]
    path.write_text("\n\n".join(block.strip() for block in blocks) + "\n", encoding="utf-8")


def _remarks(path: Path) -> str:
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    _, found, remarks = kept.partition(REMARKS)
    return REMARKS + (remarks if found else "\n\nNone yet.\n")
