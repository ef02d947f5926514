"""The policy ``feature_updates``: what was published goes to a destination as well, if one is named."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from threadline.capabilities.foundation.webhooks.definition import KIND
from threadline.capabilities.profile.feature_updates.definition import FeatureUpdates
from threadline.capabilities.profile.feature_updates.events import FEATURES_CHANGED
from threadline.capabilities.profile.feature_updates.projection import PROJECTION
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Effect, Policy, PolicyView, Read, Wish

_FEATURES, _ACTIVITY = "features", "activity"


def feature_updates_policy(updates: FeatureUpdates) -> Policy:
    """The policy. What it says that it reads is what the job reads: an unknown feature is refused by that."""
    place = updates.place
    features = [Read(_FEATURES, (name,), f"{place}: `features`") for name in updates.features] or [Read(_FEATURES)]
    return Policy(
        name=PROJECTION,
        handles=frozenset({FEATURES_CHANGED}),
        react=partial(_react, updates),
        emits=frozenset(),
        sends=frozenset({KIND} if updates.destination else ()),
        reads=(*features, Read(_ACTIVITY), Read(PROJECTION)),
    )


def _react(updates: FeatureUpdates, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    event = recorded.event
    if not updates.destination:
        return ()
    payload = {"person": known.person, "features": event.properties["features"], "as_of": event.properties["as_of"]}
    call = {"destination": updates.destination, "type": FEATURES_CHANGED, "at": event.properties["as_of"]}
    return (Effect(kind=KIND, key="changed", data={**call, "payload": payload}, queue=updates.destination),)
