"""The people with the highest values of a feature."""

from __future__ import annotations

import heapq
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Identifiers, Instant, instant
from threadline.capabilities.profile.features.operations import FEATURES_GROUP
from threadline.capabilities.profile.features.operations.vector import chosen, values_of
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Params, always, operation


class TopParams(Params, kw_only=True):
    """By which feature, and how many people."""

    name: Annotated[
        str, names_a("feature"), Meta(description="A feature that is a number.", min_length=1, max_length=100)
    ]
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 10
    lowest: Annotated[bool, Meta(description="The lowest first instead of the highest.")] = False


@key_fields("rank", "value", "identifiers")
class TopEntry(msgspec.Struct, kw_only=True):
    """One person's place."""

    rank: int
    person: str
    identifiers: Identifiers
    value: int | float


@not_personal
class TopResult(msgspec.Struct, kw_only=True):
    """People in the order of a feature; equal ones in that of their ids."""

    name: str
    as_of: Instant
    people_read: Annotated[int, Meta(description="Every person of the workspace.")]
    top: list[TopEntry]


@operation(
    "GET /v1/features/{name}/top",
    FEATURES_GROUP,
    relies_on=("people",),
    is_long=always,
    example=TopParams(name="monetary_total", limit=10),
)
def top(context: Context, params: TopParams) -> TopResult:
    """List the people with the highest values of a feature; the first time it reads every person."""
    chosen(context.engine.catalogue.of_nobody("features", context.now), [params.name])
    read = values_of(context, params.name)
    numbers = (
        (person, value)
        for person, value in read.values
        if isinstance(value, int | float) and not isinstance(value, bool)
    )
    sign = 1 if params.lowest else -1
    ranked = heapq.nsmallest(params.limit, numbers, key=lambda entry: (sign * entry[1], entry[0]))
    names = context.engine.reader.identifiers_of(context.workspace, [person for person, _ in ranked])
    top = [
        TopEntry(rank=rank, person=person, identifiers=names.get(person, []), value=value)
        for rank, (person, value) in enumerate(ranked, 1)
    ]
    return TopResult(name=params.name, as_of=instant(read.as_of), people_read=len(read.values), top=top)
