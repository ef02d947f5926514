"""``threadline sql`` and its companions: what they answer, what a query may reach, and what a kill leaves."""

from __future__ import annotations

import csv
import io
import json
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import threadline
from tests.cdnow import messages, tell
from tests.exports.curated_stage import DEFINITIONS, ask, ask_all, engine, happenings, lake_in, tables
from tests.exports.lake_stage import HOSTILE, MortalStorage, with_schemas
from tests.laws import staging
from tests.mortal import Killed
from tests.surfaces.cli_stage import call, composed, store
from threadline.engine.engine import Engine
from threadline.exports import duck
from threadline.exports.curated import writing
from threadline.exports.curated.commands import LakeCommands
from threadline.exports.curated.reading import QUERIES, opened
from threadline.exports.curated.writing import curate
from threadline.exports.lake import log_copy
from threadline.exports.lake import sync as syncing
from threadline.exports.lake.cleaning import clean
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.reading import read_range
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.kernel.errors import Conflict, InvalidValue, NotFound
from threadline.kernel.store import feed_pages
from threadline.stores.memory import MemoryStore

pytest.importorskip("duckdb")
__all__ = ["call", "composed", "store"]


def test_totals_over_cdnow_are_the_features(tmp_path: Path) -> None:
    shop = threadline.open("memory:")
    tell(shop, messages()[:600])
    on, lake = shop.engine, lake_in(tmp_path)
    sync(on, lake, limit=400)
    query = (
        "SELECT person, count(*) AS orders, sum((properties->>'total')::DECIMAL(18, 2)) AS total FROM events GROUP BY 1"
    )
    totals = {row["person"]: row for row in ask(on, lake, query)}
    last = "SELECT person, arg_max(f_monetary_total, day) AS total FROM feature_vectors GROUP BY 1"
    vectors = {row["person"]: row["total"] for row in ask(on, lake, last)}
    people = list(on.reader.all_people("default"))
    assert len(people) == len(totals) > 400
    for person in people:
        view = on.reader.views(person, on.now(), names=["features"])["features"]
        assert view["monetary_total"]["value"] == totals[person.id]["total"] == vectors[person.id]


def test_a_workspace_sees_its_own_events_and_files_and_nothing_else(tmp_path: Path) -> None:
    on, lake = engine(MemoryStore()), lake_in(tmp_path / "lake's")
    on.recorder.record(happenings(Random(1), 40))
    sync(on, lake)
    curate(on, lake, "default")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    theirs = next(lake.storage.url(each.name) for each in lake.manifest().files if each.workspace == "..")
    theirs = theirs.replace("'", "''")
    assert ask(on, lake, "SELECT DISTINCT workspace FROM events") == [{"workspace": "default"}]
    for query in (
        f"FROM read_parquet('{theirs}')",
        f"FROM read_csv('{tmp_path}/secret.csv')",
        f"FROM glob('{tmp_path}/*')",
        f"COPY (SELECT 1) TO '{tmp_path}/x.csv'",
        "ATTACH 'x.db'",
        "INSTALL httpfs",
        f"COPY (SELECT 1) TO '{tmp_path}/lake''s/raw/default/x.parquet'",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO 'x'",
        "",
        "FROM on_and_lake",
    ):
        with pytest.raises(InvalidValue):
            ask(on, lake, query)
    assert not any(path.name.startswith("x.") for path in tmp_path.rglob("*"))


