"""The function that brings the lake up to date, as far as an invocation has time; the next one goes on from there."""

from __future__ import annotations

import time
from typing import Any

from threadline.surfaces.lambda_.runtime import Runtime, deadline, open_early, runtime

ENTRIES = 20_000
"""Entries of the log that are written together: some seconds of work, after which the time is looked at."""


def bring_up(runtime: Runtime, until: float) -> dict[str, Any]:
    """Write what the lake lacks, and put its small files together if there is time left."""
    lake, events, position = runtime.composition.lake(runtime.settings), 0, -1
    while time.monotonic() < until:
        done = lake.sync(runtime.engine, ENTRIES)
        events += done["events"]
        if done["position"] == position:
            lake.compact(runtime.engine)
            return {"events": events, "position": position, "complete": True}
        position = done["position"]
    return {"events": events, "position": position, "complete": False}


def handler(event: Any, context: Any = None) -> dict[str, Any]:
    """Bring the lake up to date, whatever the event says."""
    try:
        runtime().follow()
        return bring_up(runtime(), deadline(context))
    finally:
        runtime().rest()


open_early()
