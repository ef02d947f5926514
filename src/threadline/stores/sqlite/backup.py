"""A copy of the embedded store in one file, taken while it is written to, and put back in its place."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from threadline.kernel.errors import (
    Conflict,
    InvalidSetting,
    InvalidValue,
    StoreDamaged,
    StoreFull,
    ThreadlineError,
    Unavailable,
)
from threadline.kernel.personal import Copy
from threadline.kernel.store import LogEntry
from threadline.stores.sqlite.driver import (
    Access,
    Connection,
    asking,
    checkpoint,
    connect,
    copy_database,
    transaction,
    translated,
)
from threadline.stores.sqlite.file import (
    PRIVATE,
    WriterLock,
    file_bytes,
    mode_like,
    open_like,
    open_private,
    refuse_foreign,
    refuse_network,
    refuse_unfit,
    sync_folder,
)
from threadline.stores.sqlite.log import EventLog
from threadline.stores.sqlite.loss import find_loss, refuse_loss_beside_writer
from threadline.stores.sqlite.mark import mark_path
from threadline.stores.sqlite.names import Names
from threadline.stores.sqlite.rows import Ask, damaged_items, faults, upgrade

PAGES_PER_STEP = 1_000
EVENTS_PER_STEP = 1_000
CHUNK_BYTES = 4_000_000
SUM = ".sha256"
CACHE_BYTES = 4_000_000
_LOGS = ("-wal", "-shm", "-journal")

CheckEntry = Callable[[LogEntry], str]
"""What is wrong with an entry of the log; empty if nothing is."""
OnProgress = Callable[[int, int], None]
"""How much is done of how much."""


class Copied(NamedTuple):
    """The content of a checked copy."""

    events: int
    file_bytes: int
    replaced: Path | None = None
    """Where the replaced store is now."""


def unchecked(entry: LogEntry) -> str:
    """In place of a check of entries, for logs that are not the engine's."""
    return ""


def back_up(
    store: Path,
    backup: Path,
    progress: OnProgress,
    busy_timeout_seconds: float = 5.0,
    *,
    check: CheckEntry = unchecked,
) -> Copied:
    """Copy a store as it is at this instant into the file ``backup``, while it is written to.

    The copy is checked, every event by ``check``, synced, and has its name only when it is whole. Its SHA-256 stands
    beside it in ``<backup>.sha256``, as ``sha256sum --check`` reads it. Raises `Conflict` if the name is taken.
    """
    if not store.exists():
        raise InvalidSetting(f"there is no store at {store}")
    refuse_unfit(store)
    refuse_loss_beside_writer(store)
    if backup.exists():
        raise Conflict(f"{backup} already exists, and is not overwritten")
    partial = _beside(backup, ".partial")
    with _claimed(partial, store):
        try:
            _copy(store, partial, progress, int(busy_timeout_seconds * 1_000))
            copied = _checked(partial, backup, check)
            _sync(partial)
            with os.fdopen(open_private(_beside(backup, SUM), os.O_TRUNC), "w") as sums:
                sums.write(f"{_digest(partial)}  {backup.name}\n")
            _sync(_beside(backup, SUM))
            partial.rename(backup)
            sync_folder(backup.absolute().parent)
        except StoreFull as error:
            raise StoreFull(str(error), hint="Free space there, or choose another place for the backup.") from None
        finally:
            _remove(partial)
            if not backup.exists():
                _beside(backup, SUM).unlink(missing_ok=True)
    return copied


