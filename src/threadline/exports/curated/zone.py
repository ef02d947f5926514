"""The curated zone of a workspace: which files each table consists of, in one manifest that is replaced as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from threadline.exports.curated.warehouse import redshift_manifest
from threadline.exports.lake.lake import path_name
from threadline.exports.lake.storage import Storage
from threadline.kernel.errors import Conflict, InvalidValue

PEOPLE = "_people"
"""A table of the zone for itself: of which events each person's rows were folded."""
_VERSION = 1


class ZoneFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a table."""

    name: str
    """Below the storage."""
    bytes: int
    sha256: str


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A table as it lies in the storage."""

    folder: str
    """Below the storage. Nothing else is in it, for engines that read folders. Its name depends on the content."""
    files: list[ZoneFile]


class ZoneManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the curated zone of a workspace consists of."""

    schema_version: int = _VERSION
    fingerprint: str = ""
    """Of the definitions by which people were folded."""
    at: str = ""
    """When it was written."""
    tables: dict[str, Written] = {}
    previous: list[str] = []
    """Folders that the manifest before this one named: some reader may still be in them."""


class Zone:
    """The curated zone of a workspace in a storage."""

    def __init__(self, storage: Storage, workspace: str) -> None:
        self.storage = storage
        self.folder = f"curated/{path_name(workspace)}"
        self._manifest = f"{self.folder}/_manifest.json"

    def manifest(self) -> ZoneManifest:
        """The manifest as it is now; an empty one where nothing was written yet."""
        return self._tagged()[0]

    def urls(self, manifest: ZoneManifest, table: str) -> list[str]:
        """Where the files of a table are."""
        written = manifest.tables.get(table)
        return [] if written is None else [self.storage.url(each.name) for each in written.files]

    def add(self, table: str, files: Sequence[Path]) -> Written:
        """Put the files of a table there. They do not count before `commit`; written twice they are the same."""
        contents = [each.read_bytes() for each in files]
        digests = [hashlib.sha256(each).hexdigest() for each in contents]
        folder = f"{self.folder}/{table}/{hashlib.sha256(''.join(digests).encode()).hexdigest()[:16]}"
        added = []
        for number, (content, digest) in enumerate(zip(contents, digests, strict=True)):
            name = f"{folder}/part-{number:05}.parquet"
            self.storage.write(name, content)
            added.append(ZoneFile(name=name, bytes=len(content), sha256=digest))
        return Written(folder=folder, files=added)

    def commit(self, tables: Mapping[str, Written], fingerprint: str, at: str, before: ZoneManifest) -> ZoneManifest:
        """Make these the tables, and remove what neither they nor those before them need.

        Raises `Conflict` if another process has written since ``before`` was read.
        """
        now, tag = self._tagged()
        if now != before:
            raise Conflict(f"another process has written {self.storage.url(self._manifest)} meanwhile")
        folders = [each.folder for each in before.tables.values()]
        manifest = ZoneManifest(fingerprint=fingerprint, at=at, tables=dict(tables), previous=folders)
        for name, written in tables.items():
            entries = [(self.storage.url(each.name), each.bytes) for each in written.files]
            self.storage.write(self.copy_manifest(name), redshift_manifest(entries))
        if self.storage.replace(self._manifest, msgspec.json.format(msgspec.json.encode(manifest)), tag) is None:
            raise Conflict(f"another process has written {self.storage.url(self._manifest)} meanwhile")
        self._sweep(manifest)
        return manifest

    def copy_manifest(self, table: str) -> str:
        """The name of the list of a table's files for Redshift's COPY."""
        return f"{self.folder}/{table}.manifest.json"

    def _sweep(self, manifest: ZoneManifest) -> None:
        needed = {*manifest.previous, *(each.folder for each in manifest.tables.values())}
        stored = [each.name for each in self.storage.list(f"{self.folder}/") if each.name.endswith(".parquet")]
        self.storage.delete([name for name in stored if name.rpartition("/")[0] not in needed])

    def _tagged(self) -> tuple[ZoneManifest, str]:
        found = self.storage.tagged(self._manifest)
        if found is None:
            return ZoneManifest(), ""
        try:
            manifest = msgspec.json.decode(found[0], type=ZoneManifest)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidValue(
                f"{self.storage.url(self._manifest)} is no manifest of a curated zone: {error}"
            ) from None
        if manifest.schema_version > _VERSION:
            raise InvalidValue(f"{self.storage.url(self._manifest)} was written by a newer version of Threadline")
        return manifest, found[1]
