"""Imports a file of rows into an engine: in batches, resumable, each row with its own outcome."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

import msgspec

from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.interpreter import gc_deferred
from threadline.engine.recording.recorder import refuse_erased
from threadline.engine.recording.validation import Checked, RefusedEvent, unmet
from threadline.kernel.consequences import Consequences
from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.limits import FORETOLD_ROWS_MAX
from threadline.kernel.store import Batch, Key, Put
from threadline.kernel.time import system_clock
from threadline.kernel.typed import prepared
from threadline.surfaces.importing.files import open_rows
from threadline.surfaces.importing.rows import Plan, Problem, RowBatch, RowChecks, batches, batches_beside

IMPORT = "import"
"""Table of checkpoints: how far each import has come."""
CHECKPOINT_SECONDS = 1.0
"""Between two checkpoints: each is a commit of its own, and what follows the last one is recognised by its keys."""
PROBLEMS_SHOWN_MAX = 10

Advance = Callable[["Summary", int], None]
"""Called after each batch with what has been done and how much of the file has been read."""


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
    noted: Callable[[Problem], None] | None = None
    """Called with each of them."""
    lacking: frozenset[str] | None = None
    """Columns of the mapping that none of the rows read has; None: no row was read."""

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

    def note_lacking(self, columns: frozenset[str]) -> None:
        """Remember the columns that none of some rows has."""
        self.lacking = columns if self.lacking is None else self.lacking & columns

    def note(self, row: int, code: str, message: str) -> None:
        """Remember a problem, if there is room for it."""
        if self.noted is not None:
            self.noted(Problem(row, code, message))
        if len(self.problems) < PROBLEMS_SHOWN_MAX:
            self.problems.append(Problem(row, code, message))


def import_file(
    engine: Engine,
    plan: Plan,
    *,
    again: bool = False,
    beside: bool = False,
    advance: Advance | None = None,
    noted: Callable[[Problem], None] | None = None,
) -> Summary:
    """Import a file and answer what became of its rows.

    Interrupted at any instant and started again, it continues from there: about once a second a checkpoint says how far
    it has come, and rows that were recorded after the last checkpoint are recognised by their keys. ``again`` ignores
    the checkpoint. ``beside``: rows are read in another process while those before are recorded. A row that cannot be
    recorded is kept in the rejected log with its number and stops no other. Raises `InvalidDefinition` for a mapping
    that names a column which the file has not, before any row is read, and `InvalidValue` for a file that cannot be
    read; what was imported up to there stays. ``noted`` is called with each row that is not recorded.
    """
    key, checks = Key(IMPORT, plan.workspace, _digest(plan)), _checks(engine.catalogue, plan)
    checkpoint = None if again else _read(engine, key)
    summary = Summary(skipped=checkpoint.rows if checkpoint else 0, earlier=checkpoint, noted=noted)
    if checkpoint is not None and checkpoint.done:
        return summary
    with (
        closing(open_rows(plan.path, plan.delimiter)) as file,
        closing((batches_beside if beside else batches)(checks, file, engine.clock, summary.skipped)) as read,
        gc_deferred(),
    ):
        written_at = time.monotonic()
        for batch in read:
            _record(engine, batch, summary)
            if time.monotonic() - written_at >= CHECKPOINT_SECONDS:
                _write(engine, key, plan, summary, done=False)
                written_at = time.monotonic()
            if advance is not None:
                advance(summary, batch.done)
        _write(engine, key, plan, summary, done=True)
    return summary


def foretell_file(
    engine: Engine, plan: Plan, *, again: bool = False, advance: Callable[[int], None] = lambda rows: None
) -> tuple[Consequences, int]:
    """What an import would cause, and of how many rows that is: of all, or of the first `FORETOLD_ROWS_MAX`.

    It is rehearsed: the store of the engine is only read. ``advance`` is called after each batch with the rows so far.
    """
    rehearsal, key, rows = engine.rehearsal(), Key(IMPORT, plan.workspace, _digest(plan)), 0
    checkpoint = None if again else _read(engine, key)
    if checkpoint is not None and checkpoint.done:
        return Consequences(), 0
    with closing(open_rows(plan.path, plan.delimiter)) as file:
        for batch in batches(_checks(engine.catalogue, plan), file, engine.clock, checkpoint.rows if checkpoint else 0):
            rehearsal.engine.recorder.record_checked(batch.checked)
            rows += len(batch.checked)
            advance(rows)
            if rows >= FORETOLD_ROWS_MAX:
                break
    return rehearsal.consequences, rows


def may_send(engine: Engine, workspace: str) -> bool:
    """Whether anything that is in force sends something because of history."""
    policies = ((policy, policy.shared) for policy in engine.catalogue.policies)
    return any(
        shared is not None and policy.existing(engine.shared.fresh(workspace, shared.name))
        for policy, shared in policies
    )


def check_file(
    catalogue: Catalogue,
    plan: Plan,
    advance: Advance | None = None,
    noted: Callable[[Problem], None] | None = None,
) -> Summary:
    """What would become of all rows in an empty store. Opens none, and records nothing."""
    summary = Summary(noted=noted)
    with closing(open_rows(plan.path, plan.delimiter)) as file:
        for batch in batches(_checks(catalogue, plan), file, system_clock, 0):
            summary.note_lacking(batch.lacking)
            for problem in batch.problems:
                summary.note(*problem)
            summary.rejected += len(batch.entries)
            for number, item in zip(batch.numbers, batch.checked, strict=True):
                error = _refusal(item, catalogue)
                summary.accepted += error is None
                summary.rejected += error is not None
                if error is not None:
                    summary.note(number, error.code, str(error))
            if advance is not None:
                advance(summary, batch.done)
    return summary


def _checks(catalogue: Catalogue, plan: Plan) -> RowChecks:
    return RowChecks(
        plan, catalogue.rules, catalogue.never_ahead, catalogue.event_types.speakers, catalogue.values_read
    )


def _refusal(checked: Checked, catalogue: Catalogue) -> EventRejected | None:
    if isinstance(checked, RefusedEvent):
        return checked.error
    return next(iter(unmet([checked], catalogue.requirements).values()), None)


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
        file=plan.name,
        rows=summary.skipped + summary.rows,
        done=done,
        accepted=before.accepted + summary.accepted,
        duplicates=before.duplicates + summary.duplicates,
        conflicts=before.conflicts + summary.conflicts,
        rejected=before.rejected + summary.rejected,
    )
    engine.store.commit([Batch(writes=[Put(key, msgspec.json.encode(checkpoint))])])


def _record(engine: Engine, batch: RowBatch, summary: Summary) -> None:
    summary.note_lacking(batch.lacking)
    if batch.entries:
        engine.rejected.add(batch.entries)
    for problem in batch.problems:
        summary.note(*problem)
    receipts = engine.recorder.record_checked(batch.checked)
    refuse_erased(receipts)
    summary.rejected += len(batch.entries)
    for number, item, receipt in zip(batch.numbers, batch.checked, receipts, strict=True):
        if receipt.status == "accepted":
            summary.accepted += 1
        elif receipt.status == "duplicate":
            summary.duplicates += 1
        elif receipt.status == "conflict":
            summary.conflicts += 1
            summary.note(number, "conflict", f"the key {item.request.event.key!r} was used before with another payload")
        else:
            summary.rejected += 1
            summary.note(number, receipt.code, receipt.message)
