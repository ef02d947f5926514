"""Items as rows of SQLite, and the few, fat statements that move rows of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any
from zlib import crc32

from threadline.kernel.errors import StoreDamaged
from threadline.kernel.store import Item, Key
from threadline.stores import compression
from threadline.stores.plan import Plan

ROWS_MAX = 256
"""Rows of one statement. SQLite gives up the interpreter's lock at each statement: few, fat ones."""
ROWS_REMEMBERED = 50_000
SCHEMA_VERSION = 3
APPLICATION_ID = 0x5468_726C
"""``Thrl``: how ``file`` and we tell a store from any other SQLite file."""

Row = tuple[Any, ...]
Place = tuple[int, int]
"""The number of an item's row, and the item's version."""
Ask = Callable[[str, Sequence[Any]], list[Row]]
"""Runs one statement with its values and gives all its rows."""

# Events are wide and come in time order, items are wide and change often: both stand in rowid tables with narrow
# indexes beside them, for clustering either by its key was measured slower. The indexes of the log are tables of their
# own because they are filled later than the log, in key order: see `sqlite_log`. There is none for the uniqueness of
# (thread, sequence), which would cost a page write per event for what the engine's conditions give already.
SCHEMA = f"""
BEGIN;
CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE log (
    position INTEGER PRIMARY KEY, thread BLOB NOT NULL, sequence INTEGER NOT NULL, occurred_at INTEGER NOT NULL,
    type INTEGER NOT NULL, id BLOB NOT NULL, digest INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE TABLE event_id (id BLOB PRIMARY KEY, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE place (
    thread BLOB NOT NULL, occurred_at INTEGER NOT NULL, sequence INTEGER NOT NULL, type INTEGER NOT NULL,
    position INTEGER NOT NULL, PRIMARY KEY (thread, occurred_at, sequence, type, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE indexed (position INTEGER NOT NULL) STRICT;
INSERT INTO indexed VALUES (0);
CREATE TABLE item (
    id INTEGER PRIMARY KEY, tbl INTEGER NOT NULL, partition TEXT NOT NULL, sort TEXT NOT NULL,
    version INTEGER NOT NULL, value BLOB NOT NULL, crc INTEGER
) STRICT;
CREATE UNIQUE INDEX item_key ON item (tbl, partition, sort);
CREATE TABLE store_id (id BLOB NOT NULL) STRICT;
INSERT INTO store_id VALUES (randomblob(16));
CREATE TABLE remains (possible INTEGER NOT NULL) STRICT;
INSERT INTO remains VALUES (0);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""  # noqa: S608 - two numbers of our own are all that is put in

UPGRADES = {
    1: """BEGIN IMMEDIATE;
ALTER TABLE item ADD COLUMN crc INTEGER;
CREATE TABLE store_id (id BLOB NOT NULL) STRICT;
INSERT INTO store_id VALUES (randomblob(16));
CREATE TABLE remains (possible INTEGER NOT NULL) STRICT;
INSERT INTO remains VALUES (1);
PRAGMA user_version = 2;
COMMIT;""",
    2: "PRAGMA user_version = 3;",
}
"""Layout -> what makes the next one of it. 2: checksums of items, NULL where none was made yet; the store has an id;
``remains`` says whether deleted rows may still be in free space: the file was written without ``secure_delete``.
3: values and bodies may be compressed; those that are not stay as they are until they are written again."""

TABLES = "SELECT text FROM name WHERE EXISTS (SELECT 1 FROM item WHERE item.tbl = name.id) ORDER BY text"
OF_SHARD = "tbl = ? AND ((id & 0xFFFFFFFF) * 1640531527 >> 20) % ? = ?"
"""Hashed, because tables that are written in turn would each have every other row number only."""
_AFTER_ROW = """SELECT item.id, name.text, item.partition, item.sort, item.version, item.value, item.crc
    FROM item LEFT JOIN name ON name.id = item.tbl WHERE item.id > ? ORDER BY item.id LIMIT ?"""
_PAGE_ROWS = 200
_FAULTS_MAX = 100
# CROSS JOIN keeps the few rows asked for as the outer loop; rows of NULL, which only fill up, meet nothing.
_GET = """SELECT item.tbl, item.partition, item.sort, item.version, item.value, item.crc
    FROM (VALUES {rows}) AS v CROSS JOIN item
    ON item.tbl = v.column1 AND item.partition = v.column2 AND item.sort = v.column3"""
_PLACES = _GET.replace("item.value, item.crc", "item.id")
_INSERT = """INSERT INTO item (tbl, partition, sort, version, value, crc)
    SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL"""
_UPDATE = """UPDATE item SET version = v.column2, value = v.column3, crc = v.column4 FROM (VALUES {rows}) AS v
    WHERE item.id = v.column1"""
_DELETE = "DELETE FROM item WHERE id IN (VALUES {rows})"


def upgrade(ask: Ask, version: int) -> None:
    """Bring a file of an earlier layout up to this one, a layout at a time."""
    while version in UPGRADES:
        ask(UPGRADES[version], ())
        version += 1


def fat(sql: str, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Statements, with their parameters, that hand all rows over in few calls.

    ``{rows}`` in the text stands where the list of a VALUES clause goes. Lists are filled up with rows of NULL to a
    power of two, so that there are nine shapes of each statement to prepare; the text must ignore such rows.
    """
    for start in range(0, len(rows), ROWS_MAX):
        chunk = rows[start : start + ROWS_MAX]
        width = len(chunk[0])
        count = 1 << (len(chunk) - 1).bit_length()
        flat = list(chain.from_iterable(chunk))
        flat.extend([None] * (width * (count - len(chunk))))
        yield _shaped(sql, width, count), flat


