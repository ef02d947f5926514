"""Whether a store has all that it acknowledged: its file, write-ahead log and mark are compared when it is opened."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from threadline.kernel.errors import StoreDamaged
from threadline.kernel.time import format_time
from threadline.stores.sqlite.driver import (
    Access,
    Connection,
    DamageError,
    asking,
    checkpoint,
    connect,
    connect_unread,
    translated,
    whole_frames,
)
from threadline.stores.sqlite.file import (
    WriterLock,
    file_bytes,
    is_frozen,
    lock_holder,
    open_private,
    refuse_network,
    sync_folder,
)
from threadline.stores.sqlite.log import EventLog
from threadline.stores.sqlite.mark import NO_SALTS, LogState, Mark, mark_path, read_mark
from threadline.stores.sqlite.names import Names
from threadline.stores.sqlite.rows import APPLICATION_ID, damaged_items, faults
from threadline.stores.sqlite.wal_file import LogFile, is_successor, read_log

CACHE_BYTES = 1_000_000
BUSY_TIMEOUT_MS = 5_000
HINT = (
    "Put back the files that belong together (the store, its -wal, its -mark) or restore a backup. "
    "`threadline accept-loss` goes on without what is gone, and keeps the log for whoever can repair it."
)
_IS_THERE = "SELECT 1 FROM item WHERE crc = ? AND version = ? LIMIT 1"

log = logging.getLogger("threadline.store")


class Loss(NamedTuple):
    """What is gone of what was acknowledged, as far as it is known."""

    reason: str
    left: int
    """The last position in the event log that is still there."""
    gone: int | None = None
    """How many events are gone; None: some commits, nobody knows how many events."""
    is_exact: bool = True
    """Whether that is the number; else there are at least so many."""
    since: int = 0
    until: int = 0
    """Between which instants they were acknowledged; 0: not known."""
    is_log_useless: bool = False
    """Whether the write-ahead log must not be read: the file is ahead of it, or it is another's."""

    def text(self) -> str:
        """As operators read it."""
        if self.gone is None:
            count = "acknowledged commits are gone, nobody knows how many events"
        elif not self.gone:
            count = "no event is gone as far as is known"
        else:
            least = "" if self.is_exact else "at least "
            gone = "1 acknowledged event is gone" if self.gone == 1 else f"{self.gone:,} acknowledged events are gone"
            count = f"{least}{gone}, from position {self.left + 1:,} on"
        since = f"between {format_time(self.since)} and" if self.since else "until"
        when = f", recorded {since} {format_time(self.until)}" if self.until else ""
        return f"{count}{when if self.gone != 0 else ''}: {self.reason}"


class _Seen(NamedTuple):
    """What a connection sees."""

    store: bytes
    position: int
    frames: int
    """Whole frames of the write-ahead log, up to the last commit."""
    page_bytes: int
    is_readable: bool = True


def refuse_loss(path: Path) -> None:
    """Raise `StoreDamaged` if something acknowledged is gone. Nobody may have the store open for writing."""
    loss = find_loss(path)
    if loss is not None:
        raise StoreDamaged(f"{path}: {loss.text()}", hint=HINT)


def refuse_loss_beside_writer(path: Path) -> None:
    """As `refuse_loss`, unless another process writes: that one has looked, and changes the files meanwhile."""
    if not _is_written(path) and find_loss(path) is not None and not _is_written(path):
        refuse_loss(path)


def _is_written(path: Path) -> bool:
    try:
        return bool(lock_holder(path))
    except OSError:
        return True  # it cannot be seen by this user, and then nothing can be said of the rest either


