"""Events out of order: one older than those already folded, and one that is ahead of the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from threadline.engine.folding.person import VALUE_BYTES_MAX, Person
from threadline.engine.folding.person_view import Scene
from threadline.engine.folding.provisional import ProvisionalStates, copied
from threadline.engine.folding.refold import NOTHING, folded_before
from threadline.engine.folding.states import States
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Fold, State


def take_in(
    scene: Scene,
    person: Person,
    recorded: Recorded,
    steps: Sequence[tuple[int, Fold]],
    now: int,
    again: Callable[[Person, int], State],
) -> bool:
    """Fold an event that is in the person's history already; returns whether snapshot and tail still give the states.
    ``again`` folds a state from the history."""
    latest = (recorded.event.occurred_at, recorded.id)
    late = latest < person.latest
    had_provisional = person.provisional is not None
    touched = 0
    if person.latest[0] > now or latest[0] > now:
        touched = _keep_up(scene, person, recorded, steps, now + 1, late=late)
    else:
        person.provisional = None
    refolded = person.states.take(recorded, steps, (lambda index: again(person, index)) if late else None)
    person.states.touched |= touched
    if not late:
        person.latest = latest
    return not (refolded or had_provisional or person.provisional is not None)


def _keep_up(
    scene: Scene, person: Person, recorded: Recorded, steps: Sequence[tuple[int, Fold]], now: int, *, late: bool
) -> int:
    """Bring the provisional states up to an event that is about to be folded; returns the projections that it touches,
    as bits."""
    # What policies emit occurs now, and lies in the past of any later read: it needs no provisional states.
    folding, history, provisional = person.states.folding, scene.history(person), person.provisional

    def others(start: int | None) -> Iterable[Recorded]:
        return (event for event in history.between(start, now) if event.id != recorded.id)

    if provisional is not None:
        if provisional.until < now:
            provisional.advance(now, others(provisional.until))
    elif person.latest[0] < now:
        provisional = ProvisionalStates(copied(person.states), person.latest, now)
    elif 2 * person.size <= VALUE_BYTES_MAX:
        provisional = ProvisionalStates(States(folding), NOTHING, now)
        provisional.advance(now, others(None))
    person.provisional = provisional
    if provisional is None:
        return sum(1 << index for index, _ in steps)
    if recorded.event.occurred_at >= provisional.until:
        # Between its own time and that of a later event ahead of the clock, views may differ although the states with
        # all events do not.
        return sum(1 << index for index, _ in steps) if late else 0
    until = provisional.until
    provisional.fold(recorded, lambda index: folded_before(folding, history, until, (index,))[index])
    return provisional.states.touched
