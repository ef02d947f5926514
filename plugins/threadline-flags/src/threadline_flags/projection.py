"""What a person was shown last: a flag's newest variant and its day."""

from __future__ import annotations

from typing import Any

from threadline.kernel.event import Recorded
from threadline.kernel.projection import Projection
from threadline.kernel.time import format_time
from threadline_flags.definition import FLAGS_MAX
from threadline_flags.events import FLAG_EXPOSED

NAME = "flags"


def fold(state: dict[str, list[Any]], recorded: Recorded) -> dict[str, list[Any]]:
    """Keep the newest exposure of each flag; of two at one instant the one with the larger id."""
    flag, variant = (recorded.event.properties.get(name) for name in ("flag", "variant"))
    if isinstance(flag, str) and isinstance(variant, str) and 0 < len(flag) <= 100 and 0 < len(variant) <= 100:
        newest = [recorded.event.occurred_at, recorded.id, variant]
        if flag not in state or state[flag][:2] < newest[:2]:
            state[flag] = newest
        if len(state) > FLAGS_MAX:
            # Which one goes is decided by the name, so that every order of the same events leaves the same ones.
            del state[max(state)]
    return state


def view(state: dict[str, list[Any]], now: int, edges: list[Recorded]) -> dict[str, Any]:
    """Each flag with the variant, and since when of this day."""
    return {flag: {"variant": variant, "shown_at": format_time(at)} for flag, (at, _, variant) in sorted(state.items())}


def is_shown_today(shown: Any, flag: str, variant: str, now: int) -> bool:
    """Whether a view says that somebody was shown this variant on the day of an instant."""
    last = shown.get(flag) if isinstance(shown, dict) else None
    return last is not None and last["variant"] == variant and last["shown_at"][:10] == format_time(now)[:10]


FLAGS_SHOWN = Projection(name=NAME, version=1, handles=frozenset({FLAG_EXPOSED}), empty=dict, fold=fold, view=view)
