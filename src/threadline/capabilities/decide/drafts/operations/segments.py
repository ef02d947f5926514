"""How many people a segment would have that somebody is writing, and some of them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import Text, in_force, read_draft
from threadline.capabilities.foundation.events.forms import Identifiers, Instant, instant
from threadline.capabilities.foundation.events.sample import Deadline, Estimate, Seconds, sample
from threadline.capabilities.profile.segments.definition import Segment, read_segments
from threadline.capabilities.profile.segments.membership import Memberships
from threadline.capabilities.profile.segments.operations import SEGMENTS_GROUP
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Params, always, operation

PAGE = 200
"""People between two looks at the clock."""
SAMPLES = 10
UNNAMED = "draft"
"""What a segment is called that has no name yet."""


class PreviewParams(Params, kw_only=True):
    """Which segment."""

    text: Annotated[Text, Meta(description="What stands under the name of the segment: `when`, `description`.")]
    name: Annotated[str, Meta(description="Its name; one in force is compared with.", max_length=64)] = ""
    seconds: Seconds = 2


@key_fields("identifiers")
class PreviewPerson(msgspec.Struct, kw_only=True):
    """Somebody who would belong to it."""

    person: str
    identifiers: Identifiers


class SegmentPreview(msgspec.Struct, kw_only=True):
    """Who would belong to it now. Nothing was changed."""

    as_of: Instant
    people_read: int
    exact: Annotated[
        bool, Meta(description="Whether everybody was looked at; else numbers are of 95 times of 100 within bounds.")
    ]
    members: Annotated[Estimate, Meta(description="People who would belong to it.")]
    entering: Annotated[Estimate | None, Meta(description="Those who do not belong to it as it is; null: it is new.")]
    leaving: Annotated[Estimate | None, Meta(description="Those who belong to it as it is and would no longer.")]
    samples: Annotated[list[PreviewPerson], Meta(description="The first ten, by id.")]


@operation(
    "POST /v1/segments/preview",
    SEGMENTS_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    relies_on=("people",),
    example=PreviewParams(text="when: {field: features.monetary_total, greater_than: 500}", name="big_spenders"),
    audited=False,
)
def preview(context: Context, params: PreviewParams) -> SegmentPreview:
    """Count the people whom a segment that is being written would have now, and show ten of them."""
    name = params.name or UNNAMED
    read = read_draft(context, params.text, "segments", name)
    if read.problems:
        raise InvalidDefinition("\n".join(map(str, read.problems)), param="text")
    segment = _named(read_segments(read.definitions) or (), name)
    assert segment is not None, "a definition without problems is there"
    before = _named(_in_force(context), params.name)
    samples: list[str] = []
    members = entering = leaving = people = 0
    deadline, after = Deadline(context, params.seconds), ""
    while True:
        page, after = context.engine.reader.people(context.workspace, after, PAGE)
        for person in page:
            memberships = Memberships(context.engine.reader.as_of(person, context.now), context.now)
            belongs, belonged = memberships.belongs(segment), before is not None and memberships.belongs(before)
            people, members = people + 1, members + belongs
            entering, leaving = entering + (belongs and not belonged), leaving + (belonged and not belongs)
            samples += [person.id] if belongs and len(samples) < SAMPLES else []
        if not after or deadline.is_over:
            break
    looked = sample(people, after)
    names = context.engine.reader.identifiers_of(context.workspace, samples)
    return SegmentPreview(
        as_of=instant(context.now),
        people_read=people,
        exact=not after,
        members=looked.estimate(members),
        entering=None if before is None else looked.estimate(entering),
        leaving=None if before is None else looked.estimate(leaving),
        samples=[PreviewPerson(person=id, identifiers=names.get(id, [])) for id in samples],
    )


def _named(segments: tuple[Segment, ...], name: str) -> Segment | None:
    return next((segment for segment in segments if segment.name == name), None)


def _in_force(context: Context) -> tuple[Segment, ...]:
    return read_segments(in_force(context.engine.catalogue)) or ()
