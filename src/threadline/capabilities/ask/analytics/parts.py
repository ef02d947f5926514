"""What the questions share: parameters, the parts of their SQL, and what every answer says about itself."""

# Names and texts in queries are quoted; the rest is our own.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.conditions_sql import (
    PLAIN,
    condition_sql,
    conditions_of,
    read_conditions,
    text_sql,
)
from threadline.capabilities.ask.analytics.names import (
    lacking_in_conditions,
    lacking_in_step,
    lacking_property,
    path_of,
)
from threadline.capabilities.decide.drafts.draft import in_force
from threadline.capabilities.foundation.conditions.fields import EVENT
from threadline.capabilities.foundation.events.forms import time_param
from threadline.capabilities.foundation.events.parameters import TimeRange
from threadline.capabilities.profile.features.definition import TIMEZONE
from threadline.capabilities.profile.streaks.definition import WEEKDAYS, week_start
from threadline.kernel.analytics import IN_ORDER, Sql, Table, filled, literal
from threadline.kernel.calendar import ZONE_NAME_LENGTH_MAX, Calendar, date_of, zone_names
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import free
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event_type import ACTIVITY, SPEAKER_SQL, EventTypes
from threadline.kernel.limits import ANALYTICS_ROWS_MAX, ANALYTICS_VALUES_MAX, EVENT_TYPE_LENGTH_MAX
from threadline.kernel.names import PROPERTY, offers, refused_if
from threadline.kernel.operation import ASIDE, EVENT_TYPE, JSON_TEXT, Context
from threadline.kernel.time import to_datetime
from threadline.kernel.typed import prepared

OTHER = "(other)"
"""The value of a break-down that stands for all but the most frequent ones."""
CONDITION_LENGTH_MAX = 10_000
NAMED = Sql(
    f"CASE WHEN coalesce(value, '') = '' THEN '' WHEN value IN (FROM best) THEN value ELSE {literal(OTHER)} END"
)
"""The value of a break-down as it is shown, where the table ``best`` has the most frequent ones."""
NUMBERED = f"""chosen AS (
  SELECT person, position, occurred_at, epoch_us(occurred_at) AS moment, $value AS value, $anchor AS is_anchor
  FROM events $join WHERE $chosen
),
begun AS (
  SELECT *, coalesce(moment - lag(moment) OVER own >= $gap, true) AS begins
  FROM chosen WINDOW own AS (PARTITION BY person ORDER BY {IN_ORDER})
),
numbered AS (
  SELECT *, count(*) FILTER (WHERE begins) OVER (
    PARTITION BY person ORDER BY {IN_ORDER} ROWS UNBOUNDED PRECEDING
  ) AS session
  FROM begun
)"""
"""Sessions: a person's events until the first pause as long as a gap, as in the curated table, each numbered by how
many of its person's events began one. Tables up to ``numbered``, from ``$value`` (with its ``$join``), ``$anchor``,
``$chosen`` and ``$gap``."""
EXACT = "exact"

ASKED = free(values=(OTHER,), asked_by="by")
"""Marks a value of a break-down: as personal as what was asked for in `by`."""

Per = Literal["day", "week", "month"]
_PERIODS = """
periods AS (
  SELECT unnest(generate_series(first, last, INTERVAL 1 $per))::DATE AS period FROM bounds WHERE filled
  UNION SELECT period FROM (
    SELECT unnest([period - INTERVAL 1 $per, period, period + INTERVAL 1 $per])::DATE AS period FROM counted
  ), bounds WHERE NOT filled AND period BETWEEN first AND last
  UNION SELECT unnest([first, last])::DATE AS period FROM bounds WHERE NOT filled
)"""
_PERIOD_ROWS = ANALYTICS_ROWS_MAX // 2
_ARE_FEW = f"(date_diff('$per', first, last) + 1) * (SELECT count(DISTINCT value) FROM counted) <= {_PERIOD_ROWS}"
EMPTY_LEFT_OUT = "Of periods in which nothing happened only those next to others are shown, as there are many."
Where = Annotated[
    str,
    Meta(
        description='Only events that pass these conditions, as JSON: `{"total": {"gt": 50}, "plan": ["pro"]}`, '
        'or a tree such as `{"any": [{"field": "event.properties.total", "gt": 50}, …]}`.',
        max_length=CONDITION_LENGTH_MAX,
    ),
    JSON_TEXT,
    refused_if(lacking_in_conditions),
]
By = Annotated[
    str,
    Meta(
        description="Break down by a property of the event, such as `plan` or `context.page.path`, by `event.source`, "
        "or by a feature at the end of the person's last day with an event: `features.monetary_total`.",
        max_length=200,
    ),
    refused_if(lacking_property),
    offers(PROPERTY),
]
Most = Annotated[
    int, Meta(description=f"Values of the break-down; all others are one row `{OTHER}`.", ge=1, le=ANALYTICS_VALUES_MAX)
]
TypeName = Annotated[str, Meta(max_length=EVENT_TYPE_LENGTH_MAX), EVENT_TYPE]
Step = Annotated[
    str,
    Meta(
        description="An event type, `*` for any of the person's own, or JSON with conditions: "
        '`{"event": "purchase_completed", "where": {"total": {"gt": 50}}}`.',
        min_length=1,
        max_length=CONDITION_LENGTH_MAX,
    ),
    EVENT_TYPE,
    refused_if(lacking_in_step),
]


