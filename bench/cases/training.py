"""Training sets: vectors of people at instants a second, from the lake, beside the same rows asked of the store."""

from __future__ import annotations

import random
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from bench.contest import in_child
from bench.row import Row
from bench.stage import Stage
from threadline.app import catalogue, open_engine
from threadline.engine.context import Context
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.exports.training.historical import Asked, Training, status_of
from threadline.kernel.time import DAY, format_time

LABELS = 20_000
STORE_LABELS = 1_000
"""Of them as many as are asked of the store too; both have to say the same."""
LABELS_AT_ONCE = 100


class Done(NamedTuple):
    """What was made, and in which time."""

    features: int
    seconds: float
    store_seconds: float


def measure(stage: Stage) -> list[Row]:
    """Rows a second of all features, of people drawn from everybody, each at an instant of the last month."""
    done = in_child(_measure, stage.file(), stage.world.seed)
    note = f"{LABELS:,} rows of {done.features} features; theirs: the store, asked for {STORE_LABELS:,} of them"
    ours, theirs = LABELS / done.seconds, STORE_LABELS / done.store_seconds
    return [Row("training set from the lake, one core", ours, "rows/s", theirs=theirs, note=note)]


def _measure(path: Path, seed: int) -> Done:
    chance = random.Random(seed)
    engine = open_engine(path, readonly=True)
    now = engine.now()
    people = [person.id for person in islice(engine.reader.all_people("default"), LABELS)]
    labels = [(chance.choice(people), now - chance.randrange(30 * DAY)) for _ in range(LABELS)]
    with TemporaryDirectory(dir=path.parent) as folder:
        lake = Lake(open_storage(folder))
        sync(engine, lake)
        training = Training(catalogue(), lake, "default")
        names = training.columns(())
        began = time.process_time()
        # The history was recorded while the file was filled, so nothing of it was known a month ago.
        asked_all = Asked([each for each, _ in labels], [at for _, at in labels], names, known="now")
        with training.vectors(asked_all) as (reader, file):
            seconds = time.process_time() - began
            found = reader.execute(f"FROM read_parquet('{file}') WHERE place < {STORE_LABELS}").to_arrow_table()
    rows: dict[int, dict[str, Any]] = {row["place"]: row for row in found.to_pylist()}
    assert sum(row[status_of(name)] == "PRESENT" for row in rows.values() for name in names) > len(rows)
    operation: Any = engine.catalogue.operation("features_training_set")
    store_seconds = 0.0
    for start in range(0, STORE_LABELS, LABELS_AT_ONCE):
        asked = [{"person": person, "at": format_time(at)} for person, at in labels[start : start + LABELS_AT_ONCE]]
        params = msgspec.convert({"labels": asked, "known": "now"}, operation.params)
        began = time.process_time()
        answer = operation.run(Context(engine, "default", now), params)
        store_seconds += time.process_time() - began
        for place, row in enumerate(answer.rows, start):
            assert [rows[place][status_of(name)] for name in names] == [row.statuses[name] for name in names]
    engine.close()
    return Done(len(names), seconds, store_seconds)
