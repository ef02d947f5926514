"""The simulations of one engine: histories replayed in two variants, one at a time in the time of whoever asks."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.simulation.run import run, simulation
from threadline.kernel.errors import TooManyRequests
from threadline.kernel.simulation import Ending, PageDone, Pages, RecordedDecision, Tally, VariantSpec
from threadline.kernel.store import Store


class Simulations:
    """The simulations of one engine. They only read its store."""

    def __init__(self, store: Store, catalogue: Catalogue, activation_changed_max: float | None = None) -> None:
        self._store = store
        self._catalogue = catalogue
        self.activation_changed_max = activation_changed_max
        """The largest share of decisions that may change when a version of a rule is activated, 0 to 1, by a saved
        what-if; None: no what-if is required."""
        self._running = threading.Lock()

    def replay(
        self,
        workspace: str,
        old: VariantSpec,
        new: VariantSpec,
        start: int,
        stop: int,
        tally: Tally,
        *,
        people: Sequence[str] | None = None,
        endings: tuple[Ending, Ending] | None = None,
        recorded_decision: RecordedDecision | None = None,
    ) -> Pages:
        """Replay everybody's history, or that of ``people`` by id, in two variants, from a key on."""
        tried = simulation(old, new, start, stop, tally, endings=endings, recorded_decision=recorded_decision)
        return lambda after: run(self._store, self._catalogue, workspace, tried, after=after, people=people)

    def run(self, pages: Pages) -> PageDone:
        """Run all pages in this thread; returns the people and events of all.

        Raises `TooManyRequests` while another one runs: each takes a whole core, and others want to get on.
        """
        if not self._running.acquire(blocking=False):
            raise TooManyRequests("another what-if is running here", hint="Wait for it, or ask without `wait`.")
        try:
            people = events = 0
            for done in pages(None):
                people, events = people + done.people, events + done.events
            return PageDone(None, people, events)
        finally:
            self._running.release()
