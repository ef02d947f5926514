"""Who may open a store's file: one writing process at a time, on a disk whose locks and syncs can be trusted."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from pathlib import Path

from threadline.kernel.errors import InvalidSetting, StoreBusy
from threadline.stores.sqlite.rows import APPLICATION_ID, SCHEMA_VERSION

_NETWORK = ("nfs", "cifs", "smb", "fuse.sshfs", "fuse.s3fs", "9p", "afs", "ceph", "glusterfs", "fuse.glusterfs")
"""File systems on which SQLite's locks or shared memory are not to be relied on (https://www.sqlite.org/useovernet.html)."""

LOOK_SECONDS = 0.05
_DISK_FULL_BYTES = 256 * 1_024
PRIVATE = 0o600
"""The mode of whatever has people's data in it, whatever the umask."""
SIDE_FILES = ("-wal", "-shm", "-mark", ".lock")
"""What lies beside a store."""


class WriterLock:
    """The right to write, held as long as this process lives: the kernel takes it back even after ``kill -9``.

    The file ``<path>.lock`` is locked, and has the process id of the holder, for the message. It is never removed,
    which could remove it from under a new holder. It lies beside the file itself, so that symbolic links to the store
    lead to one lock.
    """

    def __init__(self, path: Path) -> None:
        refuse_unfit(path)
        path = path.resolve()
        name = lock_path(path)
        try:
            self._descriptor = open_like(path, name)
        except FileNotFoundError as error:
            raise InvalidSetting(f"a store cannot be kept at {path}: there is no such folder") from error
        except OSError as error:
            raise InvalidSetting(f"a store cannot be kept at {path}: {name.name}: {error.strerror}") from error
        try:
            _lock(self._descriptor)
        except BlockingIOError:
            holder = _holder(self._descriptor)
            os.close(self._descriptor)
            raise StoreBusy(
                f"{path} is open for writing in another process (pid {holder})",
                hint="Stop that process first; what only reads can work beside it.",
            ) from None
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            # A full disk can keep the number out; the lock itself needs no room and holds without it.
            pass

    def release(self) -> None:
        """Let the next process write."""
        # Unlocked explicitly because a forked child may still hold the same descriptor.
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    """Take the lock, once more after a moment: who only looks for its holder has it for an instant."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(LOOK_SECONDS)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def writer_of(path: Path) -> str:
    """The id of the process that has a store open for writing; empty: none has. Neither file is changed.

    Raises `InvalidSetting` where this user could not write the store.
    """
    refuse_unfit(path)
    path = path.resolve()
    if not os.access(path, os.W_OK):
        raise InvalidSetting(f"{path} may not be written by this user")
    return lock_holder(path)


def lock_holder(path: Path) -> str:
    """The id of the process that holds a store's lock; empty: none does. Raises `OSError`."""
    try:
        descriptor = os.open(lock_path(path.resolve()), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(descriptor)
    finally:
        os.close(descriptor)
    return ""


def lock_path(path: Path) -> Path:
    """Where the lock of a store lies; links are to be resolved before."""
    return path.with_name(path.name + ".lock")


def _holder(descriptor: int) -> str:
    return os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"


def mode_like(other: Path) -> int:
    """The mode of a file beside another: the other's own, and read and write for this user; of none, only those."""
    try:
        return stat.S_IMODE(other.stat().st_mode) & 0o666 | PRIVATE
    except FileNotFoundError:
        return PRIVATE


def open_like(other: Path, path: Path, flags: int = 0) -> int:
    """Open a file, made if there is none, that nobody may read who may not read ``other``.

    What root makes belongs to whom ``other`` belongs. Raises `OSError`.
    """
    descriptor = _open_made(path, flags, mode_like(other))
    _hand_over(descriptor, other)
    return descriptor


def open_private(path: Path, flags: int = 0) -> int:
    """Open a file, made if there is none, that only this user may read. Raises `OSError`."""
    return _open_made(path, flags, PRIVATE)


def _open_made(path: Path, flags: int, mode: int) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | flags, PRIVATE)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, PRIVATE)
    # Whatever the umask takes away.
    os.fchmod(descriptor, mode)
    return descriptor


def others_may_read(path: Path) -> list[Path]:
    """Those files of a store that others than its owner may read or write."""
    path = path.resolve()
    files = [path, *(path.with_name(path.name + ending) for ending in SIDE_FILES)]
    return [file for file in files if file.exists() and file.stat().st_mode & 0o077]


def _hand_over(descriptor: int, other: Path) -> None:
    """Give a file that root makes to the owner of the store, as SQLite does: otherwise a service could not open it."""
    if os.geteuid() == 0 and other.exists():
        owner = other.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def refuse_unfit(path: Path) -> None:
    """Raise `InvalidSetting` for a folder, and for a file with several names (hard links).

    The write-ahead log of such a file stands beside one of its names and is not found from the others, where the file
    looks older than it is, or torn.
    """
    try:
        status = path.stat()
    except OSError:
        return
    if stat.S_ISDIR(status.st_mode):
        raise InvalidSetting(f"{path} is a folder; name a file in it, such as {path / 'threadline.db'}")
    if status.st_nlink > 1:
        raise InvalidSetting(
            f"{path} has {status.st_nlink} names (hard links), and its write-ahead log stands beside one of them only",
            hint="Remove the other names, or make a copy with `threadline backup` before there is a second one.",
        )


def refuse_network(path: Path, mounts: str | None = None) -> None:
    """Raise `InvalidSetting` if the file would lie on a network file system, as far as Linux tells."""
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
    resolved = str(path.resolve())
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        # The kernel writes blanks and backslashes in names as octal escapes.
        point = fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        if len(point) >= len(best) and (resolved == point or resolved.startswith(point.rstrip("/") + "/")):
            best, kind = point, fields[2]
    if kind.startswith(_NETWORK):
        raise InvalidSetting(
            f"{resolved} is on a network file system ({kind} at {best}), where SQLite can lose data",
            hint="Put the store on a local disk, or use the PostgreSQL or DynamoDB store.",
        )


def sync_folder(path: Path) -> None:
    """Make the names of newly created files in this folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_foreign(path: Path, application_id: int, version: int) -> None:
    """Raise `InvalidSetting` for a database that is not a store, or is one of a layout that came after ours."""
    if application_id != APPLICATION_ID:
        what = "a database of something else" if file_bytes(path) else "an empty file"
        raise InvalidSetting(f"{path} is {what}, not a Threadline store; choose another path")
    if version > SCHEMA_VERSION:
        raise InvalidSetting(
            f"{path} was written by a newer Threadline (its layout is {version}, this one knows {SCHEMA_VERSION})",
            hint="Upgrade Threadline, or open a copy from before the upgrade.",
        )


def is_frozen(path: Path) -> bool:
    """Whether nobody here can write the file or anything beside it, and nothing is ahead of it in a log."""
    return (
        path.exists()
        and not path.with_name(path.name + "-wal").exists()
        and not os.access(path, os.W_OK)
        and not os.access(path.absolute().parent, os.W_OK)
    )


def disk_is_full(path: Path) -> bool:
    """Whether so little room is left that it explains a failure to write."""
    disk = os.statvfs(path.absolute().parent)
    return disk.f_bavail * disk.f_frsize < _DISK_FULL_BYTES


def file_bytes(path: Path) -> int:
    """The size of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
