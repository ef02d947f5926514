"""Spark folds what the store has folded, bit for bit, whoever of its workers is killed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests import activity
from tests.cdnow import messages, tell
from tests.exports.spark import session, stage
from tests.laws import staging
from threadline.app import catalogue_of, open_engine
from threadline.engine.engine import Engine
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.sync import sync
from threadline.exports.spark import single
from threadline.exports.spark.checking import check_states
from threadline.exports.spark.recipe import recipe
from threadline.exports.spark.states import STATES, published_rows
from threadline.stores.memory import MemoryStore
from threadline.surfaces.python.embedded import Threadline
from threadline.testing.world import World

PART = int(os.environ.get("THREADLINE_TEST_SPARK_PART", "12"))
"""One in so many of the orders and commits; 1: all of them."""
PEOPLE = int(os.environ.get("THREADLINE_TEST_SPARK_PEOPLE", "80"))
"""People of the generated world; 110000 leaves more than 100,000 after their devices are joined."""

DEFINITIONS = """
features:
  purchase_days: {description: Days with a purchase., aggregate: distinct, events: purchase_completed, of: day}
"""


def world(lake: Lake) -> Engine:
    """People who sign in on several devices, of two workspaces, synced in three parts."""
    halves = [
        World(5, people=PEOPLE // 2, zipf=0.0, history=3 * PEOPLE // 2, late=0.1, workspace=workspace)
        for workspace in ("default", "it's")
    ]
    on = staging.engine(clock=lambda: halves[0].ends_at(halves[0].history))
    for half in halves:
        for batch in half.batches(half.history, 500):
            on.recorder.record(batch)
    sync(on, lake, limit=PEOPLE)
    sync(on, lake)
    return on


def cdnow(lake: Lake, definitions: Path) -> Engine:
    """The orders, under definitions of one's own."""
    definitions.mkdir(parents=True)
    (definitions / "features.yaml").write_text(DEFINITIONS)
    on = open_engine("memory:", definitions=definitions)
    told = [each for each in messages() if int(each["userId"].rpartition("-")[2]) % PART == 0]
    tell(Threadline(on), told)
    sync(on, lake)
    return on


def commits(lake: Lake) -> Engine:
    """The activity of four projects, a quarter of it late."""
    clock = activity.Clock()
    on = Engine(MemoryStore(), catalogue_of(()), clock)
    activity.replay(on, clock, [each for each in activity.commits() if hash_of(each.email) % PART == 0])
    sync(on, lake)
    return on


def hash_of(text: str) -> int:
    return int.from_bytes(text.encode()[:4], "big")


@pytest.mark.slow
def test_spark_folds_what_the_store_has_and_killed_workers_change_nothing(tmp_path: Path) -> None:
    session.need()
    lakes = {name: stage.lake_in(tmp_path / name / "lake") for name in ("activity", "cdnow", "world")}
    engines = {
        "activity": commits(lakes["activity"]),
        "cdnow": cdnow(lakes["cdnow"], tmp_path / "cdnow" / "definitions"),
        "world": world(lakes["world"]),
    }
    *done, failed = session.run(Path(__file__).with_name("driver.py"), str(tmp_path)).strip().splitlines()
    assert len(done) == len(lakes)
    for name, on in engines.items():
        checked = check_states(on.store, on.catalogue, lakes[name])
        assert (checked.newer, checked.differing) == (0, ()), name
        assert checked.people > 10
    # The job that failed has left the states of the one before, and nothing else.
    assert "Python worker exited unexpectedly" in json.loads(failed)["failed"]
    manifest = lakes["world"].manifest()
    assert manifest.obsolete == []
    kept = {each.name for each in manifest.files}
    assert {name for name in stage.names(lakes["world"]) if name.endswith(".parquet")} == kept
    # DuckDB has the same rows, down to the last character.
    rows = {name: sorted(published_rows(lakes["world"], name)) for name in ("default", "it's")}
    single.refold(lakes["world"], recipe(catalogue_of))
    assert {name: sorted(published_rows(lakes["world"], name)) for name in rows} == rows
    assert {each.table for each in manifest.files} >= {STATES}
