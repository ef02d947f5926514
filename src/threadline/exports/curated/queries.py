"""The tables that follow from single events, as queries in DuckDB's SQL over the view `events`, and views on top."""

# Nothing that users send gets into these texts: names are quoted, values are our own.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Mapping

from threadline.capabilities.decide.rules.events import DECISION_MADE
from threadline.capabilities.profile.points.events import (
    AMOUNT_MAX,
    LEDGER,
    POINTS_ADJUSTED,
    POINTS_EARNED,
    POINTS_EXPIRED,
    POINTS_SPENT,
)
from threadline.capabilities.reach.feedback.events import (
    MAIL_BOUNCED,
    MAIL_CLICKED,
    MAIL_COMPLAINED,
    MAIL_DELIVERED,
    MAIL_OPENED,
    MAIL_REPLIED,
    MAIL_SENT,
)
from threadline.capabilities.reach.mail.events import MAIL_SKIPPED
from threadline.kernel.analytics import IN_ORDER, listed
from threadline.kernel.event_type import ACTIVITY

SESSION_GAP = "INTERVAL 30 MINUTE"


def _text(name: str) -> str:
    return f"json_extract_string(properties, '$.{name}') AS {name}"


# 5.0 is not a whole number of points to the ledger either.
_POINTS = """CASE WHEN json_type(properties, '$.points') IN ('BIGINT', 'UBIGINT')
      THEN TRY_CAST(json_extract_string(properties, '$.points') AS BIGINT) END"""
_SIGNED = {POINTS_EARNED: "points", POINTS_ADJUSTED: "points", POINTS_SPENT: "-points", POINTS_EXPIRED: "-points"}
_KINDS = {type: type.removeprefix("points_") for type in LEDGER}

# Windows alone, and few of them: to group a million sessions of one event takes three times as long. What is left of a
# session are its first and its last event, so that the row after the first one is the last.
_SESSIONS = f"""
WITH marked AS (
  SELECT id, person, type, occurred_at, row_number() OVER run AS n,
    coalesce(occurred_at - lag(occurred_at) OVER run >= {SESSION_GAP}, true) AS begins,
    coalesce(lead(occurred_at) OVER run - occurred_at >= {SESSION_GAP}, true) AS ends
  FROM events WHERE {ACTIVITY} WINDOW run AS (PARTITION BY person ORDER BY {IN_ORDER})
),
paired AS (
  SELECT *, sum(begins::INTEGER) OVER run AS number, lead(n) OVER run AS last_n, lead(occurred_at) OVER run AS last_at,
    lead(type) OVER run AS other_type
  FROM marked WHERE begins OR ends WINDOW run AS (PARTITION BY person ORDER BY n)
)
SELECT id AS session, person, number::BIGINT AS number, utc_day(occurred_at) AS day, occurred_at AS started_at,
  CASE WHEN ends THEN occurred_at ELSE last_at END AS ended_at, CASE WHEN ends THEN 1 ELSE last_n - n + 1 END AS events,
  type AS first_type, CASE WHEN ends THEN type ELSE other_type END AS last_type
FROM paired WHERE begins"""

# One pass: a join with the ledger would be made for readers, too, who only count people.
_DAILY_ACTIVITY = f"""
SELECT day, person, count(*) FILTER (WHERE own) AS events,
  arg_min(id, ({IN_ORDER})) FILTER (WHERE own) AS first_event,
  min(occurred_at) FILTER (WHERE own) AS first_at, max(occurred_at) FILTER (WHERE own) AS last_at,
  coalesce(sum({_POINTS}) FILTER (
    WHERE type = '{POINTS_EARNED}' AND {_POINTS} BETWEEN 1 AND {AMOUNT_MAX}), 0)::BIGINT AS points_earned
FROM (SELECT *, {ACTIVITY} AS own FROM events WHERE {ACTIVITY} OR type = '{POINTS_EARNED}')
GROUP BY day, person HAVING count(*) FILTER (WHERE own) > 0"""

_POINTS_FACTS = f"""
SELECT event, person, day, occurred_at, kind,
  CASE type {" ".join(f"WHEN '{type}' THEN {points}" for type, points in sorted(_SIGNED.items()))} END AS points,
  rule, reason, cause, source
FROM (
  SELECT id AS event, *, {_POINTS} AS points, {_text("rule")}, {_text("reason")},
    CASE type {" ".join(f"WHEN '{type}' THEN '{kind}'" for type, kind in sorted(_KINDS.items()))} END AS kind
  FROM events WHERE type IN {listed(LEDGER)}
)
WHERE points BETWEEN CASE WHEN type = '{POINTS_ADJUSTED}' THEN {-AMOUNT_MAX} ELSE 1 END AND {AMOUNT_MAX}
  AND points <> 0"""

_HUMAN = "coalesce(json_extract_string(properties, '$.machine'), '') <> 'true'"


def _times(type: str, who: str = "true") -> str:
    return f"FILTER (WHERE type = '{type}' AND {who})"


