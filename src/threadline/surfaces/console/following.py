"""Events as they are committed: what is new since a cursor, however much that is."""

from __future__ import annotations

from typing import Any

from threadline.kernel.screen import Fresh
from threadline.surfaces.console.asking import Asking

SHOWN_MAX = 60
"""Rows at a time: nobody reads more in a fifth of a second."""
PAGE = 500
PAGES_MAX = 40
"""At a time: whoever writes faster than this is followed a little later, and never ever further behind."""


def follow(asking: Asking, cursor: str) -> Fresh:
    """All events of the workspace after the cursor, of a type if the address names one; the newest are shown."""
    wanted, count = asking.query.get("type"), 0
    shown: list[Any] = []
    for _ in range(PAGES_MAX if cursor else 1):
        page = asking.ask("events_feed", cursor=cursor or "end", limit=PAGE, skip_damaged=True)
        cursor = page["next"]
        fresh = [event for event in page["events"] if wanted in (None, "", event["type"])]
        count += len(fresh)
        shown = [*shown, *fresh][-SHOWN_MAX:]
        if not page["more"] or page["waiting"]:
            break
    return Fresh(shown, cursor, count)
