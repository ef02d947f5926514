"""What is so of a person at an instant, whoever asks: a reader, a policy in the midst of a group, or a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from threadline.engine.folding.history import History
from threadline.engine.folding.person import VALUE_BYTES_MAX, Person
from threadline.engine.folding.provisional import ProvisionalStates, copied
from threadline.engine.folding.refold import NOTHING, folded_before
from threadline.engine.folding.states import States
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Edge, Fold, Look, Projection, State


class Scene(Protocol):
    """Where a person is looked at: in the store, in a group before its commit, or in a sandbox."""

    def history(self, person: Person) -> History:
        """The person's events, as many of them as are in the person's states."""
        ...


# --- looking ----------------------------------------------------------------------------------


def states_at(scene: Scene, person: Person, instant: int, only: Sequence[int] | None = None) -> Sequence[State]:
    """The states that hold at an instant: those kept, or where these know of later events a fold of the history.

    ``only``: nobody will ask for other projections than these.
    """
    if person.latest[0] < instant:
        return person.states
    history = scene.history(person)
    if person.provisional is not None:
        states = person.provisional.at(instant, lambda start: history.between(start, instant), only)
        if states is not None:
            return states
    return folded_before(person.states.folding, history, instant, only)


def view_at(
    look: Look | Projection, state: State, instant: int, events: Callable[[Sequence[Edge]], list[Recorded]]
) -> Any:
    """What a state means at an instant; ``events`` are read where single ones are needed again."""
    edges = look.edges(state, instant) if look.edges is not None else []
    return look.view(state, instant, events(edges) if edges else [])


def next_ahead(scene: Scene, person: Person, instant: int) -> int | None:
    """The next instant after that from which on a further event counts that is there already; None: none."""
    first = None if person.latest[0] < instant else scene.history(person).next_at(instant)
    return None if first is None else first + 1


# --- folding ----------------------------------------------------------------------------------


def take_in(
    scene: Scene, person: Person, recorded: Recorded, steps: Sequence[tuple[int, Fold]], now: int,
    again: Callable[[Person, int], State],
) -> bool:  # fmt: skip
    """Fold an event that is in the person's history already; answers whether a tail of events still leads from the
    snapshot to the states. ``again`` folds a state from the history."""
    latest = (recorded.event.occurred_at, recorded.id)
    late = latest < person.latest
    had_provisional = person.provisional is not None
    touched = 0
    if person.latest[0] > now or latest[0] > now:
        touched = _keep_up(scene, person, recorded, steps, now + 1)
    else:
        person.provisional = None
    refolded = person.states.take(recorded, steps, (lambda index: again(person, index)) if late else None)
    person.states.touched |= touched
    if not late:
        person.latest = latest
    return not (refolded or had_provisional or person.provisional is not None)


def _keep_up(
    scene: Scene, person: Person, recorded: Recorded, steps: Sequence[tuple[int, Fold]], now: int
) -> int:  # fmt: skip
    """Bring what is so now up to an event that the person's states are about to take in; answers the projections that
    it touches, as bits."""
    # What policies add occurs now, and has happened for whoever asks later: it is no reason to begin.
    folding, history, kept = person.states.folding, scene.history(person), person.provisional

    def others(start: int | None) -> Iterable[Recorded]:
        return (each for each in history.between(start, now) if each.id != recorded.id)

    if kept is not None:
        if kept.until < now:
            kept.advance(now, others(kept.until))
    elif person.latest[0] < now:
        kept = ProvisionalStates(copied(person.states), person.latest, now)
    elif 2 * person.size <= VALUE_BYTES_MAX:
        kept = ProvisionalStates(States(folding), NOTHING, now)
        kept.advance(now, others(None))
    person.provisional = kept
    if kept is None:
        return sum(1 << index for index, _ in steps)
    if recorded.event.occurred_at >= kept.until:
        return 0
    until = kept.until
    kept.fold(recorded, lambda index: folded_before(folding, history, until, (index,))[index])
    return kept.states.touched
