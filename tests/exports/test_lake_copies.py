"""Whatever is made of events in a lake has nothing of a person once their erasure has reached it: no value, no name."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.exports.curated_stage import engine, happenings, lake_in
from tests.exports.spark import stage
from tests.laws import staging
from threadline.exports.curated.writing import curate
from threadline.exports.lake.cleaning import clean
from threadline.exports.lake.schema import pa
from threadline.exports.lake.sync import sync
from threadline.exports.spark import single
from threadline.exports.spark.states import STATES
from threadline.stores.memory import MemoryStore

pytest.importorskip("pyarrow")
MARK = "zq7x"


def traces(folder: Path, marks: set[str]) -> set[tuple[str, str]]:
    """Table and mark of whatever names one of these: in a value, in a file as it lies there, or in its name."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_file():
            text = f"{path} {path.read_bytes().decode('latin-1')}"
            if path.suffix == ".parquet":
                text += str(pa.parquet.read_table(path, partitioning=None).to_pylist())
            found |= {(path.relative_to(folder).parts[0], mark) for mark in marks if mark in text}
    return found


def test_curated_tables_and_states_lose_who_is_erased_with_the_events_they_are_made_of(tmp_path: Path) -> None:
    on, lake = engine(MemoryStore()), lake_in(tmp_path)
    on.recorder.record(happenings(Random(7), 40))
    names = {"user_id": f"{MARK} id", "email": f"{MARK}@example.com"}
    on.recorder.record([staging.event(f"{MARK}_seen", names, f"{MARK} {number}") for number in range(3)])
    sync(on, lake)
    curate(on, lake, "default")
    single.refold(lake, stage.RECIPE)
    person = on.reader.person("default", f"user_id:{MARK} id")
    before = traces(tmp_path, {MARK, *person.heads})
    assert {"raw", "curated"} <= {table for table, _ in before}
    assert any(file.table == STATES for file in lake.manifest().files)
    on.erasures.run("default", on.erasures.begin("default", f"user_id:{MARK} id").id)
    assert sync(on, lake).erased == 3
    assert {file.table for file in lake.manifest().files} == {"events", "identities"}
    clean(lake, 10.0**10)
    assert traces(tmp_path, {MARK, *person.heads}) == set()
    curate(on, lake, "default")
    single.refold(lake, stage.RECIPE)
    assert traces(tmp_path, {MARK, *person.heads}) == set()
