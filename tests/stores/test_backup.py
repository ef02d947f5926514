"""Backup and restore: under load, from another process, never half, never over what is in use."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from tests import forked
from tests.laws import staging
from tests.stores.incompressible import noise
from threadline.engine.maintenance.dump import dump
from threadline.kernel.errors import Conflict, InvalidSetting, InvalidValue, StoreBusy, StoreDamaged, StoreFull
from threadline.kernel.store import Batch, Key, Put, feed_pages
from threadline.stores.redis.epochs import EPOCH
from threadline.stores.sqlite import backup as sqlite_backup
from threadline.stores.sqlite.backup import back_up, restore
from threadline.stores.sqlite.driver import Access, connect
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing import scenarios
from threadline.testing.store_cases import entry, put, record

ROOT = Path(__file__).parents[2]
WRITER = """
import os
import sys
from threadline.kernel.store import Batch, Key, LogEntry, Put
from threadline.stores.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1], wal_pages_max=200)
number = 0
while True:
    # Event and counter are one batch: in a copy that is of one instant they agree.
    number += 1
    event = LogEntry("aa" * 16, number, number, "seen", f"{number:032x}", number, os.urandom(2_000))
    assert store.commit([Batch([event], [Put(Key("count", "one"), b"%d" % number)])]) == [None]
    print(number, flush=True)
