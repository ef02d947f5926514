"""The projection ``broadcasts``: which broadcasts have addressed a person; and how each recipient stands, as rows."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import Any

from threadline.capabilities.reach.broadcasts.events import BROADCAST_ADDRESSED, broadcast_of
from threadline.capabilities.reach.feedback.events import (
    MAIL_BOUNCED,
    MAIL_CLICKED,
    MAIL_COMPLAINED,
    MAIL_DELIVERED,
    MAIL_OPENED,
    MAIL_REPLIED,
    MAIL_SENT,
)
from threadline.capabilities.reach.mail.events import MAIL_SKIPPED
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Depends, Faster, Index, Projection, Row
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_UNKNOWN, EFFECT_WITHDRAWN
from threadline.kernel.time import EARLIEST, LATEST, format_time
from threadline.kernel.view_parts import Parts, values

STATUS = "broadcast_status"
"""Table: under each broadcast what became of its mails, by the thread that says so. The value: why one was skipped."""
_REASON_LENGTH_MAX = 200
ENTRIES_MAX = 100
"""Broadcasts remembered of one person, the newest."""

STATUSES = {
    BROADCAST_ADDRESSED: "addressed",
    MAIL_SENT: "sent",
    MAIL_SKIPPED: "skipped",
    MAIL_DELIVERED: "delivered",
    MAIL_OPENED: "opened",
    MAIL_CLICKED: "clicked",
    MAIL_BOUNCED: "bounced",
    MAIL_COMPLAINED: "complained",
    MAIL_REPLIED: "replied",
    EFFECT_WITHDRAWN: "withdrawn",
    EFFECT_PARKED: "parked",
    EFFECT_UNKNOWN: "unknown",
}
"""Type of event -> what it says of a recipient."""

State = list[list[Any]]
"""[occurred_at, broadcast, event id, arm] of each event that addressed the person, in this order, the newest."""


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    id = broadcast_of(recorded) if event.type == BROADCAST_ADDRESSED else ""
    if not id:
        return None
    arm = event.properties.get("arm")
    entry = [event.occurred_at, id, recorded.id, arm[:64] if type(arm) is str else ""]
    insort(state, entry)
    del state[:-ENTRIES_MAX]
    return state


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, dict[str, str]]:
    shown: dict[str, dict[str, str]] = {}
    for at, id, _, arm in state:
        shown.setdefault(id, {"addressed_at": format_time(min(max(at, EARLIEST), LATEST)), "arm": arm})
    return dict(sorted(shown.items()))


def _merge(first: State, second: State) -> State:
    return sorted([*first, *second])[-ENTRIES_MAX:]


def _event_rows(recorded: Recorded) -> Iterable[Row]:
    id, event = broadcast_of(recorded), recorded.event
    if id and event.properties.get("machine") is not True:
        status, thread = STATUSES[event.type], recorded.thread
        reason = event.properties.get("reason") if event.type == MAIL_SKIPPED else None
        value = reason[:_REASON_LENGTH_MAX] if isinstance(reason, str) and reason else status
        row = value.encode("utf-8", "replace")
        yield Row(STATUS, f"{event.workspace}/{id}/{thread[0]}", f"{thread}/{status}", row)


BROADCASTS = Projection(
    name="broadcasts",
    version=2,
    handles=frozenset(STATUSES),
    empty=list,
    fold=_fold,
    view=_view,
    depends=Depends(parts=Parts(named="", inside=Parts(values("addressed_at", "arm")))),
    index=Index(event_rows=_event_rows),
    faster=Faster(merge=_merge),
)
"""It commutes: of whatever has addressed a person it keeps the newest."""
