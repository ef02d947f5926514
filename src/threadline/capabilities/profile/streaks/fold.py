"""The fold: an event that counts goes into the window, or is settled at once; in time the window is settled as well.

Which day an event counts for is found out when somebody looks, or when the window has moved on and no event that comes
in time can change it any more. So a late event costs no more than another, see `whereabouts`.
"""

from __future__ import annotations

from functools import partial

from threadline.capabilities.foundation.conditions import Where
from threadline.capabilities.profile.streaks import grants
from threadline.capabilities.profile.streaks.events import OURS
from threadline.capabilities.profile.streaks.plan import Columns, Plan, is_alone
from threadline.capabilities.profile.streaks.settled_days import settle_alone
from threadline.capabilities.profile.streaks.state import BLOCK, BLOCK_DAYS, EARLY, HEAD, LATE, State
from threadline.capabilities.profile.streaks.window import add
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Fold
from threadline.kernel.time import DAY


def compiled(plan: Plan, type: str) -> Fold | None:
    """The fold for events of one type; None if they count for nothing."""
    if type in OURS:
        return partial(grants.fold, plan.streaks)
    wanted = plan.conditions(type)
    if not wanted:
        return None
    if any(where for _, where in wanted):
        return partial(_fold_some, plan, wanted)
    return partial(_fold, plan, plan.columns_of(column for column, _ in wanted))


def fold(plan: Plan, state: State, recorded: Recorded) -> State | None:
    """The same for events of any type."""
    fold_type = compiled(plan, recorded.event.type)
    return None if fold_type is None else fold_type(state, recorded)


def in_place(plan: Plan, state: State, recorded: Recorded) -> bool:
    """Whether a late event may be folded as it is: unless it lies before the window and is not late itself, as of two
    people who are joined."""
    event = recorded.event
    head = state.get(HEAD)
    if head is None or is_alone(recorded) or not plan.counts(event):
        return True
    return bool((event.occurred_at - plan.day_start) // DAY >= head[BLOCK] * BLOCK_DAYS + 2)


def _fold_some(plan: Plan, wanted: list[tuple[int, Where]], state: State, recorded: Recorded) -> State | None:
    columns = [column for column, where in wanted if where.test(recorded.event)]
    return _fold(plan, plan.columns_of(columns), state, recorded) if columns else None


def _fold(plan: Plan, columns: Columns, state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    if not event.is_activity:
        return None
    at = event.occurred_at
    if -EARLY <= recorded.recorded_at - at <= LATE:  # as `is_alone` has it
        shows = add(plan, columns, state, event.context.get("timezone"), at)
    else:
        shows = settle_alone(plan, columns, state, event)
    return state if shows else None
