"""Compressed rows: what was given comes back, what is damaged is said to be, and rows of former versions are read."""

from __future__ import annotations

import hashlib
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import apsw
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from threadline.kernel.errors import InvalidSetting, StoreDamaged, Unavailable
from threadline.kernel.store import Batch, Key, LogEntry, Put, Store
from threadline.stores import compression
from threadline.stores.compression import (
    BYTES_MIN,
    CONTENT_BYTES_MAX,
    TOGETHER_MIN,
    ZSTD_START,
    Compression,
    RowDamaged,
)
from threadline.stores.sqlite.rows import SCHEMA_VERSION
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import entry

RELEASED = {1: "bd25432a45448321", 2: "f66662776f1644ec"}
"""Rows of released versions name these."""
KINDS = [compression.bodies, compression.values]
BODY = b'[{"type":"product_viewed","identifiers":[["user_id","ada"]],"properties":{"sku":"A-1","price":%d}},0,"",1]'

_starts = st.sampled_from([b"", ZSTD_START, ZSTD_START + b"\x25\x01", BODY % 7])
_contents = st.builds(
    lambda start, rest, times: start + rest * times, _starts, st.binary(max_size=90), st.integers(0, 40)
)
_times = st.sampled_from([1, 1, TOGETHER_MIN])


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(_contents, max_size=8), _times)
def test_compressed_rows_restore_whatever_they_were_made_of(kind: Compression, some: list[bytes], times: int) -> None:
    contents = some * times
    rows = kind.compressed(contents)
    assert kind.restored(rows) == contents
    assert kind.readable(rows) == contents
    assert [kind.restored([row])[0] for row in rows] == contents
    assert [kind.compressed([content])[0] for content in contents] == rows
    assert all(
        len(row) <= len(content) for row, content in zip(rows, contents, strict=True) if content[:4] != ZSTD_START
    )


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(_contents.filter(lambda content: content[:4] != ZSTD_START), max_size=8), _times, st.randoms())
def test_rows_that_were_never_compressed_are_read_among_others(
    kind: Compression, some: list[bytes], times: int, random: Random
) -> None:
    contents = some * times
    rows = [
        content if random.random() < 0.5 else row
        for content, row in zip(contents, kind.compressed(contents), strict=True)
    ]
    assert kind.restored(rows) == contents


@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_bit_of_a_compressed_row_is_noticed(kind: Compression) -> None:
    content = BODY % 29 * 3 + bytes(range(40))
    [row] = kind.compressed([content])
    assert row[:4] == ZSTD_START
    for bit in range(8 * 4, 8 * len(row)):
        flipped = bytearray(row)
        flipped[bit // 8] ^= 1 << bit % 8
        # A bit of the header that is reserved, or says what is true anyway, changes nothing.
        with suppress(RowDamaged):
            assert kind.restored([bytes(flipped)]) == [content], bit
        for among in (1, TOGETHER_MIN):
            assert kind.readable([*[row] * among, bytes(flipped), b"{}"])[:-2] == [content] * among


@pytest.mark.parametrize("kind", KINDS)
@given(st.binary(max_size=200), st.sampled_from([0, 2, TOGETHER_MIN]))
def test_any_bytes_are_read_or_said_to_be_damaged(kind: Compression, content: bytes, among: int) -> None:
    row = ZSTD_START + content
    rows = [b"{}", *kind.compressed([BODY % 1] * among), row]
    whole = [b"{}", *[BODY % 1] * among]
    assert kind.readable(rows)[:-1] == whole
    damaged = None
    try:
        restored = kind.restored(rows)
    except RowDamaged as error:
        damaged, restored = error.index, [*whole, row]
    assert restored[:-1] == whole
    assert damaged in (None, len(whole))


def test_a_row_that_says_it_holds_a_terabyte_takes_no_memory() -> None:
    [row] = compression.values.compressed([BODY % 1 * 200])
    assert row[4] == 0x65, "eight-bit dictionary, checksum, one segment, sixteen bits of size"
    for size in (CONTENT_BYTES_MAX + 1, 1 << 40):
        boastful = row[:4] + b"\xe5" + row[5:6] + struct.pack("<Q", size) + row[8:]
        with pytest.raises(RowDamaged, match="holds more than"):
            compression.values.restored([boastful])


def test_a_row_of_a_dictionary_that_is_not_known_is_damaged_and_says_why() -> None:
    later = zstandard.ZstdCompressionDict(compression.dictionary_path(1).read_bytes())
    row = bytearray(zstandard.ZstdCompressor(dict_data=later).compress(BODY % 1))
    row[5] = 99
    with pytest.raises(RowDamaged, match=r"[Dd]ictionary"):
        compression.bodies.restored([bytes(row)])


def test_the_dictionaries_that_were_released_are_there_as_they_were() -> None:
    folder = compression.dictionary_path(1).parent
    sums = {int(path.stem): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert sums == compression.SHA256
    assert {number: total[:16] for number, total in sums.items()} == RELEASED


@pytest.mark.parametrize("content", [None, b"", b"harm" * 9_000])
def test_an_installation_without_its_dictionary_says_so_and_blames_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    [row] = compression.bodies.compressed([BODY % 1])
    path = tmp_path / "1.zstd-dictionary"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(compression, "dictionary_path", lambda number: path)
    broken = Compression(1)
    for attempt in (broken.compressed, broken.restored, broken.readable):
        assert attempt([b"{}"]) == [b"{}"]
        with pytest.raises(Unavailable, match="is missing or not as it was released") as caught:
            attempt([row])
        assert caught.value.hint == "Install Threadline again."


def test_rows_compressed_and_restored_by_many_threads_at_once_are_their_own() -> None:
    def work(seed: int) -> None:
        random = Random(seed)
        for _ in range(50):
            contents = [BODY % random.randrange(10**6) * random.randrange(1, 9) for _ in range(9)]
            assert compression.bodies.restored(compression.bodies.compressed(contents)) == contents

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))


