"""The files of an embedded store: who may read them, checksums of rows, the mark, and what opens without alarm."""

from __future__ import annotations

import fcntl
import gzip
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest

from tests.stores.sqlite_stage import FILE
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.store import Batch, Delete, Key, Put, Store
from threadline.stores.sqlite.backup import back_up, restore
from threadline.stores.sqlite.loss import accept_loss, find_loss
from threadline.stores.sqlite.rows import SCHEMA_VERSION
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import entry, put, record

EARLIER = Path(__file__).parents[1] / "data" / "stores" / "version_1.db.gz"


def silent(done: int, total: int) -> None:
    """Nobody looks at the progress."""


def beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def killed(path: Path, copy: Path) -> Path:
    """The files as `kill -9` would leave them now, in another folder."""
    copy.mkdir()
    for ending in ("", "-wal", "-mark", ".lock"):
        if beside(path, ending).exists():
            shutil.copy(beside(path, ending), copy)
    return copy / path.name


@pytest.fixture
def any_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


# --- modes -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("any_umask")
def test_all_files_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, entry(1))
    back_up(store.path, tmp_path / "copy.db", silent)
    restore(tmp_path / "copy.db", tmp_path / "new.db", silent)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    store.close()
    assert {FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-mark", f"{FILE}.lock", "copy.db.sha256"} < set(modes)
    assert set(modes.values()) == {0o600}, modes


# --- checksums of items ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE item SET value = CAST('Value of version 2' AS BLOB) WHERE sort = 'b'",
        "UPDATE item SET version = version + 1 WHERE sort = 'b'",
        "UPDATE item SET partition = 'q' WHERE sort = 'b'",
        "UPDATE item SET crc = crc + 1 WHERE sort = 'b'",
        "UPDATE name SET text = 'u' WHERE text = 't'",
    ],
)
def test_a_changed_row_is_found_and_not_read(tmp_path: Path, harm: str) -> None:
    store = SqliteStore(tmp_path / FILE)
    for sort in ("a", "b"):
        put(store, Key("t", "p", sort), b"value")
        put(store, Key("t", "p", sort), b"value of version 2")
    store.close()
    other = apsw.Connection(str(store.path))
    other.execute(harm)
    other.close()
    store = SqliteStore(tmp_path / FILE)
    [fault, *_] = store.integrity()
    assert "is not as it was written" in fault
    table, partition = ("u" if "name" in harm else "t"), ("q" if "partition" in harm else "p")
    with pytest.raises(StoreDamaged, match=f"{table}/{partition}/b"):
        store.get([Key(table, partition, "b")])
    with pytest.raises(StoreDamaged):
        store.query(table, partition)
    with pytest.raises(StoreDamaged):
        store.scan(table)
    with pytest.raises(StoreDamaged, match="not whole"):
        back_up(store.path, tmp_path / "copy.db", silent)
    store.close()


def test_a_store_of_an_earlier_layout_is_read_as_it_is_and_gets_checksums_where_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / FILE
    with gzip.open(EARLIER) as packed, path.open("wb") as target:
        shutil.copyfileobj(packed, target)
    reader = SqliteStore(path, readonly=True)
    before = contents(reader)
    assert reader.integrity() == []
    reader.close()
    assert user_version(path) == 1
    store = SqliteStore(path)
    put(store, Key("t", "p"), b"new")
    store.commit([Batch(writes=[Put(before[0].key, b"changed")])])
    assert contents(store)[1:] == [*before[1:], *store.get([Key("t", "p")])]
    assert store.integrity() == []
    store.close()
    assert user_version(path) == SCHEMA_VERSION
    db = apsw.Connection(str(path))
    assert db.execute("SELECT count(*) FROM item WHERE crc IS NOT NULL").get == 2
    db.close()


def contents(store: Store) -> list[object]:
    return [item for table in sorted(store.tables(), key=lambda name: name == "t") for item in store.scan(table)]


def user_version(path: Path) -> int:
    db = apsw.Connection(str(path))
    try:
        return int(db.pragma("user_version"))
    finally:
        db.close()


# --- no false alarm ------------------------------------------------------------------------------------


def test_a_file_copied_without_its_log_opens_alone_and_is_refused_beside_its_mark(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, *[entry(number) for number in range(1, 30)])
    path = killed(store.path, tmp_path / "copy")
    store.close()
    beside(path, "-wal").unlink()
    with pytest.raises(StoreDamaged, match="29 acknowledged events are gone, from position 1 on"):
        SqliteStore(path)
    beside(path, "-mark").unlink()
    SqliteStore(path).close()


