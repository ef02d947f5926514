"""Space: disk per event, bytes written for one, and the memory of a server that has worked on the full file."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import msgspec

from bench.cases.http import BATCH, FASTEST, Plan, run_load
from bench.contest import Tape, in_child
from bench.row import Goal, Row, compared
from bench.server import Server, unlimited
from bench.side import file_bytes
from bench.stage import Stage
from bench.threadline_side import Threadline
from threadline.testing.world import World, segment_message

SAMPLE = 2_000
WRITTEN_RATE = 4_000
"""Events of a second of a stretch over which writes are counted."""
LOADED_STRETCHES = 4
"""Stretches of load before memory is read: a cache of people must have had the time to fill."""


def measure(stage: Stage) -> list[Row]:
    """Disk per event beside the size of an event as it comes, what is written for one, and memory under load."""
    path, history = stage.file(), stage.world.history
    sample = [len(msgspec.json.encode(segment_message(event))) for event in islice(stage.world.events(SAMPLE), SAMPLE)]
    on_disk = stage.filled_bytes / history
    count = round(stage.seconds * WRITTEN_RATE)
    start = stage.claim(count)
    written = {
        tree.name: in_child(_kilobytes_written, stage.file(tree), stage.world, start, count, tree=tree)
        for tree in stage.trees
    }
    seconds, memory = LOADED_STRETCHES * stage.seconds, {}
    for tree in stage.trees:
        with Server(stage.file(tree), tree, **unlimited(tree)) as server:
            plan = Plan(batches=round(seconds * FASTEST), readers=2, read_rate=100.0)
            run_load(stage, {tree.name: server}, plan, seconds)
            memory[tree.name] = server.rss_bytes / 1e6
    grown = file_bytes(path) - stage.filled_bytes
    return [
        Row("disk per event", on_disk, "bytes", note=f"an event comes as {sum(sample) / SAMPLE:.0f} bytes of JSON"),
        compared(
            f"written to disk for an event, batches of {BATCH}",
            written,
            "KB",
            Goal("ours", most=8),
            Goal("ours", most=5),
            f"{count:,} events, with what checkpoints write",
        ),
        compared(
            "server after load on the full file, memory",
            memory,
            "MB",
            Goal("ours", most=350),
            Goal("ours", most=250),
            f"{history:,} events before it, batches of {BATCH}; the file has grown by {grown / 1e6:,.0f} MB since",
        ),
    ]


def _kilobytes_written(path: Path, world: World, start: int, count: int) -> float:
    """What this process has the disk write for an event, from opening the file to closing it, in units of 1,024."""
    tape = Tape(world)
    tape.skip_to(start)
    before = _write_bytes()
    side = Threadline(path)
    for batch in tape.batches(count, BATCH):
        side.record(batch)
    side.close()
    return (_write_bytes() - before) / count / 1_024


def _write_bytes() -> int:
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
    return int(counters["write_bytes"]) - int(counters["cancelled_write_bytes"])