# --- in a store -------------------------------------------------------------------------------


def filled(store: Store) -> tuple[list[LogEntry], list[Key]]:
    """Eight events and items, of which every second one is too short to be compressed."""
    entries = [entry(number, body=BODY % number * 4 if number % 2 else b"{}") for number in range(8)]
    keys = [Key("t", "p", f"{number}") for number in range(8)]
    writes = [Put(key, logged.body) for key, logged in zip(keys, entries, strict=True)]
    assert store.commit([Batch(entries, writes)]) == [None]
    return entries, keys


def assert_holds(store: Store, entries: list[LogEntry], keys: list[Key]) -> None:
    assert [read.entry for read in store.feed()] == entries
    assert list(store.find([logged.id for logged in entries]).values()) == entries
    assert store.histories([entries[0].thread]) == {entries[0].thread: entries}
    bodies = [logged.body for logged in entries]
    assert [item and item.value for item in store.get(keys)] == bodies
    assert [item.value for item in store.query("t", "p")] == bodies
    assert [item.value for item in store.scan("t")] == bodies


def stored_rows(path: Path) -> list[bytes]:
    db = apsw.Connection(str(path))
    rows = [row for (row,) in db.execute("SELECT body FROM log UNION ALL SELECT value FROM item")]
    db.close()
    return rows


def test_a_store_without_compressed_rows_is_read_and_gets_them_where_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "former.db"
    with monkeypatch.context() as former:
        former.setattr(compression, "BYTES_MIN", 1 << 60)
        store = SqliteStore(path)
        entries, keys = filled(store)
        store.close()
    assert not any(row[:4] == ZSTD_START for row in stored_rows(path))
    db = apsw.Connection(str(path))
    db.pragma("user_version", 2)
    db.close()
    reader = SqliteStore(path, readonly=True)
    assert_holds(reader, entries, keys)
    reader.close()
    store = SqliteStore(path)
    assert_holds(store, entries, keys)
    assert store.commit([Batch(writes=[Put(keys[1], entries[1].body)])]) == [None]
    assert_holds(store, entries, keys)
    assert store.integrity() == []
    store.close()
    assert sum(row[:4] == ZSTD_START for row in stored_rows(path)) == 1
    assert_version(path, SCHEMA_VERSION)


def assert_version(path: Path, version: int) -> None:
    db = apsw.Connection(str(path))
    assert db.pragma("user_version") == version
    db.close()


def test_a_version_that_knows_no_compressed_rows_refuses_the_store_by_its_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.db"
    SqliteStore(path).close()
    monkeypatch.setattr("threadline.stores.sqlite.file.SCHEMA_VERSION", 2)
    with pytest.raises(InvalidSetting, match="written by a newer Threadline"):
        SqliteStore(path)


def test_long_rows_of_a_new_store_are_compressed_and_short_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    store = SqliteStore(path)
    entries, keys = filled(store)
    assert_holds(store, entries, keys)
    store.close()
    lengths = {True: set[int](), False: set[int]()}
    for row in stored_rows(path):
        lengths[row[:4] == ZSTD_START].add(len(row))
    assert max(lengths[False]) < BYTES_MIN < len(BODY)
    assert max(lengths[True]) < len(BODY) * 2


def test_an_item_whose_compressed_value_is_damaged_without_a_checksum_of_its_row_is_store_damaged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new.db"
    store = SqliteStore(path)
    entries, keys = filled(store)
    store.close()
    db = apsw.Connection(str(path))
    [(value,)] = db.execute("SELECT value FROM item WHERE sort = '1'").fetchall()
    db.execute("UPDATE item SET crc = NULL, value = ? WHERE sort = '1'", (value[:-1],))
    db.close()
    store = SqliteStore(path)
    with pytest.raises(StoreDamaged, match=r"t/p/1.*is not as it was written: it is compressed"):
        store.get(keys)
    assert store.get([keys[0]])[0] is not None
    [fault] = store.integrity()
    assert "t/p/1" in fault
    store.close()
    assert entries
