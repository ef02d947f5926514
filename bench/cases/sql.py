"""SQL over the lake: daily actives of the whole history, beside DuckDB on Parquet written for this question."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.exports import duck
from threadline.exports.curated.reading import opened
from threadline.exports.lake.compaction import compact
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync

OURS = "SELECT day, count(DISTINCT person) AS people FROM events GROUP BY day ORDER BY day"
BY_HAND = (
    "SELECT occurred_at::DATE AS day, count(DISTINCT person) AS people FROM read_parquet({}) GROUP BY 1 ORDER BY 1"
)
ROUNDS = 5


def measure(stage: Stage) -> list[Row]:
    """The best of a few rounds, turn by turn; both begin without a connection."""
    taken: dict[str, float] = in_child(_measure, stage.file())
    goals: dict[str, Any] = {"goal": Goal("ours", most=0.5), "aim": Goal("ours", most=0.2)}
    near: dict[str, Any] = {"goal": Goal("ratio", most=2.0), "aim": Goal("ratio", most=1.3)}
    note = f"theirs: {BY_HAND.partition(' FROM')[0]}, one file of four columns sorted by person and time"
    return [
        Row("daily actives, threadline sql", taken["ours"], "s", note="as synced, nothing newer", **goals),
        Row("daily actives, against DuckDB by hand", taken["ours"], "s", theirs=taken["hand"], note=note, **near),
        Row("daily actives after compaction", taken["compacted"], "s", theirs=taken["hand"]),
        Row("sessions of everybody", taken["sessions"], "s"),
    ]


def _measure(path: Path) -> dict[str, float]:
    engine = open_engine(path, readonly=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        lake = Lake(open_storage(f"{folder}/lake"))
        sync(engine, lake)
        hand = f"{folder}/hand.parquet"
        with opened(engine, lake, "default") as reading:
            query = "SELECT id, person, type, occurred_at FROM events ORDER BY person, occurred_at"
            reading.connection.execute(f"COPY ({query}) TO {duck.text(hand)} (FORMAT parquet, COMPRESSION zstd)")
        best: dict[str, float] = {}
        for _ in range(ROUNDS):
            _time(best, "hand", lambda: _by_hand(hand))
            _time(best, "ours", lambda: _ask(engine, lake, OURS))
        assert _by_hand(hand) == _ask(engine, lake, OURS)
        _time(best, "sessions", lambda: _ask(engine, lake, "SELECT count(*) AS sessions FROM sessions"))
        compact(engine, lake)
        for _ in range(ROUNDS):
            _time(best, "compacted", lambda: _ask(engine, lake, OURS))
    engine.close()
    return best


def _time(best: dict[str, float], name: str, work: Callable[[], object]) -> None:
    began = time.perf_counter()
    work()
    best[name] = min(best.get(name, 1e9), time.perf_counter() - began)


def _ask(engine: Engine, lake: Lake, query: str) -> list[Any]:
    with opened(engine, lake, "default") as reading:
        found: list[Any] = reading.run(query).read_all().to_pylist()
        return found


def _by_hand(path: str) -> list[Any]:
    connection = duck.duckdb().connect()
    connection.execute("SET TimeZone = 'UTC'")
    found: list[Any] = connection.execute(BY_HAND.format(duck.text(path))).to_arrow_table().to_pylist()
    connection.close()
    return found