@lru_cache(maxsize=256)
def _shaped(sql: str, width: int, count: int) -> str:
    row = "(" + ",".join("?" * width) + ")"
    return sql.replace("{rows}", ",".join([row] * count))


def items(ask: Ask, keys: Sequence[Key], names: Mapping[str, int | None]) -> dict[Key, Item]:
    """Those items that exist, by key."""
    rows = ((key, row[3], row[4], row[5]) for key, row in _items(ask, _GET, keys, names))
    return {item.key: item for item in checked(rows)}


def checked(rows: Iterable[tuple[Key, int, bytes, int | None]]) -> list[Item]:
    """The items of rows (key, version, stored value, checksum). Raises `StoreDamaged` for one that is not as it was
    written."""
    read = list(rows)
    for key, version, stored, crc in read:
        # As `checksum` does, without a call: a microsecond an item is what it may cost.
        try:
            seen = crc32(stored, crc32(f"{key[0]}\0{key[1]}\0{key[2]}\0{version}".encode()))
        except TypeError:
            raise compression.item_damaged(key, version) from None  # a flipped bit can make a text of it
        if crc != seen and crc is not None:
            raise compression.item_damaged(key, version)
    return compression.items(row[:3] for row in read)


def checksum(key: Key, version: int, stored: bytes) -> int:
    """Of a whole row, its value as it is stored: under another key it would be as wrong as with a flipped bit."""
    return crc32(stored, crc32(f"{key[0]}\0{key[1]}\0{key[2]}\0{version}".encode()))


def places(ask: Ask, keys: Sequence[Key], names: Mapping[str, int | None]) -> dict[Key, Place]:
    """Where those items stand that exist."""
    return {key: (row[4], row[3]) for key, row in _items(ask, _PLACES, keys, names)}


def _items(ask: Ask, sql: str, keys: Sequence[Key], names: Mapping[str, int | None]) -> Iterator[tuple[Key, Row]]:
    tables = {number: table for table, number in names.items()}
    for statement, values in fat(sql, [(names[table], partition, sort) for table, partition, sort in keys]):
        for row in ask(statement, values):
            # A damaged row may be of a table that nobody asked for: then its checksum is not that of this key.
            yield Key(tables.get(row[0], ""), row[1], row[2]), row


class RowMemory:
    """Where items stand that were written lately, and their versions. Right as long as nobody else writes to the file.

    Not thread-safe: used under the writing lock. It saves looking every item up before it is written.
    """

    def __init__(self) -> None:
        self._known: dict[Key, Place] = {}

    def places(self, ask: Ask, keys: Sequence[Key], names: Mapping[str, int | None]) -> dict[Key, Place]:
        """As the function of that name."""
        known = self._known
        result = {key: known[key] for key in keys if key in known}
        if len(result) < len(keys):
            result.update(places(ask, [key for key in keys if key not in result], names))
        return result

    def written(self, plan: Plan, before: Mapping[Key, Place]) -> None:
        """Remember how a commit left what it touched."""
        known = self._known
        if len(known) > ROWS_REMEMBERED:
            known.clear()
        for key, after in plan.items.items():
            stored = before.get(key)
            if after is not None and stored is not None:
                known[key] = (stored[0], after[0])
            else:
                known.pop(key, None)

    def clear(self) -> None:
        """Forget everything: nobody knows what the file has now."""
        self._known.clear()


def write_items(
    ask: Ask, plan: Plan, before: Mapping[Key, Place], names: Mapping[str, int | None]
) -> tuple[int, int] | None:
    """Bring the items that a plan touched to their last state; ``before`` has the places of those that existed.

    Version and checksum of one that was written, if any was.
    """
    inserts: list[Row] = []
    updates: list[Row] = []
    puts = [(key, *after) for key, after in plan.items.items() if after is not None]
    deletes: list[Row] = [(before[key][0],) for key, after in plan.items.items() if after is None and key in before]
    values = compression.values.compressed([value for _, _, value in puts])
    for (key, version, _), value in zip(puts, values, strict=True):
        place, crc = before.get(key), checksum(key, version, value)
        if place is None:
            inserts.append((names[key.table], key.partition, key.sort, version, value, crc))
        else:
            updates.append((place[0], version, value, crc))
    write(ask, _DELETE, deletes)
    write(ask, _UPDATE, updates)
    write(ask, _INSERT, inserts)
    return next(((row[-3], row[-1]) for row in (*updates[-1:], *inserts[-1:])), None)


def write(ask: Ask, sql: str, rows: Sequence[Row]) -> None:
    """Hand all rows over to a statement with a VALUES list."""
    for statement, values in fat(sql, rows):
        ask(statement, values)


def faults(ask: Ask) -> list[str]:
    """What SQLite finds wrong with the file, a hundred lines at most; empty if nothing is. Reads all of it."""
    lines = (line for row in ask(f"PRAGMA integrity_check({_FAULTS_MAX})", ()) for line in str(row[0]).splitlines())
    return [line for line in lines if line != "ok" and not line.startswith("*** in database")]


def damaged_items(ask: Ask) -> list[str]:
    """The items that are not as they were written, a hundred at most. Reads all of them."""
    wrong: list[str] = []
    last = -1 << 63
    while len(wrong) < _FAULTS_MAX:
        rows = ask(_AFTER_ROW, (last, _PAGE_ROWS))
        if not rows:
            break
        if rows[-1][0] <= last:
            return [*wrong, f"the rows of items are not in their order after {last}"][:_FAULTS_MAX]
        last = rows[-1][0]
        for _, table, partition, sort, version, value, crc in rows:
            try:
                checked([(Key(str(table), partition, sort), version, value, crc)])
            except StoreDamaged as error:
                wrong.append(str(error))
    return wrong[:_FAULTS_MAX]
