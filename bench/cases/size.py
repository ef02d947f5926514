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
from bench.written import counting
from threadline.testing.world import World, segment_message

SAMPLE = 2_000
WRITTEN_WARMING, WRITTEN_EVENTS = 10_000, 131_072
"""Events before writes are counted, and those of which they are: over two generations of the newest entries, whose
index is written when the next one begins."""
LOADED_STRETCHES = 4
"""Stretches of load before memory is read: a cache of people must have had the time to fill."""


def measure(stage: Stage) -> list[Row]:
    """Disk per event beside the size of an event as it comes, what is written for one, and memory under load."""
    path, history = stage.file(), stage.world.history
    sample = [len(msgspec.json.encode(segment_message(event))) for event in islice(stage.world.events(SAMPLE), SAMPLE)]
    on_disk = stage.filled_bytes / history
    start = stage.claim(WRITTEN_WARMING + WRITTEN_EVENTS)
    written = in_child(_kilobytes_written, path, stage.world, start)
    seconds, memory = LOADED_STRETCHES * stage.seconds, {}
    for tree in stage.trees:
        with Server(stage.file(tree), tree, **unlimited(tree)) as server:
            plan = Plan(batches=round(seconds * FASTEST), readers=2, read_rate=100.0)
            run_load(stage, {tree.name: server}, plan, seconds)
            memory[tree.name] = server.rss_bytes / 1e6
    grown = file_bytes(path) - stage.filled_bytes
    return [
        Row(
            "disk per event",
            on_disk,
            "bytes",
            goal=Goal("ours", most=400),
            aim=Goal("ours", most=330),
            note=f"an event comes as {sum(sample) / SAMPLE:.0f} bytes of JSON",
        ),
        Row(
            f"written to disk for an event, batches of {BATCH}",
            written,
            "KB",
            goal=Goal("ours", most=8),
            aim=Goal("ours", most=5),
            note=f"{WRITTEN_EVENTS:,} events; frames of the log, and pages copied from there",
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


def _kilobytes_written(path: Path, world: World, start: int) -> float:
    """What an open file has the disk write for an event, without opening and closing, in units of 1,024."""
    tape = Tape(world)
    tape.skip_to(start)
    with counting(path) as written:
        side = Threadline(path)
        for batch in tape.batches(WRITTEN_WARMING, BATCH):
            side.record(batch)
        before = written.bytes
        for batch in tape.batches(WRITTEN_EVENTS, BATCH):
            side.record(batch)
        after = written.bytes
        side.close()
    return (after - before) / WRITTEN_EVENTS / 1_024