@contextmanager
def _claimed(partial: Path, like: Path) -> Iterator[None]:
    """An empty file, locked during the context, that only the owner of the store can read."""
    try:
        descriptor = open_like(like, partial)
        os.fchmod(descriptor, PRIVATE)
    except OSError as error:
        raise Unavailable(f"a backup cannot be written to {partial.absolute().parent}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The last holder of the lock has renamed this very file since, or removed it.
        if not partial.exists() or not os.path.samestat(partial.stat(), os.fstat(descriptor)):
            raise BlockingIOError
    except BlockingIOError:
        os.close(descriptor)
        raise Conflict(f"another process makes a backup under the name of {partial.stem}") from None
    try:
        # Of one that was killed.
        os.ftruncate(descriptor, 0)
        _remove(partial, _LOGS)
        yield
    finally:
        os.close(descriptor)


def _copy(store: Path, partial: Path, progress: OnProgress, busy_timeout_ms: int) -> None:
    with translated(store):
        source = connect(store, Access.READ, CACHE_BYTES, busy_timeout_ms)
        try:
            refuse_foreign(store, source.pragma("application_id"), source.pragma("user_version"))
            with source:
                # The first read of a transaction decides what it sees; all pages are of that one instant.
                asking(source)("SELECT position FROM indexed", ())
                _copy_into(partial, source, progress, busy_timeout_ms)
        finally:
            source.close()


def _copy_into(partial: Path, source: Connection, progress: OnProgress, busy_timeout_ms: int) -> None:
    # Pages are copied as they are: from here on only writing them can fail.
    with translated(partial):
        target = connect(partial, Access.CREATE, CACHE_BYTES, busy_timeout_ms)
        try:
            copy_database(source, target, PAGES_PER_STEP, progress)
        finally:
            target.close()


def restore(
    backup: Path,
    store: Path,
    progress: OnProgress,
    *,
    replace: bool = False,
    check: CheckEntry = unchecked,
) -> Copied:
    """Put a backup in the place of ``store``.

    The present store is untouched until the copy is checked. Raises `StoreBusy` if the store is in use,
    `Conflict` if there is one and ``replace`` is not set, `StoreDamaged` if the backup is not whole, is not what its
    SHA-256 beside it says, or holds an event in which ``check`` finds a fault.
    """
    refuse_network(store)
    if store.is_symlink():
        store = store.resolve()  # the file is replaced, not a link to it
    if not backup.is_file():
        raise InvalidValue(f"there is no backup {backup}")
    if file_bytes(_beside(backup, "-wal")):
        raise Conflict(f"{backup} is a store in use, not a backup", hint="Make one with `threadline backup`.")
    lock = WriterLock(store)
    try:
        if store.exists() and not replace:
            raise Conflict(f"there is a store at {store}", hint="With --replace it is set aside, and kept.")
        fresh = _beside(store, ".restoring")
        _remove(fresh)  # the write-ahead log of a killed restore would be taken for this one's
        try:
            with _written(fresh):
                _copy_file(backup, fresh, progress)
            if (sum_file := _beside(backup, SUM)).exists() and _digest(fresh) != sum_file.read_text()[:64]:
                raise StoreDamaged(f"{backup} is not what was backed up: its SHA-256 differs from {sum_file.name}")
            copied = _checked(fresh, backup, check)
            _sync(fresh)
            copied = copied._replace(replaced=_exchange(fresh, store))
        finally:
            _remove(fresh)
        sync_folder(store.absolute().parent)
    finally:
        lock.release()
    return copied


def _copy_file(source: Path, target: Path, progress: OnProgress) -> None:
    size, done = file_bytes(source), 0
    made = open_like(source, target, os.O_EXCL)
    os.fchmod(made, PRIVATE)
    with source.open("rb") as reading, os.fdopen(made, "wb") as writing:
        while chunk := reading.read(CHUNK_BYTES):
            writing.write(chunk)
            done += len(chunk)
            progress(done, size)


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """Name the full disk: the error itself names no file."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StoreFull(f"there is no room left for {path}", hint="Free space there; nothing was replaced.") from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked(copy: Path, named: Path, check: CheckEntry) -> Copied:
    """The content of a copy. Raises `StoreDamaged` if it is not whole, `InvalidSetting` if it is no store."""
    with translated(named):
        db = connect(copy, Access.WRITE, CACHE_BYTES, 0)
        try:
            # No other process has this file open: it needs no shared index of its write-ahead log.
            db.pragma("locking_mode", "exclusive")
            ask = asking(db)
            refuse_foreign(named, db.pragma("application_id"), db.pragma("user_version"))
            upgrade(ask, db.pragma("user_version"))
            log = EventLog(Names(), 1, follow=False)
            if problems := faults(ask) or log.problems(ask) or damaged_items(ask):
                raise StoreDamaged(f"{named} is not whole: {problems[0]}")
            _check_events(log, ask, named, check)
            with transaction(db):
                # A mark that lies beside the store of another instant says nothing of this one.
                ask("UPDATE store_id SET id = randomblob(16)", ())
                # A shared cache holds what came after this copy was made.
                ask("DELETE FROM item WHERE tbl IN (SELECT id FROM name WHERE text = 'cache')", ())
            checkpoint(db, "truncate")
            [(events,)] = ask("SELECT count(*) FROM log", ())
        finally:
            db.close()
    return Copied(events, file_bytes(copy))


def _check_events(log: EventLog, ask: Ask, named: Path, check: CheckEntry) -> None:
    damaged: list[str] = []
    position = 0
    while page := log.feed(ask, position, EVENTS_PER_STEP):
        position = int(page[-1].cursor)
        damaged += [
            f"{feed_entry.entry.id} (position {feed_entry.cursor}): {why}"
            for feed_entry in page
            if (why := check(feed_entry.entry))
        ]
    if damaged:
        raise StoreDamaged(
            f"{named} is not whole: {len(damaged)} damaged events; the first is {damaged[0]}",
            hint="`threadline verify` names them; `threadline repair --from BACKUP` takes good copies from a backup.",
        )


def _exchange(fresh: Path, store: Path) -> Path | None:
    """Put a file in the place of a store, which gets the first free name beside it and can be opened there as before.

    Safe against a crash at any point: the store's name always leads to a whole store, without another's log.
    """
    log, number = _beside(store, "-wal"), 1
    if store.exists():
        _fold(store)
    while (replaced := _beside(store, f".replaced-{number}")).exists() or (
        _beside(replaced, "-wal").exists() and log.exists()
    ):
        number += 1
    # It could not be folded in, or its store was taken away without it: it would be taken for that of the store that
    # comes. If we die after this, the next attempt sets the store aside under the same name.
    if log.exists():
        log.rename(_beside(replaced, "-wal"))
    _beside(store, "-shm").unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        mark_path(store).rename(mark_path(replaced))
    if not store.exists():
        fresh.rename(store)
        return None
    status = store.stat()
    os.chmod(fresh, mode_like(store))
    with suppress(PermissionError):
        os.chown(fresh, status.st_uid, status.st_gid)
    try:
        os.link(store, replaced)
    except OSError:
        store.rename(replaced)  # this disk has no links
    fresh.rename(store)
    return replaced


def _fold(store: Path) -> None:
    """Copy the write-ahead log of a replaced store into it, so that it is one file, if possible.

    If something of it is gone, all its files stay as they are.
    """
    with suppress(ThreadlineError, OSError), translated(store):
        if find_loss(store) is not None:
            return
        mark_path(store).unlink(missing_ok=True)
        db = connect(store, Access.WRITE, CACHE_BYTES, 0)
        try:
            checkpoint(db, "truncate")
        finally:
            db.close()


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _remove(copy: Path, endings: Sequence[str] = ("", *_LOGS)) -> None:
    """Remove an unfinished copy, with the files that reading it may have left beside it."""
    for ending in endings:
        _beside(copy, ending).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


COPY = Copy("backups", why="who is in the ledger is erased again before a restored one is served")
