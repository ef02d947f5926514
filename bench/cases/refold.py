"""Refold: derive the state of everybody again from the log."""

from __future__ import annotations

import os
import resource
import time
from functools import partial
from pathlib import Path

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from bench.threadline_side import Threadline, open_parts
from threadline.engine.rebuilding import refold_everybody


def measure(stage: Stage) -> list[Row]:
    """Events per second of a full refold on one core and on all, and the memory it took."""
    path = stage.file()
    events, seconds, rss_bytes = in_child(_refold, path, 1)
    rows = [
        Row("refold everything, one core", events / seconds, "events/s", goal=Goal("ours", least=60_000),
            note=f"{events:,} events in {seconds:.1f} s, at most {rss_bytes / 1e6:,.0f} MB"),
    ]  # fmt: skip
    cores = os.cpu_count() or 1
    if cores > 1:
        _, shared, _ = in_child(_refold, path, cores)
        note = f"{seconds / shared:.2f} × one core; starting the processes is part of it"
        rows.append(Row(f"refold everything, {cores} cores", events / shared, "events/s", note=note))
    return rows


def _refold(path: Path, jobs: int) -> tuple[int, float, int]:
    side = Threadline(path)
    started_at = time.perf_counter()
    done = refold_everybody(side.engine.store, side.engine.catalogue, jobs=jobs, opener=partial(open_parts, path))
    seconds = time.perf_counter() - started_at
    side.close()
    return done.events, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
