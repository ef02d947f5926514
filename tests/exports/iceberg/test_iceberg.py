"""Iceberg tables have the rows of the lake, each once, whoever is killed; what is erased is gone from every file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from duckdb_extensions import import_extension

import threadline
from threadline.engine.erasure.erased_ids import erased_since
from threadline.exports.iceberg.catalog import namespace_of, open_catalog
from threadline.exports.iceberg.commands import explained
from threadline.exports.iceberg.sync import Tables
from threadline.exports.iceberg.table import LOG_POSITION, LogTable, Reached, open_table
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.kernel.errors import Conflict, Forbidden, InvalidSetting, NotFound, StoreFull, Unavailable
from threadline.surfaces.python.embedded import Threadline

KILLS = int(os.environ.get("THREADLINE_TEST_ICEBERG_KILLS", "2"))


class Shop:
    """A store, its lake and its Iceberg tables below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.store = threadline.open(folder / "shop.db")
        self.lake = Lake(open_storage(str(folder / "lake")))
        self.sold = 0

    def sell(self, who: str, times: int = 1, **fields: Any) -> None:
        events = []
        for _ in range(times):
            self.sold += 1
            events.append(
                {
                    "type": "purchase_completed",
                    "identifiers": {"user_id": who},
                    "key": f"k{self.sold}",
                    "properties": {"n": self.sold},
                }
                | fields
            )
        assert {each.status for each in self.store.record(events)} == {"accepted"}

    def tables(self) -> Tables:
        return Tables(open_catalog("", str(self.folder / "iceberg")), self.lake)

    def sync(self) -> Tables:
        sync(self.store.engine, self.lake)
        tables = self.tables()
        tables.sync(partial(erased_since, self.store.engine.store))
        return tables


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.store.close()


def rows(log: LogTable) -> list[dict[str, Any]]:
    """What PyIceberg reads."""
    found: list[dict[str, Any]] = log.table.scan().to_arrow().to_pylist()
    return sorted(found, key=repr)


def duck(address: str) -> list[dict[str, Any]]:
    """What DuckDB reads."""
    with duckdb.connect() as connection:
        for name in ("avro", "iceberg"):
            import_extension(name, con=connection)
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute("FROM iceberg_scan(?)", [address]).to_arrow_table()
    return sorted(found.to_pylist(), key=repr)


def in_lake(shop: Shop, table: str, workspace: str = "default") -> list[dict[str, Any]]:
    found = [
        row
        for file in shop.lake.files(workspace, table)
        for row in pa.parquet.read_table(pa.BufferReader(shop.lake.storage.read(file.name))).to_pylist()
    ]
    return sorted(found, key=repr)


def test_pyiceberg_and_duckdb_read_the_rows_of_the_lake(shop: Shop) -> None:
    shop.sell("ada", 3)
    shop.sell("bob", 2, context={"ip": "10.0.0.1"}, occurred_at="2025-12-31T23:59:59.999999Z")
    tables = shop.sync()
    shop.sell("cyd")
    tables = shop.sync()
    for table in ("events", "identities"):
        log = tables.open("default", table)
        assert rows(log) == in_lake(shop, table) != []
        assert duck(log.table.metadata_location) == rows(log)
        assert duck(log.table.location()) == rows(log)
        assert len({row["position"] for row in rows(log)}) == (len(rows(log)) if table == "events" else 2)


def test_bounds_are_those_of_positions_times_and_types_alone(shop: Shop) -> None:
    shop.sell("ada", 3)
    log = shop.sync().open("default", "events")
    names = {
        log.table.schema().find_column_name(field)
        for task in log.table.scan().plan_files()
        for field in [*task.file.lower_bounds, *task.file.upper_bounds]
    }
    assert names == {"position", "occurred_at", "received_at", "recorded_at", "type"}


def test_each_commit_names_its_position_and_a_sync_of_nothing_commits_nothing(shop: Shop) -> None:
    shop.sell("ada", 3)
    log = shop.sync().open("default", "events")
    summary = log.table.current_snapshot().summary
    assert summary[LOG_POSITION] == str(shop.lake.manifest().position)
    before = log.table.metadata_location
    assert shop.sync().open("default", "events").table.metadata_location == before


def test_a_snapshot_of_another_program_hides_no_position(shop: Shop) -> None:
    shop.sell("ada", 3)
    log = shop.sync().open("default", "events")
    log.table.append(log.table.scan().to_arrow().slice(0, 0))
    shop.sell("ada", 2)
    log = shop.sync().open("default", "events")
    assert rows(log) == in_lake(shop, "events")
    # Even without any snapshot that names one: the rows themselves say it.
    log.table.append(log.table.scan().to_arrow().slice(0, 0))
    named = [each.snapshot_id for each in log.table.snapshots() if LOG_POSITION in each.summary.additional_properties]
    log.table.maintenance.expire_snapshots().by_ids(named).commit()
    shop.sell("ada", 2)
    assert rows(shop.sync().open("default", "events")) == in_lake(shop, "events")


