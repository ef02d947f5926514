"""What is new among events, found out without recording them."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.engine.names import Names
from threadline.engine.screen import Request, checked_request, screen
from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Event, event_id
from threadline.kernel.identity import IdentityRules
from threadline.kernel.store import Store


def fresh_among(store: Store, rules: IdentityRules, events: Sequence[Event], now: int) -> list[list[int]]:
    """What is new among these events: for each new thing the positions of the events that carry it.

    An exact duplicate of a recorded event is not new, a different payload under its key is.
    """
    told: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        told.setdefault(event_id(event.workspace, event.source, event.key), []).append(place)
    known = store.seen(list(told))
    names = Names(rules)
    found: list[list[int]] = []
    for id, places in told.items():
        # Digests are computed only where there is something to compare with.
        if id not in known and len(places) == 1:
            found.append(places)
            continue
        same: dict[int | None, list[int]] = {}
        for place in places:
            same.setdefault(_digest(events[place], names, now), []).append(place)
        found += [each for digest, each in same.items() if id not in known or digest != known[id]]
    return found


def _digest(event: Event, names: Names, now: int) -> int | None:
    """What a recorded event is compared by; None for one that cannot be recorded."""
    try:
        return screen(0, checked_request(Request(event), now), names, now, event.sent_time).digest
    except EventRejected:
        return None
