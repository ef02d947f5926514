"""Run the benchmarks: ``python -m bench.run [--only NAME …] [--events N]``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import bench.cases
from bench import report
from bench.row import Row
from bench.stage import Stage, live_world

RESULTS = Path(__file__).parent / "results.md"
ORDER = ("earlier", "ingest", "reads", "http", "size", "idle", "refold")
"""Ingest comes first, on files that nothing else has touched; refold last, because it rewrites them."""


def cases() -> list[str]:
    """Every module in ``bench/cases``: those of `ORDER` in that order, then any other by name."""
    found = {info.name for info in pkgutil.iter_modules(bench.cases.__path__)}
    return [name for name in ORDER if name in found] + sorted(found - set(ORDER))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write the page. A missed goal is said, and fails nothing: machines differ by more than goals do."""
    options = _parser().parse_args(arguments)
    head = report.machine()
    sections: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory(prefix="threadline-bench-", dir=options.folder) as folder:
        world = live_world(options.seed, options.events, options.people, options.late)
        stage = Stage(world, Path(folder), options.seconds)
        for name in options.only or cases():
            print(f"{name} …", flush=True)
            started_at = time.perf_counter()
            sections[name] = importlib.import_module(f"bench.cases.{name}").measure(stage)
            print("\n".join(report.table(sections[name])))
            print(f"{time.perf_counter() - started_at:.0f} s\n", flush=True)
    settings = (
        f"{options.events:,} events of {options.people:,} people, Zipf {world.zipf:g}, seed {options.seed}, "
        f"late {options.late:.0%}, {options.seconds:g} s a stretch"
    )
    target = options.write or (None if options.only else RESULTS)
    if target:
        if options.only and target.exists():
            report.write_some(target, head, sections)
        else:
            report.write(target, head, settings, sections)
        print(f"written to {target}")
    missed = [row.name for rows in sections.values() for row in rows if row.verdict == "missed"]
    for name in missed:
        print(f"missed: {name}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.run", description="Measure Threadline beside its peers.")
    parser.add_argument("--only", action="append", choices=cases(), help="run this case only; may be repeated")
    parser.add_argument("--events", type=int, default=1_000_000, help="events in the file before the clock starts")
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--late", type=float, default=0.0, help="fraction of events that arrive up to a week late")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of one measured stretch, roughly")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made; use a real disk")
    parser.add_argument(
        "--write",
        type=Path,
        default=None,
        help="write the page here; without --only it is bench/results.md, with it only these cases of the page change",
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
