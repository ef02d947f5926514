"""The lake: events a second from the store's log into Parquet, bytes an event, and the memory that it takes."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from threadline.app import open_engine
from threadline.exports.lake.compaction import compact
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import RANGE_EVENTS, sync
from threadline.exports.lake.verification import verify

FEW = 2 * RANGE_EVENTS
"""Events that are read for the memory that everything is compared with."""


class Done(NamedTuple):
    """What a sync of everything took."""

    events: int
    cpu_seconds: float
    seconds: float
    bytes: int
    compacted_bytes: int
    compacting_cpu_seconds: float
    rss_bytes: int


def measure(stage: Stage) -> list[Row]:
    """One sync of the whole history, and one of a part of it."""
    done = in_child(_synced, stage.file(), 0)
    part = in_child(_synced, stage.file(), FEW)
    rate = done.events / done.cpu_seconds
    compacted = done.events / (done.cpu_seconds + done.compacting_cpu_seconds)
    note = f"{done.events:,} events, {done.seconds:.1f} s with the waits for the disk; and compacted {compacted:,.0f}"
    return [
        Row(
            "log into the lake, one core",
            rate,
            "events/s",
            goal=Goal("ours", least=50_000),
            aim=Goal("ours", least=100_000),
            note=note,
        ),
        Row(
            "lake, an event",
            done.bytes / done.events,
            "bytes",
            goal=Goal("ours", most=120),
            aim=Goal("ours", most=90),
            note=f"{done.compacted_bytes / done.events:.0f} bytes after compaction; identities are part of it",
        ),
        Row(
            "memory of a sync of everything",
            done.rss_bytes / part.rss_bytes,
            "×",
            goal=Goal("ours", most=1.25),
            note=f"{done.rss_bytes / 1e6:,.0f} MB, against {part.rss_bytes / 1e6:,.0f} MB for {part.events:,} events",
        ),
    ]


def _synced(path: Path, limit: int) -> Done:
    engine = open_engine(path, readonly=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        lake = Lake(open_storage(folder))
        cpu, wall = time.process_time(), time.perf_counter()
        done = sync(engine, lake, limit=limit or None)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
        compacted, compacting = 0, 0.0
        if not limit:
            began = time.process_time()
            compact(engine, lake)
            compacting = time.process_time() - began
            compacted = sum(file.bytes for file in lake.manifest().files)
            assert verify(engine, lake).problems == []
    engine.close()
    return Done(done.events, cpu, wall, done.bytes, compacted, compacting, rss)
