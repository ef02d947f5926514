"""The curated zone of a workspace: its tables' files, which the lake's manifest names like all others."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from threadline.exports.curated.warehouse import redshift_manifest
from threadline.exports.lake.lake import File, Lake, Manifest, Obsolete, path_name
from threadline.kernel.errors import Conflict

PEOPLE = "_people"
"""A table of the zone for itself: of which events each person's rows were folded."""


class Zone:
    """The curated tables of a workspace, as a manifest of the lake names them."""

    def __init__(self, lake: Lake, manifest: Manifest, workspace: str, fingerprint: str) -> None:
        self.lake = lake
        self.manifest = manifest
        self.workspace = workspace
        self._run = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
        self._folder = f"curated/{path_name(workspace)}"

    def files(self, table: str) -> list[File]:
        """The files of a table."""
        return [each for each in self.manifest.files if (each.workspace, each.table) == (self.workspace, table)]

    def is_current(self) -> bool:
        """Whether the tables were made under the definitions in force."""
        return any(each.name.split("/")[3].startswith(self._run) for each in self.files(PEOPLE))

    def urls(self, table: str) -> list[str]:
        """Where the files of a table are."""
        return [self.lake.storage.url(each.name) for each in self.files(table)]

    def add(self, table: str, files: Sequence[Path], rows: int, position: int) -> list[File]:
        """Put the files of a table into a folder of their own, for engines that read folders. They do not count before
        `publish`; the folder's name depends on what is in them, so that written twice they are the same."""
        contents = [each.read_bytes() for each in files]
        digests = [hashlib.sha256(each).hexdigest() for each in contents]
        digest = hashlib.sha256("".join(digests).encode()).hexdigest()
        folder = f"{self._folder}/{table}/{self._run}-{digest[:16]}"
        added = []
        for number, (content, sha256) in enumerate(zip(contents, digests, strict=True)):
            name = f"{folder}/part-{number:05}.parquet"
            self.lake.storage.write(name, content)
            about: dict[str, Any] = {"name": name, "workspace": self.workspace, "table": table, "bytes": len(content)}
            added.append(File(**about, first=1, last=position, rows=0 if number else rows, sha256=sha256))
        return added

    def publish(self, tables: Mapping[str, Sequence[File]]) -> Manifest:
        """Make these the tables, in one commit. Raises `Conflict` if an erasure has reached the lake since its manifest
        was read: what was made before might name an erased person."""
        added = [file for files in tables.values() for file in files]
        names = {each.name for each in added}

        def change(manifest: Manifest) -> Manifest:
            if manifest.erased != self.manifest.erased:
                raise Conflict("an erasure has reached the lake meanwhile; write the tables again")
            ours = [each for each in manifest.files if each.workspace == self.workspace and each.table in tables]
            old = [Obsolete(each.name, time.time()) for each in ours if each.name not in names]
            others = [each for each in manifest.files if each not in ours]
            waiting = [each for each in manifest.obsolete if each.name not in names]
            return replace(manifest, files=[*others, *added], obsolete=[*waiting, *old])

        self.manifest = self.lake.change(change)
        for table, files in tables.items():
            entries = [(self.lake.storage.url(each.name), each.bytes) for each in files]
            self.lake.storage.write(self.copy_manifest(table), redshift_manifest(entries))
        return self.manifest

    def copy_manifest(self, table: str) -> str:
        """The name of the list of a table's files for Redshift's COPY."""
        return f"{self._folder}/{table}.manifest.json"
