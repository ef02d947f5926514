"""Refold: derive the state of everybody again from the log."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import NamedTuple

from bench.contest import in_child
from bench.row import Goal, Row, compared
from bench.stage import Stage
from bench.threadline_side import Threadline, refold

ROUNDS = 2
"""Refolds of each side on one core, turn by turn."""


class Refold(NamedTuple):
    """What one refold did."""

    events: int
    seconds: float
    rss_bytes: int

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds


def measure(stage: Stage) -> list[Row]:
    """Events per second of a full refold on one core, beside the earlier commit, and on all; and the memory it took."""
    results: dict[str, list[Refold]] = {tree.name: [] for tree in stage.trees}
    for _ in range(ROUNDS):
        for tree in stage.trees:
            results[tree.name].append(in_child(_refold, stage.file(tree), 1, tree=tree))
    rates = {name: sum(done.rate for done in refolds) / ROUNDS for name, refolds in results.items()}
    first = results["ours"][0]
    note = f"{first.events:,} events in {first.seconds:.1f} s, at most {first.rss_bytes / 1e6:,.0f} MB"
    goal, aim = Goal("ratio", least=1.3), Goal("ratio", least=2.0)
    rows = [compared("refold everything, one core", rates, "events/s", goal, aim, note)]
    cores = os.cpu_count() or 1
    if cores > 1:
        shared = in_child(_refold, stage.file(), cores)
        note = f"{shared.rate / rates['ours']:.2f} × one core; starting the processes is part of it"
        rows.append(Row(f"refold everything, {cores} cores", shared.rate, "events/s", note=note))
    return rows


def _refold(path: Path, jobs: int) -> Refold:
    side = Threadline(path)
    started_at = time.perf_counter()
    events = refold(side, path, jobs)
    seconds = time.perf_counter() - started_at
    side.close()
    return Refold(events, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024)
