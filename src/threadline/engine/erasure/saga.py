"""Erasures as callers see them: the preview, the seal of a person, and how far each has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from threadline.engine.erasure import certificates, removal
from threadline.engine.erasure.expiry import Expiry
from threadline.engine.erasure.steps import EngineParts, StepConflict, Steps, job_id, without_zeros
from threadline.engine.erasure.unfinished import Record, packed, record_key, stored
from threadline.engine.folding.person import Person
from threadline.engine.folding.person_packing import erasing_writes, index_rows
from threadline.engine.jobs.jobs import new_job
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording.attempt import Attempt
from threadline.kernel.erasure import ERASURE, ERASURE_OPEN, JOB_KIND, Certificate, Erasure, Preview
from threadline.kernel.errors import BeingErased, NotFound, Unavailable
from threadline.kernel.event import identifier_named, is_thread_id
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.personal import Subject
from threadline.kernel.ranking import TABLE as BOARD
from threadline.kernel.store import Key, Put, beyond, scan_pages
from threadline.kernel.time import parse_time

SEAL_ROWS_MAX = BATCH_WRITES_MAX - 12
"""Index rows that the seal itself removes, those of leaderboards first: processes count these as they are committed."""
_ATTEMPTS_MAX = 32


class Erasures:
    """Erases the people of one store; the implementation of `threadline.kernel.erasure.Erasures`."""

    def __init__(self, engine: EngineParts) -> None:
        self._engine = engine
        self.steps = Steps(engine)
        self.expiry = Expiry(engine)
        self.done_again = 0
        """Erasures of the ledger beside the store that its file did not have when it was opened."""

    # --- reading ------------------------------------------------------------------------------

    def preview(self, workspace: str, ref: str) -> Preview:
        """What the erasure of a person would remove. Raises `NotFound`."""
        engine, catalogue = self._engine, self._engine.catalogue
        person = engine.reader.person(workspace, ref)
        subject = Subject(engine, person, engine.recorder.now())
        counts = removal.counted(engine, catalogue, subject)
        counts.update(key.table for key in index_rows(person, catalogue))
        for recorded in subject.events():
            counts[removal.EVENTS] += 1
            counts.update(key.table for key in removal.rows_of(catalogue, recorded))
        counts[removal.EVENTS] += len(engine.log.damaged(person.heads))
        remaining = Counter(
            table for table, rows in removal.remaining_rows(catalogue, subject, b"of a preview").items() for _ in rows
        )
        return Preview(person=person.id, removed=without_zeros(counts), remaining=dict(remaining))

    def find(self, workspace: str, id: str) -> Erasure:
        """An erasure of a workspace; raises `NotFound`."""
        erasure = self._find(workspace, id)
        if erasure is None:
            raise NotFound(f"there is no erasure {id[:64]!r}")
        return erasure

    def _find(self, workspace: str, id: str) -> Erasure | None:
        store = self._engine.store
        open_one = stored(store, workspace, id)
        if open_one is not None:
            return _running(open_one.record)
        item = store.get([Key(ERASURE, workspace, id)])[0] if id else None
        return None if item is None else _done(item.value)

    def page(self, workspace: str, after: str = "", limit: int = 100) -> Sequence[Erasure]:
        """Erasures of a workspace by id, after one: those that are done and those that are not."""
        store, start = self._engine.store, beyond(after)
        ids = {
            item.key.sort
            for table in (ERASURE, ERASURE_OPEN)
            for item in store.query(table, workspace, start=start, limit=limit)
        }
        erasures = (self._find(workspace, id) for id in sorted(ids)[:limit])
        return [erasure for erasure in erasures if erasure is not None]

    def ids(self, workspace: str, id: str) -> Sequence[str]:
        """The ids of the events that an erasure has taken out of the log, sorted."""
        return removal.erased_events(self._engine.store, workspace, id).ids

    def unfinished(self) -> Sequence[tuple[str, str]]:
        """Workspace and id of every erasure that is not done."""
        return [(item.key.partition, item.key.sort) for item in scan_pages(self._engine.store, ERASURE_OPEN)]

    # --- the seal -----------------------------------------------------------------------------

    def begin(self, workspace: str, ref: str, *, request: str = "", by: str = "", reason: str = "") -> Erasure:
        """Seal a person: from then on nothing is recorded about them, and `advance` removes what there is.

        One ``request`` erases once. Raises `NotFound`.
        """
        id = short_hash("erasure", workspace, request) if request else ""
        if id and (erasure := self._find(workspace, id)) is not None:
            return erasure
        try:
            person = self._engine.reader.person(workspace, ref)
            # With the number of erasures before it: somebody who came back may be where they were before.
            number = certificates.head_of(self._engine.store, workspace).sequence
            id = id or short_hash("erasure", workspace, person.id, str(person.position), str(number))
            return _running(self._sealed(person.id, id, by, reason))
        except (NotFound, BeingErased):
            # Another process was faster, or it was asked for before.
            if (running := self._find(workspace, id) or self._under_way(workspace, ref)) is not None:
                return running
            raise

    def erase_again(self, person: str, certificate: Certificate) -> None:
        """Do to its end what another copy of this store has done to a person."""
        id = short_hash("again", certificate.erasure, person)
        record = self._sealed(person, id, certificate.by, certificate.reason, certificate.erasure)
        self.run(record.workspace, id)

    def _sealed(self, person: str, id: str, by: str, reason: str, again: str = "") -> Record:
        def work(attempt: Attempt) -> Record:
            # Read again: since the last attempt they may have been merged into somebody else.
            owner = PersonReader(attempt.store, attempt.catalogue).by_id(person)
            if owner is None:
                raise NotFound(f"person {person} is not there any more")
            return self._seal(attempt, attempt.people.person(owner.id), id, by, reason, again)

        return self._engine.recorder.change(work)

    def _under_way(self, workspace: str, ref: str) -> Erasure | None:
        """The erasure that a person is in."""
        threads = self._engine.catalogue.rules.threads(workspace, identifier_named(ref))
        for thread in [*threads, *([ref] if is_thread_id(ref) else [])]:
            if id := self._engine.reader.lookup.erasure_of(thread):
                return self._find(workspace, id)
        return None

    def _seal(self, attempt: Attempt, person: Person, id: str, by: str, reason: str, again: str) -> Record:
        catalogue, change = self._engine.catalogue, attempt.changes.of(person)
        unknown_rows = bool(change.rows_of)  # of definitions that have changed since they were written
        change.note_rows(person, catalogue)
        change.people.pop(person.id)
        change.count_rows(catalogue)
        rows = sorted(change.rows_to_write, key=lambda write: write.key.table != BOARD)
        change.rows_to_write = rows[:SEAL_ROWS_MAX]
        record = Record(
            id=id,
            workspace=person.workspace,
            stage="sealed",
            at=attempt.now,
            by=by,
            reason=reason,
            person=person.id,
            created_at=person.created_at,
            heads=dict(person.heads),
            identifiers=dict(person.identifiers),
            never_merge=list(person.never_merge),
            timers=dict(person.timers),
            counts=dict(Counter(write.key.table for write in rows)),
            rows_left=unknown_rows or len(rows) > SEAL_ROWS_MAX,
            again=again,
        )
        change.take(erasing_writes(person, id))
        change.take([Put(record_key(person.workspace, id), packed(record), 0)])
        if JOB_KIND in catalogue.job_kinds:
            # In this commit: whenever this process is killed, a job goes on with it.
            change.take(new_job(person.workspace, JOB_KIND, job_id(id), {"erasure": id}, by, attempt.now)[1])
        return record

    # --- after the seal -----------------------------------------------------------------------

    def run(self, workspace: str, id: str, progress: Callable[[Erasure], None] = lambda erasure: None) -> Erasure:
        """Do an erasure to its end."""
        while (erasure := self.advance(workspace, id)).state == "running":
            progress(erasure)
        return erasure

    def advance(self, workspace: str, id: str) -> Erasure:
        """Do the next part of an erasure; it may be repeated at any time, by any process. Raises `NotFound`."""
        for _ in range(_ATTEMPTS_MAX):
            at = stored(self._engine.store, workspace, id)
            if at is None:
                return self.find(workspace, id)
            try:
                self.steps.next(at)
            except StepConflict:
                continue
            # What is done again has no certificate of its own.
            return self._find(workspace, id) or msgspec.structs.replace(_running(at.record), state="done")
        raise Unavailable("another process is at the same erasure; look again")


def _running(record: Record) -> Erasure:
    total = sum(record.heads.values()) or record.erased
    return Erasure(
        id=record.id,
        workspace=record.workspace,
        state="running",
        begun_at=record.at,
        by=record.by,
        reason=record.reason,
        events=min(record.erased, total),
        events_total=total,
    )


def _done(content: bytes) -> Erasure:
    certificate = certificates.read(content)
    return Erasure(
        id=certificate.erasure,
        workspace=certificate.workspace,
        state="done",
        begun_at=parse_time(certificate.begun_at),
        by=certificate.by,
        reason=certificate.reason,
        events=certificate.events,
        events_total=certificate.events,
        certificate=content,
    )
