"""What is new among events, found out without recording them."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.engine.recording.validation import Checked, ValidatedEvent
from threadline.kernel.event import event_id
from threadline.kernel.store import Store


def distinct(checked: Sequence[Checked]) -> dict[tuple[str, int | None], list[int]]:
    """Of each thing that these events say, its id and digest, and the positions of the events that say it."""
    found: dict[tuple[str, int | None], list[int]] = {}
    for position, one in enumerate(checked):
        if isinstance(one, ValidatedEvent):
            found.setdefault((one.id, one.digest), []).append(position)
        else:
            event = one.request.event
            found.setdefault((event_id(event.workspace, event.source, event.key), None), []).append(position)
    return found


def fresh_among(store: Store, checked: Sequence[Checked]) -> list[list[int]]:
    """What is new among these events: for each new thing the positions of the events that carry it.

    An exact duplicate of a recorded event is not new, a different payload under its key is. So is what cannot be
    recorded, because each of it is rejected anew.
    """
    found = distinct(checked)
    known = store.seen(list({id: None for id, _ in found}))
    return [positions for (id, digest), positions in found.items() if id not in known or digest != known[id]]
