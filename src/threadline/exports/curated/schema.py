"""The curated tables, declared once: the columns, keys and meaning that every engine's form of them follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

Kind = Literal["text", "integer", "number", "flag", "instant", "day", "json", "texts"]
"""``json``: a JSON value as text. ``texts``: a list of texts. Instants are microseconds UTC."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: Kind
    about: str
    """What it holds; ends with a full stop."""


class Table(NamedTuple):
    """A curated table."""

    name: str
    about: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The columns that name a row. Warehouses do not enforce it, so a load merges by it."""
    folded: bool = False
    """Whether its rows are folded person by person; the others are queries over the events."""
    sort: str = "day"
    """The column by which readers narrow it down."""


def _columns(*written: tuple[str, Kind, str]) -> tuple[Column, ...]:
    return tuple(Column(*column) for column in written)


_Written = tuple[str, Kind, str]
_PERSON: _Written = ("person", "text", "The person's id, after all merges.")
_DAY: _Written = ("day", "day", "The day, UTC.")
_TRUSTED = "Events that came over a wire do not count."

SESSIONS = Table(
    "sessions",
    "Runs of a person's events with less than 30 minutes between one and the next.",
    _columns(
        ("session", "text", "The id of its first event."),
        _PERSON,
        ("number", "integer", "Its number among the person's sessions, from 1."),
        ("day", "day", "The day on which it began, UTC."),
        ("started_at", "instant", "When its first event occurred."),
        ("ended_at", "instant", "When its last event occurred."),
        ("events", "integer", "Events in it."),
        ("first_type", "text", "The type of its first event."),
        ("last_type", "text", "The type of its last event."),
    ),
    ("session",),
)

DAILY_ACTIVITY = Table(
    "daily_activity",
    "A person's day with events of their own; what Threadline itself has recorded does not count.",
    _columns(
        _DAY,
        _PERSON,
        ("events", "integer", "Events on that day."),
        ("first_event", "text", "The id of the first one."),
        ("first_at", "instant", "When the first one occurred."),
        ("last_at", "instant", "When the last one occurred."),
        ("points_earned", "integer", "Points that were earned on that day."),
    ),
    ("day", "person"),
)

POINTS_FACTS = Table(
    "points_facts",
    f"The lines of the points ledger; their sum is a balance. {_TRUSTED}",
    _columns(
        ("event", "text", "The id of the line."),
        _PERSON,
        _DAY,
        ("occurred_at", "instant", "When it counts from."),
        ("kind", "text", "earned, spent, adjusted or expired."),
        ("points", "integer", "What the balance changed by; below 0 for what went out."),
        ("rule", "text", "The rule that granted them."),
        ("reason", "text", "Why they were spent or adjusted."),
        ("cause", "text", "The id of the event that they were given for."),
        ("source", "text", "The source of the line."),
    ),
    ("event",),
)

_TOTALS: tuple[_Written, ...] = (
    ("people", "integer", "People with events of their own."),
    ("new_people", "integer", "Those of them whose first event it was."),
    ("events", "integer", "Events of their own."),
    ("sessions", "integer", "Sessions that began."),
    ("points_earned", "integer", "Points earned."),
    ("points_spent", "integer", "Points spent."),
    ("mails_sent", "integer", "Mails that a provider accepted."),
    ("decisions", "integer", "Decisions of rules."),
)

DAILY_SUMMARY = Table("daily_summary", "What happened on a day, of everybody.", _columns(_DAY, *_TOTALS), ("day",))

WEEKLY_SUMMARY = Table(
    "weekly_summary",
    "What happened in a week, Monday to Sunday, of everybody.",
    _columns(("week", "day", "The week's Monday, UTC."), *_TOTALS),
    ("week",),
    sort="week",
)

SENDS = Table(
    "sends",
    f"Mails that were sent or skipped, and what came back of them. {_TRUSTED}",
    _columns(
        ("event", "text", "The id of the event."),
        _PERSON,
        _DAY,
        ("occurred_at", "instant", "When it was sent or skipped."),
        ("message", "text", "The id of the message."),
        ("status", "text", "sent or skipped."),
        ("reason", "text", "Why it was skipped."),
        ("template", "text", "Its template."),
        ("topic", "text", "Its topic."),
        ("journey", "text", "The journey that sent it."),
        ("broadcast", "text", "The broadcast that it belongs to."),
        ("step", "text", "The step of the journey."),
        ("arm", "text", "The arm of the experiment."),
        ("delivered_at", "instant", "When the recipient's server accepted it."),
        ("opened_at", "instant", "When somebody first opened it; machines do not count."),
        ("opens", "integer", "How often it was opened by somebody."),
        ("clicked_at", "instant", "When somebody first followed a link."),
        ("clicks", "integer", "How often somebody followed a link."),
        ("bounced_at", "instant", "When it bounced first."),
        ("bounce", "text", "permanent, transient or content."),
        ("complained_at", "instant", "When the recipient complained."),
        ("replied_at", "instant", "When the recipient answered first."),
    ),
    ("event",),
)

DECISIONS = Table(
    "decisions",
    f"What rules decided. {_TRUSTED}",
    _columns(
        ("decision", "text", "The id of the decision."),
        _PERSON,
        _DAY,
        ("occurred_at", "instant", "When it was made."),
        ("event", "text", "The id of the event that it is about."),
        ("rule", "text", "The rule."),
        ("version", "integer", "The rule's version."),
        ("rule_set", "text", "The set through which it ran."),
        ("mode", "text", "live or replay."),
        ("status", "text", "Approved, Rejected, Review, Matched, NoMatch or Error."),
        ("output", "json", "What it decided."),
        ("inputs", "json", "What it read."),
        ("hash", "text", "The hash of the decision."),
    ),
    ("decision",),
)

STREAK_SNAPSHOTS = Table(
    "streak_snapshots",
    "How a person's streak stood at the end of days; a row for each change.",
    _columns(
        _PERSON,
        ("streak", "text", "The streak's name."),
        ("day", "day", "The first day, UTC, at whose end it stood so."),
        ("until", "day", "The first day at whose end it no longer did; null: it does so to this day."),
        ("current", "integer", "Its length, in periods."),
        ("longest", "integer", "The longest that it ever was, in periods."),
        ("freezes", "integer", "Freezes that are left."),
        ("cadence", "text", "day, week or month."),
    ),
    ("person", "streak", "day"),
    folded=True,
)

CONTENT_TOTALS = Table(
    "content_totals",
    "What a person did with a topic, an application and a scope in a period.",
    _columns(
        _PERSON,
        ("topic", "text", "The topic."),
        ("application", "text", "The application; may be empty."),
        ("scope", "text", "The scope; may be empty."),
        ("value", "text", "The value of the scope; may be empty."),
        ("period", "day", "The period's first day, UTC. Periods are whole lengths since 1970, the same for everybody."),
        ("total", "integer", "Actions that count."),
        ("first_at", "instant", "When the first one occurred."),
        ("last_at", "instant", "When the last one occurred."),
    ),
    ("person", "topic", "application", "scope", "value", "period"),
    folded=True,
    sort="period",
)

CONTENT_EFFECTIVENESS = Table(
    "content_effectiveness",
    "What people did with a topic, an application and a scope in a period.",
    _columns(
        *CONTENT_TOTALS.columns[1:6],
        ("people", "integer", "People whose actions count."),
        ("total", "integer", "Actions that count."),
        ("first_at", "instant", "When the first one occurred."),
        ("last_at", "instant", "When the last one occurred."),
    ),
    ("topic", "application", "scope", "value", "period"),
    sort="period",
)

FIXED = (
    SESSIONS,
    DAILY_ACTIVITY,
    POINTS_FACTS,
    DAILY_SUMMARY,
    WEEKLY_SUMMARY,
    SENDS,
    DECISIONS,
    STREAK_SNAPSHOTS,
    CONTENT_TOTALS,
    CONTENT_EFFECTIVENESS,
)
"""The tables whose columns do not depend on what is declared."""

VECTORS = "feature_vectors"
_FEATURE_KINDS: Mapping[str, Kind] = {
    "count": "integer",
    "distinct": "integer",
    "days_since": "integer",
    "preferred_hour": "integer",
    "preferred_day": "integer",
    "any": "flag",
    "first": "text",
    "last": "text",
}


def feature_vectors(features: Iterable[tuple[str, str, str]]) -> Table:
    """The table of vectors for these features: (name, aggregate, description) of each."""
    columns = [
        Column(f"f_{name}", _FEATURE_KINDS.get(aggregate, "number"), about or "A feature.")
        for name, aggregate, about in features
    ]
    return Table(
        VECTORS,
        "Everybody's features at the end of each day on which they had an event.",
        (*_columns(_DAY, _PERSON), *columns),
        ("day", "person"),
        folded=True,
    )
