"""What docs/postgres.md says removes an erased event's bytes from a server's own files does so."""

from __future__ import annotations

import os
import re

import psycopg

from tests.servers import postgres
from threadline.kernel.store import Batch, Delete, Key, Put
from threadline.stores.postgres.store import PostgresStore
from threadline.testing.store_cases import entry

_MARKER = re.compile(rb"<mark \d+>")
STEPS = (
    "ALTER SYSTEM SET wal_recycle = off",
    "SELECT pg_reload_conf()",
    "VACUUM (FULL, FREEZE) threadline_remains.log",
    "VACUUM (FULL, FREEZE) threadline_remains.item",
    "SELECT pg_switch_wal()",
    "CHECKPOINT",
    "CHECKPOINT",
    "ALTER SYSTEM RESET wal_recycle",
    "SELECT pg_reload_conf()",
)


def test_the_steps_of_the_page_leave_nothing_of_what_is_erased() -> None:
    server = postgres.fresh("18", postgres.memory())
    try:
        store = PostgresStore(server.made("threadline_remains"))
        for number in range(1, 201):
            body = b"<mark %d>" % number + os.urandom(3_000 if number % 10 == 0 else 100)
            key = Key("t", f"{number}")
            assert store.commit([Batch([entry(number, body=body)], [Put(key, body)])]) == [None]
        with psycopg.connect(server.url("x").partition("&schema=")[0], autocommit=True) as db:
            db.execute("CHECKPOINT")
            everything = {b"<mark %d>" % number for number in range(1, 201)}
            assert remains(server) == everything
            gone = range(1, 101)
            assert store.erase([entry(number).id for number in gone]) == 100
            assert store.commit([Batch(writes=[Delete(Key("t", f"{number}")) for number in gone])]) == [None]
            store.purge()
            assert remains(server) == everything, "the rows are gone for every reader, their bytes are not"
            for step in STEPS:
                db.execute(step)
        assert remains(server) == {b"<mark %d>" % number for number in range(101, 201)}
        assert store.integrity() == []
        store.close()
    finally:
        postgres.end(server)


def remains(server: postgres.Server) -> set[bytes]:
    """The markers in every file of the server."""
    return {found for file in server.data.rglob("*") if file.is_file() for found in _MARKER.findall(file.read_bytes())}
