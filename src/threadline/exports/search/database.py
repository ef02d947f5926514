"""The one file of what is kept in SQLite beside a store that knows the driver: a connection, and its errors as ours."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from threadline.kernel.errors import StoreFull, Unavailable

Connection = apsw.Connection
Cursor = apsw.Cursor
BusyError = apsw.BusyError
DamageError = (apsw.CorruptError, apsw.NotADBError)
UnwritableError = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError, OSError)

_BUSY_TIMEOUT_MS = 5_000
_CACHE_KIB = 65_536


def connect(path: Path | None) -> Connection:
    """A connection to a file, which is made if it is not there; None: to a database in memory."""
    if path is not None:
        # Whoever may not read the store must not read it here.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = apsw.Connection(":memory:" if path is None else str(path))
    try:
        db.set_busy_timeout(_BUSY_TIMEOUT_MS)
        for pragma, value in (
            ("page_size", 8_192),
            ("journal_mode", "wal"),
            ("synchronous", "normal"),
            ("secure_delete", 1),
            ("cache_size", -_CACHE_KIB),
            ("temp_store", "memory"),
        ):
            db.pragma(pragma, value)
    except BaseException:
        db.close()
        raise
    return db


def integers(values: Sequence[int]) -> object:
    """Integers as one value of a statement, for ``IN carray(?)``; of none the lowest one, which is no row's."""
    return apsw.carray(array("q", values or (-(1 << 63),)))


def blobs(values: Sequence[bytes]) -> object:
    """The same of bytes; of none an empty one, which is no id."""
    return apsw.carray(tuple(values) or (b"",))


def clean(db: Connection, *, rewritten: bool) -> None:
    """Leave nothing of what was deleted in the file and in its write-ahead log.

    Somebody who reads may be in the way for longer than the timeout: then it is done the next time.

    ``rewritten``: so much has changed that pages have remains between their cells, which only a copy is without.
    """
    with suppress(BusyError):
        if rewritten:
            db.execute("VACUUM")
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


@contextmanager
def transaction(db: Connection) -> Iterator[None]:
    """A transaction, or a part of the one that is open. It waits for other writers at its beginning."""
    if not db.get_autocommit():
        yield
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if not db.get_autocommit():  # a full disk has ended it
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def own_errors(what: str, where: str, setting: str) -> Iterator[None]:
    """The driver's errors as ours, apart from those of a damaged file."""
    try:
        yield
    except apsw.FullError as error:
        raise StoreFull(f"there is no room for {what} {where}: {error}; the log is untouched") from None
    except BusyError as error:
        raise Unavailable(f"another process has {what} {where} for itself: {error}") from None
    except UnwritableError as error:
        hint = f"Name a file that this process may write with the setting {setting}."
        raise Unavailable(f"{what} {where} cannot be written: {error}", hint=hint) from None
