"""Analytics: a funnel of five steps beside DuckDB by hand on Parquet, and every other analysis of everybody."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from threadline.app import open_engine
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.exports import duck
from threadline.exports.analytics.first_use import DuckAnalytics
from threadline.exports.curated.reading import opened
from threadline.exports.lake.folder import FolderStorage
from threadline.exports.lake.lake import Lake

STEPS = ["page", "product_viewed", "conversation_started", "discount_requested", "purchase_completed"]
ASKED: dict[str, dict[str, Any]] = {
    "trend": {"event": "purchase_completed", "per": "week", "by": "currency"},
    "retention": {"per": "week"},
    "cohorts": {"value": "total", "per": "week"},
    "sessions": {"per": "week"},
    "paths": {"start_at": "product_viewed"},
    "attribution": {"value": "total", "channel": "context.locale", "touches": "campaign_engaged"},
    "rfm": {"value": "total"},
    "experiment": {"assignment": "campaign_delivered", "arm": "context.locale", "window": "7d"},
}
"""Without lifetime: no model of purchases fits people who are drawn."""
ROUNDS = 5
# By hand: one file of four columns sorted by person and time, the newest entry that a chain has carried forward. It is
# what `analytics_funnel` means, with the order of the log for events of one instant.
_STEP = """s{n} AS MATERIALIZED (
  SELECT e.person, e.k, e.moment, b.entered FROM (SELECT person, k, moment FROM e WHERE type = '{type}') e
  ASOF JOIN s{before} b ON b.person = e.person AND b.k < e.k WHERE e.moment <= b.entered + INTERVAL 7 DAY
)"""
_KEY = "epoch_us(occurred_at)::HUGEINT * 1099511627776 + position"


def measure(stage: Stage) -> list[Row]:
    """The best of a few rounds, turn by turn, with the tables open."""
    taken: dict[str, float] = in_child(_measure, stage.file())
    hand = "theirs: the same chains by hand over one file of four columns, sorted by person and time"
    return [
        Row("columns of the whole log, made for the first question", taken["columns"], "s", note="once for a store"),
        Row("a process's first question, columns made", taken["first"], "s"),
        Row("funnel of five steps", taken["funnel"], "s", goal=Goal("ours", most=1.0)),
        Row(
            "funnel of five steps, against DuckDB by hand",
            taken["funnel"],
            "s",
            theirs=taken["hand"],
            goal=Goal("ratio", most=2.0),
            note=hand,
        ),
        *(
            Row(name, taken[name], "s", note=", ".join(f"{key} {value}" for key, value in ASKED[name].items()))
            for name in ASKED
        ),
    ]


def _measure(path: Path) -> dict[str, float]:
    best: dict[str, float] = {}
    engine = open_engine(path, readonly=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        columns = Path(folder, "columns")
        for name in ("columns", "first"):
            engine.analytics = DuckAnalytics(engine, "", columns)
            _time(best, name, partial(engine.analytics.query, "default", "SELECT count(*) FROM events", {}))
        hand = f"{folder}/hand.parquet"
        _write_by_hand(engine, columns, hand)
        connection = duck.duckdb().connect()
        connection.execute("SET TimeZone = 'UTC'")
        for _ in range(ROUNDS):
            _time(best, "hand", partial(_by_hand, connection, hand))
            _time(best, "funnel", partial(_ask, engine, "funnel", steps=STEPS, window="7d"))
        ours = _ask(engine, "funnel", steps=STEPS, window="7d")
        assert [row.people for row in ours.rows] == _by_hand(connection, hand)
        connection.close()
        for name, params in ASKED.items():
            for _ in range(2):
                _time(best, name, partial(_ask, engine, name, **params))
    engine.close()
    return best


def _time(best: dict[str, float], name: str, work: Callable[[], object]) -> None:
    began = time.perf_counter()
    work()
    best[name] = min(best.get(name, 1e9), time.perf_counter() - began)


def _ask(engine: Engine, name: str, **params: Any) -> Any:
    operation = engine.catalogue.operation(f"analytics_{name}")
    return operation.run(Context(engine, "default", engine.now()), operation.params(**params))


def _write_by_hand(engine: Engine, columns: Path, file: str) -> None:
    with opened(engine, Lake(FolderStorage(columns)), "default") as reading:
        query = "SELECT person, type, occurred_at, position FROM events ORDER BY person, occurred_at, position"
        reading.connection.execute(f"COPY ({query}) TO {duck.text(file)} (FORMAT parquet, COMPRESSION zstd)")


def _by_hand(connection: Any, file: str) -> list[int]:
    events = f"SELECT person, type, occurred_at AS moment, {_KEY} AS k FROM read_parquet({duck.text(file)})"
    steps = ["s1 AS MATERIALIZED (SELECT person, k, moment, moment AS entered FROM e WHERE type = 'page')"]
    steps += [_STEP.format(n=n, before=n - 1, type=type) for n, type in enumerate(STEPS[1:], 2)]
    counts = " UNION ALL ".join(f"SELECT {n}, count(DISTINCT person) FROM s{n}" for n in range(1, len(STEPS) + 1))
    query = f"WITH e AS ({events}), {', '.join(steps)} {counts} ORDER BY 1"
    return [people for _, people in connection.execute(query).fetchall()]
