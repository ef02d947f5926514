"""Interests as callers read them: a person's rankings at an instant, summaries for reports, first and last touch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import (
    Duration,
    Instant,
    PersonRef,
    instant,
    past_instant,
    time_param,
)
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.foundation.events.parameters import KnownAsOf, TimeRange
from threadline.capabilities.profile.interests.attribution import NAME as ATTRIBUTION
from threadline.capabilities.profile.interests.definition import (
    APPLICATION_LENGTH_MAX,
    HALF_LIFE_MAX,
    SCOPE_LENGTH_MAX,
    TOPIC_LENGTH_MAX,
    Interests,
    Mode,
)
from threadline.capabilities.profile.interests.ranking import Entry, Ranked, rank
from threadline.capabilities.profile.interests.state import NAME, TOPICS
from threadline.capabilities.profile.interests.summary import Total, totals
from threadline.kernel.disclosure import NOT_PERSONAL, free, not_personal
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Group, Operation, Params, operation, shaped_operation
from threadline.kernel.ports import Person
from threadline.kernel.time import DAY, format_duration, parse_duration

INTERESTS_GROUP = Group("interests", "What a person cares about and where they came from.")

TopicName = Annotated[str, Meta(description="Only this topic; without it all.", max_length=TOPIC_LENGTH_MAX)]
ApplicationId = Annotated[
    str,
    Meta(
        description="Only actions of this application; empty: of none. Without it all.",
        max_length=APPLICATION_LENGTH_MAX,
    ),
]

ScopeName = Annotated[
    str, Meta(description="Only values of this scope; without it those of all.", max_length=SCOPE_LENGTH_MAX)
]
HalfLife = Annotated[Duration, Meta(description="For mode decay, e.g. 14d; given alone it means that mode.")]

# --- rankings ---------------------------------------------------------------------------------


class InterestsParams(KnownAsOf, kw_only=True):
    """Whose interests, which, by which formula and at which instant."""

    id: PersonRef
    topic: TopicName | None = None
    scope: ScopeName | None = None
    application: ApplicationId | None = None
    mode: Annotated[
        Literal["declared", "periods", "decay"],
        Meta(description="declared: as the definitions say of each topic."),
    ] = "declared"
    half_life: HalfLife | None = None
    limit: Annotated[int, Meta(description="Values per topic, the heaviest.", ge=1, le=10_000)] = 100


class ValueView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One value of a scope."""

    scope: Annotated[str, Meta(description="Empty for actions of the topic that named no scope.")]
    value: Annotated[str, free(named_by="scope")]
    weight: Annotated[float, Meta(description="To two decimals in mode periods, to six in mode decay.")]
    actions: Annotated[int, Meta(description="Actions that count, within the days that are kept.")]
    current: Annotated[int | None, Meta(description="Those in the current period (mode periods).")] = None
    previous: Annotated[int | None, Meta(description="Those in the period before it (mode periods).")] = None
    older: Annotated[int | None, Meta(description="Those in an older period that still counts (mode periods).")] = None


