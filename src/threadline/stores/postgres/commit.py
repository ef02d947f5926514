"""Commits to PostgreSQL: play the batches on a guess of what is there, have it carried out if the guess was right.

What a batch expects is nearly always so, because whoever made it has just read it. So a commit is one statement: the
plan, and the versions it was made on. If one of these is another, nothing happens, and the next plan is made on what
was read, under locks, within a transaction that takes two more questions.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from threadline.kernel.errors import StoreBusy
from threadline.kernel.store import Batch, Check, Delete, Key, LogEntry, Put, Refusal
from threadline.stores import compression
from threadline.stores.plan import Plan, decide
from threadline.stores.postgres.connection import Collided, Connections, Lost, Patience
from threadline.stores.postgres.rows import Ask, Row, Tables, columns, utf8

_INT_BYTES = "%b::int[], %b::bytea[], %b::bytea[]"
_APPLY = f"""SELECT apply_1(%s, %s, {_INT_BYTES}, %b::bigint[], %b::bigint[], %b::bytea[],
    {_INT_BYTES}, %b::bigint[], %b::bytea[], {_INT_BYTES}, %b::bigint[], %b::bytea[],
    %b::int[], %b::bytea[], %b::bigint[], %b::bigint[], %b::bytea[], %b::bytea[], %b::bigint[], %b::bytea[])"""
_LOOK = f"SELECT * FROM look_1({_INT_BYTES}, %b::bytea[])"  # noqa: S608 - a text of our own
# Either this row cannot be written, because the commit is there; or it can, and then the commit can never be there any
# more, even if the server comes to it only now. If the server is at it right now, this waits for the end.
_CLAIM = "INSERT INTO commits (client, serial, events) VALUES (%s, %s, -1) ON CONFLICT DO NOTHING"
_CLAIMED = "SELECT events = -1 FROM commits WHERE client = %s AND serial = %s"

Versions = Mapping[Key, int]


class Commits:
    """The commits of one process. Thread-safe; the outcome of each is known, whatever happens to the connection."""

    def __init__(self, connections: Connections, tables: Tables) -> None:
        self._connections = connections
        self._tables = tables
        self._client = secrets.randbits(63)
        self._serials = count(1)

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`."""
        writes = _writes_by_key(batches)
        if not writes and not any(batch.events for batch in batches):
            return [None] * len(batches)
        numbers = self._tables.learn(self._connections.ask, {key.table for key in writes})
        versions: Versions = {key: kinds[0].expected or 0 for key, kinds in writes.items() if not _is_free(kinds)}
        plan = decide(batches, versions, frozenset())
        items = _item_columns(batches, plan, versions, numbers)

        def try_guess(serial: int) -> bool:
            return self._apply(self._connections.ask_once, serial, plan, items)

        # A refusal is never answered on a guess: it must come from what was read.
        if not any(plan.outcomes) and self._settled(try_guess):
            return plan.outcomes
        return self._commit_locked(batches, sorted(versions), numbers)

    def _commit_locked(
        self, batches: Sequence[Batch], keys: Sequence[Key], numbers: Mapping[str, int]
    ) -> list[Refusal | None]:
        """Somebody else changes the same items: keep them from it between looking and writing."""
        ids = [bytes.fromhex(entry.id) for batch in batches for entry in batch.events]
        wanted = [*columns(sorted(_packed(key, numbers) for key in keys), 3), ids]
        names = {number: table for table, number in numbers.items()}
        outcomes: list[Refusal | None] = []

        def try_once(serial: int) -> bool:
            with self._connections.transaction() as ask:
                versions, taken = _read(keys, ask(_LOOK, wanted), names)
                plan = decide(batches, versions, taken)
                outcomes[:] = plan.outcomes
                items = _item_columns(batches, plan, versions, numbers)
                return all(outcomes) or self._apply(ask, serial, plan, items)

        patience = Patience(self._connections.wait_seconds)
        while not self._settled(try_once):
            patience.wait(
                StoreBusy(f"others keep changing the same items at {self._connections.address}; send it again")
            )
        return outcomes

    def _settled(self, work: Callable[[int], bool]) -> bool:
        """Whether it was done, under a serial of its own; if not, nothing was, nor ever will be."""
        serial = next(self._serials)
        try:
            return work(serial)
        except Collided:
            return False
        except Lost:
            # Two questions, for the answer to the first may be lost as well: it may be asked twice, and the second too.
            self._connections.ask(_CLAIM, (self._client, serial))
            [(claimed,)] = self._connections.ask(_CLAIMED, (self._client, serial))
            return not claimed

    def _apply(self, ask: Ask, serial: int, plan: Plan, items: Sequence[list[Any]]) -> bool:
        return bool(ask(_APPLY, (self._client, serial, *items, *_log_columns(plan.entries)))[0][0])


