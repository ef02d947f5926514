"""A server that has nothing to do: its memory and its CPU, on an empty file and on the full one."""

from __future__ import annotations

import time

from bench.row import Goal, Row
from bench.server import Server
from bench.stage import Stage

SETTLE_SECONDS = 2.0
WATCH_SECONDS = 10.0


def measure(stage: Stage) -> list[Row]:
    """Idle memory and CPU on an empty file; memory after a start on the full one."""
    with Server(stage.folder / "empty.db") as server:
        time.sleep(SETTLE_SECONDS)
        before, started_at = server.cpu_seconds(), time.monotonic()
        time.sleep(WATCH_SECONDS)
        cpu = 100 * (server.cpu_seconds() - before) / (time.monotonic() - started_at)
        idle_bytes = server.rss_bytes
    with Server(stage.file()) as server:
        time.sleep(SETTLE_SECONDS)
        full_bytes = server.rss_bytes
    return [
        Row("idle server, memory", idle_bytes / 1e6, "MB", goal=Goal("ours", most=120)),
        Row("idle server, CPU", cpu, "%", goal=Goal("ours", most=1), note=f"of one core, over {WATCH_SECONDS:.0f} s"),
        Row("server started on the full file, memory", full_bytes / 1e6, "MB", goal=Goal("ours", most=500)),
    ]
