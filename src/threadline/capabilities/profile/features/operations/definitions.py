"""The features in force and what each is made of."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.profile.features.definition import Feature, FeatureSet
from threadline.capabilities.profile.features.operations import FEATURES_GROUP
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, NoParams, shaped_operation
from threadline.kernel.time import format_duration


@key_fields("name", "description", "aggregate", "window")
@not_personal
class FeatureDefinition(msgspec.Struct, kw_only=True):
    """What a feature is made of."""

    name: str
    description: str
    aggregate: str
    events: Annotated[list[str], Meta(description="The types that feed it; * is any. Empty for one built on features.")]
    features: Annotated[list[str], Meta(description="The features it is built on.")]
    window: Annotated[str, Meta(description="e.g. 30d, or lifetime.")]
    unit: str
    empty: Annotated[Any, Meta(description="Its value where there is nothing to compute with.")]
    version: int
    stale_after: Annotated[str | None, Meta(description="How old its newest event may be before it is STALE.")]


class DefinitionsResult(msgspec.Struct, kw_only=True):
    """Every feature in force, by name."""

    fingerprint: Annotated[str, Meta(description="Changes with anything declared.")]
    features: list[FeatureDefinition]


def _definition(feature: Feature) -> FeatureDefinition:
    return FeatureDefinition(
        name=feature.name,
        description=feature.description,
        aggregate=feature.aggregate,
        events=sorted({feed.type for feed in feature.source.feeds}) if feature.source is not None else [],
        features=list(feature.needs),
        window="lifetime" if feature.window is None else format_duration(feature.window),
        unit=feature.unit,
        empty=feature.empty,
        version=feature.version,
        stale_after=None if feature.stale_after is None else format_duration(feature.stale_after),
    )


@shaped_operation("GET /v1/features", FEATURES_GROUP)
def list_(features: FeatureSet, context: Context, params: NoParams) -> DefinitionsResult:
    """List the features in force and what each is made of."""
    shown = sorted((feature for feature in features.features if not feature.hidden), key=lambda feature: feature.name)
    return DefinitionsResult(fingerprint=features.fingerprint, features=[_definition(feature) for feature in shown])
