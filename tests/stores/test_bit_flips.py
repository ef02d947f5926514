"""No flipped bit goes unnoticed: of every region of a store's files, whatever a reader could see is found by verify.

A seed draws the flips: THREADLINE_TEST_FLIPS=400 tries as many on all stores together, here it is a few.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import apsw
import psycopg
import pytest

from tests.laws.staging import CATALOGUE
from tests.servers import dynamodb, postgres
from tests.stores.bit_flips import Flip, classify, fill, flip_at, flip_bytes, flip_entry, flip_file, see
from threadline.kernel.store import Store
from threadline.kernel.time import system_clock
from threadline.stores.dynamodb import layout
from threadline.stores.dynamodb.store import DynamoStore
from threadline.stores.memory import MemoryStore
from threadline.stores.postgres.store import PostgresStore
from threadline.stores.sqlite.store import PAGE_BYTES, SqliteStore

FLIPS = int(os.environ.get("THREADLINE_TEST_FLIPS", "18"))
OTHERS = FLIPS // 6
"""On each of the other stores; half of all are on SQLite."""
SCHEMAS_AT_ONCE = 8
"""A server of PostgreSQL is stopped for each round of flips: one in each of so many schemas."""


def assert_noticed(flips: list[Flip], record: Callable[[str, object], None]) -> None:
    """None of these went unnoticed. How many of which kind is noted in the report."""
    counts = Counter(flip.outcome for flip in flips)
    record("flips", ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())))
    assert [flip for flip in flips if flip.outcome == "unnoticed"] == []
    assert counts["noticed"], "else nothing was tried"


def test_sqlite_notices_every_flip_that_a_reader_sees(
    seed: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    random, path = Random(seed), tmp_path / "x.db"
    store = SqliteStore(path, tail_entries_max=64)
    fill(store, random)
    before = see(store)
    store.close()
    regions = _regions(path)
    flips = []
    for number in range(FLIPS // 2):
        # Each region in turn, and every second time any place: most of the file is content.
        region = sorted(regions)[number // 2 % len(regions)] if number % 2 else "anywhere"
        start, length = random.choice(regions[region]) if number % 2 else (0, path.stat().st_size)
        copy = tmp_path / f"{number}" / "x.db"
        copy.parent.mkdir()
        shutil.copy(path, copy)
        where = flip_at(copy, start + random.randrange(length), random.randrange(8))
        flips.append(classify(f"{region}, {where}", before, partial(SqliteStore, copy, readonly=True), CATALOGUE))
        shutil.rmtree(copy.parent)
    assert_noticed(flips, record_property)


def _regions(path: Path) -> dict[str, list[tuple[int, int]]]:
    """The regions of a store's file: its header, what each table and index has of each kind of page, what is free."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found: dict[str, list[tuple[int, int]]] = {"header": [(0, 100)]}
    used = {1}
    for name, number, kind in db.execute("SELECT name, pageno, pagetype FROM dbstat"):
        used.add(number)
        found.setdefault(f"{name} {kind}", []).append(((number - 1) * PAGE_BYTES, PAGE_BYTES))
    pages = path.stat().st_size // PAGE_BYTES
    found["free"] = [((number - 1) * PAGE_BYTES, PAGE_BYTES) for number in range(1, pages + 1) if number not in used]
    db.close()
    assert found["free"], "nothing was ever deleted"
    assert {"log overflow", "log leaf", "item overflow", "item_key leaf", "place leaf", "event_id leaf"} <= found.keys()
    return found


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    """A server with checksums of its pages, to be stopped and started."""
    made = postgres.fresh("18", postgres.memory())
    yield made
    postgres.end(made)