def test_of_two_writers_one_is_refused_and_no_row_comes_twice(shop: Shop) -> None:
    shop.sell("ada", 3)
    one = shop.sync().open("default", "events")
    two = shop.tables().open("default", "events")
    more = one.table.scan().to_arrow()
    one.append([more], Reached(9))
    with pytest.raises(Conflict, match="another process has changed"):
        two.append([more], Reached(9))
    assert len(rows(shop.tables().open("default", "events"))) == 2 * len(more)


def test_workspaces_are_in_namespaces_of_their_own(shop: Shop) -> None:
    other = Threadline(shop.store.engine, workspace="A b!")
    other.record([{"type": "page", "identifiers": {"user_id": "eve"}, "key": "1"}])
    shop.sell("ada")
    tables = shop.sync()
    assert {row["workspace"] for row in rows(tables.open("A b!", "events"))} == {"A b!"}
    assert {row["workspace"] for row in rows(tables.open("default", "events"))} == {"default"}
    names = ["a", "A", "a_b", "a b", "a__b", "ä", "-", "x" * 200]
    assert len({namespace_of(each) for each in names}) == len(names)


def test_compaction_keeps_every_row_and_the_position(shop: Shop) -> None:
    for _ in range(4):
        shop.sell("ada", 5)
        tables = shop.sync()
    before = tables.open("default", "events")
    expected, reached = rows(before), before.reached()
    assert before.size()[1] > 1
    tables.compact(keep_seconds=0)
    after = tables.open("default", "events")
    assert (rows(after), after.size()[1], after.reached()) == (expected, 1, reached)
    assert duck(after.table.location()) == expected
    assert len(list(Path(after.table.location(), "data").iterdir())) == 1


def bytes_below(folder: Path) -> bytes:
    """All that can be read of Parquet and other files."""
    found = b""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            found += repr(pa.parquet.read_table(path).to_pylist()).encode()
        if path.is_file():
            found += path.read_bytes()
    return found


def test_what_is_erased_is_in_no_file_of_the_tables(shop: Shop) -> None:
    shop.sell("ada", 2)
    shop.sell("unwanted", 3, properties={"note": "secret-of-the-unwanted"})
    shop.sync()
    shop.sell("bob", 2)
    shop.sync()
    # What a killed sync leaves behind: a file that no snapshot names.
    log = shop.tables().open("default", "events")
    data = Path(log.table.location(), "data")
    stray = next(iter(data.glob("*.parquet")))
    (data / "stray.parquet").write_bytes(stray.read_bytes())
    assert b"secret-of-the-unwanted" in bytes_below(shop.folder / "iceberg")
    thread = next(row["thread"] for row in rows(log) if "unwanted" in row["identifiers"])
    shop.store.people.erase("user_id:unwanted")
    while shop.store.engine.erasures.unfinished():
        workspace, id = shop.store.engine.erasures.unfinished()[0]
        shop.store.engine.erasures.advance(workspace, id)
    tables = shop.sync()
    left = bytes_below(shop.folder / "iceberg")
    assert b"secret-of-the-unwanted" not in left
    assert b"unwanted" not in left
    log = tables.open("default", "events")
    assert thread not in {row["thread"] for row in rows(log)}
    assert sorted(row["properties"] for row in rows(log)) == ['{"n":1}', '{"n":2}', '{"n":6}', '{"n":7}']
    assert duck(log.table.location()) == rows(log)


def test_a_column_that_is_new_is_null_in_the_rows_before(tmp_path: Path) -> None:
    columns = pa.schema([("position", pa.int64()), ("id", pa.string())])
    log = open_table(open_catalog("", str(tmp_path)), _namespace(tmp_path), "events", columns)
    log.append([pa.table({"position": [1], "id": ["a"]})], Reached(1))
    later = pa.table({"position": [2], "id": ["b"], "p_select": ["x"], "p_ü": pa.array([None], pa.int64())})
    log.append([later], Reached(2))
    log.append([pa.table({"position": [3], "id": ["c"]})], Reached(3))
    expected = [
        {"position": 1, "id": "a", "p_select": None, "p_ü": None},
        {"position": 2, "id": "b", "p_select": "x", "p_ü": None},
        {"position": 3, "id": "c", "p_select": None, "p_ü": None},
    ]
    log.hint()
    assert rows(log) == duck(log.table.location()) == expected
    log.compact()
    log.erase({"b"}, Reached(3))
    log.hint()
    assert rows(log) == duck(log.table.location()) == [expected[0], expected[2]]


