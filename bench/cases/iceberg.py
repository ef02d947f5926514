"""Iceberg: rows a second from the lake into its tables, beside PyIceberg that is given the same rows ready read."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.contest import in_child
from bench.row import Row
from bench.stage import Stage
from threadline.app import open_engine
from threadline.engine.erasure.erased_ids import erased_since
from threadline.exports.iceberg.catalog import open_catalog
from threadline.exports.iceberg.sync import Tables
from threadline.exports.lake.files import read_table
from threadline.exports.lake.lake import EVENTS, Lake
from threadline.exports.lake.schema import RAW, pa
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync


def measure(stage: Stage) -> list[Row]:
    """One sync of everything into new tables, events and identities."""
    rows, ours, alone = in_child(_measure, stage.file())
    note = f"{rows:,} rows of events and identities; theirs: PyIceberg appends the events' rows, already in memory"
    return [Row("lake into Iceberg tables, one core", rows / ours, "rows/s", theirs=rows / alone, note=note)]


def _measure(path: Path) -> tuple[int, float, float]:
    """Rows, our seconds of CPU, and PyIceberg's as if it had as many rows."""
    engine = open_engine(path, readonly=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        lake = Lake(open_storage(f"{folder}/lake"))
        sync(engine, lake)
        tables = Tables(open_catalog("", f"{folder}/iceberg"), lake)
        began = time.process_time()
        done = tables.sync(lambda mark: erased_since(engine.store, mark))
        ours = time.process_time() - began
        added = sum(each.added for each in done)
        parts = [read_table(lake, file).select(RAW.names) for file in lake.files("default", EVENTS)]
        whole = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
        types = whole["type"].cast(pa.string())  # Iceberg has no dictionaries
        whole = whole.set_column(RAW.get_field_index("type"), "type", types)
        catalog = open_catalog("", f"{folder}/alone")
        catalog.create_namespace("alone")
        table = catalog.create_table("alone.events", schema=whole.schema)
        began = time.process_time()
        for start in range(0, len(whole), 200_000):
            table.append(whole.slice(start, 200_000))
        alone = (time.process_time() - began) / len(whole) * added
        assert table.scan().count() == len(whole) == tables.open("default", EVENTS).table.scan().count()
    engine.close()
    return added, ours, alone