Zone = Annotated[
    str,
    Meta(
        description="Whose days these are, such as `Europe/Rome`; empty: as declared.",
        max_length=ZONE_NAME_LENGTH_MAX,
    ),
]


class Span(TimeRange, kw_only=True):
    """Of which time."""


class ByPeriod(Span, kw_only=True):
    """Of which time, and by which days, weeks and months."""

    per: Annotated[Per, Meta(description="The length of a period.")] = "day"
    timezone: Zone = ""
    week_starts_on: Annotated[
        Literal["", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
        Meta(description="The first day of a week; empty: as declared."),
    ] = ""


class Answered(msgspec.Struct, kw_only=True):
    """What an answer says about itself."""

    sql: Annotated[str, Meta(description="The query that made the rows; `threadline sql` takes it as it is."), ASIDE]
    position: Annotated[int, Meta(description="Entries of the log that the answer is of: all, or what `bound` says.")]
    bound: Annotated[str, Meta(description="`exact`, or how far the numbers may be off.")] = EXACT
    notes: Annotated[tuple[str, ...], Meta(description="What has to be known to read the numbers rightly.")] = ()


class Dated(Answered, kw_only=True):
    """What an answer by day, week or month says about itself."""

    timezone: Annotated[str, Meta(description="The zone whose days, weeks and months these are.")]
    week_starts_on: Annotated[str, Meta(description="The first day of a week.")]


class Days(NamedTuple):
    """The days, weeks and months that a question counts by."""

    zone: str
    week_start: int = 0
    """0 is Monday."""

    def day_sql(self, instant: str = "occurred_at") -> str:
        """The day of an instant, a date."""
        if self.zone != "UTC":
            return f"timezone({literal(self.zone)}, {instant})::DATE"
        return "day" if instant == "occurred_at" else f"utc_day({instant})"

    def period_sql(self, per: Per, day: str) -> str:
        """The first day of the period that a day is in."""
        if per == "day":
            return day
        if per == "week" and self.week_start:
            return f"date_trunc('week', {day} - {self.week_start})::DATE + {self.week_start}"
        return f"date_trunc('{per}', {day})::DATE"

    def date(self, at: int) -> date:
        """The day of an instant."""
        return date_of(Calendar(self.zone).day(at))

    @property
    def about(self) -> dict[str, Any]:
        """What an answer says of them."""
        return {"timezone": self.zone, "week_starts_on": WEEKDAYS[self.week_start]}


class Value(NamedTuple):
    """What a break-down is by, in SQL over `events`."""

    text: str
    join: str = ""


@prepared
class _StepText(msgspec.Struct, forbid_unknown_fields=True):
    """A step with conditions."""

    event: str = "*"
    where: dict[str, Any] = {}


class Reached(NamedTuple):
    """A step in SQL."""

    name: str
    sql: str
    """Whether an event is one."""


def asked(context: Context, sql: str, params: Mapping[str, Any], bound: str = EXACT) -> tuple[Table, dict[str, Any]]:
    """The rows of a question, and what the answer says about itself."""
    text = filled(sql.strip(), params)
    table = context.engine.analytics.query(context.workspace, text, {})
    if table.lacking:
        entries = counted(table.position + table.lacking, "entry", "entries")
        bound = f"{bound}, of the first {table.position:,} of {entries}: the others are being taken in"
    return table, {"sql": text, "position": table.position, "bound": bound}


def zone_asked(context: Context, name: str) -> str:
    """The zone that a question names, else the declared one. Raises `InvalidValue` for what is none."""
    zone = zone_names().get(name) if name else TIMEZONE.read(in_force(context.engine.catalogue), "UTC")
    if zone is None:
        problem = f"timezone: {name!r} is no zone; write an IANA name such as Europe/Rome"
        raise InvalidValue(problem, param="timezone")
    return zone


def days_of(context: Context, params: ByPeriod) -> Days:
    """The days that a question names, else those that are declared. Raises `InvalidValue` for what is no zone."""
    zone = zone_asked(context, params.timezone)
    if params.week_starts_on:
        return Days(zone, WEEKDAYS.index(params.week_starts_on))
    return Days(zone, week_start(in_force(context.engine.catalogue)))


def periods_sql(per: Per) -> dict[str, Sql]:
    """Parts of a query that answers a row for each of its ``periods``, also for those in which nothing was ``counted``.

    These are all from the first to the last of its table ``bounds``, where that says that they are few enough to be
    ``filled``. Else they are those in which something was counted and their neighbours, between which a line is drawn
    at 0: one event that is dated a thousand years ago asks for no million rows.
    """
    named = {"per": Sql(per)}
    return {**named, "filled": Sql(filled(_ARE_FEW, named)), "periods": Sql(filled(_PERIODS, named))}


def span_sql(span: TimeRange, moment: str = "occurred_at") -> str:
    """Whether an instant, that of an event, is of a range of time."""
    start, stop = time_param(span.start), time_param(span.stop)
    return all_of(
        "true" if start is None else f"{moment} >= {literal(to_datetime(start))}",
        "true" if stop is None else f"{moment} < {literal(to_datetime(stop))}",
    )


def type_sql(type: str, types: EventTypes | None = None) -> str:
    """Whether an event is of a type; ``*`` or nothing: any of the person's own. With ``types`` it must also be one
    that its speaker may say."""
    if type in ("", "*"):
        return ACTIVITY
    return f"type = {literal(type)}" + ("" if types is None else f" AND {SPEAKER_SQL[types.of(type).speaker]}")


def where_sql(text: str, param: str = "where") -> str:
    """Whether an event passes the conditions of a parameter."""
    tree = read_conditions(text, param)
    return "true" if tree is None else condition_sql(tree)


def step_of(text: str, param: str, types: EventTypes | None = None) -> Reached:
    """A step: what it is called, and whether an event is one; see `type_sql`. Raises `InvalidValue`."""
    if not text.startswith("{"):
        return Reached("any event" if text == "*" else text, type_sql(text, types))
    try:
        step = msgspec.json.decode(text, type=_StepText)
    except msgspec.MsgspecError as error:
        raise InvalidValue(f"{param}: {error}", param=param) from None
    if not step.where:
        return Reached(step.event, type_sql(step.event, types))
    name = f"{'any event' if step.event == '*' else step.event} {msgspec.json.encode(step.where).decode()}"
    return Reached(name, f"({type_sql(step.event, types)} AND {condition_sql(conditions_of(step.where, param))})")


def value_of(by: str, param: str = "by") -> Value:
    """What a break-down is by. Raises `InvalidValue`."""
    first, *steps = by.split(".")
    if not all((first, *steps)):
        raise InvalidValue(f"{param}: {by!r} is no path", param=param)
    if first == "features" and len(steps) == 1:
        column = f"f_{steps[0]}".replace('"', '""')
        now = f'SELECT person, arg_max_null("{column}", day)::VARCHAR AS feature FROM feature_vectors GROUP BY person'
        return Value("f.feature", f"LEFT JOIN ({now}) f USING (person)")
    if first == EVENT and len(steps) == 1 and steps[0] in PLAIN:
        return Value(steps[0])
    return Value(text_sql(path_of(by)))


def property_sql(path: str, param: str) -> str:
    """A property of an event. Raises `InvalidValue` for a feature, which is the person's."""
    value = value_of(path, param)
    if value.join:
        raise InvalidValue(f"{param}: a property of the event is needed, not a feature", param=param)
    return value.text


def worth_sql(value: str, without: int = 0) -> Sql:
    """What an event is worth: its property ``value``, and 0 where that is no finite number, which no sum survives.

    ``without``: what it is worth where no property is named.
    """
    if not value:
        return Sql(f"{without}::DOUBLE")
    number = _number_sql(value)
    return Sql(f"coalesce(if(isfinite({number}), {number}, 0), 0)")


def unread_notes(context: Context, value: str, chosen: str) -> tuple[str, ...]:
    """What a sum of the property ``value`` over ``chosen`` events is without; a sum that lacks them without a word
    would be taken for all that was spent."""
    if not value:
        return ()
    has_one = f"coalesce(trim({property_sql(value, 'value')}), '') <> ''"
    unread = f"count(*) FILTER (NOT coalesce(isfinite({_number_sql(value)}), false))"
    sql = f"SELECT {unread}, count(*) FROM events WHERE {all_of(chosen, has_one)}"
    ((without, events),) = context.engine.analytics.query(context.workspace, sql, {}).rows
    if not without:
        return ()
    return (f"{without:,} of {counted(events, 'event')} came with a `{value}` that is no number, which counts as 0.",)


def _number_sql(value: str) -> str:
    return f"try_cast({property_sql(value, 'value')} AS DOUBLE)"


def all_of(*parts: str) -> str:
    """Whether all conditions hold."""
    return " AND ".join(part for part in parts if part != "true") or "true"
