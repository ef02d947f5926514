"""A store on each version of PostgreSQL, and strangers who connect to its server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.servers import postgres
from threadline.stores.postgres.store import PostgresStore


@pytest.fixture
def url(version: str, tmp_path: Path) -> str:
    return postgres.server(version).made(postgres.schema_of(tmp_path))


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    made = PostgresStore(url)
    yield made
    made.close()


def connect(version: str, schema: str = "public") -> psycopg.Connection[tuple[object, ...]]:
    """A connection of a stranger."""
    return psycopg.connect(
        host=str(postgres.server(version).folder), user="postgres", dbname="postgres", options=f"-csearch_path={schema}"
    )
