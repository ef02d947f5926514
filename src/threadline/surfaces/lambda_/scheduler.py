"""The function that EventBridge Scheduler calls: every day, and at the instants for which one has asked to be woken."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadline.kernel.time import format_time
from threadline.surfaces.lambda_.runtime import deadline, open_early, runtime
from threadline.surfaces.lambda_.schedules import WakeUps, scheduler_client
from threadline.surfaces.lambda_.working import work_and_wake


@cache
def wake_ups() -> WakeUps:
    """The wake-ups of this process."""
    return WakeUps(runtime().settings, scheduler_client)


def handler(event: Any, context: Any = None) -> dict[str, Any]:
    """Fire timers, send effects and go on with jobs, whatever the event says; what raises is called again by Lambda."""
    try:
        runtime().follow()
        worked = work_and_wake(runtime(), wake_ups(), deadline(context))
    finally:
        runtime().rest()
    return {"done": worked.done, "wake_at": None if worked.wake_at is None else format_time(worked.wake_at)}


open_early()
