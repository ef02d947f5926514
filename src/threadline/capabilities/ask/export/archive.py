"""The archive of a person: a ZIP of JSON Lines, a page to read and a manifest, written while the store is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import msgspec

from threadline.capabilities.ask.export.page import Chapter, page_of
from threadline.kernel.errors import LimitExceeded
from threadline.kernel.limits import EXPORT_FILE_BYTES_MAX
from threadline.kernel.personal import PersonFile, Subject, shown_time

FORMAT = "threadline.person/1"
"""What the manifest says that an archive is. A change that readers have to know of changes the number."""
CHUNK_BYTES = 64 * 1_024
"""Of an archive that is passed on at a time."""
_YEAR_MIN = (1980, 1, 1, 0, 0, 0)
"""The time of every file, so that equal contents make equal bytes: the manifest says when the archive was made."""
_LINE = msgspec.json.Encoder(order="deterministic")


class _Sink:
    """What `ZipFile` writes into: bytes that wait to be passed on. It has no position to go back to."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, data: bytes, /) -> int:
        """Take more."""
        self._parts.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Nothing waits for it."""

    def close(self) -> None:
        """Nothing is open."""

    def take(self) -> bytes:
        """What has been written since the last time."""
        taken, self._parts, self.size = b"".join(self._parts), [], 0
        return taken


def archive_of(subject: Subject, files: Iterable[PersonFile], made_by: str) -> Iterator[bytes]:
    """The archive, in pieces. ``made_by`` names the version of the program.

    Everything that is derived from the log is as of the position at which the person was read, whatever is recorded
    meanwhile; what waits to be sent is as it is when it is read.
    """
    sink = _Sink()
    written: list[dict[str, Any]] = []
    chapters: list[Chapter] = []
    empty: list[str] = []
    with ZipFile(sink, "w", ZIP_DEFLATED) as zipped:
        for file in sorted(files, key=lambda file: (file.order, file.name)):
            lines = iter(file.lines(subject))
            first = next(lines, None)
            if first is None:
                empty.append(file.name)
                continue
            chapter = Chapter(file)
            digest, count, size = hashlib.sha256(), 0, 0
            with zipped.open(_info(f"{file.name}.jsonl"), "w") as member:
                for line in chain((first,), lines):
                    data = _LINE.encode(line) + b"\n"
                    member.write(data)
                    digest.update(data)
                    count, size = count + 1, size + len(data)
                    chapter.add(data, tuple(line))
                    if size > EXPORT_FILE_BYTES_MAX:
                        raise LimitExceeded(f"{file.name}.jsonl is larger than {EXPORT_FILE_BYTES_MAX:,} bytes")
                    if sink.size >= CHUNK_BYTES:
                        yield sink.take()
            chapters.append(chapter)
            written.append(_entry(f"{file.name}.jsonl", file.title, file.summary, size, digest.hexdigest(), count))
        # Raises if an erasure has taken some of it away meanwhile: then this is no archive of anybody.
        subject.engine.reader.person(subject.workspace, subject.person.id)
        page = page_of(subject, chapters)
        zipped.writestr(_info("index.html"), page)
        summary = "The same in a form to read and to print."
        written.append(_entry("index.html", "To read", summary, len(page), hashlib.sha256(page).hexdigest()))
        manifest = msgspec.json.encode(_manifest(subject, written, empty, made_by))
        zipped.writestr(_info("manifest.json"), msgspec.json.format(manifest, indent=2) + b"\n")
    yield sink.take()


def _entry(name: str, title: str, summary: str, size: int, sha256: str, lines: int | None = None) -> dict[str, Any]:
    entry = {"name": name, "title": title, "summary": summary, "bytes": size, "sha256": sha256}
    return entry if lines is None else {**entry, "lines": lines}


def _info(name: str) -> ZipInfo:
    info = ZipInfo(name, _YEAR_MIN)
    info.compress_type = ZIP_DEFLATED
    info.create_system = 3  # Unix, whatever the system: the bytes are the same everywhere
    info.external_attr = 0o100600 << 16
    return info


def _manifest(subject: Subject, written: list[dict[str, Any]], empty: list[str], made_by: str) -> dict[str, Any]:
    person, catalogue = subject.person, subject.engine.catalogue
    return {
        "format": FORMAT,
        "made_at": shown_time(subject.now),
        "made_by": made_by,
        "person": {
            "id": person.id,
            "workspace": person.workspace,
            "created_at": shown_time(person.created_at),
            "identifiers": list(map(str, sorted(person.identifiers.values(), key=catalogue.rules.rank))),
        },
        "position": {"events": person.position, "threads": dict(sorted(person.heads.items()))},
        "projections": {p.name: f"{p.version}:{p.fingerprint}" for p in catalogue.projections},
        "files": written,
        "empty": sorted(empty),
        # Noted when the events above were read.
        "damaged_events": subject.engine.log.damaged(person.heads),
        "not_shown": {table.name: table.why for table in catalogue.tables if table.why and table.contents != "nobody"},
    }
