"""The states of a person at an instant, for a reader, a policy in an open commit, or a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from threadline.engine.folding.history import History
from threadline.engine.folding.person import Person
from threadline.engine.folding.refold import folded_before
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Edge, Look, State


class Scene(Protocol):
    """Where a view of a person reads: the store, an attempt before its commit, or a sandbox."""

    def history(self, person: Person) -> History:
        """The events that are folded in the person's states."""
        ...


def states_at(scene: Scene, person: Person, instant: int, only: Sequence[int] | None = None) -> Sequence[State]:
    """The states at an instant: the present ones, or a fold of the history where these include later events.

    ``only``: no other projections are needed.
    """
    if person.latest[0] < instant:
        return person.states
    history = scene.history(person)
    if person.provisional is not None:
        states = person.provisional.at(instant, lambda start: history.between(start, instant), only)
        if states is not None:
            return states
    return folded_before(person.states.folding, history, instant, only)


def view_at(look: Look, state: State, instant: int, events: Callable[[Sequence[Edge]], list[Recorded]]) -> Any:
    """The view of a state at an instant; ``events`` reads the single events that the view needs."""
    edges = look.edges(state, instant) if look.edges is not None else []
    return look.view(state, instant, events(edges) if edges else [])


def next_ahead(scene: Scene, person: Person, instant: int) -> int | None:
    """The next instant after that from which on a further event counts that is there already; None: none."""
    first = None if person.latest[0] < instant else scene.history(person).next_at(instant)
    return None if first is None else first + 1
