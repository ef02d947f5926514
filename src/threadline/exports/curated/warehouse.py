"""SQL for warehouses, from the same schema: tables, loads that can be repeated, and a sources file for dbt."""

# Nothing that users send gets into these texts: names are quoted, values are our own.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from threadline.exports.curated.schema import Column, Kind, Table
from threadline.kernel.errors import InvalidValue

Dialect = Literal["redshift", "athena", "snowflake"]

_TYPES: Mapping[Dialect, Mapping[Kind, str]] = {
    "redshift": {
        "text": "VARCHAR(65535)", "integer": "BIGINT", "number": "DOUBLE PRECISION", "flag": "BOOLEAN",
        "instant": "TIMESTAMP", "day": "DATE", "json": "SUPER", "texts": "SUPER",
    },
    "athena": {
        "text": "string", "integer": "bigint", "number": "double", "flag": "boolean", "instant": "timestamp",
        "day": "date", "json": "string", "texts": "array<string>",
    },
    "snowflake": {
        "text": "VARCHAR", "integer": "NUMBER(38, 0)", "number": "DOUBLE", "flag": "BOOLEAN",
        "instant": "TIMESTAMP_TZ", "day": "DATE", "json": "VARIANT", "texts": "ARRAY",
    },
}  # fmt: skip
_NAME_LENGTH_MAX: Mapping[Dialect, int] = {"redshift": 127, "athena": 255, "snowflake": 255}
_DISTRIBUTED_BY = "person"


class Target(NamedTuple):
    """Where a warehouse keeps the tables, and from where it reads files."""

    schema: str = "threadline"
    location: str = "s3://BUCKET/lake"
    """The storage of the lake, without a slash at the end."""
    role: str = "arn:aws:iam::ACCOUNT:role/ROLE"
    """With which Redshift reads the files."""
    stage: str = "threadline_stage"
    """Snowflake's stage of the storage."""


class Files(NamedTuple):
    """The files of a table as they are now, and the name of the manifest that lists them for Redshift."""

    folder: str
    """Below the storage: the files are all that is in it."""
    names: Sequence[str]
    manifest: str


def statements(dialect: Dialect, table: Table, files: Files, target: Target) -> list[str]:
    """What creates a table if it is not there, and loads these files into it; repeating it changes nothing.

    Rows that are in no file any more (of an erased person, of people who were merged) are removed as well.
    """
    for name in (table.name, *(column.name for column in table.columns)):
        if len(name.encode()) > _NAME_LENGTH_MAX[dialect]:
            raise InvalidValue(f"{dialect} takes no name of more than {_NAME_LENGTH_MAX[dialect]} bytes: {name[:80]}…")
    writer = {"redshift": _Redshift, "athena": _Athena, "snowflake": _Snowflake}[dialect](table, files, target)
    return writer.statements()


class _Writer:
    """What dialects have in common."""

    dialect: Dialect

    def __init__(self, table: Table, files: Files, target: Target) -> None:
        self.table, self.files, self.target = table, files, target
        self.name = f"{self.quoted(target.schema)}.{self.quoted(table.name)}"
        self.staging = f"{self.quoted(target.schema)}.{self.quoted(f'{table.name}_staging')}"

    def quoted(self, name: str) -> str:
        """A name as this dialect writes it, whatever it contains."""
        escaped = name.replace('"', '""')
        return f'"{escaped}"'

    def statements(self) -> list[str]:
        """See `statements`."""
        raise NotImplementedError

    def columns(self, types: Mapping[Kind, str] | None = None) -> str:
        """The columns with their types, a line each."""
        kinds = types or _TYPES[self.dialect]
        return ",\n".join(f"  {self.quoted(column.name)} {kinds[column.kind]}" for column in self.table.columns)

    def merge(self, source: str, value: Any = None) -> str:
        """The files' rows into the table; ``value`` gives a column's expression in the source."""
        value = value or (lambda column: f"source.{self.quoted(column.name)}")
        rest = [column for column in self.table.columns if column.name not in self.table.key]
        names = ", ".join(self.quoted(column.name) for column in self.table.columns)
        # Redshift takes the table's own name only, so no dialect has an alias for it.
        same = " AND ".join(f"{self.name}.{self.quoted(key)} = source.{self.quoted(key)}" for key in self.table.key)
        values = ", ".join(value(column) for column in self.table.columns)
        updates = ", ".join(f"{self.quoted(column.name)} = {value(column)}" for column in rest)
        return (
            f"MERGE INTO {self.name} USING {source} AS source ON {same}\n"
            f"WHEN MATCHED THEN UPDATE SET {updates}\n"
            f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"
        )

    def removal(self, source: str) -> str:
        """Rows that are in no file any more out of the table."""
        same = " AND ".join(f"source.{self.quoted(key)} = {self.name}.{self.quoted(key)}" for key in self.table.key)
        return f"DELETE FROM {self.name} WHERE NOT EXISTS (SELECT 1 FROM {source} AS source WHERE {same})"


