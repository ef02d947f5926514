"""The rows of a file as checked events, many at a time: read in this process, or in one of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from functools import lru_cache, partial
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from threadline.engine.child_process import start
from threadline.engine.interpreter import gc_deferred
from threadline.engine.recording.validation import Checked, RecordRequest, Validator
from threadline.kernel.errors import InvalidValue, ThreadlineError, Unavailable
from threadline.kernel.event import Event, Identifier
from threadline.kernel.event_type import EventTypes
from threadline.kernel.identity import IdentityRules
from threadline.kernel.ids import short_hash
from threadline.kernel.reading import ReadValues
from threadline.kernel.rejected import KEY_LENGTH_MAX, ROW_FORM, RejectedEntry, writable
from threadline.kernel.time import Clock, system_clock
from threadline.surfaces.importing.files import BadRow, RowFile, forgotten_delimiter, open_rows
from threadline.wire.rejection import Rejection
from threadline.wire.table import Row, RowDecoder, TableMapping, check_columns

BATCH_ROWS = 1_000
BATCHES_HERE = 5
"""Batches that are read here while the process of their successors starts."""
APART_BYTES_MIN = 4_000_000
"""A smaller file is read before that process would have started."""
NAMES_REMEMBERED = 10_000

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


class RowBatch(NamedTuple):
    """What rows have come to before the store is asked."""

    numbers: list[int]
    """The number of each row that is an event."""
    checked: list[Checked]
    """These events, validated."""
    entries: list[RejectedEntry]
    problems: list[Problem]
    """Of the other rows: what is kept of each, and why."""
    done: int
    """How much of the file has been read; see `RowFile.done`."""
    lacking: frozenset[str]
    """See `RowDecoder.lacking`; from the row on that the reading began with."""


class RowChecks(NamedTuple):
    """What rows are read and checked by."""

    plan: Plan
    rules: IdentityRules
    never_ahead: frozenset[str]
    """See `Validator`."""
    types: EventTypes
    values: ReadValues


def batches(checks: RowChecks, file: RowFile, clock: Clock, skip: int) -> Generator[RowBatch, None, None]:
    """Rows after the first ``skip``; of a file that turns out to be damaged, all that came before the damage."""
    plan = checks.plan
    decoder = _decoder(plan, file)
    read = _reader(checks, decoder)
    validator = Validator(checks.rules, checks.never_ahead, checks.types, checks.values)
    rows, number, damage = file.rows(skip), skip, None
    while damage is None:
        now = clock()
        numbers, events = list[int](), list[Event]()
        entries, problems = list[RejectedEntry](), list[Problem]()
        try:
            for number, row in enumerate(islice(rows, BATCH_ROWS), number + 1):  # noqa: B020 — goes on counting
                checked = read(row, number, now)
                if isinstance(checked, Event):
                    numbers.append(number)
                    events.append(checked)
                else:
                    entries.append(_entry(plan, number, checked, now))
                    problems.append(Problem(number, checked.code, checked.message))
        except InvalidValue as error:
            damage = error
        if not events and not entries:
            break
        checked_events = validator.check(map(RecordRequest, events), now)
        yield RowBatch(numbers, checked_events, entries, problems, file.done(), frozenset(decoder.lacking))
    if damage is not None:
        raise damage


# --- in a process of its own ----------------------------------------------------------------------


def is_worth_a_process(path: Path) -> bool:
    """Whether a file is large enough for its rows to be read beside the recording of those before."""
    return path.stat().st_size >= APART_BYTES_MIN and (os.cpu_count() or 1) > 1


def batches_beside(checks: RowChecks, file: RowFile, clock: Clock, skip: int) -> Generator[RowBatch, None, None]:
    """The same as `batches`; all but the first are read in another process, at most one before it is asked for."""
    here = batches(checks, file, clock, skip)
    process, results = start(partial(_send_batches, checks, skip + BATCHES_HERE * BATCH_ROWS))
    try:
        for _ in range(BATCHES_HERE):
            batch = next(here, None)
            if batch is None:
                return
            yield batch
        while (received := results.recv()) is not None:
            if isinstance(received, ThreadlineError):
                raise received
            yield received
    except EOFError:
        hint = "Run the same command again: it continues from there."
        raise Unavailable("the process that reads the file ended before its work was done", hint=hint) from None
    finally:
        process.terminate()
        process.join()


def _send_batches(checks: RowChecks, skip: int, results: Connection) -> None:
    with suppress(BrokenPipeError):  # the import was killed: nobody waits for this any more
        try:
            with closing(open_rows(checks.plan.path, checks.plan.delimiter)) as file, gc_deferred():
                for batch in batches(checks, file, system_clock, skip):
                    results.send(batch)
            results.send(None)
        except ThreadlineError as error:
            results.send(error)


# --- single rows ----------------------------------------------------------------------------------


def preview(plan: Plan, received_at: int, count: int = 5) -> list[Event | Rejection | BadRow]:
    """What the first rows would become. Records nothing."""
    with closing(open_rows(plan.path, plan.delimiter)) as file:
        decode = _decoder(plan, file).decode
        return [
            row if isinstance(row, BadRow) else decode(row, number, received_at)
            for number, row in enumerate(islice(file.rows(), count), 1)
        ]


def _decoder(plan: Plan, file: RowFile) -> RowDecoder:
    """What reads the rows of a file. Raises `InvalidDefinition` for a column of the mapping that no row can have."""
    columns = file.columns()
    if columns is not None:
        check_columns(plan.mapping, columns, plan.name, forgotten_delimiter(columns))
    return RowDecoder(
        plan.mapping, file=plan.name, source=plan.source, workspace=plan.workspace, sparse=columns is None
    )


def _reader(checks: RowChecks, decoder: RowDecoder) -> Read:
    """Reads a row as an event. What names nobody is refused here already, where the number of its row is known."""
    decode, rules = decoder.decode, checks.rules

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
        why = (rules.problem(identifier) or f"{identifier} does not identify" for identifier in event.identifiers)
        message = "; ".join(why)
        return Rejection(index=number, key=event.key, code="no_identifier", message=message, raw=_written(row))

    return read


def _entry(plan: Plan, number: int, refusal: Rejection | BadRow, now: int) -> RejectedEntry:
    raw = refusal.raw if isinstance(refusal, BadRow) else refusal.raw.decode("utf-8", "backslashreplace")
    payload: dict[str, Any] = {"file": plan.name, "row": number, "cells": _cells(raw)}
    key = writable(refusal.key) if isinstance(refusal, Rejection) else ""
    if key:
        payload["key"] = key
    # The same row rejected for the same reason is the same entry, however often the import is run.
    id = short_hash("row", plan.workspace, plan.source, plan.name, str(number), refusal.code, raw)
    return RejectedEntry(
        id=id,
        workspace=plan.workspace,
        source=plan.source,
        code=refusal.code,
        message=f"row {number}: {writable(refusal.message)}",
        received_at=now,
        payload=payload,
        form=ROW_FORM,
        key=key[:KEY_LENGTH_MAX],
    )


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
