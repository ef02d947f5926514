"""The lake as its readers see it: the manifest, which names every file that counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from threadline.exports.lake.storage import Storage
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.object_storage import is_path_name, path_hash

MANIFEST = "_manifest.json"
SCHEMA_VERSION = 2
"""Of the manifest and of the columns that every file has. A lake keeps the one that it began with.

2: a single row of identities says that the thread never changed hands; compaction in 1 left the last row alone.
"""
EVENTS = "events"
IDENTITIES = "identities"
_ATTEMPTS_MAX = 32


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file that counts."""

    name: str
    """Below the storage."""
    workspace: str
    table: str
    event: str = ""
    """The partition of its events; see `partition_of`."""
    dt: str = ""
    """The day, UTC, on which its events were recorded."""
    first: int
    """Positions of the log that it was made of, first and last; those between them may be in other files."""
    last: int
    rows: int
    bytes: int
    sha256: str


class Column(msgspec.Struct, frozen=True):
    """A typed column of a declared property. Once it is there it never changes."""

    name: str
    property: str
    type: str
    """``string``, ``int64``, ``double`` or ``bool``."""


class Obsolete(msgspec.Struct, frozen=True):
    """A file that counts no more and is still to be removed."""

    name: str
    since: float
    """Seconds since 1970; 0: to be removed at once."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a lake consists of. It is replaced as a whole, and only by who has read the one before."""

    schema_version: int = SCHEMA_VERSION
    store: str = ""
    """The id of the first event of the log that this is a copy of."""
    position: int = 0
    """Entries of the log that are in the files; those that are erased have a number too, and no row."""
    cursor: str = ""
    """Of the store's feed, behind the entry at ``position``."""
    last_cursor: str = ""
    """Of the store's feed, before that entry."""
    last_id: str = ""
    """Of that entry. By these two a log is recognised that is another, or an older copy."""
    recorded_at: int = 0
    """When the newest event in the files was recorded, microseconds."""
    erased: str = ""
    """The mark up to which erasures have reached the files; see `engine/erasure/erased_ids.py`."""
    gaps: bool = False
    """Whether an erased entry was met, behind which a thread may have no first event."""
    leaving: list[str] = []
    """Threads of which rows were erased while an erasure was under way: in the end they belong to nobody."""
    columns: list[Column] = []
    files: list[File] = []
    obsolete: list[Obsolete] = []
    swept_at: float = 0.0
    """When files that no manifest names were last looked for, seconds since 1970."""


_decode = msgspec.json.Decoder(Manifest)


class Lake:
    """A lake in a storage. Nothing is read before it is asked for."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def manifest(self) -> Manifest:
        """The manifest as it is now; an empty one for a lake that is not there yet."""
        return self.tagged()[0]

    def tagged(self) -> tuple[Manifest, str]:
        """The manifest and its tag, for `commit`."""
        tagged = self.storage.tagged(MANIFEST)
        if tagged is None:
            return Manifest(), ""
        try:
            manifest = _decode.decode(tagged[0])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidValue(f"{self.storage.url(MANIFEST)} is not the manifest of a lake: {error}") from None
        if manifest.schema_version > SCHEMA_VERSION:
            raise InvalidValue(f"{self.storage.url(MANIFEST)} was written by a newer version of Threadline")
        return manifest, tagged[1]

    def commit(self, manifest: Manifest, tag: str) -> None:
        """Replace the manifest. Raises `Conflict` if another process was faster."""
        if not self._replaced(manifest, tag):
            raise Conflict(f"another process has written {self.storage.url(MANIFEST)}", hint="Try again.")

    def change(self, change: Callable[[Manifest], Manifest]) -> Manifest:
        """Replace the manifest by what a pure function makes of it, however many do so at the same time."""
        for _ in range(_ATTEMPTS_MAX):
            manifest, tag = self.tagged()
            changed = change(manifest)
            if changed == manifest or self._replaced(changed, tag):
                return changed
        raise Conflict(f"other processes keep writing {self.storage.url(MANIFEST)}")

    def _replaced(self, manifest: Manifest, tag: str) -> bool:
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        if self.storage.replace(MANIFEST, content, tag) is not None:
            return True
        # An answer may have been lost: the client then sends its write again, and that meets the first one.
        tagged = self.storage.tagged(MANIFEST)
        return tagged is not None and tagged[0] == content

    def files(self, workspace: str, table: str = EVENTS) -> Sequence[File]:
        """The files of a table of a workspace, in the order of the log."""
        return [file for file in self.manifest().files if (file.workspace, file.table) == (workspace, table)]

    def urls(self, workspace: str, table: str = EVENTS) -> list[str]:
        """Where other engines find these files."""
        return [self.storage.url(file.name) for file in self.files(workspace, table)]


def partition_of(type: str) -> str:
    """The partition of the events of a type: its name in lower case, with ``_`` for blanks. Types that differ in these
    alone share one, and types with other characters have a hash in theirs."""
    plain = re.sub(r"[ _]+", "_", type).lower() if type.isascii() else ""
    return plain if is_path_name(plain) else f"{re.sub('[^a-z0-9_]+', '_', type.lower())[:60]}-{path_hash(type)}"
