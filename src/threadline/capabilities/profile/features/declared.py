"""What the features capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from threadline.capabilities.foundation.conditions.values_read import merged, values_compared
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features.campaigns import campaigns_projection
from threadline.capabilities.profile.features.definition import (
    ANY,
    SECTIONS,
    FeatureSet,
    ValueKind,
    read_features,
)
from threadline.capabilities.profile.features.operations import definitions as operations
from threadline.capabilities.profile.features.policy import ignored_policy
from threadline.capabilities.profile.features.projection import projection
from threadline.capabilities.profile.features.values import SCALAR_LENGTH_MAX
from threadline.kernel.lasting import Lasting, Until
from threadline.kernel.reading import Meaning, Reading, Readings


def declare(definitions: Definitions) -> list[Any]:
    """The projections, the policy and the operation that depend on what is declared, and the sections read here."""
    features = read_features(definitions)
    campaigns: list[Any] = [campaigns_projection(), ignored_policy(features.ignored_after)]
    read = [_lasting(features), Readings("features", values_read(features))]
    return [projection(features), *read, *campaigns, operations.list_(features), *SECTIONS]


def values_read(features: FeatureSet) -> dict[str, list[Reading]]:
    """What features take from events, and what they compare in them."""
    read: list[Mapping[str, Iterable[Reading]]] = []
    for feature in features.features:
        for feed in () if feature.source is None else feature.source.feeds:
            read.append(values_compared(feed.where.parts, [feed.type]))
            if feed.path and (meaning := _MEANINGS.get(feature.reads)):
                read.append({feed.type: [Reading(feed.path, *meaning)]})
                read.append({feed.type: [Reading(feature.currency, "currency")] if feature.currency else []})
    return merged(*read)


_MEANINGS: Mapping[ValueKind, tuple[Meaning, int]] = {
    "number": ("number", 0),
    "money": ("number", 0),
    "scalar": ("plain", SCALAR_LENGTH_MAX),
    "nullable": ("plain", SCALAR_LENGTH_MAX),
    "key": ("plain", 0),
}


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