class _Redshift(_Writer):
    dialect: Dialect = "redshift"

    def statements(self) -> list[str]:
        spread = f"\nDISTKEY ({self.quoted(_DISTRIBUTED_BY)})" if self._has(_DISTRIBUTED_BY) else "\nDISTSTYLE ALL"
        staged = {**_TYPES["redshift"], "json": "VARCHAR(65535)"}
        manifest = _text(f"{self.target.location}/{self.files.manifest}")
        role, sort = _text(self.target.role), self.quoted(self.table.sort)
        return [
            f"CREATE SCHEMA IF NOT EXISTS {self.quoted(self.target.schema)}",
            f"CREATE TABLE IF NOT EXISTS {self.name} (\n{self.columns()}\n){spread}\nSORTKEY ({sort})",
            f"DROP TABLE IF EXISTS {self.staging}",
            f"CREATE TABLE {self.staging} (\n{self.columns(staged)}\n)",
            f"COPY {self.staging} FROM {manifest}\nIAM_ROLE {role}\nFORMAT AS PARQUET MANIFEST",
            "BEGIN",
            self.merge(self.staging, self._value),
            self.removal(self.staging),
            "COMMIT",
            f"DROP TABLE {self.staging}",
        ]

    def _has(self, name: str) -> bool:
        return any(column.name == name for column in self.table.columns)

    def _value(self, column: Column) -> str:
        name = f"source.{self.quoted(column.name)}"
        return f"JSON_PARSE({name})" if column.kind == "json" else name


class _Athena(_Writer):
    """An external table on the files, and an Iceberg table that they are merged into: only that can be changed."""

    dialect: Dialect = "athena"

    def quoted(self, name: str) -> str:
        # DDL is Hive's and wants backticks; what Trino runs wants quotes.
        return f"`{name.replace('`', '``')}`"

    def statements(self) -> list[str]:
        location = _text(f"{self.target.location}/{self.files.folder}/")
        tables = _text(f"{self.target.location}/tables/{self.table.name}/")
        iceberg = "TBLPROPERTIES ('table_type'='ICEBERG')"
        query = _Trino(self.table, self.files, self.target)
        return [
            f"CREATE DATABASE IF NOT EXISTS {self.quoted(self.target.schema)}",
            f"CREATE TABLE IF NOT EXISTS {self.name} (\n{self.columns()}\n)\nLOCATION {tables}\n{iceberg}",
            f"DROP TABLE IF EXISTS {self.staging}",
            f"CREATE EXTERNAL TABLE {self.staging} (\n{self.columns()}\n)\nSTORED AS PARQUET\nLOCATION {location}",
            query.merge(query.staging),
            query.removal(query.staging),
            f"DROP TABLE {self.staging}",
        ]


class _Trino(_Writer):
    dialect: Dialect = "athena"


class _Snowflake(_Writer):
    dialect: Dialect = "snowflake"

    def statements(self) -> list[str]:
        staged = {**_TYPES["snowflake"], "json": "VARCHAR"}
        folder = _text(f"@{self.target.stage}/{self.files.folder}/")
        form = "FILE_FORMAT = (TYPE = PARQUET) MATCH_BY_COLUMN_NAME = CASE_SENSITIVE"
        return [
            f"CREATE SCHEMA IF NOT EXISTS {self.quoted(self.target.schema)}",
            f"CREATE TABLE IF NOT EXISTS {self.name} (\n{self.columns()}\n)",
            f"CREATE OR REPLACE TEMPORARY TABLE {self.staging} (\n{self.columns(staged)}\n)",
            f"COPY INTO {self.staging} FROM {folder}\n{form}",
            "BEGIN",
            self.merge(self.staging, self._value),
            self.removal(self.staging),
            "COMMIT",
        ]

    def _value(self, column: Column) -> str:
        name = f"source.{self.quoted(column.name)}"
        return f"PARSE_JSON({name})" if column.kind == "json" else name


def _text(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def redshift_manifest(urls: Sequence[tuple[str, int]]) -> bytes:
    """The manifest of files (url, bytes) that COPY reads: no others, and all of them or none."""
    entries = [{"url": url, "mandatory": True, "meta": {"content_length": size}} for url, size in urls]
    return msgspec.json.format(msgspec.json.encode({"entries": entries}))


def dbt_sources(tables: Sequence[Table], target: Target) -> str:
    """The sources file of these tables, with a test of each key."""
    described = [
        {
            "name": table.name,
            "description": table.about,
            "columns": [
                {"name": column.name, "quote": True, "description": column.about, **_tests(table, column)}
                for column in table.columns
            ],
        }
        for table in tables
    ]
    sources = [{"name": "threadline", "schema": target.schema, "quoting": {"identifier": True}, "tables": described}]
    return msgspec.yaml.encode({"version": 2, "sources": sources}).decode()


def _tests(table: Table, column: Column) -> dict[str, Any]:
    if column.name not in table.key:
        return {}
    return {"data_tests": ["not_null", "unique"] if len(table.key) == 1 else ["not_null"]}
