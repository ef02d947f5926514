"""The lake of raw events: it is the log, through kills, merges, erasures, compaction and definitions that change."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tests.exports.lake_stage import (
    MortalStorage,
    assert_is_log,
    happenings,
    in_lake,
    in_log,
    lake_in,
    rows,
    with_schemas,
)
from tests.laws import staging
from tests.mortal import Killed
from tests.servers.dynamodb import ministack
from tests.servers.postgres import server, store_in
from threadline.engine.engine import Engine
from threadline.exports.lake.cleaning import clean
from threadline.exports.lake.compaction import compact
from threadline.exports.lake.files import read_table
from threadline.exports.lake.lake import IDENTITIES, File, Lake, Obsolete, partition_of
from threadline.exports.lake.schema import pa
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.exports.lake.verification import verify
from threadline.kernel.errors import Conflict, EventDamaged, InvalidValue
from threadline.kernel.object_storage import path_name
from threadline.kernel.store import Store
from threadline.stores.memory import MemoryStore

pytest.importorskip("pyarrow")
LATER = 10.0**10
"""Of the clock of the storage: what may be removed by then is removed."""


def recorded(seed: int, count: int = 40) -> Engine:
    on = staging.engine(MemoryStore())
    events = happenings(Random(seed), count)
    for start in range(0, count, 7):
        assert {each.status for each in on.recorder.record(events[start : start + 7])} == {"accepted"}
    return on


def erase(on: Engine, who: str, workspace: str = "default") -> None:
    on.erasures.run(workspace, on.erasures.begin(workspace, who).id)


def files_on_disk(lake: Lake) -> set[str]:
    return {each.name for each in lake.storage.list("raw/")}


@pytest.mark.parametrize("seed", range(3))
def test_synced_in_steps_of_any_size_the_files_are_the_log(seed: int, tmp_path: Path) -> None:
    random, on, lake = Random(seed), staging.engine(MemoryStore()), lake_in(tmp_path)
    events = happenings(random, 50)
    while events or lake.manifest().position < len(in_log(on.store)):
        on.recorder.record(events[: (size := random.randrange(9))])
        events = events[size:]
        sync(on, lake, limit=random.choice([3, 10, None]), range_events=random.choice([4, 1_000]))
        assert in_lake(lake) == in_log(on.store, lake.manifest().position)
        if random.random() < 0.1:
            compact(on, lake)
    assert_is_log(lake, on.store)
    found = verify(on, lake)
    assert (found.problems, found.events) == ([], found.rows)


def test_a_workspace_s_files_have_its_events_and_no_others(tmp_path: Path) -> None:
    on, lake = recorded(1), lake_in(tmp_path)
    sync(on, lake)
    for workspace in {recorded.event.workspace for _, recorded in in_log(on.store)}:
        names = [file.name for file in lake.files(workspace)]
        assert all(name.startswith(f"raw/{path_name(workspace)}/events/dt=") for name in names)
        got = {row["workspace"] for file in lake.files(workspace) for row in read_table(lake, file).to_pylist()}
        assert got == {workspace}


def test_merged_and_split_threads_have_their_last_person(tmp_path: Path) -> None:
    on, lake = staging.engine(MemoryStore()), lake_in(tmp_path)
    for at, name in enumerate(["ada", "bob"]):
        on.recorder.record(
            [staging.event("page", {"user_id": name}, f"{name} {n}", staging.NOW - 9 + at) for n in "12"]
        )
    on.recorder.record([staging.event("identify", {"user_id": "bob", "email": "bob@example.com"}, "bob 3")])
    sync(on, lake)
    on.identity.merge("default", "user_id:ada", "user_id:bob", reason="test", by="me", request="m", force=True)
    sync(on, lake)
    assert_is_log(lake, on.store)
    assert len({row["person"] for row in rows(lake, IDENTITIES) if row["position"] == 6}) == 1
    on.identity.split("default", "user_id:ada", ["user_id:bob"], reason="test", by="me", request="s")
    sync(on, lake)
    assert_is_log(lake, on.store)


@pytest.mark.parametrize("kind", ["dynamodb", "postgres"])
def test_the_log_of_a_shared_store_is_followed(kind: str, tmp_path: Path) -> None:
    shared = {"dynamodb": lambda: ministack().open(tmp_path), "postgres": lambda: store_in(server("18"), tmp_path)}
    store: Store = shared[kind]()
    try:
        on, lake = staging.engine(store), lake_in(tmp_path / "lake")
        for start in range(0, 12, 4):
            names = [f"u{number % 3}" for number in range(start, start + 4)]
            on.recorder.record([staging.event("page", {"user_id": who}, f"{start} {who}") for who in sorted({*names})])
            sync(on, lake, limit=2, range_events=1)
            sync(on, lake)
            assert_is_log(lake, store)
        erase(on, "user_id:u1")
        assert sync(on, lake).erased == 3
        assert_is_log(lake, store)
    finally:
        store.close()


def test_an_identifier_without_events_of_its_own_has_a_row(tmp_path: Path) -> None:
    on, lake = staging.engine(MemoryStore()), lake_in(tmp_path)
    on.recorder.record([staging.event("page", {"user_id": "ada"}, "1")])
    on.recorder.record([staging.event("identify", {"user_id": "ada", "email": "ada@example.com"}, "2")])
    sync(on, lake)
    assert len({row["thread"] for row in rows(lake, IDENTITIES)}) == 2
    assert_is_log(lake, on.store)


def test_another_log_is_refused(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    sync(recorded(1), lake)
    with pytest.raises(Conflict, match="another store"):
        sync(recorded(2), lake)
    with pytest.raises(Conflict, match="another store"):
        sync(staging.engine(MemoryStore()), lake)
    assert_is_log(lake, recorded(1).store)


def test_a_damaged_event_stops_the_sync_before_it_and_is_named(tmp_path: Path) -> None:
    on, lake = recorded(1, 9), lake_in(tmp_path)
    sync(on, lake, limit=3)
    one = on.store.feed(limit=5)[4]
    assert on.store.mend(one, one.entry._replace(body=one.entry.body.replace(b"key", b"kez")))
    with pytest.raises(EventDamaged) as error:
        sync(on, lake, range_events=1)
    assert one.entry.id in str(error.value)
    assert lake.manifest().position == 4


def test_a_sync_that_another_has_overtaken_writes_no_event_twice(tmp_path: Path) -> None:
    on = recorded(3)
    other = lake_in(tmp_path)

    class Overtaken(Lake):
        def commit(self, *given: object) -> None:
            if not other.manifest().position:
                sync(on, other, range_events=7)
            super().commit(*given)  # type: ignore[arg-type]

    with pytest.raises(Conflict, match="another process"):
        sync(on, Overtaken(open_storage(str(tmp_path))))
    assert_is_log(other, on.store)


def test_a_sync_goes_on_beside_a_compaction(tmp_path: Path) -> None:
    on, plain = recorded(4), lake_in(tmp_path)
    sync(on, plain, limit=20, range_events=4)
    compactions: list[int] = []

    class Compacting(Lake):
        def commit(self, *given: object) -> None:
            if not compactions:
                compactions.append(compact(on, plain).before)
            super().commit(*given)  # type: ignore[arg-type]

    sync(on, Compacting(open_storage(str(tmp_path))))
    assert compactions[0] > 0
    assert_is_log(plain, on.store)


# --- erasure ----------------------------------------------------------------------------------


def markers(lake: Lake) -> set[str]:
    """Every text in any Parquet file that lies in the folder, whether it counts or not."""
    found = set()
    for name in files_on_disk(lake):
        about = File(name=name, workspace="", table="", first=0, last=0, rows=0, bytes=0, sha256="")
        for row in read_table(lake, about).to_pylist():
            found |= {str(value) for value in row.values()}
    return found


def test_an_erased_person_is_in_no_file_and_others_are_as_before(tmp_path: Path) -> None:
    on, lake = recorded(5), lake_in(tmp_path)
    on.recorder.record(
        [staging.event("page", {"user_id": "zq7x"}, "zq7x 1"), staging.event("x", {"user_id": "b"}, "b")]
    )
    sync(on, lake, range_events=9)
    compact(on, lake)
    on.recorder.record([staging.event("y", {"user_id": "zq7x", "email": "zq7x@example.com"}, "zq7x 2")])
    sync(on, lake)
    person = on.reader.person("default", "user_id:zq7x")
    assert {"zq7x 1", "zq7x 2", *person.heads} <= markers(lake)
    derived = File(name="curated/x", workspace="default", table="x", first=1, last=9, rows=1, bytes=1, sha256="")
    lake.storage.write("curated/x", b"")
    lake.change(lambda manifest: replace(manifest, files=[*manifest.files, derived]))
    erase(on, "user_id:zq7x")
    assert sync(on, lake).erased == 2
    left = markers(lake)
    assert [each for each in left if "zq7x" in each] == []
    assert left.isdisjoint(person.heads)
    assert derived not in lake.manifest().files
    assert_is_log(lake, on.store)
    assert verify(on, lake).problems == []
    assert sync(on, lake).erased == 0


def test_a_type_that_only_an_erased_person_had_is_in_no_dictionary(tmp_path: Path) -> None:
    on, lake = recorded(5), lake_in(tmp_path)
    on.recorder.record([staging.event("zq7x_asked", {"user_id": "gone"}, "gone 1")])
    sync(on, lake)
    assert "zq7x_asked" in dictionaries(tmp_path)
    erase(on, "user_id:gone")
    sync(on, lake)
    assert "zq7x_asked" not in dictionaries(tmp_path)


def dictionaries(folder: Path) -> set[str]:
    """Every value in the dictionaries of Parquet files, whether a row has it or not."""
    values = set[str]()
    for path in folder.rglob("*.parquet"):
        texts = [field.name for field in pa.parquet.read_schema(path) if pa.types.is_string(_value_type(field.type))]
        for column in pa.parquet.ParquetFile(path, read_dictionary=texts).read(columns=texts).columns:
            values.update(value for chunk in column.chunks for value in chunk.dictionary.to_pylist())
    return values


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def test_an_event_that_is_erased_after_it_was_read_gets_into_no_file(tmp_path: Path) -> None:
    on, lake = recorded(6, 12), lake_in(tmp_path)
    on.recorder.record([staging.event("page", {"user_id": "zq7x"}, "zq7x 1")])
    feed = on.store.feed

    def erasing(cursor: str = "", limit: int = 1_000) -> object:
        page = feed(cursor, limit)
        on.store.feed = feed  # type: ignore[method-assign]
        erase(on, "user_id:zq7x")
        return page

    on.store.feed = erasing  # type: ignore[method-assign,assignment]
    sync(on, lake)
    assert [each for each in markers(lake) if "zq7x" in each] == []
    assert in_lake(lake) == in_log(on.store)


def test_a_person_whose_erasure_is_under_way_loses_the_rows_of_threads_when_it_is_done(tmp_path: Path) -> None:
    on, lake = recorded(6, 12), lake_in(tmp_path)
    on.recorder.record([staging.event("page", {"user_id": "ada"}, "1")])
    sync(on, lake)
    thread = next(iter(on.reader.person("default", "user_id:ada").heads))
    erasure = on.erasures.begin("default", "user_id:ada")
    while on.erasures.advance("default", erasure.id).events < 1:
        pass
    assert sync(on, lake).erased == 1
    assert thread in markers(lake)
    on.erasures.run("default", erasure.id)
    sync(on, lake)
    assert thread not in markers(lake)
    assert lake.manifest().leaving == []


@pytest.mark.parametrize("synced_between", [False, True])
def test_who_comes_back_after_an_erasure_has_rows_again(synced_between: bool, tmp_path: Path) -> None:
    on, lake = staging.engine(MemoryStore()), lake_in(tmp_path)
    names = {"user_id": "ada", "email": "ada@example.com"}
    on.recorder.record([staging.event("page", names, "1"), staging.event("page", {"user_id": "b"}, "b")])
    sync(on, lake)
    erase(on, "user_id:ada")
    if synced_between:
        sync(on, lake)
    on.recorder.record([staging.event("page", names, "2"), staging.event("page", {"email": "ada@example.com"}, "3")])
    sync(on, lake, range_events=1)
    assert_is_log(lake, on.store)


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_write_the_lake_is_the_log_and_forgets_who_is_erased(after: bool, tmp_path: Path) -> None:
    def run(folder: Path, killed_at: int) -> tuple[int, Engine]:
        storage = MortalStorage(folder, killed_at, after=after)
        on, lake = staging.engine(MemoryStore()), Lake(storage)
        on.recorder.record(
            [staging.event("page", {"user_id": who}, f"{who} {n}") for n in "12" for who in ("zq7x", "b")]
        )
        sync(on, lake, range_events=2)
        erase(on, "user_id:zq7x")
        on.recorder.record([staging.event("page", {"user_id": "b"}, "b 3")])
        sync(on, lake)
        compact(on, lake)
        clean(lake, LATER)
        return storage.calls, on

    calls, whole = run(tmp_path / "whole", 0)
    assert calls > 10
    for killed_at in range(1, calls + 1):
        folder = tmp_path / str(killed_at)
        with pytest.raises(Killed):
            run(folder, killed_at)
        lake = lake_in(folder)
        assert in_lake(lake) == in_log(whole.store, lake.manifest().position) or lake.manifest().position <= 4
        sync(whole, lake)
        compact(whole, lake)
        clean(lake, LATER)
        assert_is_log(lake, whole.store)
        assert [each for each in markers(lake) if "zq7x" in each] == []
        assert files_on_disk(lake) == {file.name for file in lake.manifest().files}


# --- compaction -------------------------------------------------------------------------------


def test_compaction_leaves_one_file_a_place_and_the_same_rows(tmp_path: Path) -> None:
    on, lake = recorded(7), lake_in(tmp_path)
    sync(on, lake, range_events=5)
    before, old = in_lake(lake), files_on_disk(lake)
    done = compact(on, lake)
    assert in_lake(lake) == before
    places = [(file.workspace, file.table, file.dt, file.event) for file in lake.manifest().files]
    assert len(places) == len(set(places)) < done.before
    assert files_on_disk(lake) > old, "a reader of the manifest before still finds its files"
    clean(lake, LATER)
    assert files_on_disk(lake) == {file.name for file in lake.manifest().files}
    assert compact(on, lake) == (0, 0)
    assert_is_log(lake, on.store)


def test_compaction_leaves_a_thread_that_changed_hands_two_rows_and_any_other_one(tmp_path: Path) -> None:
    on, lake = staging.engine(MemoryStore()), lake_in(tmp_path)
    for name in ("ada", "bob", "eve"):
        on.recorder.record([staging.event("page", {"user_id": name}, f"{name} {n}") for n in range(3)])
    sync(on, lake, range_events=4)
    bob = on.reader.person("default", "user_id:bob").id
    on.identity.merge("default", "user_id:ada", "user_id:bob", reason="test", by="me", request="m", force=True)
    sync(on, lake)
    for _ in range(2):
        compact(on, lake)
        on.recorder.record([staging.event("page", {"user_id": "bob"}, f"later {_}")])
        sync(on, lake)
    people: dict[str, set[str]] = {}
    for row in rows(lake, IDENTITIES):
        people.setdefault(row["thread"], set()).add(row["person"])
    moved = on.reader.person("default", "user_id:bob").id
    assert sorted(map(len, people.values())) == [1, 1, 2]
    assert {bob, moved} in people.values()
    assert_is_log(lake, on.store)


def test_compaction_stays_below_its_size(tmp_path: Path) -> None:
    on, lake = recorded(7), lake_in(tmp_path)
    sync(on, lake, range_events=5)
    most = max(file.bytes for file in lake.manifest().files)
    compact(on, lake, at_most=most)
    assert max(file.bytes for file in lake.manifest().files) <= most * 1.1
    assert_is_log(lake, on.store)


def test_an_erasure_between_the_reading_and_the_commit_of_a_compaction_stands(tmp_path: Path) -> None:
    on, plain = staging.engine(MemoryStore()), lake_in(tmp_path)
    for number in range(4):
        on.recorder.record([staging.event("page", {"user_id": who}, f"{who} {number}") for who in ("zq7x", "b")])
    sync(on, plain, range_events=2)

    class Erasing(Lake):
        def change(self, *given: object) -> object:  # type: ignore[override]
            if not done:
                done.append(1)
                erase(on, "user_id:zq7x")
                sync(on, plain)
            return super().change(*given)  # type: ignore[arg-type]

    done: list[int] = []
    compact(on, Erasing(open_storage(str(tmp_path))))
    assert_is_log(plain, on.store)
    clean(plain, LATER)
    assert [each for each in markers(plain) if "zq7x" in each] == []


def test_a_file_that_counts_again_is_not_removed_as_obsolete(tmp_path: Path) -> None:
    on, lake = recorded(7), lake_in(tmp_path)
    sync(on, lake)
    again = Obsolete(lake.manifest().files[0].name, 0.0)
    lake.change(lambda manifest: replace(manifest, obsolete=[again]))
    clean(lake, LATER)
    assert_is_log(lake, on.store)


# --- definitions that change ------------------------------------------------------------------


def test_a_property_that_changes_its_type_has_a_column_for_each_and_breaks_no_file(tmp_path: Path) -> None:
    pytest.importorskip("jsonschema_rs")
    store, lake = MemoryStore(), lake_in(tmp_path)
    bought = [
        staging.event("bought", {"user_id": "a"}, str(n), properties={"total": n / 2, "Total": n}) for n in range(3)
    ]
    with_schemas(store).recorder.record(bought[:1])
    sync(with_schemas(store), lake)
    numbers = "  bought: {properties: {total: {type: number}, Total: {type: integer}, at: {type: [string, 'null']}}}\n"
    with_schemas(store, numbers).recorder.record(bought[1:])
    sync(with_schemas(store, numbers), lake)
    texts = "  bought: {properties: {total: {type: string}}}\n  other: {properties: {total: {type: number}}}\n"
    on = with_schemas(store, texts)
    on.recorder.record([staging.event("bought", {"user_id": "a"}, "t", properties={"total": "9 EUR"})])
    on.recorder.record([staging.event("other", {"user_id": "a"}, "o", properties={"total": 7})])
    sync(on, lake)
    names = {(column.property, column.type): column.name for column in lake.manifest().columns}
    assert len({name.lower() for name in names.values()}) == len(names) == 4
    plain, text = names["total", "double"], names["total", "string"]
    seen = {row["key"]: (row.get(plain), row.get(text), row.get(names["Total", "int64"])) for row in rows(lake)}
    assert seen == {
        "0": (None, None, None),
        "1": (0.5, None, 1),
        "2": (1.0, None, 2),
        "t": (None, "9 EUR", None),
        "o": (7.0, None, None),
    }
    duckdb = pytest.importorskip("duckdb")
    total = duckdb.sql(
        f"SELECT sum({plain}), max({text}) FROM read_parquet({lake.urls('default')}, union_by_name = true)"
    ).fetchone()
    assert total == (8.5, "9 EUR")
    compact(with_schemas(store, numbers), lake)
    assert {row["key"]: row.get(plain) for row in rows(lake)}["0"] == 0.0, "compaction fills columns declared since"
    assert_is_log(lake, store)


def test_three_hundred_columns_with_hostile_names_and_values_that_do_not_fit(tmp_path: Path) -> None:
    pytest.importorskip("jsonschema_rs")
    names = ["select", "SELECT", "from", "a b", "ä", "", "p_x", "x", '"', "';--", *(f"column {n}" for n in range(290))]
    types = ["string", "integer", "number", "boolean"]
    listed = ", ".join(f"{_yaml(name)}: {{type: {types[at % 4]}}}" for at, name in enumerate(names))
    on = with_schemas(MemoryStore(), f"  wide: {{properties: {{{listed}}}}}\n")
    values = {"string": "t", "integer": 7, "number": 10**18, "boolean": True}
    properties = {name: values[types[at % 4]] for at, name in enumerate(names)}
    events = [
        staging.event("wide", {"user_id": "a"}, "1", properties=properties),
        # What was recorded before there was a schema need not fit.
        staging.event("wide", {"user_id": "a"}, "2", properties={name: [1] for name in names}, source_type="internal"),
    ]
    on.recorder.record(events[:1])
    staging.engine(on.store).recorder.record(events[1:])
    lake = lake_in(tmp_path)
    sync(on, lake)
    columns = lake.manifest().columns
    assert len(columns) == len({column.name.lower() for column in columns}) == len(names) == 300
    found = {row["key"]: [row[column.name] for column in columns] for row in rows(lake)}
    assert found["1"] == [{"double": 1e18, "int64": 7, "bool": True}.get(column.type, "t") for column in columns]
    assert found["2"] == [None] * 300
    assert_is_log(lake, on.store)


def _yaml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def test_names_of_folders_are_safe_and_differ_where_workspaces_do() -> None:
    hostile = ["..", ".", "a", "A", "a b", "~", "~7e.", "/etc", "x" * 300, "x" * 299 + "y", "ä", "con\x00"]
    names = [path_name(text) for text in hostile]
    assert len(set(names)) == len(names)
    for name in [*names, *map(partition_of, hostile)]:
        assert len(name) <= 120
        assert not name.startswith(".")
        assert not set(name) & set("/\\ =\x00'\"%?#")


# --- verification -----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["removed", "flipped", "row", "twice"])
def test_a_fault_in_the_files_is_found(fault: str, tmp_path: Path) -> None:
    on, lake = recorded(8, 20), lake_in(tmp_path)
    sync(on, lake)
    first = lake.files("default")[0]
    if fault == "removed":
        lake.storage.delete([first.name])
    elif fault == "flipped":
        content = lake.storage.read(first.name)
        lake.storage.write(first.name, content[:40] + bytes([content[40] ^ 1]) + content[41:])
    else:
        manifest, tag = lake.tagged()
        files = [file for file in manifest.files if file != first] + [first, first] * (fault == "twice")
        lake.commit(replace(manifest, files=files), tag)
    assert verify(on, lake).problems != []


def test_a_manifest_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_manifest.json").write_text("{}}")
    with pytest.raises(InvalidValue, match="not the manifest of a lake"):
        lake_in(tmp_path).manifest()
