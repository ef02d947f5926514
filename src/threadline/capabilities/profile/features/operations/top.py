"""The people with the highest values of a feature."""

from __future__ import annotations

import heapq
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Identifiers, Instant, instant
from threadline.capabilities.profile.features.operations import FEATURES_GROUP
from threadline.capabilities.profile.features.operations.vector import chosen, vector_of
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
    people_read: Annotated[int, Meta(description="Every person of the workspace: it takes time in proportion.")]
    top: list[TopEntry]


@operation(
    "GET /v1/features/{name}/top",
    FEATURES_GROUP,
    relies_on=("people",),
    is_long=always,
    example=TopParams(name="monetary_total", limit=10),
)
def top(context: Context, params: TopParams) -> TopResult:
    """List the people with the highest values of a feature; reads every person."""
    chosen(context.engine.catalogue.of_nobody("features", context.now), [params.name])
    sign, read = 1 if params.lowest else -1, 0
    heap: list[tuple[Any, ...]] = []
    # The worst of those kept stands first: by value, then by id from the end of the alphabet, so that of equals the
    # first ids stay.
    for person in context.engine.reader.all_people(context.workspace):
        read += 1
        value = vector_of(context, person, context.now)[params.name]["value"]
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        entry = (-sign * value, tuple(-ord(c) for c in person.id), value, person)
        if len(heap) < params.limit:
            heapq.heappush(heap, entry)
        elif entry[:2] > heap[0][:2]:
            heapq.heapreplace(heap, entry)
    ranked = sorted(heap, key=lambda entry: entry[:2], reverse=True)
    names = context.engine.reader.identifiers_of(context.workspace, [entry[3].id for entry in ranked])
    top = [
        TopEntry(rank=rank, person=person.id, identifiers=names.get(person.id, []), value=value)
        for rank, (_, _, value, person) in enumerate(ranked, 1)
    ]
    return TopResult(name=params.name, as_of=instant(context.now), people_read=read, top=top)