_SENDS = f"""
WITH mails AS (SELECT *, {_text("message")} FROM events WHERE type IN ('{MAIL_SENT}', '{MAIL_SKIPPED}')),
answers AS (
  SELECT {_text("message")},
    min(occurred_at) {_times(MAIL_DELIVERED)} AS delivered_at,
    min(occurred_at) {_times(MAIL_OPENED, _HUMAN)} AS opened_at, count(*) {_times(MAIL_OPENED, _HUMAN)} AS opens,
    min(occurred_at) {_times(MAIL_CLICKED, _HUMAN)} AS clicked_at, count(*) {_times(MAIL_CLICKED, _HUMAN)} AS clicks,
    min(occurred_at) {_times(MAIL_BOUNCED)} AS bounced_at,
    arg_min(json_extract_string(properties, '$.bounce'), ({IN_ORDER})) {_times(MAIL_BOUNCED)} AS bounce,
    min(occurred_at) {_times(MAIL_COMPLAINED)} AS complained_at,
    min(occurred_at) {_times(MAIL_REPLIED)} AS replied_at
  FROM events WHERE type IN ('{MAIL_DELIVERED}', '{MAIL_OPENED}', '{MAIL_CLICKED}', '{MAIL_BOUNCED}',
    '{MAIL_COMPLAINED}', '{MAIL_REPLIED}')
  GROUP BY ALL
)
SELECT id AS event, person, day, occurred_at, message,
  CASE type WHEN '{MAIL_SENT}' THEN 'sent' ELSE 'skipped' END AS status, {_text("reason")}, {_text("template")},
  {_text("topic")}, {_text("journey")}, {_text("broadcast")}, {_text("step")}, {_text("arm")},
  delivered_at, opened_at, coalesce(opens, 0) AS opens, clicked_at, coalesce(clicks, 0) AS clicks, bounced_at, bounce,
  complained_at, replied_at
FROM mails LEFT JOIN answers USING (message)"""

_DECISIONS = f"""
SELECT id AS decision, person, day, occurred_at,
  json_extract_string(properties, '$.event_id') AS event, {_text("rule")},
  TRY_CAST(json_extract_string(properties, '$.version') AS BIGINT) AS version, {_text("rule_set")}, {_text("mode")},
  {_text("status")}, json_extract(properties, '$.output')::VARCHAR AS output,
  json_extract(properties, '$.inputs')::VARCHAR AS inputs, {_text("hash")}
FROM events WHERE type = '{DECISION_MADE}'"""


def _summary(name: str, begins: str) -> str:
    """What happened in periods; ``begins`` makes a period's first day of `day`."""
    first = begins.replace("day", "first", 1)
    sums = ", ".join(
        f"coalesce(sum({measure}), 0)::BIGINT AS {measure}"
        for measure in (
            "people",
            "new_people",
            "events",
            "sessions",
            "points_earned",
            "points_spent",
            "mails_sent",
            "decisions",
        )
    )
    return f"""
SELECT {name}, {sums} FROM (
  SELECT {begins} AS {name}, count(DISTINCT person) AS people, sum(events) AS events FROM daily_activity GROUP BY 1
  UNION ALL BY NAME SELECT {first} AS {name}, count(*) AS new_people
    FROM (SELECT min(day) AS first FROM daily_activity GROUP BY person) GROUP BY 1
  UNION ALL BY NAME SELECT {begins} AS {name}, count(*) AS sessions FROM sessions GROUP BY 1
  UNION ALL BY NAME SELECT {begins} AS {name}, sum(points) FILTER (WHERE kind = 'earned') AS points_earned,
    -sum(points) FILTER (WHERE kind = 'spent') AS points_spent FROM points_facts GROUP BY 1
  UNION ALL BY NAME SELECT {begins} AS {name}, count(*) AS mails_sent FROM sends WHERE status = 'sent' GROUP BY 1
  UNION ALL BY NAME SELECT {begins} AS {name}, count(*) AS decisions FROM decisions GROUP BY 1
) GROUP BY {name}"""


_CONTENT = """
SELECT topic, application, scope, value, period, count(*) AS people, sum(total)::BIGINT AS total,
  min(first_at) AS first_at, max(last_at) AS last_at
FROM content_totals WHERE total > 0 GROUP BY ALL"""

TABLES: Mapping[str, str] = {
    "sessions": _SESSIONS,
    "daily_activity": _DAILY_ACTIVITY,
    "points_facts": _POINTS_FACTS,
    "sends": _SENDS,
    "decisions": _DECISIONS,
    "daily_summary": _summary("day", "day"),
    "weekly_summary": _summary("week", "date_trunc('week', day)::DATE"),
    "content_effectiveness": _CONTENT,
}
"""By table, in an order in which they can be created."""

_DAYS = "(SELECT unnest(generate_series(min(day), current_date, INTERVAL 1 DAY))::DATE AS day FROM streak_snapshots)"
_STANDING = "s.day <= d.day AND (s.until IS NULL OR d.day < s.until) AND s.current > 0"

VIEWS: Mapping[str, str] = {
    "streak_distribution": f"""
SELECT d.day, s.streak, s.current AS length, count(*) AS people
FROM {_DAYS} d JOIN streak_snapshots s ON {_STANDING} GROUP BY ALL""",
    "weekly_streaks": f"""
SELECT date_trunc('week', d.day)::DATE AS week, s.streak, count(*) AS people, max(s.current) AS longest_current,
  avg(s.current) AS mean_current
FROM {_DAYS} d JOIN streak_snapshots s ON {_STANDING} WHERE isodow(d.day) = 7 GROUP BY ALL""",
    "points_by_event_type": """
SELECT coalesce(e.type, '') AS type, p.kind, count(*) AS lines, sum(p.points)::BIGINT AS points,
  count(DISTINCT p.person) AS people
FROM points_facts p LEFT JOIN events e ON e.id = p.cause GROUP BY ALL""",
}
"""Views on the tables; they are not written to the curated zone."""