"""


def silent(done: int, total: int) -> None:
    """Nobody looks at the progress."""


@contextmanager
def writing(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes as fast as it can, and says which number is durable."""
    process = subprocess.Popen(
        [forked.python(), "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()  # to its last word: until then it has the store


def written(path: Path) -> int:
    """How many events are there by now."""
    store = SqliteStore(path, readonly=True)
    try:
        return store.stats()["log_entries"]
    finally:
        store.close()


def test_a_copy_made_under_load_is_of_one_instant_and_goes_on_from_there(tmp_path: Path) -> None:
    path, seen = tmp_path / "x.db", [0]
    with writing(path) as process:
        assert process.stdout is not None

        def listen() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                seen[0] = int(line)

        threading.Thread(target=listen, daemon=True).start()
        while seen[0] < 400:
            time.sleep(0.01)
        for number in range(4):
            before, steps = seen[0], []
            copied = back_up(path, tmp_path / f"{number}.db", lambda done, total, to=steps: to.append((done, total)))
            assert before <= copied.events <= written(path)
            assert steps[-1][0] == steps[-1][1] > 0
        while seen[0] <= copied.events:
            time.sleep(0.01)
        with pytest.raises(StoreBusy):
            restore(tmp_path / "0.db", path, silent, replace=True)
    held = []
    for number in range(4):
        store = SqliteStore(tmp_path / f"{number}.db", readonly=True)
        events = [each.entry.sequence for each in feed_pages(store)]
        count = store.get([Key("count", "one")])[0]
        assert count is not None
        assert events == list(range(1, int(count.value) + 1))
        assert store.integrity() == []
        held.append(len(events))
        store.close()
    assert held == sorted(held)
    copied = restore(tmp_path / "1.db", path, silent, replace=True)
    assert copied.events == held[1]
    store = SqliteStore(path)
    record(store, entry(held[1] + 1))
    assert len(list(feed_pages(store))) == held[1] + 1
    store.close()
    # What was there is kept, as it was when its writer was killed.
    assert copied.replaced is not None
    store = SqliteStore(copied.replaced)
    assert len(list(feed_pages(store))) >= seen[0]
    store.close()


def test_a_copy_made_while_its_steps_are_outrun_by_commits_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a transaction around it each commit of another connection would begin it anew."""
    monkeypatch.setattr(sqlite_backup, "PAGES_PER_STEP", 5)
    store = SqliteStore(tmp_path / "x.db")
    for number in range(50):
        put(store, Key("t", f"{number}"), noise(number, 20_000))
    steps = 0

    def commit(done: int, total: int) -> None:
        nonlocal steps
        steps += 1
        assert steps < 2_000
        put(store, Key("t", "hot"), b"%d" % steps)

    back_up(tmp_path / "x.db", tmp_path / "copy.db", commit)
    assert steps > 40
    store.close()


def test_what_is_restored_is_what_was_backed_up(tmp_path: Path, seed: int) -> None:
    store = SqliteStore(tmp_path / "x.db", tail_entries_max=6)
    on = staging.tell(store, scenarios.batched(Random(seed), scenarios.history(Random(seed), 4, 60)), staging.ticking())
    before = staging.whole(on)
    back_up(store.path, tmp_path / "copy.db", silent)
    on.recorder.record(scenarios.history(Random(seed), 4, 20, "later"))
    assert staging.whole(on) != before
    store.close()
    restore(tmp_path / "copy.db", tmp_path / "x.db", silent, replace=True)
    again = SqliteStore(tmp_path / "x.db")
    assert dump(again, staging.CATALOGUE) == before
    staging.assert_refold_changes_nothing(staging.engine(again))
    again.close()


def test_nothing_is_overwritten_without_being_told_to(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    record(store, entry(1))
    store.close()
    (tmp_path / "taken.db").write_bytes(b"dear")
    with pytest.raises(Conflict, match="already exists"):
        back_up(tmp_path / "x.db", tmp_path / "taken.db", silent)
    assert (tmp_path / "taken.db").read_bytes() == b"dear"
    back_up(tmp_path / "x.db", tmp_path / "copy.db", silent)
    with pytest.raises(Conflict, match="there is a store"):
        restore(tmp_path / "copy.db", tmp_path / "x.db", silent)
    restore(tmp_path / "copy.db", tmp_path / "new.db", silent)
    first = restore(tmp_path / "copy.db", tmp_path / "x.db", silent, replace=True)
    second = restore(tmp_path / "copy.db", tmp_path / "x.db", silent, replace=True)
    assert not [
        *tmp_path.glob("x.db-*"),
        *tmp_path.glob("new.db-*"),
        *tmp_path.glob("*ing*"),
        *tmp_path.glob("*partial*"),
    ]
    assert (first.replaced, second.replaced) == (tmp_path / "x.db.replaced-1", tmp_path / "x.db.replaced-2")


def test_a_store_in_use_is_not_replaced(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    record(store, entry(1))
    back_up(tmp_path / "x.db", tmp_path / "copy.db", silent)
    with pytest.raises(StoreBusy):
        restore(tmp_path / "copy.db", tmp_path / "x.db", silent, replace=True)
    record(store, entry(2))
    with pytest.raises(Conflict, match="a store in use"):
        restore(tmp_path / "x.db", tmp_path / "other.db", silent)
    store.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "copy.db",
        "copy.db.sha256",
        "x.db",
        "x.db-mark",
        "x.db.lock",
    ]


def test_a_link_to_a_store_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "x.db").symlink_to(tmp_path / "disk" / "real.db")
    store = SqliteStore(tmp_path / "x.db")
    record(store, entry(1))
    back_up(tmp_path / "x.db", tmp_path / "copy.db", silent)
    with pytest.raises(StoreBusy):
        restore(tmp_path / "copy.db", tmp_path / "disk" / "real.db", silent, replace=True)
    record(store, entry(2))
    store.close()
    restored = restore(tmp_path / "copy.db", tmp_path / "x.db", silent, replace=True)
    assert restored.replaced == tmp_path / "disk" / "real.db.replaced-1"
    assert (tmp_path / "x.db").is_symlink()
    for path, events in ((tmp_path / "x.db", 1), (restored.replaced, 2)):
        again = SqliteStore(path)
        assert len(again.feed()) == events
        again.close()


@pytest.mark.parametrize("place", [100, 5_000, -3_000])
def test_a_backup_that_is_not_whole_replaces_nothing(tmp_path: Path, place: int) -> None:
    store = SqliteStore(tmp_path / "x.db")
    record(store, *(entry(number, body=noise(number, 3_000)) for number in range(1, 40)))
    store.close()
    back_up(tmp_path / "x.db", tmp_path / "copy.db", silent)
    damaged = bytearray((tmp_path / "copy.db").read_bytes())
    damaged[place : place + 600] = os.urandom(600)
    (tmp_path / "copy.db").write_bytes(damaged)
    before = (tmp_path / "x.db").read_bytes()
    with pytest.raises((StoreDamaged, InvalidSetting)):
        restore(tmp_path / "copy.db", tmp_path / "x.db", silent, replace=True)
    assert (tmp_path / "x.db").read_bytes() == before
    assert not [each.name for each in tmp_path.iterdir() if "restoring" in each.name or "replaced" in each.name]


def test_a_backup_cut_short_is_noticed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    record(store, *(entry(number, body=noise(number, 3_000)) for number in range(1, 40)))
    store.close()
    back_up(tmp_path / "x.db", tmp_path / "copy.db", silent)
    # Without the sum beside it as well: a backup may have been copied without it.
    (tmp_path / "copy.db.sha256").unlink()
    os.truncate(tmp_path / "copy.db", 50_000)
    with pytest.raises(StoreDamaged):
        restore(tmp_path / "copy.db", tmp_path / "new.db", silent)
    assert not (tmp_path / "new.db").exists()


def test_what_is_no_store_is_neither_backed_up_nor_restored(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "foreign.db") as other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(InvalidSetting, match="something else"):
        back_up(tmp_path / "foreign.db", tmp_path / "copy.db", silent)
    with pytest.raises(InvalidSetting, match="something else"):
        restore(tmp_path / "foreign.db", tmp_path / "x.db", silent)
    with pytest.raises(InvalidSetting, match="no store"):
        back_up(tmp_path / "absent.db", tmp_path / "copy.db", silent)
    with pytest.raises(InvalidValue, match="no backup"):
        restore(tmp_path / "absent.db", tmp_path / "x.db", silent)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["foreign.db", "x.db.lock"]


def test_a_backup_broken_off_leaves_nothing_under_its_name(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    record(store, entry(1))

    def break_off(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(tmp_path / "x.db", tmp_path / "copy.db", break_off)
    assert not list(tmp_path.glob("copy*"))
    back_up(tmp_path / "x.db", tmp_path / "copy.db", silent)
    store.close()


def test_a_backup_for_which_there_is_no_room_names_its_own_place_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "x.db")
    record(store, *(entry(number, body=noise(number, 3_000)) for number in range(1, 400)))
    store.close()
    (tmp_path / "there").mkdir()

    def small(path: Path, access: Access, *others: Any) -> apsw.Connection:
        db = connect(path, access, *others)
        if access is Access.CREATE:
            db.pragma("max_page_count", 20)
        return db

    monkeypatch.setattr(sqlite_backup, "connect", small)
    with pytest.raises(StoreFull, match=r"no room left for .*/there/copy\.db\.partial") as refused:
        back_up(tmp_path / "x.db", tmp_path / "there" / "copy.db", silent)
    assert "choose another place" in refused.value.hint
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_what_a_broken_off_backup_left_is_taken_away(ending: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    record(store, entry(1))
    (tmp_path / f"copy.db.partial{ending}").write_bytes(b"half of it")
    back_up(tmp_path / "x.db", tmp_path / "copy.db", silent)
    assert sorted(each.name for each in tmp_path.glob("copy*")) == ["copy.db", "copy.db.sha256"]
    store.close()


def test_a_backup_where_nothing_can_be_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "x.db")
    record(store, entry(1))
    (tmp_path / "a ?#%40 folder").mkdir()
    copy = tmp_path / "a ?#%40 folder" / "copy.db"
    back_up(tmp_path / "x.db", copy, silent)
    store.close()
    before = sorted(copy.parent.iterdir())
    # The tests may run as somebody whom no mode of a file keeps from writing.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    reader = SqliteStore(copy, readonly=True)
    assert [page.entry for page in reader.feed()] == [entry(1)]
    assert reader.integrity() == []
    assert sorted(copy.parent.iterdir()) == before
    reader.close()


def test_a_restored_store_has_left_its_cache(tmp_path: Path) -> None:
    """What the cache holds by then may be newer than what comes back."""
    store = SqliteStore(tmp_path / "x.db")
    assert store.commit([Batch(writes=[Put(EPOCH, b"{}"), Put(Key("person", "ada"), b"1")])]) == [None]
    back_up(tmp_path / "x.db", tmp_path / "copy.db", silent)
    store.close()
    restore(tmp_path / "copy.db", tmp_path / "new.db", silent)
    again = SqliteStore(tmp_path / "new.db")
    assert again.get([EPOCH, Key("person", "ada")]) == [None, (Key("person", "ada"), 1, b"1")]
    again.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_makes_beside_a_store_is_left_to_the_stores_owner(tmp_path: Path) -> None:
    service = 65_534
    store, backup = tmp_path / "x.db", tmp_path / "copy.db"
    SqliteStore(store).close()
    os.chown(store, service, service)
    store.chmod(0o600)
    store.with_name("x.db.lock").unlink()
    SqliteStore(store).close()
    back_up(store, backup, lambda *_: None)
    backup.chmod(0o400)
    restore(backup, store, lambda *_: None, replace=True)
    for path in (store, store.with_name("x.db.lock")):
        assert (path.stat().st_uid, path.stat().st_gid) == (service, service), path
    assert store.stat().st_mode & 0o777 == 0o600


def test_a_copy_is_read_by_nobody_who_may_not_read_the_store(tmp_path: Path) -> None:
    store, backup = tmp_path / "x.db", tmp_path / "copy.db"
    SqliteStore(store).close()
    store.chmod(0o600)
    back_up(store, backup, lambda *_: None)
    restore(backup, tmp_path / "y.db", lambda *_: None)
    modes = {path.name: path.stat().st_mode & 0o077 for path in (backup, tmp_path / "y.db")}
    assert modes == {"copy.db": 0, "y.db": 0}
