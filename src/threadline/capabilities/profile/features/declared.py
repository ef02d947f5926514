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
    """How long the types count that windows look at: of what lies in one, single events are needed again."""
    named, any_but = dict[str, Until](), dict[Until, frozenset[str]]()
    for feature in features.features:
        if feature.source is None or feature.window is None:
            continue
        until = Until(feature.window, f"the feature {feature.name.partition('.')[0]!r} reads them")
        for feed in feature.source.feeds:
            if feed.type == ANY:
                any_but[until] = frozenset(feature.source.excluded)
            else:
                named[feed.type] = max(named.get(feed.type, until), until)
    return Lasting("features", until=named, until_any_but=any_but)
