"""The projection ``feature_updates``: the values of a person's features that were published last."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.profile.feature_updates.events import FEATURES_CHANGED
from threadline.kernel.event import Recorded
from threadline.kernel.limits import FEATURES_MAX
from threadline.kernel.merging import keep_smallest, merge_entries, newest
from threadline.kernel.personal import PersonFile, joined, shown_events, shown_views
from threadline.kernel.projection import Depends, Faster, Projection
from threadline.kernel.time import format_time
from threadline.kernel.view_parts import Parts, values

_KNOWN_MAX = 2 * FEATURES_MAX
"""Features remembered of one person, those with the smallest names: more than can be declared at a time."""

State = dict[str, list[Any]]
"""Feature -> [when it was published last, the id of that event, its value]."""


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    values = event.properties.get("features")
    if type(values) is not dict:
        return None
    for name, value in values.items():
        entry = [event.occurred_at, recorded.id, value]
        state[name] = newest(state[name], entry) if name in state else entry
    return keep_smallest(state, _KNOWN_MAX)


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    published_at = max((at for at, _, _ in state.values()), default=None)
    return {
        "published_at": None if published_at is None else format_time(published_at),
        "features": {name: value for name, (_, _, value) in sorted(state.items())},
    }


PROJECTION = "feature_updates"


def feature_updates_projection() -> Projection:
    """The projection. It commutes: of each feature the newest value stays."""
    return Projection(
        name=PROJECTION,
        version=1,
        handles=frozenset({FEATURES_CHANGED}),
        empty=dict,
        fold=_fold,
        view=_view,
        depends=Depends(parts=Parts(values("published_at") | {"features": Parts(named="feature")})),
        faster=Faster(merge=lambda first, second: keep_smallest(merge_entries(first, second, newest), _KNOWN_MAX)),
    )


FEATURE_UPDATES_FILE = PersonFile(
    "feature_updates",
    "Figures that were passed on",
    "When figures about you changed and other systems were told.",
    joined(shown_views(PROJECTION), shown_events(FEATURES_CHANGED)),
    (PROJECTION,),
)