def test_postgres_notices_every_flip_that_a_reader_sees(
    server: postgres.Server, seed: int, record_property: Callable[[str, object], None]
) -> None:
    random, flips = Random(seed), list[Flip]()
    for start in range(0, OTHERS, SCHEMAS_AT_ONCE):
        schemas = [f"s{number}" for number in range(start, min(OTHERS, start + SCHEMAS_AT_ONCE))]
        before, files = {}, {}
        for schema in schemas:
            store = PostgresStore(server.made(schema))
            fill(store, random, people=4)
            before[schema] = see(store)
            store.close()
            files[schema] = _files(server, schema)
        server.stop()
        where = {}
        for number, schema in enumerate(schemas, start):
            name = sorted(files[schema])[number % len(files[schema])]
            where[schema] = f"{name}, {flip_file(files[schema][name], random)}"
        server.start()
        for schema in schemas:
            opened = partial(PostgresStore, server.url(schema), retry_seconds=2.0)
            flips.append(classify(where[schema], before[schema], opened, CATALOGUE))
    assert_noticed(flips, record_property)


def _files(server: postgres.Server, schema: str) -> dict[str, Path]:
    """The files of a schema's tables of events and items, of their indexes and of their long values."""
    with psycopg.connect(server.url(schema).partition("&schema=")[0], autocommit=True) as db:
        assert db.execute("SHOW data_checksums").fetchone() == ("on",)
        db.execute("CHECKPOINT")
        rows = db.execute(
            """WITH own AS (
                SELECT oid, relname, reltoastrelid FROM pg_class
                WHERE relnamespace = %s::regnamespace AND relname IN ('log', 'item', 'commits')
            ), tables AS (
                SELECT oid, relname FROM own UNION ALL SELECT reltoastrelid, relname || ' toast' FROM own
                WHERE reltoastrelid <> 0
            ) SELECT relname, pg_relation_filepath(oid) FROM tables
            UNION ALL SELECT tables.relname || ' ' || indexrelid::regclass, pg_relation_filepath(indexrelid)
                FROM tables JOIN pg_index ON indrelid = tables.oid""",
            (schema,),
        ).fetchall()
    found = {name: server.data / path for name, path in rows}
    return {name: path for name, path in found.items() if path.stat().st_size}


def test_dynamodb_notices_every_flip_in_the_log(
    seed: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    random = Random(seed)
    url = dynamodb.ministack().made(tmp_path)
    store = DynamoStore(url, system_clock)
    fill(store, random, people=2)
    store.close()
    store = DynamoStore(url, system_clock)
    before, flips = see(store), []
    table = store.client.address.table
    raw = [item for item in store.client.call("Scan", {"TableName": table})["Items"] if item["pk"]["S"][0] in "te"]
    for item in random.choices(sorted(raw, key=str), k=OTHERS):
        name = random.choice(sorted(item.keys() - {layout.PK, layout.SK}))
        [(kind, value)] = item[name].items()
        changed = {**item, name: {kind: _flipped(kind, value, random)}}
        store.client.call("PutItem", {"TableName": table, "Item": changed})
        where = f"{item['pk']['S']} {name}"
        flips.append(classify(where, before, lambda: DynamoStore(url, system_clock, readonly=True), CATALOGUE))
        store.client.call("PutItem", {"TableName": table, "Item": item})
    assert see(store, before)[:2] == before[:2]
    store.close()
    assert_noticed(flips, record_property)


def _flipped(kind: str, value: str, random: Random) -> object:
    if kind == "B":
        return layout.b64encode(flip_bytes(layout.b64decode(value), random)).decode()
    if kind == "N":
        return str(int(value) ^ 1 << random.randrange(62))
    return flip_bytes(value.encode(), random).decode("latin-1")


class _Kept(MemoryStore):
    """A store that is not closed between two looks."""

    def close(self) -> None:
        """Nothing."""


def test_the_memory_store_notices_every_flip_of_an_event(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    random, store, flips = Random(seed), _Kept(), []
    fill(store, random)
    before = see(store)
    for _ in range(OTHERS):
        place = random.randrange(len(store._log))
        whole = store._log[place]
        store._log[place] = flip_entry(whole, random)
        opened: Callable[[], Store] = lambda: store  # noqa: E731
        flips.append(classify(f"entry {place}", before, opened, CATALOGUE))
        store._log[place] = whole
    assert_noticed(flips, record_property)
    assert {flip.outcome for flip in flips} == {"noticed"}
