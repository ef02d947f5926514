"""The engine's own tables, and what each has of a person; see `threadline.kernel.personal`."""

from __future__ import annotations

from collections.abc import Iterator

from threadline.engine.accounts import ACCOUNT, ACCOUNT_LIST, SESSION, SESSION_LIST
from threadline.engine.credentials import CREDENTIAL, CREDENTIAL_LIST, CREDENTIAL_USED
from threadline.engine.damage import DAMAGED, damaged_key
from threadline.engine.definition_history import CONTENT, DECLARED
from threadline.engine.delivery import circuit, dead_letters
from threadline.engine.delivery.attempts import ATTEMPT, ATTEMPT_TIME, keys
from threadline.engine.delivery.claims import CLAIMED
from threadline.engine.delivery.feed_consumer import FEED_CURSOR
from threadline.engine.delivery.leases import LEASE
from threadline.engine.delivery.unknown import UNKNOWN, unknown_deletes
from threadline.engine.folding.person import PERSON, SNAPSHOT, THREAD
from threadline.engine.jobs.jobs import JOB, JOB_CREATED, JOB_DUE
from threadline.engine.maintenance.applying import APPLIED
from threadline.engine.maintenance.marks import MARKS
from threadline.engine.maintenance.move import MOVE
from threadline.engine.maintenance.scrub import SCRUB
from threadline.engine.passwords import SIGN_IN_FAILURES
from threadline.engine.reading.sources import SOURCE
from threadline.engine.recording.identity import QUARANTINE
from threadline.engine.recording.rejected_log import REJECTED, REJECTED_BY_TIME, entry_keys
from threadline.engine.scheduled import OUTBOX, PARKED, PARKED_ROWS, POSTPONED, TIMER, postponed_key, unrecorded_key
from threadline.engine.shared import EDITION
from threadline.engine.signer import SIGNING_KEY
from threadline.kernel.personal import StoreTable, Subject
from threadline.kernel.store import Key


def _waiting(subject: Subject) -> Iterator[Key]:
    return (pending.item.key for pending in subject.engine.delivery.waiting(subject.person.heads))


def _postponed(subject: Subject) -> Iterator[Key]:
    for pending in subject.engine.delivery.waiting(subject.person.heads):
        if pending.postponed:
            yield postponed_key(pending.workspace, pending.id)


def _parked(subject: Subject) -> Iterator[Key]:
    for letter in subject.dead_letters():
        yield letter.item.key
        yield unrecorded_key(letter.pending.workspace, letter.pending.id)


def _parked_rows(subject: Subject) -> Iterator[Key]:
    return map(dead_letters.row_key, subject.dead_letters())


def _unknown(subject: Subject) -> Iterator[Key]:
    return (delete.key for effect in subject.unknown_effects() for delete in unknown_deletes(effect))


def _attempts(subject: Subject) -> Iterator[Key]:
    return (keys(attempt)[0] for attempt in subject.engine.delivery.attempts_of(subject.person.heads))


def _attempt_times(subject: Subject) -> Iterator[Key]:
    return (keys(attempt)[1] for attempt in subject.engine.delivery.attempts_of(subject.person.heads))


def _quarantined(subject: Subject) -> Iterator[Key]:
    return (Key(QUARANTINE, subject.workspace, entry["id"]) for entry in subject.quarantined())


def _rejected(subject: Subject) -> Iterator[Key]:
    return (entry_keys(entry)[0] for entry in subject.rejected())


def _rejected_by_time(subject: Subject) -> Iterator[Key]:
    return (entry_keys(entry)[1] for entry in subject.rejected())


def _damaged(subject: Subject) -> Iterator[Key]:
    return (damaged_key(id) for id in subject.engine.log.damaged(subject.person.heads))


_REPEATS = "it repeats what the person's events say"
_OPERATORS = "what operators set up"
_PROGRAM = "the program's own bookkeeping"

_TABLES = (
    StoreTable(PERSON, "person", why="identifiers, and the states that the files of views show"),
    StoreTable(SNAPSHOT, "person", why=_REPEATS),
    StoreTable(THREAD, "person", why="it leads from an identifier to the person"),
    StoreTable(TIMER, "person", shown_in="timers"),
    StoreTable(OUTBOX, "items", shown_in="effects", keys=_waiting),
    StoreTable(POSTPONED, "items", why="it leads to an effect that waits", keys=_postponed),
    StoreTable(PARKED, "items", shown_in="effects", keys=_parked),
    StoreTable(PARKED_ROWS, "items", why="it counts an effect that was given up on", keys=_parked_rows),
    StoreTable(UNKNOWN, "items", shown_in="effects", keys=_unknown),
    StoreTable(ATTEMPT, "items", shown_in="deliveries", keys=_attempts),
    StoreTable(ATTEMPT_TIME, "items", why="it leads to an attempt to call a webhook", keys=_attempt_times),
    StoreTable(QUARANTINE, "items", shown_in="joins_in_review", keys=_quarantined),
    StoreTable(REJECTED, "items", shown_in="rejected", keys=_rejected),
    StoreTable(REJECTED_BY_TIME, "items", why="it leads to a rejected event", keys=_rejected_by_time),
    StoreTable(DAMAGED, "items", why="where a damaged event is in the log, and nothing that it says", keys=_damaged),
    StoreTable(SCRUB, "nobody", why=_PROGRAM),
    StoreTable(CLAIMED, "nobody", why="hashes of mails that went, so that none goes twice; nobody can be read from it"),
    StoreTable(SOURCE, "nobody", why="the names of the systems that send events"),
    StoreTable(JOB, "nobody", why=_OPERATORS),
    StoreTable(JOB_CREATED, "nobody", why=_OPERATORS),
    StoreTable(JOB_DUE, "nobody", why=_OPERATORS),
    StoreTable(DECLARED, "nobody", why=_OPERATORS),
    StoreTable(CONTENT, "nobody", why=_OPERATORS),
    StoreTable(CREDENTIAL, "nobody", why=_OPERATORS),
    StoreTable(CREDENTIAL_LIST, "nobody", why=_OPERATORS),
    StoreTable(CREDENTIAL_USED, "nobody", why=_OPERATORS),
    StoreTable(ACCOUNT, "nobody", why=_OPERATORS),
    StoreTable(ACCOUNT_LIST, "nobody", why=_OPERATORS),
    StoreTable(SESSION, "nobody", why=_OPERATORS),
    StoreTable(SESSION_LIST, "nobody", why=_OPERATORS),
    StoreTable(SIGN_IN_FAILURES, "nobody", why="hashes of names that somebody signed in with, for 15 minutes"),
    StoreTable(EDITION, "nobody", why=_PROGRAM),
    StoreTable(LEASE, "nobody", why=_PROGRAM),
    StoreTable(FEED_CURSOR, "nobody", why=_PROGRAM),
    StoreTable(circuit.STATES, "nobody", why=_PROGRAM),
    StoreTable(SIGNING_KEY, "nobody", why=_PROGRAM),
    StoreTable(MOVE, "nobody", why=_PROGRAM),
    StoreTable(MARKS, "nobody", why=_PROGRAM),
    StoreTable(APPLIED, "nobody", why=_PROGRAM),
    # Of rooms that this one may not know: the checkpoint of an import, the probe of readiness, the epoch of the cache.
    StoreTable("import", "nobody", why=_PROGRAM),
    StoreTable("health", "nobody", why=_PROGRAM),
    StoreTable("cache", "nobody", why=_PROGRAM),
)


def declare(definitions: object) -> tuple[StoreTable, ...]:
    """The engine's tables, whatever the definitions say."""
    return _TABLES
