"""The policy ``feature_updates``: at one time of the day, what has changed in a person's features is published."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from threadline.capabilities.feature_updates.definition import FeatureUpdates
from threadline.capabilities.feature_updates.events import FEATURES_CHANGED
from threadline.capabilities.feature_updates.projection import PROJECTION
from threadline.capabilities.webhooks.definition import KIND
from threadline.kernel.event import Recorded
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.policy import TIMER_FIRED, Effect, Emit, Policy, PolicyView, Read, Timer, Wish
from threadline.kernel.time import DAY, format_time, parse_time

TIMER = "daily"
_FEATURES, _ACTIVITY = "features", "activity"


def feature_updates_policy(updates: FeatureUpdates) -> Policy:
    """The policy. It needs the projections ``features``, ``activity`` and ``feature_updates``."""
    place = updates.place
    features = [Read(_FEATURES, (name,), f"{place}: `features`") for name in updates.features] or [Read(_FEATURES)]
    return Policy(
        name=PROJECTION,
        handles=None,
        react=partial(_react, updates),
        also=frozenset({TIMER_FIRED, MERGED, SPLIT}),
        emits=frozenset({FEATURES_CHANGED}),
        sends=frozenset({KIND} if updates.destination else ()),
        reads=(*features, Read(_ACTIVITY), Read(PROJECTION)),
    )


def _react(updates: FeatureUpdates, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    # Whoever has a timer keeps it: an event of theirs costs no write.
    timer = Timer(key=TIMER, due_at=next_time(updates.at, known.at), unless_pending=True)
    if recorded.event.type != TIMER_FIRED:
        return (timer,)
    last_seen = (known.view(_ACTIVITY) or {}).get("last_seen_at")
    if last_seen is None or known.at - parse_time(last_seen) > updates.active_within:
        # The next event sets a timer again.
        return ()
    changed = _changed(updates, known)
    if not changed:
        return (timer,)
    properties = {"features": changed, "as_of": format_time(known.at)}
    wishes: list[Wish] = [
        timer, Emit(type=FEATURES_CHANGED, key="changed", occurred_at=recorded.recorded_at, properties=properties)
    ]  # fmt: skip
    if updates.destination:
        payload = {"person": known.person, **properties}
        call = {"destination": updates.destination, "type": FEATURES_CHANGED, "at": properties["as_of"]}
        wishes.append(Effect(kind=KIND, key="changed", data={**call, "payload": payload}, queue=updates.destination))
    return wishes


def _changed(updates: FeatureUpdates, known: PolicyView) -> dict[str, object]:
    """The values that differ from those published last; of what was never published only what there is."""
    published = known.view(PROJECTION)["features"]
    vector = known.view(_FEATURES)
    names = updates.features or sorted(vector)
    values = {name: vector[name]["value"] for name in names}
    return {
        name: value
        for name, value in values.items()
        if (value != published[name] if name in published else vector[name]["status"] != "NOT_FOUND")
    }


def next_time(time_of_day: int, at: int) -> int:
    """The next instant after ``at`` that has this time of the day in UTC."""
    return ((at - time_of_day) // DAY + 1) * DAY + time_of_day