def _read(keys: Sequence[Key], rows: Sequence[Row], names: Mapping[int, str]) -> tuple[Versions, set[str]]:
    """The versions of items and which ids are taken, from the rows of `look_1`."""
    versions = dict.fromkeys(keys, 0)
    taken: set[str] = set()
    for tbl, partition, sort, version in rows:
        if tbl is None:
            taken.add(partition.hex())
        else:
            versions[Key(names[tbl], partition.decode(), sort.decode())] = version
    return versions, taken


def _writes_by_key(batches: Sequence[Batch]) -> dict[Key, list[Put | Delete | Check]]:
    writes: dict[Key, list[Put | Delete | Check]] = {}
    for batch in batches:
        for write in batch.writes:
            writes.setdefault(write.key, []).append(write)
    return writes


def _is_free(writes: Sequence[Put | Delete | Check]) -> bool:
    """Whether it does not matter if the item is there, and at which version: only then need it not be guessed."""
    return all(
        write.expected is None and type(write) is type(writes[0]) and (not isinstance(write, Put) or write.begins == 1)
        for write in writes
    )


def _item_columns(
    batches: Sequence[Batch], plan: Plan, versions: Versions, numbers: Mapping[str, int]
) -> list[list[Any]]:
    """What becomes of items, in the three lists of `apply_1`: the version now if it matters, then the version then.

    A version then of 0 is for what will be absent, of None for what is only checked.
    """
    old: list[Row] = []
    new: list[Row] = []
    free: list[Row] = []
    committed = (batch for batch, refusal in zip(batches, plan.outcomes, strict=True) if refusal is None)
    keys = list({write.key for batch in committed for write in batch.writes})
    written = [(plan.items[key] or (0, b"")) if key in plan.items else (None, b"") for key in keys]
    values = compression.values.compressed([value for _, value in written])
    for key, (version, _), value in zip(keys, written, values, strict=True):
        now, packed = versions.get(key), _packed(key, numbers)
        if now is None and version:
            free.append((*packed, version, value))
        elif now is None or now > 0:
            old.append((*packed, now, version, value))
        else:
            new.append((*packed, version or 0, value))
    # Everybody locks in this order; no place is there twice, so nothing beyond it is ever compared.
    return [*columns(sorted(old), 6), *columns(sorted(new), 5), *columns(sorted(free), 5)]


def _log_columns(entries: Sequence[LogEntry]) -> list[list[Any]]:
    """The log's rows in the order of ids, in which everybody inserts; ``ordinal`` keeps the order of the commit."""
    unhex = bytes.fromhex
    bodies = compression.bodies.compressed([entry.body for entry in entries])
    rows = [
        (ordinal, unhex(e.thread), e.sequence, e.occurred_at, utf8(e.type), unhex(e.id), e.digest, body)
        for ordinal, (e, body) in enumerate(zip(entries, bodies, strict=True), 1)
    ]
    return columns(sorted(rows, key=lambda row: row[5]), 8)


def _packed(key: Key, numbers: Mapping[str, int]) -> tuple[int, bytes, bytes]:
    return numbers[key.table], utf8(key.partition), utf8(key.sort)
