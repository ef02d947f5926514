"""Imports a file of rows into an engine: in batches, resumable, each row with its own outcome."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.events.operations.resubmission import ROW_FORM
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.gc_deferred import gc_deferred
from threadline.engine.recording.recorder import refuse_erased
from threadline.engine.recording.validation import Checked, RecordRequest, RefusedEvent, Validator, unmet
from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.identity import IdentityRules
from threadline.kernel.ids import short_hash
from threadline.kernel.rejected import KEY_LENGTH_MAX, RejectedEntry, writable
from threadline.kernel.store import Batch, Key, Put
from threadline.kernel.time import Clock, system_clock
from threadline.kernel.typed import prepared
from threadline.surfaces.cli.import_files import BadRow, RowFile, open_rows
from threadline.wire.rejection import Rejection
from threadline.wire.table import Row, RowDecoder, TableMapping, check_columns

IMPORT = "import"
"""Table of checkpoints: how far each import has come."""
BATCH_ROWS = 1_000
CHECKPOINT_SECONDS = 1.0
"""Between two checkpoints: each is a commit of its own, and what follows the last one is recognised by its keys."""
NAMES_REMEMBERED = 10_000
PROBLEMS_SHOWN_MAX = 10

Advance = Callable[["Summary", int], None]
"""Called after each batch with what has been done and how much of the file has been read."""

Read = Callable[[Row | BadRow, int, int], Event | Rejection | BadRow]
"""Reads a row with its number and the time of its receipt: as its event, or why it is none."""


class Plan(NamedTuple):
    """What is imported, how its columns are read, and for whom."""

    path: Path
    mapping: TableMapping
    workspace: str
    source: str
    delimiter: str = ""

    @property
    def name(self) -> str:
        """The file as keys and messages name it; wherever it lies, it is the same import."""
        return writable(self.path.name)  # the bytes of a file's name need not be text; what is recorded must


class Problem(NamedTuple):
    """A row that was not recorded, and why."""

    row: int
    code: str
    message: str


@prepared
class Checkpoint(msgspec.Struct, kw_only=True):
    """How far an import has come: all rows up to this one are settled."""

    file: str
    rows: int
    done: bool
    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    rejected: int = 0


@dataclass
class Summary:
    """What became of the rows."""

    skipped: int = 0
    """Rows that an earlier run of the same import has settled."""
    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    rejected: int = 0
    earlier: Checkpoint | None = None
    """How far an earlier run of the same import has come, and what became of its rows."""
    problems: list[Problem] = field(default_factory=list)
    """The first of those that were rejected or met a conflict."""

    @property
    def rows(self) -> int:
        """Rows of this run."""
        return self.accepted + self.duplicates + self.conflicts + self.rejected

    @property
    def futile(self) -> bool:
        """Whether there were rows, in this run and those before it, and not one of them is recorded."""
        before = self.earlier
        if before is None:
            return self.rows > 0 and not self.accepted + self.duplicates
        done = before.accepted + before.duplicates + before.conflicts + before.rejected
        # A checkpoint from before the counts were kept says nothing of its rows.
        known = done == before.rows and self.skipped + self.rows > 0
        return known and not before.accepted + before.duplicates + self.accepted + self.duplicates

    def note(self, row: int, code: str, message: str) -> None:
        """Remember a problem, if there is room for it."""
        if len(self.problems) < PROBLEMS_SHOWN_MAX:
            self.problems.append(Problem(row, code, message))


def import_file(engine: Engine, plan: Plan, *, again: bool = False, advance: Advance | None = None) -> Summary:
    """Import a file and answer what became of its rows.

    Interrupted at any instant and started again, it continues from there: about once a second a checkpoint says how far
    it has come, and rows that were recorded after the last checkpoint are recognised by their keys. ``again`` ignores
    the checkpoint. A row that cannot be recorded is kept in the rejected log with its number and stops no other.
    Raises `InvalidDefinition` for a mapping that names a column which the file has not, before any row is read, and
    `InvalidValue` for a file that cannot be read; what was imported up to there stays.
    """
    key = Key(IMPORT, plan.workspace, _digest(plan))
    checkpoint = None if again else _read(engine, key)
    summary = Summary(skipped=checkpoint.rows if checkpoint else 0, earlier=checkpoint)
    if checkpoint is not None and checkpoint.done:
        return summary
    with closing(open_rows(plan.path, plan.delimiter)) as file, gc_deferred():
        written_at = time.monotonic()
        read = _reader(engine.catalogue.rules, plan, file)
        for batch in _batches(read, engine.clock, file, summary.skipped, plan):
            batch.checked.extend(engine.recorder.check([event for _, event in batch.events]))
            _record(engine, batch, summary)
            if time.monotonic() - written_at >= CHECKPOINT_SECONDS:
                _write(engine, key, plan, summary, done=False)
                written_at = time.monotonic()
            if advance is not None:
                advance(summary, file.done())
        _write(engine, key, plan, summary, done=True)
    return summary


class _Batch(NamedTuple):
    """What rows have come to before the store is asked."""

    events: list[tuple[int, Event]]
    """The number of each row that is an event, and the event."""
    checked: list[Checked]
    """The same events, validated for the engine that records them."""
    entries: list[RejectedEntry]
    problems: list[Problem]
    """Of the other rows: what is kept of each, and why."""


def check_file(catalogue: Catalogue, plan: Plan, advance: Advance | None = None) -> Summary:
    """What would become of all rows in an empty store. Opens none, and records nothing."""
    summary, validator = Summary(), Validator(catalogue.rules, catalogue.never_ahead)
    with closing(open_rows(plan.path, plan.delimiter)) as file:
        for batch in _batches(_reader(catalogue.rules, plan, file), system_clock, file, 0, plan):
            for problem in batch.problems:
                summary.note(*problem)
            summary.rejected += len(batch.entries)
            checked = validator.check([RecordRequest(event) for _, event in batch.events], system_clock())
            for (number, _), each in zip(batch.events, checked, strict=True):
                error = _refusal(each, catalogue)
                summary.accepted += error is None
                summary.rejected += error is not None
                if error is not None:
                    summary.note(number, error.code, str(error))
            if advance is not None:
                advance(summary, file.done())
    return summary


def _refusal(checked: Checked, catalogue: Catalogue) -> EventRejected | None:
    if isinstance(checked, RefusedEvent):
        return checked.error
    return next(iter(unmet([checked], catalogue.requirements).values()), None)


def _batches(read: Read, clock: Clock, file: RowFile, skip: int, plan: Plan) -> Iterator[_Batch]:
    """Rows, many at a time; of a file that turns out to be damaged, all that came before the damage."""
    rows, number, damage = file.rows(skip), skip, None
    while damage is None:
        now = clock()
        batch = _Batch([], [], [], [])
        try:
            for number, row in enumerate(islice(rows, BATCH_ROWS), number + 1):  # noqa: B020 — goes on counting
                found = read(row, number, now)
                if isinstance(found, Event):
                    batch.events.append((number, found))
                else:
                    batch.entries.append(_entry(plan, number, found, now))
                    batch.problems.append(Problem(number, found.code, found.message))
        except InvalidValue as error:
            damage = error
        if not batch.events and not batch.entries:
            break
        yield batch
    if damage is not None:
        raise damage


def preview(plan: Plan, received_at: int, count: int = 5) -> list[Event | Rejection | BadRow]:
    """What the first rows would become. Records nothing."""
    with closing(open_rows(plan.path, plan.delimiter)) as file:
        decode = _decoder(plan, file).decode
        return [
            row if isinstance(row, BadRow) else decode(row, number, received_at)
            for number, row in enumerate(islice(file.rows(), count), 1)
        ]


def _digest(plan: Plan) -> str:
    """Names an import: the same content, mapping and source is the same import, another is another."""
    options = (plan.name, plan.mapping, plan.source, plan.delimiter)
    # Deterministic, because the order of a set is another one in every process.
    digest = hashlib.blake2b(msgspec.json.encode(options, enc_hook=str, order="deterministic"), digest_size=16)
    try:
        with plan.path.open("rb") as content:
            while part := content.read(1 << 20):
                digest.update(part)
    except OSError as error:
        raise InvalidValue(f"{plan.path} cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def _read(engine: Engine, key: Key) -> Checkpoint | None:
    item = engine.store.get([key])[0]
    return None if item is None else msgspec.json.decode(item.value, type=Checkpoint)


def _write(engine: Engine, key: Key, plan: Plan, summary: Summary, *, done: bool) -> None:
    before = summary.earlier or Checkpoint(file=plan.name, rows=0, done=False)
    checkpoint = Checkpoint(
        file=plan.name, rows=summary.skipped + summary.rows, done=done,
        accepted=before.accepted + summary.accepted, duplicates=before.duplicates + summary.duplicates,
        conflicts=before.conflicts + summary.conflicts, rejected=before.rejected + summary.rejected,
    )  # fmt: skip
    engine.store.commit([Batch(writes=[Put(key, msgspec.json.encode(checkpoint))])])


def _decoder(plan: Plan, file: RowFile) -> RowDecoder:
    """What reads the rows of a file. Raises `InvalidDefinition` for a column of the mapping that no row can have."""
    columns = file.columns()
    if columns is not None:
        check_columns(plan.mapping, columns, plan.name)
    return RowDecoder(
        plan.mapping, file=plan.name, source=plan.source, workspace=plan.workspace, sparse=columns is None
    )


def _reader(rules: IdentityRules, plan: Plan, file: RowFile) -> Read:
    """Reads a row as an event. What names nobody is refused here already, where the number of its row is known."""
    decode = _decoder(plan, file).decode

    @lru_cache(NAMES_REMEMBERED)
    def identifies(identifier: Identifier) -> bool:
        normal = rules.normalise(identifier)
        return normal is not None and rules.identifies(normal)

    def read(row: Row | BadRow, number: int, now: int) -> Event | Rejection | BadRow:
        if isinstance(row, BadRow):
            return row
        event = decode(row, number, now)
        if isinstance(event, Rejection) or any(map(identifies, event.identifiers)):
            return event
        message = f"{', '.join(map(str, event.identifiers))} names nobody"
        return Rejection(index=number, key=event.key, code="no_identifier", message=message, raw=_written(row))

    return read


def _record(engine: Engine, batch: _Batch, summary: Summary) -> None:
    if batch.entries:
        engine.rejected.add(batch.entries)
    for problem in batch.problems:
        summary.note(*problem)
    receipts = engine.recorder.record_checked(batch.checked)
    refuse_erased(receipts)
    summary.rejected += len(batch.entries)
    for (number, event), receipt in zip(batch.events, receipts, strict=True):
        if receipt.status == "accepted":
            summary.accepted += 1
        elif receipt.status == "duplicate":
            summary.duplicates += 1
        elif receipt.status == "conflict":
            summary.conflicts += 1
            summary.note(number, "conflict", f"the key {event.key!r} was used before with another payload")
        else:
            summary.rejected += 1
            summary.note(number, receipt.code, receipt.message)


def _entry(plan: Plan, number: int, refusal: Rejection | BadRow, now: int) -> RejectedEntry:
    raw = refusal.raw if isinstance(refusal, BadRow) else refusal.raw.decode("utf-8", "backslashreplace")
    payload: dict[str, Any] = {"file": plan.name, "row": number, "cells": _cells(raw)}
    key = writable(refusal.key) if isinstance(refusal, Rejection) else ""
    if key:
        payload["key"] = key
    # The same row rejected for the same reason is the same entry, however often the import is run.
    id = short_hash("row", plan.workspace, plan.source, plan.name, str(number), refusal.code, raw)
    return RejectedEntry(
        id=id, workspace=plan.workspace, source=plan.source, code=refusal.code,
        message=f"row {number}: {writable(refusal.message)}", received_at=now, payload=payload, form=ROW_FORM,
        key=key[:KEY_LENGTH_MAX],
    )  # fmt: skip


def _written(row: Row) -> bytes:
    try:
        return msgspec.json.encode(dict(row), enc_hook=str)
    except (UnicodeEncodeError, ValueError, RecursionError):
        return writable(repr(row)).encode()


def _cells(raw: str) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return raw