def find_loss(path: Path) -> Loss | None:
    """What is gone of what the store at ``path`` acknowledged; None if nothing is, as far as can be known."""
    path = path.resolve()
    mark, log_path = _mark(path), path.with_name(path.name + "-wal")
    if not file_bytes(path):
        # Before SQLite sees it, which removes the log of an empty file.
        if mark is None or not mark.position:
            return None
        return Loss("the file itself is not there, or is empty", 0, mark.position, True, 0, mark.at)
    if mark is None and not (log_path.exists() and log_path.stat().st_size):
        return None
    with translated(path):
        alone = _seen(connect_unread(path, ignore_log=True))
        whole = _seen(connect_unread(path, ignore_log=is_frozen(path)))
    if whole is None or not (whole.is_readable or whole.frames):
        return None  # it is not a store, or is damaged itself, which whoever reads it sees
    if alone is None:  # everything is in the log
        alone = whole._replace(position=0, store=b"" if mark is None else mark.store)
    log_file = read_log(log_path, whole.page_bytes)
    if mark is not None and alone.is_readable and alone.store != mark.store:
        if whole.frames and mark.salts != NO_SALTS and _follows(log_file.salts, mark.salts):
            return Loss(
                f"{log_path.name} belongs to the store that was here before",
                alone.position,
                0,
                False,
                is_log_useless=True,
            )
        log.warning("%s belongs to another store, and is not used", mark_path(path))
        mark = None
    if mark is None:
        return _broken_off(log_file, whole, mark)
    if not whole.frames and mark.state == LogState.NEEDED and whole.position >= mark.position and _has_last(path, mark):
        log.warning("%s: the write-ahead log was copied into the file by another program; nothing is gone", path)
        return None
    return _short(mark, log_file, alone, whole) or _broken_off(log_file, whole, mark)


def _has_last(path: Path, mark: Mark) -> bool:
    """Whether an item is there as the last commit wrote it. Reads all items."""
    with translated(path), closing(connect_unread(path, ignore_log=True)) as db:
        return not mark.version or bool(asking(db)(_IS_THERE, (mark.crc, mark.version)))


def _mark(path: Path) -> Mark | None:
    try:
        return read_mark(path)
    except (ValueError, OSError) as error:
        # Without a mark less can be noticed, and the store itself may be sound.
        log.warning("%s: the mark of what was acknowledged cannot be read: %s", path, error)
        return None


def describe_mark(path: Path) -> str:
    """What the mark of a store says, for operators."""
    path = path.resolve()
    try:
        mark = read_mark(path)
    except (ValueError, OSError) as error:
        return f"cannot be read, and is made again by the next process that writes: {error}"
    if mark is None:
        return "none yet; the next process that writes makes it"
    last = "" if not mark.position else f"up to position {mark.position:,}, "
    return f"acknowledged {last}at {format_time(mark.at)}; the log ahead is {mark.state.name.lower()}"


def _follows(salts: bytes, earlier: bytes) -> bool:
    return salts == earlier or (len(salts) == len(earlier) and is_successor(salts, earlier))


def _seen(db: Connection) -> _Seen | None:
    try:
        ask = asking(db)
        if db.pragma("application_id") != APPLICATION_ID:
            return None
        store = b"" if db.pragma("user_version") < 2 else bytes(ask("SELECT id FROM store_id", ())[0][0])
        [(position,)] = ask("SELECT max(position) FROM log", ())
        return _Seen(store, position or 0, whole_frames(db), db.pragma("page_size"))
    except (*DamageError, IndexError):
        return _Seen(b"", 0, whole_frames(db), db.pragma("page_size"), is_readable=False)
    finally:
        db.close()


def _short(mark: Mark, log_file: LogFile, alone: _Seen, whole: _Seen) -> Loss | None:
    """The loss if file and log reach less far than the mark."""

    def loss(reason: str, seen: _Seen, *, is_exact: bool = True, is_log_useless: bool = False) -> Loss:
        if not seen.is_readable:
            return Loss(reason, 0, None, False, 0, mark.at, is_log_useless)
        gone = max(0, mark.position - seen.position)
        since = mark.copied_at if seen.position >= mark.copied and mark.copied_at < mark.at else 0
        return Loss(reason, seen.position, gone, is_exact, since, mark.at, is_log_useless)

    is_copying = mark.state == LogState.COPYING
    own = log_file.salts == mark.salts
    has_restarted = not own and mark.salts != NO_SALTS and _follows(log_file.salts, mark.salts)
    later = mark.state != LogState.CLOSED and (mark.salts == NO_SALTS or _follows(log_file.salts, mark.salts))
    if whole.frames and not later:
        return loss(
            "the write-ahead log is an older one, or another store's",
            alone,
            is_exact=not is_copying,
            is_log_useless=True,
        )
    if not whole.is_readable:
        return loss(f"the file and the {whole.frames:,} whole frames of its write-ahead log do not fit together", whole)
    if mark.state >= LogState.COPIED:
        if alone.position < mark.position:
            return loss("the file is an older one", alone, is_exact=not whole.frames)
        if whole.frames and own and whole.frames < mark.frames:
            return loss(
                "the write-ahead log is damaged, and the file has all that was in it", alone, is_log_useless=True
            )
        return None
    if has_restarted:
        # Which it does only once the file has everything: a power cut has left the mark behind.
        return loss("the file is an older one", whole, is_exact=False) if whole.position < mark.position else None
    if alone.position < mark.copied and not is_copying:
        return loss("the file is older than its write-ahead log", whole, is_exact=False)
    if whole.frames >= mark.frames:
        return loss("the file is an older one", whole, is_exact=False) if whole.position < mark.position else None
    if whole.frames:
        reason = f"the write-ahead log breaks off at frame {whole.frames:,} of {mark.frames:,}"
        return loss(reason, whole, is_exact=not is_copying)
    reason = "the write-ahead log cannot be read from its start" if log_file.size else "the write-ahead log is missing"
    return loss(reason, whole, is_exact=not is_copying)


