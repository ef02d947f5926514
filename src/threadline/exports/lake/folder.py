"""A local folder as object storage."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from threadline.kernel.errors import Forbidden, NotFound, StoreFull
from threadline.kernel.object_storage import Stored

_LOCK = ".lock"
_UNFINISHED = ".unfinished-"
"""What the name of a file begins with until it is whole."""


class FolderStorage:
    """A local folder. Processes of one machine may share it; `replace` locks a file of its own."""

    def __init__(self, folder: Path, *, is_durable: bool = True) -> None:
        self._folder = folder.absolute()
        self._is_durable = is_durable
        """False: of what is gone with its process, nothing has to outlive the machine."""
        self._synced: set[Path] = set()
        """Folders whose own entries are durable."""

    def read(self, name: str) -> bytes:
        """See `Storage.read`."""
        tagged = self.tagged(name)
        if tagged is None:
            raise NotFound(f"there is no {self.url(name)}")
        return tagged[0]

    def tagged(self, name: str) -> tuple[bytes, str] | None:
        """See `Storage.tagged`: the tag is a hash of the content."""
        with _errors(self._folder / name):
            try:
                content = (self._folder / name).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None
        return content, _tag(content)

    def write(self, name: str, content: bytes) -> None:
        """See `Storage.write`."""
        path = self._folder / name
        with _errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.parent / f"{_UNFINISHED}{secrets.token_hex(8)}"
            try:
                with unfinished.open("xb") as file:
                    file.write(content)
                    file.flush()
                    if self._is_durable:
                        os.fsync(file.fileno())
                unfinished.replace(path)
            finally:
                unfinished.unlink(missing_ok=True)
            if self._is_durable:
                self._sync_folders(path.parent)

    def replace(self, name: str, content: bytes, expected_tag: str) -> str | None:
        """See `Storage.replace`. The lock ends with the process that has it, however that ends."""
        with _errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / _LOCK).open("wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                tagged = self.tagged(name)
                if (tagged[1] if tagged else "") != expected_tag:
                    return None
                self.write(name, content)
        return _tag(content)

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """See `Storage.list`."""
        top = self._folder / prefix.rpartition("/")[0]
        stored = []
        for folder, _, files in os.walk(top):
            for file in files:
                path = Path(folder, file)
                name = path.relative_to(self._folder).as_posix()
                if name.startswith(prefix) and file != _LOCK:
                    with suppress(FileNotFoundError):  # removed since it was listed
                        about = path.stat()
                        stored.append(Stored(name, about.st_size, about.st_mtime))
        return iter(sorted(stored))

    def delete(self, names: Iterable[str]) -> None:
        """See `Storage.delete`. Empty folders go as well."""
        for name in names:
            path = self._folder / name
            with _errors(path):
                path.unlink(missing_ok=True)
                if self._is_durable:
                    _sync_folder(path.parent)
                with suppress(OSError):  # another process may have put something there meanwhile
                    while (path := path.parent) != self._folder:
                        path.rmdir()
                        self._synced.discard(path)

    def url(self, name: str = "") -> str:
        """See `Storage.url`."""
        return str(self._folder / name) if name else str(self._folder)

    def _sync_folders(self, folder: Path) -> None:
        """Sync the entry of a file, and those of the folders above it that may be new."""
        _sync_folder(folder)
        while folder != self._folder and folder not in self._synced:
            self._synced.add(folder)
            folder = folder.parent
            _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    with suppress(FileNotFoundError):  # emptied and removed by another process
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        hint = "let the user that Threadline runs as read, write and list this folder"
        raise Forbidden(f"{path}: {error.strerror}", hint=hint) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(
                f"{path}: {error.strerror}", hint="make room, or raise the quota; then sync again"
            ) from None
        raise
