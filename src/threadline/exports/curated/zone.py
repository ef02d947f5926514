"""The curated zone of a workspace: its tables' files, which the lake's manifest names like all others."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from threadline.exports.curated.warehouse import redshift_manifest
from threadline.exports.lake.erasing import without_erased
from threadline.exports.lake.lake import File, Lake, Manifest, Obsolete
from threadline.kernel.errors import Conflict
from threadline.kernel.object_storage import path_name
from threadline.kernel.personal import Copy

PEOPLE = "_people"
"""A table of the zone for itself: of which events each person's rows were folded."""
COPIES = "_copies"
"""Under this name the manifest has the lists of files that Redshift's COPY reads, one for each table."""


class Zone:
    """The curated tables of a workspace, as a manifest of the lake names them."""

    def __init__(self, lake: Lake, manifest: Manifest, workspace: str, fingerprint: str) -> None:
        self.lake = lake
        self.manifest = manifest
        self.workspace = workspace
        self._run = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
        self._folder = f"curated/{path_name(workspace)}"
        self._copies: list[File] = []

    def files(self, table: str) -> list[File]:
        """The files of a table."""
        return [file for file in self.manifest.files if (file.workspace, file.table) == (self.workspace, table)]

    def is_current(self) -> bool:
        """Whether the tables were made under the definitions in force."""
        return any(file.name.split("/")[3].startswith(self._run) for file in self.files(PEOPLE))

    def urls(self, table: str) -> list[str]:
        """Where the files of a table are."""
        return [self.lake.storage.url(file.name) for file in self.files(table)]

    def add(self, table: str, files: Sequence[Path], rows: int, position: int) -> list[File]:
        """Put the files of a table into a folder of their own, for engines that read folders, and a list of them beside
        it. They do not count before `publish`; names depend on the content, so that written twice they are the same."""
        contents = [file.read_bytes() for file in files]
        digest = _digest("".join(map(_digest, contents)).encode())
        folder = f"{self._folder}/{table}/{self._run}-{digest[:16]}"
        added = []
        for number, content in enumerate(contents):
            name = f"{folder}/part-{number:05}.parquet"
            added.append(self._written(table, name, content, 0 if number else rows, position))
        entries = [(self.lake.storage.url(file.name), file.bytes) for file in added]
        self._copies.append(
            self._written(COPIES, f"{folder}.manifest.json", redshift_manifest(entries), len(added), position)
        )
        return added

    def _written(self, table: str, name: str, content: bytes, rows: int, position: int) -> File:
        self.lake.storage.write(name, content)
        about: dict[str, Any] = {"name": name, "workspace": self.workspace, "table": table, "rows": rows}
        return File(**about, first=1, last=position, bytes=len(content), sha256=_digest(content))

    def publish(self, tables: Mapping[str, Sequence[File]]) -> Manifest:
        """Make these the tables, in one commit. Raises `Conflict` if an erasure has reached the lake since its manifest
        was read: what was made before might name an erased person."""
        added = [*self._copies, *(file for files in tables.values() for file in files)]
        names = {file.name for file in added}

        def change(manifest: Manifest) -> Manifest:
            if manifest.erased != self.manifest.erased:
                raise Conflict("an erasure has reached the lake meanwhile; write the tables again")
            ours = [
                file for file in manifest.files if file.workspace == self.workspace and file.table in (COPIES, *tables)
            ]
            old = [Obsolete(our.name, time.time()) for our in ours if our.name not in names]
            others = [file for file in manifest.files if file not in ours]
            waiting = [item for item in manifest.obsolete if item.name not in names]
            return replace(manifest, files=[*others, *added], obsolete=[*waiting, *old])

        self.manifest = self.lake.change(change)
        return self.manifest

    def copy_manifest(self, table: str) -> str:
        """The name of the list of a table's files for Redshift's COPY."""
        below = f"{self._folder}/{table}/"
        return next(file.name for file in self.files(COPIES) if file.name.startswith(below))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


COPY = Copy("curated tables", without_erased)
