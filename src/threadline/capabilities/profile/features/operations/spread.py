"""How a feature is spread over people now."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.events.sample import Deadline, Estimate, sample
from threadline.capabilities.profile.features.operations import FEATURES_GROUP
from threadline.capabilities.profile.features.operations.vector import chosen, values_of
from threadline.capabilities.profile.features.spread import Bin, bins_of, histogram, summary
from threadline.kernel.chart import Chart
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Params, always, operation


class SpreadParams(Params, kw_only=True):
    """Which feature."""

    name: Annotated[str, names_a("feature"), Meta(description="Its name.", min_length=1, max_length=100)]
    seconds: Annotated[int, Meta(description="How long to look at people at most.", ge=1, le=30)] = 2


class FeatureSpread(msgspec.Struct, kw_only=True):
    """The values that people have now. Where time is up before everybody was looked at, ids decide who was: they are
    hashes, so these people are drawn by lot."""

    name: str
    as_of: Instant
    people_read: int
    exact: Annotated[bool, Meta(description="Whether everybody was looked at; else those whose ids come first.")]
    valued: Annotated[Estimate, Meta(description="People who have a value.")]
    least: float | None = None
    median: float | None = None
    mean: float | None = None
    most: float | None = None
    bins: list[Bin]


def spread_picture(result: FeatureSpread) -> Chart:
    """The people of each bin."""
    return histogram(result.name, result.bins, result.people_read, exact=result.exact)


@operation(
    "GET /v1/features/{name}/spread",
    FEATURES_GROUP,
    relies_on=("people",),
    is_long=always,
    picture=spread_picture,
    example=SpreadParams(name="monetary_total"),
)
def spread(context: Context, params: SpreadParams) -> FeatureSpread:
    """Show the distribution of a feature over people, from as many as can be read in two seconds."""
    chosen(context.engine.catalogue.of_nobody("features", context.now), [params.name])
    deadline = Deadline(context, params.seconds)
    read = values_of(context, params.name, lambda: deadline.is_over)
    values = [value for _, value in read.values]
    valued = sample(len(values), read.last).estimate(sum(value is not None for value in values))
    return FeatureSpread(
        name=params.name,
        as_of=instant(read.as_of),
        people_read=len(values),
        exact=not read.last,
        valued=valued,
        bins=bins_of(values),
        **summary(values),
    )
