"""``kill -9`` of the process that writes the curated tables, while another records and erases."""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random

import pytest

from tests.exports.curated_stage import engine, happenings, lake_in, tables
from threadline.exports.curated.writing import curate
from threadline.exports.lake.cleaning import clean
from threadline.exports.lake.sync import sync
from threadline.kernel.errors import Conflict
from threadline.stores.sqlite.store import SqliteStore

pytest.importorskip("duckdb")
KILLS = int(os.environ.get("THREADLINE_TEST_CURATED_KILLS", "2"))
LIVES_SECONDS_MAX = 1.5


def work(store: Path, folder: Path, seed: int, ready: Event, written: Event) -> None:
    """Sync and write the tables until killed."""
    random = Random(seed)
    on, lake = engine(SqliteStore(store, readonly=True)), lake_in(folder)
    ready.set()
    while True:
        try:
            if random.random() < 0.7:
                sync(on, lake, limit=random.randrange(1, 30))
            curate(on, lake, "default")
            written.set()
        except Conflict:  # an erasure has reached the lake, or the one before was killed in its commit
            continue


def test_killed_at_any_instant_every_table_is_that_of_the_log(tmp_path: Path) -> None:
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["tests.exports.test_curated_killed"])
    random, store, folder = Random(KILLS), tmp_path / "store.db", tmp_path / "lake"
    on, lake = engine(SqliteStore(store)), lake_in(folder)
    for kill in range(KILLS):
        events = happenings(random, 10)
        assert {each.status for each in on.recorder.record(events)} == {"accepted"}
        if kill % 5 == 1:
            one = random.choice(events)
            on.erasures.run(one.workspace, on.erasures.begin(one.workspace, str(one.identifiers[0])).id)
        ready, written = forking.Event(), forking.Event()
        process = forking.Process(target=work, args=(store, folder, kill, ready, written))
        process.start()
        # Some of them live until the tables are there, however slow the machine is.
        assert (written if kill % 4 == 1 else ready).wait(60)
        time.sleep(random.random() * LIVES_SECONDS_MAX)
        process.kill()
        process.join()
        files = [each for each in lake.manifest().files if each.name.startswith("curated/")]
        assert all(len(lake.storage.read(each.name)) == each.bytes for each in files)
        assert files or kill % 4 != 1
        if kill % 10 == 0:
            assert tables(on, lake) == tables(on, None)
    sync(on, lake)
    curate(on, lake, "default")
    clean(lake, 10.0**10)
    assert tables(on, lake) == tables(on, None)
    named = {each.name for each in lake.manifest().files} | {"_manifest.json"}
    assert {each.name for each in lake.storage.list()} == named
    on.store.close()
