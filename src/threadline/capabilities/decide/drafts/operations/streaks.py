"""How long a streak that is being written would be for people, by their real days."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import Text
from threadline.capabilities.decide.drafts.replaying import Ended, Reading, drafted, looked_at
from threadline.capabilities.foundation.events.forms import Identifiers, Instant, instant
from threadline.capabilities.foundation.events.sample import Estimate, Seconds
from threadline.capabilities.profile.streaks.operations import STREAKS_GROUP
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Params, always, operation

STREAKS = "streaks"
SAMPLES = 10
UNNAMED = "draft_streak"
"""What a streak is called that has no name yet."""


class StreakPreviewParams(Params, kw_only=True):
    """Which streak."""

    text: Annotated[Text, Meta(description="What stands under the name of the streak: `events`, `cadence`, `times` …")]
    name: Annotated[str, Meta(description="Its name; one in force is compared with.", max_length=64)] = ""
    seconds: Seconds = 2


@key_fields("current", "longest", "identifiers")
class StreakPerson(msgspec.Struct, kw_only=True):
    """Somebody, and how long their streak would be."""

    person: str
    identifiers: Identifiers
    current: Annotated[int, Meta(description="Periods in a row, up to now.")]
    longest: Annotated[int, Meta(description="The most periods in a row that they ever had.")]


class StreakPreview(msgspec.Struct, kw_only=True):
    """The streaks of the people who were looked at. Nothing was changed."""

    name: str
    as_of: Instant
    people_read: int
    exact: Annotated[bool, Meta(description="Whether everybody was looked at; else those whose ids come first.")]
    running: Annotated[Estimate, Meta(description="People whose streak would be running now.")]
    ever: Annotated[Estimate, Meta(description="People who would have had one at any time.")]
    changed: Annotated[
        Estimate | None, Meta(description="People whose current or longest is another than in force; null: new.")
    ]
    longest: Annotated[int, Meta(description="The longest that anybody who was looked at would have had.")]
    samples: Annotated[list[StreakPerson], Meta(description="The ten whose streak would be longest now, by length.")]
    failures: Annotated[dict[str, str], Meta(description="Person -> what went wrong with their events, for some.")]


@operation(
    "POST /v1/streaks/preview",
    STREAKS_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    relies_on=("people",),
    example=StreakPreviewParams(name="weekly_run", text="{cadence: week, times: 3, events: activity_logged}"),
    audited=False,
)
def preview(context: Context, params: StreakPreviewParams) -> StreakPreview:
    """Compute a streak that is being written from people's events, and show who would have the longest."""
    name = params.name or UNNAMED
    catalogue = drafted(context, params.text, STREAKS, name)
    looked = looked_at(context, catalogue, lambda side: Reading(STREAKS, name, side, context.now), params.seconds)
    is_new = name not in (context.engine.catalogue.of_nobody(STREAKS, context.now) or {})
    lengths = [(ended.person, _lengths(ended.new)) for ended in looked.ended]
    first = sorted((of for of in lengths if of[1] != (0, 0)), key=lambda of: (-of[1][0], -of[1][1], of[0]))[:SAMPLES]
    names = context.engine.reader.identifiers_of(context.workspace, [person for person, _ in first])
    estimate = looked.sample.estimate
    return StreakPreview(
        name=name,
        as_of=instant(context.now),
        people_read=looked.sample.read,
        exact=looked.sample.share >= 1,
        running=estimate(sum(current > 0 for _, (current, _) in lengths)),
        ever=estimate(sum(longest > 0 for _, (_, longest) in lengths)),
        changed=None if is_new else estimate(sum(map(_is_changed, looked.ended))),
        longest=max((longest for _, (_, longest) in lengths), default=0),
        samples=[
            StreakPerson(person=id, identifiers=names.get(id, []), current=current, longest=longest)
            for id, (current, longest) in first
        ],
        failures=looked.failures,
    )


def _is_changed(ended: Ended) -> bool:
    return _lengths(ended.old) != _lengths(ended.new)


def _lengths(shown: dict[str, Any] | None) -> tuple[int, int]:
    return (0, 0) if shown is None else (shown["current"], shown["longest"])
