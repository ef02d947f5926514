"""What is new among events, found out without recording them."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.engine.recording.validation import RecordRequest, Validator
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
    validator = Validator(rules)
    found: list[list[int]] = []
    for id, places in told.items():
        # Digests are computed only where there is something to compare with.
        if id not in known and len(places) == 1:
            found.append(places)
            continue
        same: dict[int | None, list[int]] = {}
        for place in places:
            same.setdefault(_digest(events[place], validator, now), []).append(place)
        found += [each for digest, each in same.items() if id not in known or digest != known[id]]
    return found


def _digest(event: Event, validator: Validator, now: int) -> int | None:
    """What a recorded event is compared by; None for one that cannot be recorded."""
    try:
        return validator.validate(0, RecordRequest(event), now).digest
    except EventRejected:
        return None
