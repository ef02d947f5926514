"""What the features capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features.campaigns import campaigns_projection
from threadline.capabilities.profile.features.definition import ANY, SECTIONS, FeatureSet, read_features
from threadline.capabilities.profile.features.operations import definitions as operations
from threadline.capabilities.profile.features.policy import ignored_policy
from threadline.capabilities.profile.features.projection import projection
from threadline.kernel.lasting import Lasting, Until


def declare(definitions: Definitions) -> list[Any]:
    """The projections, the policy and the operation that depend on what is declared, and the sections read here."""
    features = read_features(definitions)
    campaigns: list[Any] = [campaigns_projection(), ignored_policy(features.ignored_after)]
    return [projection(features), _lasting(features), *campaigns, operations.list_(features), *SECTIONS]


def _lasting(features: FeatureSet) -> Lasting:
    """The types that features name. One of any event is of those that are stored."""
    for_life, until = dict[str, str](), dict[str, Until]()
    for feature in features.features:
        for feed in () if feature.source is None else feature.source.feeds:
            if feed.type == ANY:
                continue
            why = f"the feature {feature.name.partition('.')[0]!r} reads them"
            if feature.window is None:
                for_life.setdefault(feed.type, f"{why}, of a lifetime; give it a `window`")
            else:
                until[feed.type] = max(until.get(feed.type, Until(0, "")), Until(feature.window, why))
    return Lasting("features", for_life, until)
