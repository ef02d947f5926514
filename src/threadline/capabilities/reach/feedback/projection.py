"""The projection ``feedback``: an address's transient bounces, which a delivery ends, and the rows of all events."""

from __future__ import annotations

from bisect import insort
from typing import Any

from threadline.capabilities.reach.feedback.definition import TRANSIENT_MAX
from threadline.capabilities.reach.feedback.events import (
    MAIL_BOUNCED,
    MAIL_CLICKED,
    MAIL_DELIVERED,
    MAIL_OPENED,
    MAIL_REPLIED,
)
from threadline.capabilities.reach.feedback.rows import LISTED, event_rows
from threadline.kernel.event import Recorded
from threadline.kernel.identity import address_in_event
from threadline.kernel.merging import keep_smallest, merge_entries
from threadline.kernel.projection import Depends, Faster, Index, Projection
from threadline.kernel.time import EARLIEST, LATEST, format_time
from threadline.kernel.view_parts import Parts, values

ADDRESSES_MAX = 50
"""Addresses of one person that are remembered, those with the smallest names."""
_PROOF, _BOUNCES = range(2)
_REACHED = frozenset({MAIL_DELIVERED, MAIL_REPLIED})
_REACHED_BY_PEOPLE = frozenset({MAIL_OPENED, MAIL_CLICKED})

State = dict[str, list[Any]]
"""Address -> [when a mail last reached it, the instants of the newest transient bounces since then]."""


def address_of(recorded: Recorded) -> str:
    """The address that an event is about, in the form in which they are compared; empty if it names none."""
    return address_in_event(recorded.event.properties.get("address"))


def transient_bounces(state: State, address: str, since: int) -> int:
    """How many transient bounces an address has had since an instant and since a mail last reached it."""
    return sum(at >= since for at in state[address][_BOUNCES]) if address in state else 0


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    address = address_of(recorded)
    if not address:
        return None
    get = event.properties.get
    reached = event.type in _REACHED or (event.type in _REACHED_BY_PEOPLE and get("machine") is not True)
    bounced = event.type == MAIL_BOUNCED and get("bounce") == "transient"
    if not reached and not bounced:
        return None
    known = state.setdefault(address, [EARLIEST, []])
    if bounced and event.occurred_at > known[_PROOF]:
        insort(known[_BOUNCES], event.occurred_at)
        del known[_BOUNCES][:-TRANSIENT_MAX]
    elif reached and event.occurred_at > known[_PROOF]:
        known[_PROOF] = event.occurred_at
        known[_BOUNCES] = [at for at in known[_BOUNCES] if at > event.occurred_at]
    return keep_smallest(state, ADDRESSES_MAX)


def _merge(first: State, second: State) -> State:
    return keep_smallest(merge_entries(first, second, _merge_address), ADDRESSES_MAX)


def _merge_address(first: list[Any], second: list[Any]) -> list[Any]:
    proof = max(first[_PROOF], second[_PROOF])
    bounces = sorted(at for at in (*first[_BOUNCES], *second[_BOUNCES]) if at > proof)
    return [proof, bounces[-TRANSIENT_MAX:]]


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    return {
        address: {"reached_at": _shown(proof) if proof > EARLIEST else "", "transient_bounces": len(bounces)}
        for address, (proof, bounces) in sorted(state.items())
    }


def _shown(at: int) -> str:
    return format_time(min(max(at, EARLIEST), LATEST))


FEEDBACK_PROJECTION = Projection(
    name="feedback",
    version=2,
    handles=LISTED,
    empty=dict,
    fold=_fold,
    view=_view,
    depends=Depends(parts=Parts(named="", inside=Parts(values("reached_at", "transient_bounces")))),
    index=Index(event_rows=event_rows),
    faster=Faster(merge=_merge),
)
"""It commutes: of each address it keeps the newest instants, and of addresses those with the smallest names."""
