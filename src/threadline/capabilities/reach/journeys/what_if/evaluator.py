"""Journeys as an evaluator of history: what one book of them wants because of an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from threadline.capabilities.reach.journeys.book import Book
from threadline.capabilities.reach.journeys.reacting import Reaction
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.kernel.event import Recorded
from threadline.kernel.limits import CASCADE_EVENTS_MAX
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Emit, PolicyView, Wish

WISHES = "wishes"
"""The name of the only decision about an event: everything that journeys want because of it."""

_BUDGET = CASCADE_EVENTS_MAX // 2


class JourneysEvaluator:
    """Decides as the policy does, by one book. Historical events count as if they were live."""

    name = JOURNEYS

    def __init__(self, book: Book) -> None:
        self._book = book
        reads = [(read.projection, read.path) for active in book.in_force.values() for read in active.journey.reads]
        self.reads: Sequence[tuple[str, tuple[str, ...]]] = tuple(
            dict.fromkeys([*reads, (JOURNEYS, ()), ("profile", ("traits", "timezone"))])
        )

    def handles(self, event_type: str) -> bool:
        """Whether any journey goes by events of a type."""
        return self._book.handles(event_type)

    def decisions(self, recorded: Recorded, person: PersonView) -> Mapping[str, Sequence[Wish]]:
        """What journeys want because of an event."""
        known = cast(PolicyView, person)  # a sandbox shows evaluators what it shows policies
        wishes = Reaction(self._book, recorded, known, known[JOURNEYS], _BUDGET, history=True).react()
        return {WISHES: wishes} if wishes else {}

    def wishes(
        self, recorded: Recorded, decisions: Mapping[str, Sequence[Wish]], matters: Callable[[str], bool]
    ) -> Sequence[Wish]:
        """The same: nothing is sent in a sandbox, and timers fire in its time."""
        return decisions.get(WISHES, ())

    def decides_as(self, other: Any, event_type: str) -> bool:
        """Whether another one is the same."""
        return other is self

    def alike(self, wish: Emit) -> Any:
        """All of it can be noticed."""
        return wish
