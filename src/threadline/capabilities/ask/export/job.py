"""The export of many people as a job: each page of them becomes files, of which the manifest names those that count."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO
from typing import Any

import msgspec

from threadline.capabilities.foundation.events.forms import event_view, instant
from threadline.capabilities.foundation.jobs.filling import of_filled
from threadline.capabilities.reach.broadcasts.audience import Resolver
from threadline.capabilities.reach.broadcasts.definition import Audience
from threadline.kernel.errors import Conflict, NotConfigured
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.object_storage import Storage, path_name
from threadline.kernel.personal import Copy, StoreTable
from threadline.kernel.ports import Person, Ports
from threadline.kernel.store import Delete, Key, Put, query_pages
from threadline.kernel.typed import prepared

JOB_KIND = "export"
FORMAT = "threadline.export/1"
"""What the manifest says that an export is. A change that readers have to know of changes the number."""
EXPORTED = "export_page"
"""Table: under each export what its committed pages have written."""
PAGE_BYTES = 64 * 1_024 * 1_024
"""Bytes of lines, before they are compressed, behind which a page ends with the person that it is at."""
MANIFEST = "manifest.json"
_PEOPLE, _MANIFEST = "people", "manifest"
"""The phases."""
_EVENTS_READ = 200
_encode = msgspec.json.Encoder(order="deterministic").encode


@prepared
class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an export is of and where it goes, as its job keeps it."""

    audience: Audience
    events: bool
    to: str


