"""What people would have earned by a table of points that is being written, had it been in force all the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import Text
from threadline.capabilities.decide.drafts.replaying import Ended, Reading, drafted, looked_at
from threadline.capabilities.foundation.events.forms import Identifiers, Instant, instant
from threadline.capabilities.foundation.events.sample import Estimate, Seconds
from threadline.capabilities.profile.points.events import POINTS_EARNED, amount_of
from threadline.capabilities.profile.points.operations import POINTS_GROUP
from threadline.capabilities.profile.points.policy import POLICY, SOURCE
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Params, always, operation
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Catalogue
from threadline.kernel.projection import Edge
from threadline.kernel.time import EARLIEST

POINTS = "points"
SAMPLES = 10
READS = "points_preview"


class PointsPreviewParams(Params, kw_only=True):
    """What earns points."""

    text: Annotated[Text, Meta(description="What stands under `points`: `tables`, `multipliers` and so on.")]
    seconds: Seconds = 2


@key_fields("rule", "people", "points", "points_now")
@not_personal
class EarnedByRule(msgspec.Struct, kw_only=True):
    """What a rule of the tables would have given to those who were looked at."""

    rule: str
    people: Annotated[int, Meta(description="Who would have earned by it.")]
    points: int
    points_now: Annotated[int, Meta(description="By the tables in force.")]


@key_fields("points", "identifiers", "rules")
class PointsPerson(msgspec.Struct, kw_only=True):
    """Somebody, and what they would have earned."""

    person: str
    identifiers: Identifiers
    points: int
    points_now: Annotated[int, Meta(description="By the tables in force.")]
    rules: Annotated[dict[str, int], Meta(description="Rule -> points.")]


class PointsPreview(msgspec.Struct, kw_only=True):
    """What the people who were looked at would have earned by the tables. Nothing was changed, and nobody got any.

    Both sides are computed anew from the events: what is in force as if its tables and limits had held since the first.
    """

    as_of: Instant
    people_read: int
    exact: Annotated[bool, Meta(description="Whether everybody was looked at; else those whose ids come first.")]
    earning: Annotated[Estimate, Meta(description="People who would have earned points.")]
    changed: Annotated[Estimate, Meta(description="People who would have earned other points than by those in force.")]
    points: Annotated[int, Meta(description="What those who were looked at would have earned together.")]
    points_now: Annotated[int, Meta(description="By the tables in force.")]
    rules: Annotated[list[EarnedByRule], Meta(description="Most points first; those of the tables in force as well.")]
    samples: Annotated[list[PointsPerson], Meta(description="The ten who would have earned most.")]
    failures: Annotated[dict[str, str], Meta(description="Person -> what went wrong with their events, for some.")]


class _Earned(Reading):
    """Reads what the tables have given, by rule."""

    def __init__(self, catalogue: Catalogue, at: int) -> None:
        super().__init__(READS, "", catalogue, at)
        self._is_on = catalogue.of_nobody(POINTS, at) is not None

    def value(self, person: PersonView) -> Mapping[str, int]:
        """Rule -> points. What rules and operators award is no part of it."""
        earned = Counter[str]()
        if self._is_on:
            for recorded in person.events(POINTS, Edge(EARLIEST, person.at, frozenset({POINTS_EARNED}))):
                if recorded.event.source == SOURCE:
                    earned[str(recorded.event.properties.get("rule"))] += amount_of(recorded.event) or 0
        return earned


@operation(
    "POST /v1/points/preview",
    POINTS_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    relies_on=("people",),
    example=PointsPreviewParams(text="tables: [{version: autumn, earn: {purchase_completed: 10}}]"),
    audited=False,
)
def preview(context: Context, params: PointsPreviewParams) -> PointsPreview:
    """Compute what people would have earned by tables of points that are being written, by rule."""
    catalogue = drafted(context, params.text, POINTS, POINTS)
    looked = looked_at(context, catalogue, lambda side: _Earned(side, context.now), params.seconds, frozenset({POLICY}))
    sums = [(ended, sum(ended.new.values()), sum(ended.old.values())) for ended in looked.ended]
    first = sorted((of for of in sums if of[1]), key=lambda of: (-of[1], of[0].person))[:SAMPLES]
    names = context.engine.reader.identifiers_of(context.workspace, [ended.person for ended, _, _ in first])
    estimate = looked.sample.estimate
    return PointsPreview(
        as_of=instant(context.now),
        people_read=looked.sample.read,
        exact=looked.sample.share >= 1,
        earning=estimate(sum(new > 0 for _, new, _ in sums)),
        changed=estimate(sum(ended.new != ended.old for ended in looked.ended)),
        points=sum(new for _, new, _ in sums),
        points_now=sum(old for _, _, old in sums),
        rules=_by_rule(looked.ended),
        samples=[
            PointsPerson(
                person=ended.person,
                identifiers=names.get(ended.person, []),
                points=new,
                points_now=old,
                rules=dict(sorted(ended.new.items(), key=lambda item: (-item[1], item[0]))),
            )
            for ended, new, old in first
        ],
        failures=looked.failures,
    )


def _by_rule(ended: Sequence[Ended]) -> list[EarnedByRule]:
    new, old, people = Counter[str](), Counter[str](), Counter[str]()
    for person in ended:
        new.update(person.new)
        old.update(person.old)
        people.update(person.new.keys())
    rules = sorted({*new, *old}, key=lambda rule: (-new[rule], rule))
    return [EarnedByRule(rule=rule, people=people[rule], points=new[rule], points_now=old[rule]) for rule in rules]
