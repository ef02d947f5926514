"""What the streaks capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features.definition import ANY
from threadline.capabilities.profile.streaks.definition import StreakSet, read_streaks
from threadline.capabilities.profile.streaks.operations import operations
from threadline.capabilities.profile.streaks.policy import policy
from threadline.capabilities.profile.streaks.projection import projection
from threadline.capabilities.profile.streaks.refresh import milestones_refresh
from threadline.kernel.lasting import Lasting


def declare(definitions: Definitions) -> list[Any]:
    """The projection, the policy and the operations that depend on what is declared."""
    streaks = read_streaks(definitions)
    refresh = milestones_refresh(streaks)
    made = [projection(streaks), policy(streaks), _lasting(streaks), *operations(streaks)]
    return made if refresh is None else [*made, refresh]


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
