"""An export of everybody while whoever works on it is killed with SIGKILL: every line once, and none is missing."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import threadline
from tests.capabilities.test_exports import lines_of
from tests.surfaces.killed_worker import workers
from threadline.settings import load

KILLS = int(os.environ.get("THREADLINE_TEST_EXPORT_KILLS", "6"))
PEOPLE_PER_KILL = 60
FIRST_SECONDS_MAX = 15.0
"""How long a worker may take to write something before it is killed all the same."""


@pytest.mark.slow
def test_an_export_whose_workers_are_killed_has_every_line_once(tmp_path: Path, seed: int) -> None:
    random, store, exports = Random(seed), tmp_path / "threadline.db", tmp_path / "exports"
    people = KILLS * PEOPLE_PER_KILL
    settings = load({"store": str(store), "exports": str(exports)})
    with threadline.open(settings=settings) as shop:
        for start in range(0, people, 500):
            shop.record(
                [
                    {"type": "bought", "key": f"{n}.{each}", "identifiers": {"user_id": f"u{n}"}}
                    for n in range(start, min(start + 500, people))
                    for each in range(3)
                ]
            )
        started = shop.exports.start()
    folder = exports / "default" / started.id
    with workers("tests.surfaces.export_worker", store, exports) as working:
        for _ in range(KILLS):
            with working():
                before, until = _files(folder), time.monotonic() + FIRST_SECONDS_MAX
                while _files(folder) <= before + random.randrange(4) and time.monotonic() < until:
                    time.sleep(0.001)
                time.sleep(random.random() * 0.02)
        assert not (folder / "manifest.json").exists(), "the workers were killed too late to prove anything"
        with working(), threadline.open(store, readonly=True) as shop:
            while shop.jobs.show(started.id).state != "done":
                time.sleep(0.1)
    _, lines = lines_of(folder)
    assert Counter(name for line in lines["people"] for name in line["identifiers"]) == dict.fromkeys(
        (f"user_id:u{n}" for n in range(people)), 1
    )
    assert Counter(line["key"] for line in lines["events"]) == dict.fromkeys(
        (f"{n}.{each}" for n in range(people) for each in range(3)), 1
    )


def _files(folder: Path) -> int:
    """How many files there are, whether they will count or not."""
    return sum(1 for _ in folder.rglob("*.gz"))
