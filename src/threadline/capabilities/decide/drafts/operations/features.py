"""How a feature that is being written would be spread over people, reckoned from their events in a sandbox."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import Text
from threadline.capabilities.decide.drafts.replaying import Reading, drafted, looked_at
from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.events.sample import Estimate, Seconds
from threadline.capabilities.profile.features.operations import FEATURES_GROUP
from threadline.capabilities.profile.features.spread import Bin, bins_of, histogram, summary
from threadline.kernel.chart import Chart
from threadline.kernel.operation import Context, Params, always, operation

FEATURES = "features"
UNNAMED = "draft_feature"


class PreviewParams(Params, kw_only=True):
    """Which feature."""

    text: Annotated[Text, Meta(description="What stands under the name of the feature.")]
    name: Annotated[str, Meta(description="Its name; one in force is compared with.", max_length=100)] = ""
    seconds: Seconds = 2


class FeaturePreview(msgspec.Struct, kw_only=True):
    """The values of the people who were looked at. Nothing was changed."""

    name: str
    as_of: Instant
    people_read: int
    exact: Annotated[bool, Meta(description="Whether everybody was looked at; else those whose ids come first.")]
    valued: Annotated[Estimate, Meta(description="People who have a value.")]
    changed: Annotated[Estimate | None, Meta(description="People whose value is another than in force; null: new.")]
    least: float | None = None
    median: float | None = None
    mean: float | None = None
    most: float | None = None
    bins: list[Bin]
    failures: Annotated[dict[str, str], Meta(description="Person -> what went wrong with their events, for some.")]


def preview_picture(result: FeaturePreview) -> Chart:
    """The people of each bin, and beside them those by the feature in force."""
    return histogram(result.name, result.bins, result.people_read, exact=result.exact)


@operation(
    "POST /v1/features/preview",
    FEATURES_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    picture=preview_picture,
    example=PreviewParams(name="orders_of_march", text="{aggregate: count, events: purchase_completed, window: 30d}"),
    audited=False,
)
def preview(context: Context, params: PreviewParams) -> FeaturePreview:
    """Reckon a feature that is being written from people's events, and show how it is spread."""
    name = params.name or UNNAMED
    catalogue = drafted(context, params.text, FEATURES, name)
    looked = looked_at(context, catalogue, lambda side: Reading(FEATURES, name, side, context.now), params.seconds)
    old = [_value(ended.old) for ended in looked.ended]
    new = [_value(ended.new) for ended in looked.ended]
    is_new = name not in (context.engine.catalogue.of_nobody(FEATURES, context.now) or {})
    changed = sum(was != becomes for was, becomes in zip(old, new, strict=True))
    return FeaturePreview(
        name=name,
        as_of=instant(context.now),
        people_read=looked.sample.read,
        exact=looked.sample.share >= 1,
        valued=looked.sample.estimate(sum(value is not None for value in new)),
        changed=None if is_new else looked.sample.estimate(changed),
        failures=looked.failures,
        bins=bins_of(new, None if is_new else old),
        **summary(new),
    )


def _value(shown: dict[str, Any] | None) -> Any:
    return None if shown is None else shown["value"]
