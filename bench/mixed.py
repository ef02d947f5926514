"""The same events, less tidy: some arrive late, some bring a new identifier, some are told twice."""

from __future__ import annotations

import msgspec

from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY

LATE, NEW_IDENTIFIERS, DUPLICATES = 0.10, 0.05, 0.05
"""Shares of the events."""
LATE_MAX = 7 * DAY
LINKED_MAX = 4
"""New identifiers of one person; below the limit of a kind, so that no merge is refused."""
RECENT = 4_096
_CHANCE = 2.0**-32


class Mixed:
    """Changes events one by one. What becomes of an event follows from its key, so it is the same on every side."""

    def __init__(self) -> None:
        self._recent: list[Event] = []
        self._linked: dict[Identifier, int] = {}

    def __call__(self, event: Event) -> Event:
        """The event that takes the place of this one."""
        chance, draw = int(event.key[:8], 16) * _CHANCE, int(event.key[8:16], 16)
        if chance < DUPLICATES and self._recent:
            return self._recent[draw % len(self._recent)]
        if chance < DUPLICATES + LATE:
            late = int(draw * _CHANCE * LATE_MAX)
            event = msgspec.structs.replace(event, occurred_at=event.occurred_at - late)
        elif chance < DUPLICATES + LATE + NEW_IDENTIFIERS:
            event = msgspec.structs.replace(event, identifiers=self._with_a_new_one(event))
        if len(self._recent) < RECENT:
            self._recent.append(event)
        else:
            self._recent[draw % RECENT] = event
        return event

    def forget(self) -> None:
        """A stretch repeats only its own events, because others may have been passed over."""
        self._recent.clear()

    def _with_a_new_one(self, event: Event) -> tuple[Identifier, ...]:
        """One more identifier of somebody known by user id; for others, and where that is full, a first contact."""
        strongest = event.identifiers[0]
        linked = self._linked.get(strongest, 0)
        if strongest.kind != "user_id" or linked == LINKED_MAX:
            return (Identifier("anonymous_id", f"visitor-{event.key}"),)
        self._linked[strongest] = linked + 1
        return (*event.identifiers, Identifier("external_id", f"customer-{event.key}"))
