"""The projection ``alerts``: which alerts a person has dismissed, in which version and when."""

from __future__ import annotations

import re
from typing import Any

from threadline.capabilities.reach.alerts.events import ALERT_DISMISSED
from threadline.kernel.event import Recorded
from threadline.kernel.limits import ALERT_DISMISSALS_MAX, ALERT_VERSIONS_MAX
from threadline.kernel.merging import keep_smallest, merge_entries
from threadline.kernel.personal import PersonFile, shown_views
from threadline.kernel.projection import Depends, Faster, Projection
from threadline.kernel.time import EARLIEST, LATEST, format_time
from threadline.kernel.view_parts import Parts, values

ID_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_ID = re.compile(ID_PATTERN)

State = dict[str, list[int]]
"""Alert -> [minus the newest version that was dismissed, when that was first so]."""


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    alert, version = event.properties.get("alert"), event.properties.get("version")
    if type(alert) is not str or not _ID.fullmatch(alert):
        return None
    if type(version) is not int or not 1 <= version <= ALERT_VERSIONS_MAX:
        return None
    entry = [-version, event.occurred_at]
    if alert in state and state[alert] <= entry:
        return None
    state[alert] = entry
    return keep_smallest(state, ALERT_DISMISSALS_MAX)


def merge(first: State, second: State) -> State:
    """The state of the union of two people's events."""
    return keep_smallest(merge_entries(first, second, min), ALERT_DISMISSALS_MAX)


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    dismissed = {
        alert: {"version": -entry[0], "at": format_time(min(max(entry[1], EARLIEST), LATEST))}
        for alert, entry in sorted(state.items())
    }
    return {"dismissed": dismissed}


DISMISSALS = Projection(
    name="alerts",
    version=1,
    handles=frozenset({ALERT_DISMISSED}),
    empty=dict,
    fold=_fold,
    view=_view,
    depends=Depends(parts=Parts({"dismissed": Parts(named="", inside=Parts(values("version", "at")))})),
    faster=Faster(merge=merge),
)

ALERTS_FILE = PersonFile(
    "alerts",
    "Notices that you have closed",
    "Notices in the application that you did not want to see any more.",
    shown_views("alerts"),
    ("alerts",),
)
