"""Refold: derive the state of everybody again from the log."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from bench.threadline_side import Threadline


def measure(stage: Stage) -> list[Row]:
    """Events per second of a full refold on one core, and the memory it took."""
    events, seconds, rss_bytes = in_child(_refold, stage.file())
    return [
        Row("refold everything, one core", events / seconds, "events/s", goal=Goal("ours", least=60_000),
            note=f"{events:,} events in {seconds:.1f} s, at most {rss_bytes / 1e6:,.0f} MB"),
    ]  # fmt: skip


def _refold(path: Path) -> tuple[int, float, int]:
    side = Threadline(path)
    started_at = time.perf_counter()
    events = int(side.engine.refold_all())
    seconds = time.perf_counter() - started_at
    side.close()
    return events, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
