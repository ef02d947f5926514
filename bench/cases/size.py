"""Space: bytes on disk per event, and the memory of a server that has worked on the full file."""

from __future__ import annotations

from itertools import islice

import msgspec

from bench.cases.http import BATCH, Plan, run_load
from bench.row import Goal, Row
from bench.server import Server
from bench.side import file_bytes
from bench.stage import Stage
from threadline.testing.world import segment_message

SAMPLE = 2_000


def measure(stage: Stage) -> list[Row]:
    """Disk per event beside the size of an event as it comes, and memory under load."""
    path, history = stage.file(), stage.world.history
    sample = [len(msgspec.json.encode(segment_message(event))) for event in islice(stage.world.events(SAMPLE), SAMPLE)]
    on_disk = stage.filled_bytes / history
    with Server(path) as server:
        run_load(stage, server, Plan(batches=round(stage.seconds * 400), readers=2, read_rate=100.0), stage.seconds)
        working_bytes = server.rss_bytes
    grown = file_bytes(path) - stage.filled_bytes
    return [
        Row("disk per event", on_disk, "bytes", note=f"an event comes as {sum(sample) / SAMPLE:.0f} bytes of JSON"),
        Row(
            "server after load on the full file, memory", working_bytes / 1e6, "MB", goal=Goal("ours", most=500),
            note=f"{history:,} events before it, batches of {BATCH}; the file has grown by {grown / 1e6:,.0f} MB since",
        ),
    ]  # fmt: skip