def test_a_log_that_another_program_has_folded_in_is_no_loss(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, *[entry(number) for number in range(1, 30)])
    put(store, Key("t", "p"), b"last")
    path = killed(store.path, tmp_path / "copy")
    store.close()
    shutil.copytree(path.parent, tmp_path / "other")
    other = apsw.Connection(str(path))
    other.execute("SELECT count(*) FROM log").fetchall()
    other.close()
    assert not beside(path, "-wal").exists()
    again = SqliteStore(path)
    assert len(again.feed()) == 29
    again.close()
    # The same, with the last item missing.
    path = tmp_path / "other" / FILE
    other = apsw.Connection(str(path))
    other.execute("DELETE FROM item")
    other.close()
    with pytest.raises(StoreDamaged, match="no event is gone as far as is known"):
        SqliteStore(path)


def test_a_backup_put_over_its_store_by_hand_opens(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, entry(1))
    back_up(store.path, tmp_path / "copy.db", silent)
    record(store, entry(2))
    store.close()
    shutil.copy(tmp_path / "copy.db", store.path)
    again = SqliteStore(store.path)
    assert len(again.feed()) == 1
    record(again, entry(2))
    again.close()
    SqliteStore(store.path).close()


def test_a_log_left_beside_another_store_is_not_written_into_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, entry(1))
    back_up(store.path, tmp_path / "copy.db", silent)
    record(store, *[entry(number) for number in range(2, 50)])
    path = killed(store.path, tmp_path / "copy")
    store.close()
    shutil.copy(tmp_path / "copy.db", path)
    with pytest.raises(StoreDamaged, match="belongs to the store that was here before"):
        SqliteStore(path)
    accepted = accept_loss(path)
    assert accepted is not None
    assert accepted.faults == []
    again = SqliteStore(path)
    assert len(again.feed()) == 1
    assert again.integrity() == []
    again.close()


def test_an_older_copy_of_the_same_file_is_refused_and_counted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, *[entry(number) for number in range(1, 30)])
    store.close()
    shutil.copy(store.path, tmp_path / "older")
    store = SqliteStore(tmp_path / FILE)
    record(store, *[entry(number) for number in range(30, 50)])
    store.close()
    shutil.copy(tmp_path / "older", store.path)
    for readonly in (False, True):
        with pytest.raises(StoreDamaged, match="20 acknowledged events are gone, from position 30 on"):
            SqliteStore(store.path, readonly=readonly)
    for harm in (partial(store.path.write_bytes, b""), store.path.unlink):
        harm()
        with pytest.raises(StoreDamaged, match="49 acknowledged events are gone, from position 1 on"):
            SqliteStore(store.path)
    assert accept_loss(store.path) is not None
    SqliteStore(store.path).close()


def test_a_last_commit_that_a_power_cut_has_torn_was_not_acknowledged(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, *[entry(number) for number in range(1, 10)])
    mark = beside(store.path, "-mark").read_bytes()
    frames = beside(store.path, "-wal").stat().st_size
    record(store, *[entry(number) for number in range(10, 20)])
    path = killed(store.path, tmp_path / "copy")
    record(store, entry(20))
    later = killed(store.path, tmp_path / "later")
    store.close()
    for torn in (path, later):
        beside(torn, "-mark").write_bytes(mark)
        content = bytearray(beside(torn, "-wal").read_bytes())
        content[frames + 100] ^= 1
        beside(torn, "-wal").write_bytes(content)
    again = SqliteStore(path)
    assert len(again.feed()) == 9
    again.close()
    # A commit is written when the one before it is durable, so here something acknowledged is gone.
    with pytest.raises(StoreDamaged, match="nobody knows how many events"):
        SqliteStore(later)
    assert accept_loss(later) is not None
    assert find_loss(later) is None


def test_a_commit_of_removals_is_marked_like_any_other(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    put(store, Key("t", "p"))
    assert store.commit([Batch(writes=[Delete(Key("t", "p"))])]) == [None]
    path = killed(store.path, tmp_path / "copy")
    store.close()
    content = beside(path, "-wal").read_bytes()
    beside(path, "-wal").write_bytes(content[:-1])
    with pytest.raises(StoreDamaged, match="breaks off at frame"):
        SqliteStore(path)


def test_readers_who_look_for_a_writer_keep_none_from_opening(tmp_path: Path) -> None:
    SqliteStore(tmp_path / FILE).close()
    descriptor = os.open(tmp_path / f"{FILE}.lock", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    looker = threading.Timer(0.01, fcntl.flock, (descriptor, fcntl.LOCK_UN))
    looker.start()
    SqliteStore(tmp_path / FILE).close()
    looker.join()
    os.close(descriptor)