@key_fields("topic", "mode", "counting", "weight", "values")
@not_personal
class TopicView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One topic, its values ranked."""

    topic: str
    mode: Mode
    counting: Annotated[str, Meta(description="every, capped or unique.")]
    weight: Annotated[float, Meta(description="The sum of the weights of all its values.")]
    values: Annotated[list[ValueView], Meta(description="The heaviest first; of equals by scope and value.")]
    period_starts_at: Instant | None = None
    period_ends_at: Instant | None = None
    previous_weight: Annotated[float | None, Meta(description="What an action of the period before counts.")] = None
    half_life: str | None = None
    capped: Annotated[
        bool, Meta(description="Whether there were more scopes in four weeks than are counted separately.")
    ] = False


class InterestsResult(msgspec.Struct, kw_only=True):
    """What a person cares about at an instant."""

    person: str
    position: Annotated[int, Meta(description="How many events were ever recorded of the person, erased ones too.")]
    as_of: Instant
    topics: Annotated[list[TopicView], Meta(description="The heaviest first; of equals by name.")]


@shaped_operation(
    "GET /v1/people/{id}/interests", INTERESTS_GROUP, example=InterestsParams(id="user_id:42", topic="product")
)
def of(interests: Interests, context: Context, params: InterestsParams) -> InterestsResult:
    """Rank what a person cares about, now or as of an instant."""
    half_life = _half_life(params)
    asked = person_as_of(context, params.id, params.as_of, params.known)
    ranked = rank(
        interests,
        asked.state(NAME),
        asked.at,
        topic=params.topic,
        application=params.application,
        mode=None if params.mode == "declared" else params.mode,
        half_life=half_life,
    )
    topics = [_topic_view(name, ranking, half_life, params) for name, ranking in ranked.items()]
    return InterestsResult(
        person=asked.person.id,
        position=asked.person.position,
        as_of=asked.shown_at,
        topics=[topic for topic in topics if topic.values],
    )


def _half_life(params: InterestsParams) -> int | None:
    if params.half_life is None:
        return None
    if params.mode == "periods":
        raise InvalidValue("`half_life` belongs to mode decay; leave out one of the two", param="half_life")
    size = parse_duration(params.half_life)
    if size > HALF_LIFE_MAX:
        raise InvalidValue(f"`half_life` may be up to {format_duration(HALF_LIFE_MAX)}", param="half_life")
    return size


def _topic_view(name: str, ranked: Ranked, half_life: int | None, params: InterestsParams) -> TopicView:
    rules = ranked.rules
    chosen = [entry for entry in ranked.entries if params.scope in (None, entry.scope)]
    view = TopicView(
        topic=name,
        mode=ranked.mode,
        counting=rules.counting,
        weight=ranked.weight,
        capped=ranked.capped,
        values=[_value_view(ranked.mode, entry) for entry in chosen[: params.limit]],
    )
    if ranked.mode == "decay":
        view.half_life = format_duration(half_life or rules.half_life)
    else:
        view.period_starts_at = instant(ranked.period_start * DAY)
        view.period_ends_at = instant((ranked.period_start + rules.period_days) * DAY)
        view.previous_weight = ranked.previous_weight / 100
    return view


def _value_view(mode: Mode, entry: Entry) -> ValueView:
    view = ValueView(scope=entry.scope, value=entry.value, weight=entry.weight, actions=entry.actions)
    if mode == "periods":
        view.current, view.previous, view.older = entry.by_age
    return view


# --- summaries --------------------------------------------------------------------------------


class SummaryParams(TimeRange, kw_only=True):
    """Whose actions, and which, are summed up."""

    id: PersonRef
    topic: TopicName | None = None
    application: ApplicationId | None = None
    limit: Annotated[int, Meta(description="Rows, those of the newest periods.", ge=1, le=100_000)] = 1_000


@key_fields("topic", "scope", "value", "total")
class SummaryRow(msgspec.Struct, kw_only=True):
    """Actions of one application on one value of a scope, in one period."""

    topic: str
    application: Annotated[str, Meta(description="Empty where the actions name none.")]
    scope: str
    value: Annotated[str, free(named_by="scope")]
    period_starts_at: Instant
    period_ends_at: Instant
    total: Annotated[int, Meta(description="Actions that count, as is declared for the topic.")]
    first_at: Annotated[Instant, Meta(description="The first action, whether it counts or not.")]
    last_at: Instant


class SummaryResult(msgspec.Struct, kw_only=True):
    """A summary, made of the log: it goes back to the first action."""

    person: str
    rows: Annotated[list[SummaryRow], Meta(description="The newest periods first, then by name.")]
    more: Annotated[bool, Meta(description="Whether there are rows beyond the limit.")]


@shaped_operation("GET /v1/people/{id}/interests/summary", INTERESTS_GROUP, example=SummaryParams(id="user_id:42"))
def summary(interests: Interests, context: Context, params: SummaryParams) -> SummaryResult:
    """Sum up a person's actions by topic, application, scope and period."""
    asked = person_as_of(context, params.id, None)
    stop = past_instant(context, params.stop, "stop")
    events = _events(
        context,
        asked.person,
        frozenset(interests.sources),
        time_param(params.start),
        context.now if stop is None else stop,
    )
    first_days = asked.state(NAME).get(TOPICS, {})
    rows = totals(interests, events, first_days, params.topic, params.application)
    shown = [_row(interests, row) for row in rows[: params.limit]]
    return SummaryResult(person=asked.person.id, rows=shown, more=len(rows) > len(shown))


def _events(
    context: Context, person: Person, types: frozenset[str], start: int | None, stop: int
) -> Iterator[Recorded]:
    if types:  # where no event shows an interest, none is read: without types it would be all
        yield from context.engine.reader.all_events(person, start=start, stop=stop, types=types)


def _row(interests: Interests, total: Total) -> SummaryRow:
    length = interests.topic(total.cell.topic).period_days
    return SummaryRow(
        **total.cell._asdict(),
        total=total.total,
        first_at=instant(total.first_at),
        last_at=instant(total.last_at),
        period_starts_at=instant(total.period_start * DAY),
        period_ends_at=instant((total.period_start + length) * DAY),
    )


def operations(interests: Interests) -> list[Operation]:
    """The operations that depend on what is declared."""
    return [of(interests), summary(interests)]


# --- attribution ------------------------------------------------------------------------------


class AttributionParams(Params, kw_only=True):
    """Whose first and last touch."""

    id: PersonRef


class Touch(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An event that named a campaign."""

    at: Instant
    event: str
    source: Annotated[str, NOT_PERSONAL] = ""
    medium: Annotated[str, NOT_PERSONAL] = ""
    name: Annotated[str, Meta(description="The campaign; what UTM calls utm_campaign."), NOT_PERSONAL] = ""
    term: Annotated[str, NOT_PERSONAL] = ""
    content: Annotated[str, NOT_PERSONAL] = ""
    id: str = ""


class AttributionResult(msgspec.Struct, kw_only=True):
    """Where a person came from; visits before they signed in count as theirs."""

    person: str
    first_touch: Touch | None
    last_touch: Touch | None


@operation("GET /v1/people/{id}/attribution", INTERESTS_GROUP, example=AttributionParams(id="user_id:42"))
def attribution(context: Context, params: AttributionParams) -> AttributionResult:
    """Show the first and the latest campaign that a person came from."""
    person = context.engine.reader.person(context.workspace, params.id)
    view = context.engine.reader.views(person, context.now, names=[ATTRIBUTION])[ATTRIBUTION]
    return msgspec.convert({"person": person.id, **view}, AttributionResult)
