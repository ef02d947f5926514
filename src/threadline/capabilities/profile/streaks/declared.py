"""What the streaks capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.conditions.values_read import merged, values_compared
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features.definition import ANY
from threadline.capabilities.profile.streaks.definition import StreakSet, read_streaks
from threadline.capabilities.profile.streaks.events import STREAK_AMNESTY_GRANTED, STREAK_FREEZE_GRANTED
from threadline.capabilities.profile.streaks.grants import FREEZES_OF_EVENT_MAX
from threadline.capabilities.profile.streaks.operations import operations
from threadline.capabilities.profile.streaks.policy import policy
from threadline.capabilities.profile.streaks.projection import projection
from threadline.capabilities.profile.streaks.refresh import milestones_refresh
from threadline.kernel.lasting import Lasting
from threadline.kernel.reading import Reading, Readings


def declare(definitions: Definitions) -> list[Any]:
    """The projection, the policy and the operations that depend on what is declared."""
    streaks = read_streaks(definitions)
    refresh = milestones_refresh(streaks)
    read = Readings("streaks", _values_read(streaks))
    made = [projection(streaks), policy(streaks), _lasting(streaks), read, *operations(streaks)]
    return made if refresh is None else [*made, refresh]


def _values_read(streaks: StreakSet) -> dict[str, list[Reading]]:
    """What grants say, and what streaks compare in the events that they count."""
    feeds = [feed for streak in streaks.streaks for feed in streaks.tally(streak).source.feeds]
    named = Reading(("streak",), "text", among=frozenset(streaks.by_name))
    grants = {
        STREAK_FREEZE_GRANTED: [named, Reading(("freezes",), "whole", FREEZES_OF_EVENT_MAX)],
        STREAK_AMNESTY_GRANTED: [named, Reading(("from",), "day"), Reading(("to",), "day")],
    }
    return merged(grants, *(values_compared(feed.where.parts, [feed.type]) for feed in feeds))


def _lasting(streaks: StreakSet) -> Lasting:
    """The types that streaks count."""
    named, any_but = dict[str, str](), dict[str, frozenset[str]]()
    for streak in streaks.streaks:
        source = streaks.tally(streak).source
        why = f"the streak {streak.name!r} counts "
        if any(feed.type == ANY for feed in source.feeds):
            cure = "put the type under `except`, or leave the streak out"
            any_but[f"{why}any event; {cure}"] = frozenset(source.excluded)
        named |= {feed.type: f"{why}them" for feed in source.feeds if feed.type != ANY}
    return Lasting("streaks.declared", named, any_but=any_but)
