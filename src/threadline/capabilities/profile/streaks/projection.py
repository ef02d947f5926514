"""The projection ``streaks``: days of a life on which the person was active, and what streaks make of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from threadline.capabilities.profile.streaks.definition import StreakSet
from threadline.capabilities.profile.streaks.events import (
    STREAK_AMNESTY_GRANTED,
    STREAK_FREEZE_GRANTED,
    STREAK_MILESTONE_REACHED,
    ZONE_HOPPING_DETECTED,
)
from threadline.capabilities.profile.streaks.fold import compiled, fold, in_place
from threadline.capabilities.profile.streaks.grants import HOPS, MILESTONES
from threadline.capabilities.profile.streaks.merging import merge
from threadline.capabilities.profile.streaks.plan import Plan
from threadline.capabilities.profile.streaks.state import State
from threadline.capabilities.profile.streaks.view import Reader
from threadline.kernel.personal import PersonFile, joined, shown_events, shown_views
from threadline.kernel.projection import Depends, Faster, Projection

NAME = "streaks"


def projection(streaks: StreakSet) -> Projection:
    """The projection of these streaks. Its fingerprint changes only with what the state has to hold."""
    plan = Plan(streaks)
    reader = Reader(plan)
    return Projection(
        name=NAME,
        version=4,
        handles=None,
        empty=dict,
        fold=partial(fold, plan),
        view=reader.view,
        depends=Depends(due=reader.due, feeds=reader.feeds),
        ordered=True,
        in_place=partial(in_place, plan),
        in_parts=True,
        fingerprint=streaks.fingerprint,
        faster=Faster(merge=partial(merge, plan), fold=partial(compiled, plan)),
        timeless=_timeless,
    )


def _timeless(state: State) -> dict[str, Any]:
    """A state without what is emitted once, when it is noticed: that depends on arrival by intent."""
    return {name: part for name, part in state.items() if name not in (MILESTONES, HOPS)}


STREAKS_FILE = PersonFile(
    "streaks",
    "Your streaks",
    "On how many days in a row you were active, now and before.",
    joined(
        shown_views("streaks"),
        shown_events(STREAK_MILESTONE_REACHED, ZONE_HOPPING_DETECTED, STREAK_FREEZE_GRANTED, STREAK_AMNESTY_GRANTED),
    ),
    ("streaks",),
)
