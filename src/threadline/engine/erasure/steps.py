"""The steps of an erasure after the seal. Each may be killed, and done again by any process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from msgspec.structs import replace

from threadline.engine.erasure import certificates, removal
from threadline.engine.erasure.erased_ids import note_erased
from threadline.engine.erasure.unfinished import Record, Stored
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import PERSON, THREAD, person_key, snapshot_key, thread_key
from threadline.engine.jobs.jobs import stored_job
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording.recorder import Recorder
from threadline.kernel.erasure import JOB_KIND, Certificate
from threadline.kernel.limits import BATCH_BYTES_MAX, BATCH_WRITES_MAX, ITEM_BYTES_MAX
from threadline.kernel.personal import Subject
from threadline.kernel.ports import Ports
from threadline.kernel.store import Batch, Delete, Put, Store
from threadline.kernel.time import format_time

WRITES_MAX = BATCH_WRITES_MAX - 1
"""Writes of one commit beside the fence."""
PUTS_MAX = BATCH_BYTES_MAX // ITEM_BYTES_MAX - 1
"""Items of one commit that are written without the person: each may be as large as an item can be."""


class EngineParts(Ports, Protocol):
    """The parts of the engine with which a person is erased."""

    @property
    def store(self) -> Store:
        """The store that everything is removed from."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """What is declared, the tables above all."""
        ...

    @property
    def recorder(self) -> Recorder:
        """Seals the person."""
        ...

    @property
    def reader(self) -> PersonReader:
        """Finds the person."""
        ...


class StepConflict(Exception):
    """Another process has got further with the same erasure."""


class Steps:
    """The steps of the erasures of one store."""

    def __init__(self, engine: EngineParts) -> None:
        self._engine = engine
        self.certified: Callable[[bytes], None] = lambda content: None
        """Called with each new certificate before its erasure is done, and again if the process was killed then."""

    def next(self, at: Stored) -> None:
        """Do the next step. Raises `StepConflict`."""
        {"sealed": self.count, "counted": self.clear, "cleared": self.erase, "closed": self.purge}[at.record.stage](at)

    def count(self, at: Stored) -> None:
        """Note how much there is, and what outlives the person, before anything of it is gone."""
        record, subject = at.record, self._subject(at.record)
        # Of what is done again, the certificate says what is kept.
        remaining = (
            {}
            if record.again
            else removal.remaining_rows(self._engine.catalogue, subject, certificates.own_key(self._engine.store))
        )
        counts = removal.counted(self._engine, self._engine.catalogue, subject)
        counts.update(record.counts)
        # Here, so that nothing is sent to a person who comes back meanwhile.
        self._commit(at, removal.remaining_puts(remaining))
        self._put(at, replace(record, stage="counted", counts=dict(counts), remaining=remaining))

    def clear(self, at: Stored) -> None:
        """Remove all but the events, the threads and the marker."""
        engine, catalogue = self._engine, self._engine.catalogue
        record, subject = at.record, self._subject(at.record)
        person = record.stand_in(catalogue)
        for other in removal.set_apart_from(engine, subject):
            removal.forget_apart(engine.recorder, person, other)
        items = removal.aliases(engine.store, catalogue, person)
        items += removal.present(engine.store, removal.timer_keys(person))
        if record.rows_left:
            items += removal.rows_left(engine.store, catalogue, record.stand_in(catalogue))
        items += removal.outdated_rows(engine.store, catalogue, person.id)
        items = list({item.key: item for item in items}.values())
        writes: list[Put | Delete] = [Delete(item.key, item.version) for item in items]
        self._commit(at, [*writes, *removal.item_writes(subject, removal.items_about(catalogue, subject))])
        self._put(at, replace(record, stage="cleared"))

    def erase(self, at: Stored) -> None:
        """Erase the next events; when there are none, close."""
        store, record = self._engine.store, at.record
        page = removal.event_page(store, self._engine.catalogue, record.stand_in(self._engine.catalogue))
        if page is None:
            self.close(at)
            return
        # The ids are noted first: after a kill nothing else would say which events there were.
        self._commit(at, [removal.page_put(record.workspace, record.again or record.id, page)])
        self._commit(at, [Delete(key) for key in dict.fromkeys(page.rows)])
        note_erased(store, page.ids, page.recorded)
        store.erase(page.ids)
        self._engine.recorder.forget_events(page.ids)
        self._put(at, replace(record, erased=record.erased + len(page.ids)))

    def close(self, at: Stored) -> None:
        """Certify that nothing is left, and remove what led to the person, in one commit."""
        engine, record = self._engine, at.record
        subject = self._subject(record)
        # Again, for what somebody has written who had read the person before the seal.
        self._commit(at, removal.item_writes(subject, removal.items_about(engine.catalogue, subject)))
        left = removal.counted(engine, engine.catalogue, subject)
        threads = [Delete(thread_key(thread)) for thread in record.heads]
        gone = [*threads, Delete(person_key(record.person)), Delete(snapshot_key(record.person))]
        added, content = self._certified(record, left)
        closed = Record(
            id=record.id,
            workspace=record.workspace,
            stage="closed",
            at=record.at,
            by=record.by,
            reason=record.reason,
            again=record.again,
            certified=content,
            erased=record.erased,
        )
        self._put_all([*gone, *added, at.changed(closed)])
        engine.recorder.forget_person(record.person, record.heads)

    def _certified(self, record: Record, left: Counter[str]) -> tuple[list[Put], bytes]:
        """The writes that add the certificate to the ledger, and its content; nothing for what is done again."""
        if record.again:
            return [], b""
        for kind in (THREAD, PERSON):
            left.pop(kind, None)  # they go with this commit
        certificate, head = self._certificate(record, left)
        content = certificates.signed(certificate, certificates.own_key(self._engine.store))
        return certificates.ledger_writes(certificate, content, head), content

    def _certificate(self, record: Record, left: Counter[str]) -> tuple[Certificate, certificates.Head]:
        store = self._engine.store
        erased, head, key = (
            removal.erased_events(store, record.workspace, record.id),
            certificates.head_of(store, record.workspace),
            certificates.own_key(store),
        )
        before = Counter(record.counts)
        before.update(erased.rows)
        before[removal.EVENTS] = len(erased.ids)
        counts = without_zeros(before)
        return Certificate(
            erasure=record.id,
            workspace=record.workspace,
            sequence=head.sequence + 1,
            begun_at=format_time(record.at),
            at=format_time(self._engine.recorder.clock()),
            by=record.by,
            reason=record.reason,
            threads=sorted(certificates.thread_pseudonym(key, thread) for thread in record.heads),
            events=len(erased.ids),
            events_digest=certificates.hash_of("".join(erased.ids).encode()),
            recorded=[format_time(at) for at in erased.recorded],
            before=counts,
            after={kind: left[kind] for kind in counts},
            remaining=record.remaining,
            version=_version(),
            previous=head.hash,
        ), head

    def purge(self, at: Stored) -> None:
        """Overwrite what is left in files, hand the certificate over, and forget that the erasure was under way."""
        self._engine.store.purge()
        if at.record.certified:
            self.certified(at.record.certified)
        writes: list[Put | Delete] = [Delete(at.item.key, at.item.version)]
        job = stored_job(self._engine.store, at.record.workspace, job_id(at.record.id))
        if job is not None and not job.job.has_ended:
            writes += job.changed(replace(job.job, state="done", changed_at=self._engine.recorder.clock()))
        self._put_all(writes)

    # --- parts --------------------------------------------------------------------------------

    def _subject(self, record: Record) -> Subject:
        return Subject(self._engine, record.stand_in(self._engine.catalogue), self._engine.recorder.now())

    def _commit(self, at: Stored, writes: Sequence[Put | Delete]) -> None:
        """Commit these as long as nobody has got further. Raises `StepConflict`."""
        puts = [write for write in writes if isinstance(write, Put)]
        deletes = [write for write in writes if isinstance(write, Delete)]
        chunks: list[Sequence[Put | Delete]] = [
            *(deletes[start : start + WRITES_MAX] for start in range(0, len(deletes), WRITES_MAX)),
            *(puts[start : start + PUTS_MAX] for start in range(0, len(puts), PUTS_MAX)),
        ]
        batches = [Batch(writes=[*chunk, at.fence]) for chunk in chunks]
        if batches and any(self._engine.store.commit(batches)):
            raise StepConflict

    def _put(self, at: Stored, record: Record) -> None:
        self._put_all([at.changed(record)])

    def _put_all(self, writes: Sequence[Put | Delete]) -> None:
        if self._engine.store.commit([Batch(writes=writes)])[0] is not None:
            raise StepConflict


def job_id(id: str) -> str:
    """The id of the job that goes on with an erasure."""
    return f"{JOB_KIND}.{id}"


def without_zeros(counts: Counter[str]) -> dict[str, int]:
    """The kinds of which there is something."""
    return {kind: count for kind, count in sorted(counts.items()) if count}


def _version() -> str:
    try:
        return version("threadline")
    except PackageNotFoundError:
        return ""
