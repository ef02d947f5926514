"""A rehearsal: whatever an engine can do is done on an overlay, which sends nothing, and what follows is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from threadline.engine.folding.packing import unpack_event
from threadline.engine.scheduled import OUTBOX, TIMER, pending_effect, pending_timer
from threadline.engine.simulation.overlay import Overlay
from threadline.kernel.consequences import Consequences
from threadline.kernel.policy import policy_of
from threadline.kernel.ports import Ports
from threadline.kernel.store import Item, Store

E = TypeVar("E", bound=Ports)


class Rehearsal(Generic[E]):
    """An engine on a store that has what another one has; nothing that it writes lasts."""

    def __init__(self, store: Store, open: Callable[[Store], E]) -> None:
        self._overlay = Overlay(store)
        self.engine = open(self._overlay)
        self._sending = {policy.name for policy in self.engine.catalogue.policies if policy.sends != frozenset()}

    @property
    def consequences(self) -> Consequences:
        """What policies have added so far."""
        entries = self._overlay.events.values()
        derived = (event for event in (unpack_event(entry).event for entry in entries) if policy_of(event.source))
        effects = Counter(pending_effect(item).effect.kind for item in self._written(OUTBOX))
        waiting = sum(pending_timer(item).policy in self._sending for item in self._written(TIMER))
        return Consequences(Counter(event.type for event in derived), effects, waiting)

    def _written(self, table: str) -> Iterator[Item]:
        for (name, _), items in self._overlay.items.items():
            if name == table:
                yield from filter(None, items.values())
