"""The projection ``privacy``: whether a browser of the person has sent Global Privacy Control."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.reach.consent.events import WORDS
from threadline.kernel.event import GLOBAL_PRIVACY_CONTROL, Recorded
from threadline.kernel.projection import Depends, Faster, Projection
from threadline.kernel.time import EARLIEST, LATEST, format_time
from threadline.kernel.view_parts import Parts, values

State = dict[str, int]
"""Under ``since``, when it was first sent; empty: never."""


def privacy_projection(*, needed: bool) -> Projection:
    """The projection. It looks at events of every type; where nothing goes by it, at those of consent alone.

    Once sent, the signal stays: a person has several browsers, and a server sends events too.
    """
    return Projection(
        name="privacy",
        version=1,
        handles=None if needed else WORDS,
        empty=dict,
        fold=_fold,
        view=_view,
        depends=Depends(parts=Parts(values("global_privacy_control", "since"))),
        faster=Faster(merge=_merge),
        fingerprint="signals" if needed else "",
        carries={"": ""},
    )


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    if GLOBAL_PRIVACY_CONTROL not in event.marks:
        return None
    if "since" in state and state["since"] <= event.occurred_at:
        return None
    state["since"] = event.occurred_at
    return state


def _merge(first: State, second: State) -> State:
    return min(first, second, key=lambda state: state.get("since", LATEST + 1))


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    since = state.get("since")
    return {
        "global_privacy_control": since is not None,
        "since": None if since is None else format_time(min(max(since, EARLIEST), LATEST)),
    }
