"""The one file that knows the SQLite driver: connections as a store needs them, and its errors as ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import apsw

from threadline.kernel.errors import InvalidValue, StoreBusy, StoreDamaged, StoreFull, ThreadlineError, Unavailable
from threadline.stores.sqlite import file as sqlite_file
from threadline.stores.sqlite.rows import Ask

Connection = apsw.Connection
DriverError = apsw.Error
DamageError = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)
"""What reading a damaged store, or a database that is none, raises."""

STATEMENTS_CACHED = 256

_CHECKPOINTS = {
    "passive": apsw.SQLITE_CHECKPOINT_PASSIVE,
    "restart": apsw.SQLITE_CHECKPOINT_RESTART,
    "truncate": apsw.SQLITE_CHECKPOINT_TRUNCATE,
}


class Access(IntEnum):
    """What a connection may do."""

    READ = apsw.SQLITE_OPEN_READONLY
    WRITE = apsw.SQLITE_OPEN_READWRITE
    CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


def connect(path: Path, access: Access, cache_bytes: int, busy_timeout_ms: int) -> Connection:
    """A connection on which every commit is synced, and which checkpoints only on request."""
    if access is Access.READ:
        # Without being told so, SQLite would put an index of the write-ahead log beside a frozen file, and cannot.
        db = connect_unread(path, ignore_log=sqlite_file.is_frozen(path))
    else:
        db = apsw.Connection(str(path), flags=int(access), statementcachesize=STATEMENTS_CACHED)
    try:
        db.set_busy_timeout(busy_timeout_ms)
        for pragma, value in (
            ("synchronous", "full"),
            ("cache_size", -(cache_bytes // 1_024)),
            ("wal_autocheckpoint", 0),
            ("temp_store", "memory"),
        ):
            db.pragma(pragma, value)
        if access is not Access.READ:
            db.pragma("secure_delete", 1)
        if access is Access.READ and db.pragma("user_version") == 1:
            # Nobody has brought the file up to date, and who only reads cannot.
            db.execute("CREATE TEMP VIEW item AS SELECT *, NULL AS crc FROM main.item")
    except BaseException:
        # Left open, it would share its index of the write-ahead log with later connections, after that has changed.
        db.close()
        raise
    return db


def connect_unread(path: Path, *, ignore_log: bool) -> Connection:
    """A connection for reading that has not read anything yet, so that the damage of a file does not show.

    With ``ignore_log`` it reads the file as if it had no write-ahead log; nobody may write meanwhile.
    """
    name, flags = str(path), apsw.SQLITE_OPEN_READONLY
    if ignore_log:
        name, flags = f"file:{quote(os.fsencode(path.absolute()))}?immutable=1", flags | apsw.SQLITE_OPEN_URI
    return apsw.Connection(name, flags=flags, statementcachesize=STATEMENTS_CACHED)


def leave_log(db: Connection, *, leave: bool) -> None:
    """Whether the write-ahead log stays when this connection is the last one to be closed.

    Otherwise SQLite copies it into the file and removes it, unseen by the mark.
    """
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(leave))


def whole_frames(db: Connection) -> int:
    """How many frames of the write-ahead log are whole, up to the last commit; what a connection sees."""
    return max(0, db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])


def checkpoint(db: Connection, how: Literal["passive", "restart", "truncate"]) -> None:
    """Copy the write-ahead log into the file. Raises `DriverError` if others are in the way."""
    db.wal_checkpoint(mode=_CHECKPOINTS[how])


class DatabaseFile:
    """A database's bytes, past SQLite's pages but through its own layer for files.

    To close a file by other means would give up all locks that SQLite has on it in this process.
    """

    def __init__(self, path: Path) -> None:
        self._file = apsw.VFSFile("", str(path.absolute()), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])

    def read(self, count: int, start: int) -> bytes:
        """So many bytes from a place on; fewer at the end."""
        return self._file.xRead(count, start)

    def write(self, data: bytes, start: int) -> None:
        """Put bytes at a place."""
        self._file.xWrite(data, start)

    def close(self) -> None:
        """Sync what was written, and close."""
        self._file.xSync(apsw.SQLITE_SYNC_NORMAL)
        self._file.xClose()


def copy_database(source: Connection, target: Connection, pages: int, progress: Callable[[int, int], None]) -> None:
    """Copy the whole database, ``pages`` at a time; ``progress`` is called with the pages done and all pages.

    The source must be in a transaction: otherwise each commit of another process restarts the copy.
    """
    with target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(pages)
            progress(copying.page_count - copying.remaining, copying.page_count)


def watch_wal(db: Connection, note: Callable[[int], None]) -> None:
    """Call ``note`` after each commit with the number of pages in the write-ahead log."""

    def on_commit(_: Connection, __: str, pages: int) -> int:
        note(pages)
        return apsw.SQLITE_OK

    db.set_wal_hook(on_commit)


def asking(db: Connection) -> Ask:
    """A function that runs a statement on this connection and returns all its rows."""
    return lambda sql, values: db.execute(sql, values).fetchall()


@contextmanager
def transaction(db: Connection) -> Iterator[None]:
    """All of it durable at the end, or none of it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn every error of the driver into one of `kernel/errors.py`."""
    try:
        yield
    except apsw.Error as error:
        raise _translation(error, path) from error
    except UnicodeEncodeError as error:
        raise InvalidValue(f"{error.object!r:.80} is not Unicode text: it holds half a surrogate pair") from None
    except UnicodeDecodeError as error:
        raise StoreDamaged(f"{path}: a text in it is not UTF-8 any more: {error}") from None
    except OverflowError:
        raise InvalidValue("a number does not fit in 64 bits") from None


def _translation(error: apsw.Error, path: Path) -> ThreadlineError:
    match error:
        case apsw.FullError():
            return StoreFull(f"there is no room left for {path}", hint="Free space, then send the same events again.")
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"{path} is held by another process for too long")
        case apsw.IOError() if sqlite_file.disk_is_full(path):
            # The shared index of the write-ahead log cannot grow on a full disk either; SQLite calls that I/O.
            return StoreFull(f"there is no room left for {path}", hint="Free space, then send the same events again.")
        case apsw.ConstraintError() if "log.position" in str(error):
            # The position was free when it was read: a process without the lock has written. Nothing was written here.
            return StoreBusy(f"{path} was written to by another process meanwhile", hint="Stop that process.")
        case apsw.NotADBError():
            return StoreDamaged(f"{path} is not a Threadline store, or its first page is destroyed")
        case apsw.IOError() | apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return Unavailable(f"the disk refuses {path}: {error}", hint="Check the disk, and who may write there.")
    return StoreDamaged(f"{path}: {error}")
