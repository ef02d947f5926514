"""SQL for warehouses: it parses in their dialects, and run twice on changed files it leaves what the files have."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlglot
import yaml

from tests.exports.curated_stage import ask, engine, happenings, lake_in
from threadline.exports import duck
from threadline.exports.curated.schema import FIXED, Column, Table, feature_vectors
from threadline.exports.curated.warehouse import Dialect, Files, Target, dbt_sources, statements
from threadline.exports.curated.writing import curate, tables_of, warehouse_sql
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.stores.memory import MemoryStore

pytest.importorskip("duckdb")
DIALECTS: tuple[Dialect, ...] = ("redshift", "athena", "snowflake")
HOSTILE = ("select", "order", 'a"b', "a`b", "a'b", "x; drop table y", "ünï ☃", "A", "a", "1", " ")
WIDE = feature_vectors((f"feature_{number}", "sum", "") for number in range(300))
FILES = Files("curated/default/x/run", ["curated/default/x/run/part-00000.parquet"], "curated/default/x.manifest.json")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("table", [*FIXED, WIDE], ids=lambda table: table.name)
def test_every_statement_parses_in_its_dialect_as_what_it_is(dialect: Dialect, table: Table) -> None:
    for statement in statements(dialect, table, FILES, Target()):
        parsed = sqlglot.parse_one(statement, dialect=dialect)
        assert not isinstance(parsed, sqlglot.exp.Command), statement
        if isinstance(parsed, sqlglot.exp.Create) and isinstance(parsed.this, sqlglot.exp.Schema):
            assert [each.name for each in parsed.this.expressions] == [each.name for each in table.columns]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_hostile_and_reserved_names_are_names_and_nothing_else(dialect: Dialect) -> None:
    columns = tuple(Column(name, "text", "A column.") for name in HOSTILE)
    target = Target(schema="sch'e\"ma", location="s3://b/it's", role="r'ole", stage="s'tage")
    for statement in statements(dialect, Table("t", "A table.", columns, ("select",)), FILES, target):
        parsed = sqlglot.parse(statement, dialect=dialect)
        assert len(parsed) == 1, statement
        names = {each.name for each in parsed[0].find_all(sqlglot.exp.Identifier)}
        if statement.startswith(("MERGE", "CREATE TABLE", "CREATE OR REPLACE", "CREATE EXTERNAL")):
            assert set(HOSTILE) <= names


def test_a_name_that_is_too_long_for_a_warehouse_is_refused_before_anything_is_written() -> None:
    table = Table("t", "A table.", (Column("é" * 64, "text", "A column."),), ("k",))
    assert statements("snowflake", table, FILES, Target())
    with pytest.raises(InvalidValue, match="redshift takes no name of more than 127 bytes"):
        statements("redshift", table, FILES, Target())


def test_redshift_s_load_run_after_every_change_leaves_the_rows_of_the_files(tmp_path: Path) -> None:
    on, lake, random = engine(MemoryStore()), lake_in(tmp_path), Random(1)
    warehouse = duck.duckdb().connect()
    warehouse.execute("SET TimeZone = 'UTC'; CREATE MACRO json_parse(text) AS text::JSON")
    with pytest.raises(NotFound, match="no curated tables"):
        warehouse_sql(on, lake, "default", "redshift", Target())
    for step in range(3):
        on.recorder.record(happenings(random, 25))
        if step == 2:
            person = ask(on, lake, "SELECT min(person) AS person FROM sessions")[0]["person"]
            on.erasures.run("default", on.erasures.begin("default", person).id)
        curate(on, lake, "default")
        for statement in warehouse_sql(on, lake, "default", "redshift", Target(location=str(tmp_path))):
            _run_redshift(warehouse, statement)
        for table in tables_of(on):
            loaded = warehouse.execute(f"SELECT count(*) FROM threadline.{table.name}").fetchone()
            names = ", ".join(duck.name(each) for each in table.key)
            query = f"SELECT {names} FROM {{}} ORDER BY ALL"
            theirs = warehouse.execute(query.format(f"threadline.{table.name}")).to_arrow_table().to_pylist()
            assert loaded == (len(theirs),)
            files = [lake.storage.url(each.name) for each in lake.manifest().files if each.table == table.name]
            ours = warehouse.execute(query.format(f"read_parquet({files})")).to_arrow_table().to_pylist()
            assert theirs == ours, (step, table.name)


def _run_redshift(warehouse: Any, statement: str) -> None:
    """Run a statement for Redshift in DuckDB, which reads COPY's manifest here as Redshift does there."""
    if statement.startswith("COPY"):
        target, manifest = statement.split()[1], statement.split("'")[1]
        entries = yaml.safe_load(Path(manifest).read_text())["entries"]
        assert all(Path(each["url"]).stat().st_size == each["meta"]["content_length"] for each in entries)
        warehouse.execute(f"INSERT INTO {target} SELECT * FROM read_parquet({[each['url'] for each in entries]})")
    elif statement.startswith("CREATE TABLE"):
        warehouse.execute(statement.partition("\nDIST")[0].replace(" SUPER", " JSON"))
    else:
        warehouse.execute(statement)


def test_the_tables_are_read_back_by_their_key_and_in_the_declared_types(tmp_path: Path) -> None:
    on, lake = engine(MemoryStore()), lake_in(tmp_path)
    on.recorder.record(happenings(Random(2), 60))
    curate(on, lake, "default")
    types = {
        "text": "VARCHAR",
        "integer": "BIGINT",
        "number": "DOUBLE",
        "flag": "BOOLEAN",
        "day": "DATE",
        "instant": "TIMESTAMP WITH TIME ZONE",
        "json": "VARCHAR",
    }
    reader = duck.duckdb().connect()
    for table in tables_of(on):
        files = [lake.storage.url(each.name) for each in lake.manifest().files if each.table == table.name]
        described = reader.execute(f"DESCRIBE FROM read_parquet({files}, hive_partitioning = false)").fetchall()
        assert [(each[0], each[1]) for each in described] == [(each.name, types[each.kind]) for each in table.columns]
        key = ", ".join(map(duck.name, table.key))
        twice = f"SELECT {key} FROM read_parquet({files}) GROUP BY ALL HAVING count(*) > 1"
        assert reader.execute(twice).fetchall() == []


def test_dbt_s_sources_name_every_table_column_and_key() -> None:
    sources = yaml.safe_load(dbt_sources([*FIXED, WIDE], Target(schema="on")))
    (source,) = sources["sources"]
    assert (sources["version"], source["schema"]) == (2, "on")
    found = {table["name"]: [each["name"] for each in table["columns"]] for table in source["tables"]}
    assert found == {table.name: [each.name for each in table.columns] for table in [*FIXED, WIDE]}
    tests = {each["name"]: each.get("data_tests") for each in source["tables"][0]["columns"]}
    assert (tests["session"], tests["person"]) == (["not_null", "unique"], None)