def test_a_query_that_names_what_an_extension_has_is_refused_without_a_request_to_the_network(tmp_path: Path) -> None:
    asked: list[str] = []

    class Repository(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with HTTPServer(("127.0.0.1", 0), Repository) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        connection = duck.connected(str(tmp_path), None)
        connection.execute(f"SET custom_extension_repository = 'http://127.0.0.1:{server.server_port}'")
        duck.lock(connection, [f"{tmp_path}/"])
        for query in (
            "FROM sqlite_scan('x', 'y')",
            "FROM 'x.xlsx'",
            "FROM iceberg_scan('x')",
            "SELECT INET '1.2.3.4'",
            "ATTACH 'x.db' (TYPE sqlite)",
            "LOAD sqlite",
            "FROM 's3://a/b.parquet'",
            "PRAGMA create_fts_index('a', 'b', 'c')",
            "SELECT st_point(1, 2)",
            "FROM 'https://127.0.0.1/x.csv'",
        ):
            with pytest.raises(InvalidValue), duck.explained():
                connection.execute(query)
        server.shutdown()
    assert asked == []


def test_a_lake_in_s3_is_read_where_it_is_and_the_buckets_of_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("duckdb_extension_httpfs")
    from tests.servers.s3 import s3

    for name, value in (
        ("AWS_ENDPOINT_URL", s3().endpoint),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    for bucket in ("ours", "theirs"):
        client.create_bucket(Bucket=bucket)
    client.put_object(Bucket="theirs", Key="secret.csv", Body=b"a\n1\n")
    on, lake = engine(MemoryStore()), Lake(open_storage("s3://ours/a lake/ä"))
    on.recorder.record(happenings(Random(5), 12))
    sync(on, lake, limit=8)
    curate(on, lake, "default")
    on.recorder.record(happenings(Random(6), 3))
    assert tables(on, lake) == tables(on, None)
    with pytest.raises(InvalidValue, match="Permission"):
        ask(on, lake, "FROM read_csv('s3://theirs/secret.csv')")


@pytest.mark.parametrize("name", HOSTILE)
def test_events_of_types_with_hostile_names_are_tables_under_a_name_of_their_partition(
    name: str, tmp_path: Path
) -> None:
    on = with_schemas(MemoryStore(), "  page: {properties: {select: {type: number}, order: {type: string}}}\n")
    events = [
        staging.event(each, {"user_id": "u"}, each[:50], properties={"select": 1.5, "order": "x"})
        for each in ("page", name)
    ]
    on.recorder.record(events)
    lake = lake_in(tmp_path)
    sync(on, lake)
    partition = next(file.event for file in lake.manifest().files if file.table == "events" and _has(lake, file, name))
    quoted = partition.replace('"', '""')
    rows = ask(on, lake, f'SELECT DISTINCT type FROM typed."{quoted}"')
    assert {"type": name} in rows
    assert ask(on, None, "SELECT p_select, p_order FROM typed.page WHERE type = 'page'") == [
        {"p_select": 1.5, "p_order": "x"}
    ]


def _has(lake: Lake, file: object, name: str) -> bool:
    from threadline.exports.lake.files import read_table

    return name in read_table(lake, file).column("type").to_pylist()  # type: ignore[arg-type]


class Counting:
    """A connection that counts the statements that ask for columns."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.described = 0

    def execute(self, statement: str) -> Any:
        self.described += statement.startswith("DESCRIBE ")
        return self.connection.execute(statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


def test_types_without_events_are_looked_at_once_however_many_there_are(tmp_path: Path) -> None:
    on, lake = engine(MemoryStore()), lake_in(tmp_path)
    on.recorder.record([staging.event("page", {"user_id": "u"}, "k")])
    sync(on, lake)
    with opened(on, lake, "default") as reading:
        reading.connection = counting = Counting(reading.connection)
        rows = reading.run("SELECT count(*) AS n FROM typed.page").read_all().to_pylist()
        with_files = len(reading._typed)
    assert rows == [{"n": 1}]
    assert len(on.catalogue.event_types.declared) > 50
    assert counting.described == with_files + 1


def test_three_hundred_declared_properties_are_columns(tmp_path: Path) -> None:
    properties = ", ".join(f"n{number}: {{type: number}}" for number in range(300))
    on = with_schemas(MemoryStore(), f"  page: {{properties: {{{properties}}}}}\n")
    on.recorder.record([staging.event("page", {"user_id": "u"}, "k", properties={f"n{at}": at for at in range(300)})])
    (row,) = ask(on, None, "SELECT COLUMNS('^p_n') FROM typed.page")
    assert row == {f"p_n{at}": at for at in range(300)}


def test_killed_at_any_write_the_tables_are_those_before_or_those_after(tmp_path: Path) -> None:
    on, random = engine(MemoryStore()), Random(2)
    on.recorder.record(happenings(random, 15))
    folder = tmp_path / "lake"
    curate(on, lake_in(folder), "default")
    on.recorder.record(happenings(random, 5))
    before = lake_in(folder).manifest()
    calls = MortalStorage(folder, 0, after=True)
    for killed_at, after in ((12, False), (24, True), (25, True)):
        with pytest.raises(Killed):
            curate(on, Lake(MortalStorage(folder, killed_at, after=after)), "default")
        now = lake_in(folder).manifest()
        assert now.files == before.files or _complete(lake_in(folder))
    curate(on, Lake(calls), "default")
    assert calls.calls >= 24
    assert _complete(lake_in(folder))
    assert tables(on, lake_in(folder)) == tables(on, None)


def _complete(lake: Lake) -> bool:
    runs = {file.last for file in lake.manifest().files if file.name.startswith("curated/")}
    return len(runs) == 1 and all(lake.storage.read(file.name) for file in lake.manifest().files)


def test_tables_that_were_made_before_an_erasure_reached_the_lake_are_not_published(tmp_path: Path) -> None:
    on, lake = engine(MemoryStore()), lake_in(tmp_path)
    on.recorder.record(happenings(Random(3), 30))
    sync(on, lake)
    curate(on, lake, "default")
    person = ask(on, lake, "SELECT min(person) AS person FROM sessions")[0]["person"]
    with opened(on, lake, "default") as reading:
        zone = reading.zone
        assert zone is not None
        on.erasures.run("default", on.erasures.begin("default", person).id)
        sync(on, lake)
        with pytest.raises(Conflict, match="erasure"):
            zone.publish({"sessions": []})
    clean(lake, 10.0**10)
    assert not [path for path in tmp_path.rglob("*.parquet") if person.encode() in path.read_bytes()]
    assert person not in {row["person"] for row in ask(on, lake, "FROM feature_vectors")}
    curate(on, lake, "default")
    assert tables(on, lake) == tables(on, None)


def test_types_that_threadline_declares_have_columns_with_and_without_events() -> None:
    on = engine(MemoryStore())
    given = {"points": 7, "rule": "welcome"}
    on.recorder.record([staging.event("points_earned", {"user_id": "a"}, "1", properties=given)])
    assert ask(on, None, "SELECT p_points, p_rule, p_table FROM typed.points_earned") == [
        {"p_points": 7, "p_rule": "welcome", "p_table": None}
    ]
    assert ask(on, None, "SELECT p_journey, p_n FROM typed.journey_moved") == []


ROWS = "SELECT type, person, day, count(*) AS n FROM events WHERE type <> 'person_erased' GROUP BY ALL ORDER BY ALL"
FOLDED = "SELECT person, day, f_order, f_monetary_total FROM feature_vectors ORDER BY ALL"
EVENTS = "SELECT count(*) AS n FROM events"


@given(st.integers(), st.lists(st.sampled_from(["record", "merge", "split", "erase", "ask"]), min_size=3, max_size=10))
def test_without_a_lake_what_queries_keep_answers_as_the_log_does(seed: int, changes: list[str]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(log_copy, "TAIL_EVENTS", 5)
        patched.setattr(writing, "FOLDED_MAX", 2)
        random, store = Random(seed), MemoryStore()
        on = engine(store)
        kept = LakeCommands("", Path(folder, "columns"), "default", _no_catalogue)
        on.recorder.record(happenings(random, 12))
        for number, change in enumerate([*changes, "ask", "define", "ask"]):
            user, other = (f"user_id:u{random.randrange(5)}" for _ in range(2))
            with suppress(NotFound, InvalidValue, Conflict):
                if change == "record":
                    on.recorder.record(happenings(random, 8))
                elif change == "merge":
                    on.identity.merge("default", user, other, request=f"{number}", force=True)
                elif change == "split":
                    on.identity.split("default", user, [other], request=f"{number}")
                elif change == "erase":
                    on.erasures.run("default", on.erasures.begin("default", user).id)
                elif change == "define":
                    on = engine(store, DEFINITIONS + "  late: {aggregate: count, events: product_viewed}\n")
            if change == "ask":
                for query in (ROWS, FOLDED):
                    assert _rows(kept, on, query) == ask(on, None, query)


def test_without_a_lake_the_second_query_reads_what_is_new_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_copy, "TAIL_EVENTS", 20)
    on, columns = engine(MemoryStore()), tmp_path / "columns"
    on.recorder.record(happenings(Random(1), 15, workspaces=("default",)))
    kept, steps = LakeCommands("", columns, "default", _no_catalogue), list[tuple[int, int]]()
    assert len(_rows(kept, on, EVENTS)) == 1
    assert not columns.exists()  # all of it is read quickly
    on.recorder.record(happenings(Random(2), 25, workspaces=("default",)))
    entries = sum(1 for _ in feed_pages(on.store))
    for _ in range(2):
        with kept.query(on, EVENTS, lambda done, total: steps.append((done, total))) as (_, rows):
            assert list(rows) == [[row["n"]] for row in ask(on, None, EVENTS)]
    assert steps == [(entries, 0)]
    on.recorder.record(happenings(Random(3), 2, workspaces=("default",)))
    expected, begun = ask(on, None, EVENTS), set[int]()

    def noted(store: Any, manifest: Any, most: int) -> Any:
        begun.add(manifest.position)
        return read_range(store, manifest, most)

    monkeypatch.setattr(syncing, "read_range", noted)
    assert _rows(kept, on, EVENTS) == expected
    assert min(begun) == entries


def test_where_nothing_can_be_kept_a_query_is_answered_from_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_copy, "TAIL_EVENTS", 5)
    on = engine(MemoryStore())
    on.recorder.record(happenings(Random(1), 40))
    (tmp_path / "file").write_text("no folder can be made here")
    kept = LakeCommands("", tmp_path / "file", "default", _no_catalogue)
    assert _rows(kept, on, EVENTS) == ask(on, None, EVENTS)


def _no_catalogue(texts: Any) -> Any:
    raise AssertionError("a query folds by the definitions in force")


def _rows(kept: LakeCommands, on: Engine, query: str) -> list[dict[str, Any]]:
    with kept.query(on, query) as (names, rows):
        return [dict(zip(names, row, strict=True)) for row in rows]


def test_what_there_is_is_listed_and_described_without_folding_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    on = engine(MemoryStore())
    on.recorder.record(happenings(Random(7), 30))
    expected = ask(on, None, "FROM streak_distribution ORDER BY ALL")
    described = ask(on, None, "SELECT column_name FROM (DESCRIBE FROM feature_vectors)")
    assert len(expected) > 3
    with monkeypatch.context() as patched:
        patched.setattr("threadline.exports.curated.people.rows_of", None)
        shown = [row["name"] for row in ask(on, None, "SHOW TABLES")]
        folded = {"streak_snapshots", "content_totals", "feature_vectors"}
        assert {*QUERIES, "events", "uncounted_events", "identities", *folded} == set(shown)
        columns = [{"column_name": row["column_name"]} for row in ask(on, None, "DESCRIBE feature_vectors")]
        assert columns == described
    assert ask(on, None, "FROM streak_distribution ORDER BY ALL -- show, describe") == expected
    again = [
        "SHOW TABLES",
        "FROM streak_distribution ORDER BY ALL",
        "DESC streak_snapshots",
        "FROM streak_distribution ORDER BY  ALL",
    ]
    many = ask_all(on, None, again)
    assert many[again[1]] == many[again[3]] == expected


def test_other_definitions_make_other_rows_of_everybody(tmp_path: Path) -> None:
    kept = MemoryStore()
    on, lake = engine(kept), lake_in(tmp_path)
    on.recorder.record(happenings(Random(4), 20))
    curate(on, lake, "default")
    other = engine(kept, "features: {views: {aggregate: count, events: product_viewed}}\n")
    assert tables(other, lake) == tables(other, None)
    assert sum(row["f_views"] for row in ask(other, lake, "FROM feature_vectors")) > 0


def test_the_command_prints_tables_json_and_csv(store: Path, call: Any, tmp_path: Path) -> None:
    query = "SELECT day, count(*) AS people, [1, 2.5] AS list, NULL AS nothing FROM daily_activity GROUP BY day"
    assert "people" in call("sql", query).out
    (row,) = map(json.loads, call("sql", query, "--format", "json").out.splitlines())
    assert (row["people"], row["list"], row["nothing"]) == (1, [1, 2.5], None)
    rows = list(csv.reader(io.StringIO(call("sql", query, "--format", "csv").out)))
    assert rows[0] == ["day", "people", "list", "nothing"]
    assert rows[1][1:] == ["1", "[1,2.5]", ""]
    lake = str(tmp_path / "lake")
    assert "purchase" not in call("lake", "curate", "--lake", lake).out
    assert "MERGE INTO" in call("lake", "warehouse", "redshift", "--lake", lake, "--schema", "s", "--role", "r").out
    assert call("lake", "warehouse", "dbt", "--lake", lake).out.startswith("version: 2")
    wrong = call("sql", "SELEC 1")
    assert wrong.code != 0
    assert "syntax error" in wrong.err
    without = call("lake", "curate")
    assert "THREADLINE_LAKE" in without.err
