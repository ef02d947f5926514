"""The fair opponent on PostgreSQL: one hand-written table, a unique idempotency key and a (person, time) index."""

from __future__ import annotations

from hashlib import blake2b

import msgspec
import psycopg

from bench.side import strongest
from threadline.kernel.event import Event

_SCHEMA = """
CREATE TABLE IF NOT EXISTS handwritten (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key bytea NOT NULL UNIQUE, person text NOT NULL,
    occurred_at bigint NOT NULL, type text NOT NULL, body bytea NOT NULL
);
CREATE INDEX IF NOT EXISTS handwritten_person ON handwritten (person, occurred_at)"""
# The fastest form that ignores duplicates: one statement for a batch, its arrays in binary. COPY cannot ignore them.
_INSERT = """INSERT INTO handwritten (key, person, occurred_at, type, body)
    SELECT * FROM unnest(%b::bytea[], %b::text[], %b::bigint[], %b::text[], %b::bytea[]) ON CONFLICT (key) DO NOTHING"""


class HandwrittenPostgres:
    """Appends and nothing else: no identity, no projection, no receipt. Each batch is one synced transaction."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url.partition("&schema=")[0], autocommit=True)
        self._encode = msgspec.json.Encoder().encode

    def make(self) -> None:
        """Make the table, once."""
        self._connection.execute(_SCHEMA)

    def record(self, events: list[Event]) -> None:
        """One statement."""
        encode = self._encode
        keys = [blake2b(f"{e.workspace}\0{e.source}\0{e.key}".encode(), digest_size=16).digest() for e in events]
        bodies = [encode((e.identifiers, e.received_at, e.properties, e.context)) for e in events]
        columns = (keys, [strongest(e) for e in events], [e.occurred_at for e in events], [e.type for e in events])
        self._connection.execute(_INSERT, (*columns, bodies))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
