"""What retention would erase now, without doing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.parameters import Next, Page
from threadline.capabilities.operate.retention.definition import Retention
from threadline.capabilities.operate.retention.job import EXPIRING_PAGE
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Group, Operation, always, shaped_operation
from threadline.kernel.time import DAY

RETENTION_GROUP = Group("retention", "How long events are stored.")
COUNTED_MAX = 1_000


class RetentionParams(Page, kw_only=True):
    """Which people."""

    limit: Annotated[int, Meta(description="People to look at in this call.", ge=1, le=1_000)] = EXPIRING_PAGE


@key_fields("rule", "days", "people", "events")
class RetentionCount(msgspec.Struct, kw_only=True):
    """What one rule would erase."""

    rule: str
    days: int
    types: list[str]
    people: Annotated[int, Meta(description="People of this page with such events.")]
    events: Annotated[int, Meta(description="Such events, counted to 1,000 in each thread.")]


@not_personal
class RetentionPreview(msgspec.Struct, kw_only=True):
    """What would be erased of a page of people."""

    people: Annotated[int, Meta(description="People looked at.")]
    rules: list[RetentionCount]
    projections: Annotated[
        list[str], Meta(description="What is folded of these types, and would be as if they had never come.")
    ]
    carried: Annotated[list[str], Meta(description="What is folded of these types, and stays as it is.")]
    uncounted: Annotated[
        dict[str, int],
        Meta(
            description="Of how many of them events that are gone do not count any more, by what is folded: its "
            "definition has changed since, and they cannot be recalculated."
        ),
    ]
    next: Next = ""


@shaped_operation(
    "GET /v1/retention/preview", RETENTION_GROUP, is_long=always, scope="admin", example=RetentionParams(limit=50)
)
def preview(rules: Sequence[Retention], context: Context, params: RetentionParams) -> RetentionPreview:
    """Show what the declared retention would erase now, a page of people at a time."""
    people, following = context.engine.reader.people(context.workspace, params.cursor, params.limit)
    counts = []
    for rule in rules:
        before = context.now - rule.days * DAY
        per_person = context.engine.erasures.expiry.expired(people, rule.types, before, COUNTED_MAX)
        counts.append(
            RetentionCount(
                rule=rule.name,
                days=rule.days,
                types=list(rule.types),
                people=len(per_person),
                events=sum(per_person.values()),
            )
        )
    types = {type for rule in rules for type in rule.types}
    folding = [p for p in context.engine.catalogue.projections if any(p.fold_of(type) is not None for type in types)]
    return RetentionPreview(
        people=len(people),
        rules=counts,
        projections=[projection.name for projection in folding if projection.carries is None],
        carried=[projection.name for projection in folding if projection.carries is not None],
        uncounted=context.engine.erasures.expiry.uncounted(people),
        next=following,
    )


def operations(rules: Sequence[Retention]) -> list[Operation]:
    """The operation that shows what these rules would erase."""
    return [preview(tuple(rules))]
