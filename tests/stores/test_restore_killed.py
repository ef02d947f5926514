"""Restore, killed at any step: the old store or the restored one is there, whole, and what was there is never lost."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import apsw
import pytest

from tests import forked
from threadline.kernel.errors import Conflict, InvalidSetting, StoreFull
from threadline.stores.sqlite import backup as sqlite_backup
from threadline.stores.sqlite.backup import back_up, restore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import entry, record

ROOT = Path(__file__).parents[2]
DYING = """
import os, signal, sys
from pathlib import Path
from threadline.stores.sqlite import backup as sqlite_backup

left = int(sys.argv[3])

def dying(act):
    def acts(*arguments, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = act(*arguments, **named)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    return acts

Path.rename, Path.unlink = dying(Path.rename), dying(Path.unlink)
os.link, os.chmod = dying(os.link), dying(os.chmod)
for name in ("checkpoint", "_copy_file", "_checked"):
    setattr(sqlite_backup, name, dying(getattr(sqlite_backup, name)))
sqlite_backup.restore(Path(sys.argv[2]), Path(sys.argv[1]), lambda done, total: None, replace=True)
"""
"""A restore that is killed before its n-th change of the folder; 0 is never."""

OLD, BACKED_UP, WRITTEN_SINCE = [1, 2, 3], [1], 3_000


def silent(done: int, total: int) -> None:
    """Nobody looks at the progress."""


def sequences(path: Path) -> list[int]:
    store = SqliteStore(path)
    try:
        assert store.integrity() == []
        return [each.entry.sequence for each in store.feed()]
    finally:
        store.close()


def left_by_a_killed_server(folder: Path) -> Path:
    """A store most of which stands in its write-ahead log, and a backup from before that; both in the folder."""
    made = SqliteStore(folder / "made.db")
    record(made, entry(OLD[0]))
    back_up(made.path, folder / "copy.db", silent)
    record(made, *(entry(number, body=bytes(WRITTEN_SINCE)) for number in OLD[1:]))
    for ending in ("", "-wal"):
        shutil.copy(folder / f"made.db{ending}", folder / f"x.db{ending}")
    made.close()
    assert (folder / "x.db-wal").stat().st_size > WRITTEN_SINCE
    return folder / "x.db"


def killed(store: Path, backup: Path, step: int) -> bool:
    command = [forked.python(), "-c", DYING, str(store), str(backup), str(step)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, check=False)
    assert done.returncode in (0, -signal.SIGKILL)
    return done.returncode != 0


def test_killed_at_any_step_it_leaves_one_of_the_two_and_can_be_repeated(tmp_path: Path) -> None:
    step, dead = 0, True
    while dead:
        step += 1
        (folder := tmp_path / f"{step}").mkdir()
        store = left_by_a_killed_server(folder)
        dead = killed(store, folder / "copy.db", step)
        assert store.exists()
        if store.stat().st_nlink > 1:  # between the two names; the message says what to do
            with pytest.raises(InvalidSetting, match="2 names"):
                restore(folder / "copy.db", store, silent, replace=True)
            (folder / "x.db.replaced-1").unlink()
        if not dead or step % 2:  # looked at in between, or not
            assert sequences(store) in (OLD, BACKED_UP)
        restore(folder / "copy.db", store, silent, replace=True)
        assert sequences(store) == BACKED_UP
        assert OLD in [sequences(aside) for aside in folder.glob("x.db.replaced-?")]
        assert not list(folder.glob("*restoring*"))
    assert step > 6


def test_a_log_whose_store_was_taken_away_is_not_taken_for_that_of_the_backup(tmp_path: Path) -> None:
    store = left_by_a_killed_server(tmp_path)
    store.rename(tmp_path / "x.db.broken")
    restore(tmp_path / "copy.db", store, silent)
    assert sequences(store) == BACKED_UP
    (tmp_path / "x.db.replaced-1-wal").rename(tmp_path / "x.db.broken-wal")
    assert sequences(tmp_path / "x.db.broken") == OLD


def test_a_log_that_somebody_reads_is_set_aside_with_its_store(tmp_path: Path) -> None:
    store = left_by_a_killed_server(tmp_path)
    reader = apsw.Connection(str(store))
    with reader:
        [(events,)] = reader.execute("SELECT count(*) FROM log").fetchall()
        restored = restore(tmp_path / "copy.db", store, silent, replace=True)
    reader.close()
    assert events == len(OLD)
    assert restored.replaced == tmp_path / "x.db.replaced-1"
    assert (sequences(store), sequences(restored.replaced)) == (BACKED_UP, OLD)


def test_a_restore_for_which_there_is_no_room_names_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = left_by_a_killed_server(tmp_path)

    def full(source: Path, target: Path, told: object) -> None:
        target.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sqlite_backup, "_copy_file", full)
    with pytest.raises(StoreFull, match=r"no room left for .*/x\.db\.restoring") as refused:
        restore(tmp_path / "copy.db", store, silent, replace=True)
    assert "nothing was replaced" in refused.value.hint
    assert not list(tmp_path.glob("*restoring*"))
    assert sequences(store) == OLD


def test_a_copy_is_private_and_a_restored_store_has_the_mode_of_the_one_it_replaces(tmp_path: Path) -> None:
    store = left_by_a_killed_server(tmp_path)
    before = os.umask(0o000)
    try:
        for mode in (0o600, 0o640):
            store.chmod(mode)
            copy = tmp_path / f"{mode}.db"
            back_up(store, copy, silent)
            assert stat.S_IMODE(copy.stat().st_mode) == 0o600
            restore(copy, tmp_path / f"{mode}-new.db", silent)
            copy.chmod(0o444)
            restore(copy, store, silent, replace=True)
            assert stat.S_IMODE(store.stat().st_mode) == mode
            for path in (tmp_path / f"{mode}-new.db", tmp_path / f"{mode}.db.sha256"):
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_two_backups_at_once_of_one_name_do_not_mix(tmp_path: Path) -> None:
    store = left_by_a_killed_server(tmp_path)
    refused = 0

    def meanwhile(done: int, total: int) -> None:
        nonlocal refused
        with pytest.raises(Conflict, match="another process makes a backup"):
            back_up(store, tmp_path / "twice.db", silent)
        refused += 1

    back_up(store, tmp_path / "twice.db", meanwhile)
    assert refused
    assert sequences(tmp_path / "twice.db") == OLD
