"""Sessions in SQL: a person's events until the first pause as long as a gap, as in the curated table."""

from __future__ import annotations

from threadline.kernel.analytics import IN_ORDER

# A session is numbered by how many of its person's events began one.
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
)"""  # noqa: S608 — our own text
"""The tables up to ``numbered``, from ``$value`` (with its ``$join``), ``$anchor``, ``$chosen`` and ``$gap``."""