@prepared
class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that counts, as the manifest names it."""

    name: str
    lines: int
    bytes: int
    sha256: str


@prepared
class ExportedPage(msgspec.Struct, frozen=True, kw_only=True):
    """What a page has written."""

    files: list[ExportedFile]
    damaged_events: list[str]


def storage_of(engine: Ports) -> Storage:
    """Where exports are written. Raises `NotConfigured` where none is set."""
    if engine.exports is None:
        hint = "Set `exports` to a folder, or to s3://bucket/prefix."
        raise NotConfigured("this process has no place to write exports to", hint=hint)
    return engine.exports()


def _step(engine: Ports, job: Job, limit: int) -> Step:
    asked, storage = msgspec.convert(job.params, Asked), storage_of(engine)
    if storage.url() != asked.to:
        raise Conflict(f"this process writes exports to {storage.url()}, and this one goes to {asked.to}")
    phase, _, after = (job.cursor or f"{_PEOPLE}:").partition(":")
    if phase == _MANIFEST:
        _finish(engine, storage, job, asked)
        return Step(finished=True)
    resolver = Resolver(asked.audience)
    filled_as, _, after = after.rpartition("/")
    in_force = engine.maintenance.filled_as(resolver.parts)[:8]
    if job.counts.get("pages") and filled_as != in_force:  # the pages so far were of other definitions
        page = partial(_begun_anew, engine, job)
    else:
        page = partial(_page, engine, storage, job, asked, f"{_PEOPLE}:{in_force}/", after, limit)
    return of_filled(engine, job, resolver.parts, page)


def _begun_anew(engine: Ports, job: Job) -> Step:
    """Nothing that was written counts any more; its files go in the end."""
    rows = query_pages(engine.store, EXPORTED, _partition(job))
    counts = dict.fromkeys(("people", "events", "bytes", "pages"), 0)
    return Step(f"{_PEOPLE}:", totals=counts, writes=[Delete(row.key) for row in rows])


def _page(engine: Ports, storage: Storage, job: Job, asked: Asked, phase: str, after: str, limit: int) -> Step:
    """Write the files of a page of people. They count once the page is committed, with their names."""
    now = engine.recorder.now()
    audience = Resolver(asked.audience).page(engine, job.workspace, now, after, limit)
    people = engine.reader.people_of(job.workspace, audience.ids)
    lines = {"people": _Lines(), "events": _Lines()}
    written, following = list[Person](), audience.next
    for id in audience.ids:
        # A row may name somebody who was merged since: what they had is the survivor's, who has a page of their own.
        if (person := people.get(id)) is None or person.id != id:
            continue
        lines["people"].add([_person_line(engine, person, now)])
        if asked.events:
            lines["events"].add(_event_lines(engine, person))
        written.append(person)
        if sum(line.size for line in lines.values()) >= PAGE_BYTES and id != audience.ids[-1]:
            following = id
            break
    number = job.counts.get("pages", 0)
    files = [_written(storage, f"{_folder(job)}{name}/{number:06}", line) for name, line in lines.items() if line.count]
    damaged = engine.log.damaged([thread for person in written for thread in person.heads]) if asked.events else []
    page = ExportedPage(files=files, damaged_events=damaged)
    counts = {
        "people": len(written),
        "events": lines["events"].count,
        "bytes": sum(file.bytes for file in files),
        "pages": 1,
    }
    cursor = f"{phase}{following}" if following else _MANIFEST
    return Step(cursor, counts, writes=[Put(Key(EXPORTED, _partition(job), f"{number:06}"), _encode(page))])


def _finish(engine: Ports, storage: Storage, job: Job, asked: Asked) -> None:
    """Write the manifest, and remove what pages have left that were killed. Raises `Conflict` if a file is gone."""
    rows = query_pages(engine.store, EXPORTED, _partition(job))
    pages = [msgspec.json.decode(row.value, type=ExportedPage) for row in rows]
    files = [file for page in pages for file in page.files]
    names, folder = {file.name for file in files}, _folder(job)
    there = {file.name for file in storage.list(folder)}
    if missing := sorted(names - there):
        hint = "Other processes may have written it elsewhere: all that work on jobs need the same folder, or S3."
        raise Conflict(f"{storage.url(missing[0])} is gone, one of {len(missing)}", hint=hint)
    manifest = {
        "format": FORMAT,
        "workspace": job.workspace,
        "job": job.id,
        "begun_at": instant(job.created_at),
        "made_at": instant(engine.recorder.now()),
        "audience": asked.audience,
        "people": job.counts.get("people", 0),
        "events": job.counts.get("events", 0) if asked.events else None,
        "files": [msgspec.structs.replace(file, name=file.name.removeprefix(folder)) for file in files],
        "damaged_events": [id for page in pages for id in page.damaged_events],
    }
    storage.write(f"{folder}{MANIFEST}", msgspec.json.format(_encode(manifest), indent=1) + b"\n")
    storage.delete(there - names - {f"{folder}{MANIFEST}"})


class _Lines:
    """Lines of JSON, compressed as they come."""

    def __init__(self) -> None:
        self.count, self.size = 0, 0
        self._buffer = BytesIO()
        self._compressed = gzip.GzipFile(fileobj=self._buffer, mode="wb", mtime=0)

    def add(self, lines: Iterable[Any]) -> None:
        """Write values, each a line."""
        for line in lines:
            data = _encode(line) + b"\n"
            self._compressed.write(data)
            self.count, self.size = self.count + 1, self.size + len(data)

    def content(self) -> bytes:
        """The file; nothing can be added any more."""
        self._compressed.close()
        return self._buffer.getvalue()


def _person_line(engine: Ports, person: Person, now: int) -> dict[str, Any]:
    return {
        "person": person.id,
        "created_at": instant(person.created_at),
        "position": person.position,
        "identifiers": sorted(map(str, person.identifiers.values())),
        "views": engine.reader.views(person, now),
    }


def _event_lines(engine: Ports, person: Person) -> Iterator[Any]:
    events = engine.reader.all_events(person, size=_EVENTS_READ, skip_damaged=True)
    return map(partial(event_view, person=person.id), events)


def _written(storage: Storage, beginning: str, lines: _Lines) -> ExportedFile:
    """A file of these lines. It is named by its content: two processes that do one page never write the same file."""
    content = lines.content()
    digest = hashlib.sha256(content).hexdigest()
    name = f"{beginning}-{digest[:16]}.jsonl.gz"
    storage.write(name, content)
    return ExportedFile(name=name, lines=lines.count, bytes=len(content), sha256=digest)


def _folder(job: Job) -> str:
    return f"{path_name(job.workspace)}/{path_name(job.id)}/"


def _partition(job: Job) -> str:
    return f"{job.workspace}/{job.id}"


KIND = JobKind(JOB_KIND, _step)
EXPORTED_TABLE = StoreTable(EXPORTED, "nobody", why="names of the files that exports of many people have written")


COPY = Copy("exports of many", why="they were made to be handed on; `erasures.list` says who was erased")
