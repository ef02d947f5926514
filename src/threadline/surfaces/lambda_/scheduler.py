"""The function that EventBridge Scheduler calls: every day, and at the instants for which one has asked to be woken."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

from threadline.kernel.time import format_time
from threadline.surfaces.lambda_.runtime import Runtime, deadline, open_early, runtime
from threadline.surfaces.lambda_.wake_ups import WakeUps, scheduler_client
from threadline.surfaces.lambda_.working import work_and_wake

LAKE_ENTRIES = 50_000
"""Entries of the log that go into the lake at a time: a few seconds, so that little is done again after a kill."""


@cache
def wake_ups() -> WakeUps:
    """The wake-ups of this process."""
    return WakeUps(runtime().settings, scheduler_client)


def sync_lake(runtime: Runtime, until: float) -> dict[str, Any]:
    """Bring the lake up to the log, for as long as there is time; being killed meanwhile costs nothing but the time."""
    lake, position = runtime.composition.lake(runtime.settings), None
    while time.monotonic() < until:
        done = lake.sync(runtime.engine, LAKE_ENTRIES)
        if done["position"] == position:
            return {"position": position, "is_complete": True}
        position = done["position"]
    return {"position": position, "is_complete": False}


def handler(event: Any, context: Any = None) -> dict[str, Any]:
    """Fire timers, send effects and go on with jobs; what raises is called again by Lambda.

    The task ``lake`` writes the lake instead, and ``compact`` puts its small files together. Anything else an event may
    say makes no difference: whatever is due is done.
    """
    task = event.get("task") if isinstance(event, dict) else None
    try:
        if task == "lake":
            return sync_lake(runtime(), deadline(context))
        if task == "compact":
            return dict(runtime().composition.lake(runtime().settings).compact(runtime().engine))
        worked = work_and_wake(runtime(), wake_ups(), deadline(context))
    finally:
        runtime().rest()
    return {"done": worked.done, "wake_at": None if worked.wake_at is None else format_time(worked.wake_at)}


open_early()
