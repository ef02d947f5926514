"""``kill -9`` of the process that syncs and compacts a lake, while another records and erases."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from random import Random

import pytest

from tests.exports.lake_stage import assert_is_log, happenings, in_lake, in_log, lake_in
from threadline.app import open_engine
from threadline.exports.lake.cleaning import clean
from threadline.exports.lake.compaction import compact
from threadline.exports.lake.sync import sync
from threadline.exports.lake.verification import verify
from threadline.kernel.errors import Conflict
from threadline.kernel.store import feed_pages, is_erased

pytest.importorskip("pyarrow")
KILLS = int(os.environ.get("THREADLINE_TEST_LAKE_KILLS", "4"))
LIVES_SECONDS_MAX = 0.3


def work(store: Path, folder: Path, seed: int, ready: object) -> None:
    """Sync and compact until killed."""
    random = Random(seed)
    engine, lake = open_engine(store, readonly=True), lake_in(folder)
    ready.set()  # type: ignore[attr-defined]
    while True:
        try:
            sync(engine, lake, limit=random.randrange(1, 60), range_events=random.randrange(1, 30))
            if random.random() < 0.3:
                compact(engine, lake)
            clean(lake, time.time() + random.choice([0, 7_200]))
        except Conflict:  # the one before was killed in the middle of its commit
            continue


def test_killed_at_any_instant_files_and_manifest_are_the_log(tmp_path: Path) -> None:
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["tests.exports.test_lake_killed"])
    random, store, folder = Random(KILLS), tmp_path / "store.db", tmp_path / "lake"
    engine, lake = open_engine(store), lake_in(folder)
    positions: list[int] = []
    lives = LIVES_SECONDS_MAX
    for kill in range(KILLS + 12):
        if kill >= KILLS and positions[-1] > 0:
            break
        events = happenings(random, 25)
        assert {each.status for each in engine.recorder.record(events)} <= {"accepted", "duplicate"}
        if kill % 3 == 1:
            one = random.choice(events)
            who = str(one.identifiers[0])
            engine.erasures.run(one.workspace, engine.erasures.begin(one.workspace, who).id)
        ready = forking.Event()
        process = forking.Process(target=work, args=(store, folder, kill, ready))
        process.start()
        assert ready.wait(60)
        time.sleep(random.random() * lives)
        process.kill()
        process.join()
        positions.append(lake.manifest().position)
        if positions[-1] == 0:  # a slow machine has no time for a commit in so short a life
            lives *= 2
        if kill % 10 == 0:
            erased = {each.entry.id for each in feed_pages(engine.store) if is_erased(each.entry)}
            found = [(at, one) for at, one in in_lake(lake) if one.id not in erased]
            assert found == in_log(engine.store, positions[-1])
    assert positions == sorted(positions)
    assert positions[-1] > 0, lives
    sync(engine, lake)
    clean(lake, 10.0**10)
    assert_is_log(lake, engine.store)
    assert verify(engine, lake).problems == []
    named = {file.name for file in lake.manifest().files} | {"_manifest.json"}
    assert {each.name for each in lake.storage.list()} == named
    engine.close()
