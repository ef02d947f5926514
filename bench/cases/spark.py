"""Everybody folded again from the lake: by DuckDB in one process, and by Spark beside a job written by hand."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from threadline.app import catalogue_of, open_engine
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.exports.spark import single
from threadline.exports.spark.recipe import recipe

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("THREADLINE_TEST_SPARK_PYTHON") or str(ROOT / ".venv-spark/bin/python")
JOBS = ROOT / "bench/peers/spark_jobs.py"


def measure(stage: Stage) -> list[Row]:
    """Events per second of a refold of the whole lake, and the seconds of Spark's beside those of the peer."""
    folder = stage.folder / "lake-refold"
    events, seconds = in_child(_single, stage.file(), folder)
    rows = [Row("refold of the lake by DuckDB, one process", events / seconds, "events/s", note=f"{events:,} events")]
    if not Path(PYTHON).exists():
        return rows
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    ran = subprocess.run(
        [PYTHON, str(JOBS), str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    note = f"{events:,} events, {found['people']:,} people, {found['cores']} cores; best of {found['rounds']}, warm; "
    note += f"by hand with a group for each person {found['each']:.1f} s, with as many as ours {found['grouped']:.1f} s"
    must, aim = Goal("ratio", most=1.5), Goal("ratio", most=1.2)
    rows.append(Row("refold of the lake by Spark", found["ours"], "s", found["theirs"], must, note, aim))
    return rows


def _single(file: Path, folder: Path) -> tuple[int, float]:
    engine = open_engine(file)
    lake = Lake(open_storage(str(folder)))
    sync(engine, lake)
    engine.store.close()
    began = time.perf_counter()
    done = single.refold(lake, recipe(catalogue_of))
    return done.events, time.perf_counter() - began