def test_three_hundred_columns_with_hostile_names_are_read_alike(tmp_path: Path) -> None:
    names = ["p_select", "p_from", 'p_"', "p_a.b", "p_a b", "p_'", "p_;drop", "p_ä", "p_%", "p_\\", "p_\n"]
    names += [f"p_{number}" for number in range(300 - len(names))]
    rows_of_one = pa.table({"position": [1], "id": ["a"]} | {name: [name] for name in names})
    columns = pa.schema([("position", pa.int64()), ("id", pa.string())])
    log = open_table(open_catalog("", str(tmp_path)), _namespace(tmp_path), "events", columns)
    log.append([rows_of_one], Reached(1))
    assert rows(log) == duck(log.table.metadata_location) == rows_of_one.to_pylist()


def _namespace(folder: Path) -> str:
    open_catalog("", str(folder)).create_namespace_if_not_exists("shop")
    return "shop"


SYNCS = """
import os, sys
import pyarrow.fs, pyiceberg.catalog.sql, pyiceberg.io.pyarrow, sqlalchemy.dialects.sqlite
from pathlib import Path
import threadline
from threadline.exports.iceberg.catalog import open_catalog
from threadline.exports.iceberg.sync import Tables
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
folder = Path(sys.argv[1])
for _ in sys.stdin:
    if not (child := os.fork()):
        tables = Tables(open_catalog("", str(folder / "iceberg")), Lake(open_storage(str(folder / "lake"))))
        print(os.getpid(), flush=True)
        tables.sync(lambda mark: (frozenset(), mark))
        os._exit(0)
    sys.stdin.readline()  # until then its number is nobody else's
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""A process for each line: all of them have imported everything before, which takes longer than to sync."""


def test_a_sync_killed_at_any_instant_leaves_no_row_out_and_adds_none_twice(shop: Shop, seed: int) -> None:
    draw, longest, killed = random.Random(seed), 0.2, 0
    command = [sys.executable, "-c", SYNCS, str(shop.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        while killed < KILLS:
            shop.sell("ada", 20)
            sync(shop.store.engine, shop.lake)
            print(file=starter.stdin, flush=True)
            process = int(starter.stdout.readline())
            time.sleep(draw.random() * longest)
            os.kill(process, signal.SIGKILL)
            print(file=starter.stdin, flush=True)
            if os.WIFSIGNALED(status := int(starter.stdout.readline())):
                killed += 1
                longest *= 1.1
            else:  # it was done before
                assert status == 0
                longest /= 2
            read = rows(shop.tables().open("default", "events"))
            expected = [row for row in in_lake(shop, "events") if row["position"] <= len(read)]
            assert read == expected
        starter.stdin.close()
    assert rows(shop.sync().open("default", "events")) == in_lake(shop, "events")


def test_a_lake_on_s3_without_a_catalogue_names_the_setting() -> None:
    with pytest.raises(InvalidSetting, match="need a catalogue") as raised:
        open_catalog("", "s3://bucket/lake")
    assert "THREADLINE_ICEBERG_CATALOG" in raised.value.hint


@pytest.mark.parametrize(
    ("raised", "expected", "says"),
    [
        (PermissionError(13, "Permission denied"), Forbidden, "Permission denied"),
        (OSError("AWS Error ACCESS_DENIED during PutObject operation: no"), Forbidden, "PutObject"),
        (OSError(28, "No space left on device"), StoreFull, "No space left"),
        (OSError("AWS Error NO_SUCH_BUCKET during CreateMultipartUpload"), NotFound, "NO_SUCH_BUCKET"),
        (OSError("AWS Error NETWORK_CONNECTION"), Unavailable, "NETWORK_CONNECTION"),
    ],
)
def test_an_error_of_files_or_objects_says_what_to_do(raised: OSError, expected: type, says: str) -> None:
    with pytest.raises(expected, match=says) as found, explained():
        raise raised
    assert found.value.hint


def test_a_table_that_another_store_has_filled_is_refused_and_stays(shop: Shop, tmp_path: Path) -> None:
    shop.sell("ada", 3)
    before = rows(shop.sync().open("default", "events"))
    other = Shop(tmp_path / "other")
    other.sold = 100
    other.sell("eve", 5)
    sync(other.store.engine, other.lake)
    tables = Tables(open_catalog("", str(shop.folder / "iceberg")), other.lake)
    with pytest.raises(Conflict, match="no copy of"):
        tables.sync(lambda mark: (frozenset(), mark))
    assert rows(tables.open("default", "events")) == before
    other.store.close()