def _broken_off(log_file: LogFile, whole: _Seen, mark: Mark | None) -> Loss | None:
    """The loss if there are commits behind the frame at which SQLite stops, which no mark speaks of.

    One is no proof: a power cut may have torn the last commit, which then was not acknowledged. Each is synced before
    the next is written, so two are.
    """
    behind = log_file.commits_behind(whole.frames, log_file.salts) - 1
    if not log_file.salts and mark is None:
        behind = max(map(len, log_file.commits.values()), default=0)
    if behind < 1:
        return None
    commits = "1 commit" if behind == 1 else f"{behind:,} commits"
    until = 0 if mark is None else mark.at
    reason = f"the write-ahead log breaks off at frame {whole.frames:,}, with {commits} at least behind it"
    return Loss(reason, whole.position, None, False, 0, until)


class Accepted(NamedTuple):
    """What was accepted."""

    loss: Loss
    files: Sequence[Path]
    """Copies of the damaged files."""
    faults: Sequence[str]
    """What is wrong with what is left."""


def accept_loss(path: Path) -> Accepted | None:
    """Let a store be opened that has lost something; None if it has not. The log and the mark stay under new names.

    Raises `StoreBusy` if it is in use.
    """
    refuse_network(path)
    lock = WriterLock(path)
    try:
        path = path.resolve()
        loss = find_loss(path)
        if loss is None:
            return None
        files = _set_aside(path)
        log_path = path.with_name(path.name + "-wal")
        if loss.is_log_useless:
            log_path.unlink(missing_ok=True)
            path.with_name(path.name + "-shm").unlink(missing_ok=True)
        elif path.exists():
            _fold(path)
        # Behind the log: until then the next attempt finds the same loss.
        mark_path(path).unlink(missing_ok=True)
        sync_folder(path.parent)
        wrong = _faults(path) if path.exists() else []
        return Accepted(loss, files, wrong)
    finally:
        lock.release()


def _set_aside(path: Path) -> list[Path]:
    """Copies of the log and the mark, synced."""
    number = 1
    while any(path.with_name(f"{path.name}{ending}.lost-{number}").exists() for ending in ("-wal", "-mark")):
        number += 1
    copies = []
    for source in (path.with_name(path.name + "-wal"), mark_path(path)):
        if source.exists():
            copy = source.with_name(f"{source.name}.lost-{number}")
            with source.open("rb") as reading, os.fdopen(open_private(copy), "wb") as writing:
                shutil.copyfileobj(reading, writing)
                writing.flush()
                os.fsync(writing.fileno())
            copies.append(copy)
    return copies


def _fold(path: Path) -> None:
    with suppress(StoreDamaged), translated(path):  # `_faults` names it
        db = connect(path, Access.WRITE, CACHE_BYTES, BUSY_TIMEOUT_MS)
        try:
            asking(db)("SELECT count(*) FROM sqlite_schema", ())
            checkpoint(db, "truncate")
        finally:
            db.close()


def _faults(path: Path) -> list[str]:
    try:
        with translated(path), closing(connect(path, Access.READ, CACHE_BYTES, BUSY_TIMEOUT_MS)) as db:
            ask = asking(db)
            return faults(ask) or EventLog(Names(), 1, follow=False).problems(ask) or damaged_items(ask)
    except StoreDamaged as error:
        return [str(error)]
