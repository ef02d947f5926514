"""What is removed of a person who is sealed, table by table, and its number. Each step may be repeated."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import pack, unpack, unpack_event
from threadline.engine.folding.person import PERSON, THREAD, Person, own, person_key, thread_key
from threadline.engine.folding.person_packing import index_rows, people_of
from threadline.engine.folding.refold import refold_person
from threadline.engine.maintenance.marks import is_complete
from threadline.engine.recording.attempt import Attempt
from threadline.engine.recording.recorder import Recorder
from threadline.engine.scheduled import TIMER, timer_key
from threadline.kernel.erasure import ERASURE_IDS
from threadline.kernel.errors import BeingErased, StoreDamaged
from threadline.kernel.event import Recorded
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.personal import StoreTable, Subject
from threadline.kernel.ports import Ports
from threadline.kernel.pseudonym import pseudonym
from threadline.kernel.store import Delete, Item, Key, LogEntry, Put, Span, Store, query_pages, scan_pages, thread_page

PAGE_EVENTS = 500
"""Events that are erased at a time: always the same number, so that a page is the same page when it is done again."""
EVENTS = "events"
ALIASES = "alias"
"""Kind: ids under which people were known who were merged into this one."""
NEVER_MERGE = "never_merge"
"""Kind: people whom an operator has set apart from this one, and whose items say so."""

log = logging.getLogger("threadline.erasure")


class Page(NamedTuple):
    """Events of one thread that are erased together."""

    ids: list[str]
    rows: list[Key]
    """The index rows of these events."""
    recorded: list[int]
    """When each was recorded."""


def present(store: Store, keys: Iterable[Key]) -> Iterator[Item]:
    """The items that are there, of these keys."""
    wanted = list(dict.fromkeys(keys))
    for start in range(0, len(wanted), PAGE_ITEMS_MAX):
        yield from (item for item in store.get(wanted[start : start + PAGE_ITEMS_MAX]) if item is not None)


# --- items about the person ---------------------------------------------------------------------


def items_about(catalogue: Catalogue, subject: Subject) -> Iterator[tuple[StoreTable, Item]]:
    """The items of tables that declare which of theirs are about a person."""
    for table in catalogue.tables:
        if table.keys is not None:
            yield from ((table, item) for item in present(subject.engine.store, table.keys(subject)))


def item_writes(subject: Subject, items: Iterable[tuple[StoreTable, Item]]) -> list[Put | Delete]:
    """The writes that take the person out of these items."""
    writes: list[Put | Delete] = []
    for table, item in items:
        left = None if table.without is None else table.without(subject, item)
        gone = Delete(item.key, item.version)
        writes.append(gone if left is None else Put(item.key, left, item.version))
    return writes


def timer_keys(person: Person) -> Iterator[Key]:
    """Where the person's timers lie."""
    for name, due_at in person.timers.items():
        thread, policy, key = name.split("/", 2)
        yield timer_key(thread, policy, key, due_at)


def aliases(store: Store, catalogue: Catalogue, person: Person) -> list[Item]:
    """The items that lead from people who were merged into this one."""
    items = list(present(store, (person_key(thread) for thread in person.heads if thread != person.id)))
    people = people_of(store, catalogue, items)
    return [item for item, person_or_id in zip(items, people, strict=True) if isinstance(person_or_id, str)]


def rows_left(store: Store, catalogue: Catalogue, person: Person) -> list[Item]:
    """The index rows of the person that are still there, found by folding the person again."""
    refold_person(store, catalogue, person)
    return list(present(store, index_rows(person, catalogue)))


def outdated_rows(store: Store, catalogue: Catalogue, person: str) -> Iterator[Item]:
    """Index rows that former definitions have asked for, and that nobody has removed yet: whole tables are read.

    A state says nothing of them any more. Where everybody is up to date, and no capability is off, there are none.
    """
    outdated = (p for p in catalogue.projections if p.index.tables and not is_complete(store, p))
    for table in (*(table for projection in outdated for table in projection.index.tables), *catalogue.left_tables):
        rows = scan_pages(store, table)
        yield from (row for row in rows if person in row.key.sort or person in row.key.partition)


def remaining_rows(catalogue: Catalogue, subject: Subject, key: bytes) -> dict[str, dict[str, str]]:
    """What outlives the person, under pseudonyms of this key, by table and sort key."""
    by_table: dict[str, dict[str, str]] = {}
    for remainder in catalogue.remainders:
        for row in remainder.rows(subject, lambda text: pseudonym(key, subject.workspace, text)):
            by_table.setdefault(row.table, {})[f"{row.partition}\n{row.sort}"] = row.value.decode()
    return by_table


def remaining_puts(remaining: dict[str, dict[str, str]]) -> list[Put]:
    """The writes of what outlives the person."""
    return [
        Put(Key(table, *where.split("\n")), content.encode())
        for table, rows in remaining.items()
        for where, content in rows.items()
    ]


# --- other people -------------------------------------------------------------------------------


def set_apart_from(ports: Ports, subject: Subject) -> list[str]:
    """A thread of each person whose list of those they are never merged with names this one."""
    assert isinstance(subject.person, Person)
    heads = subject.person.heads.keys()
    threads = {thread for entry in subject.quarantined() for thread in entry["threads"]}
    wanted = sorted((threads | set(subject.person.never_merge)) - heads)
    others = {person.id: person for thread in wanted if (person := ports.reader.by_thread(thread)) is not None}
    return [other.id for other in map(own, others.values()) if not heads.isdisjoint(other.never_merge)]


def forget_apart(recorder: Recorder, person: Person, other: str) -> None:
    """Take the person out of another one's list."""

    def work(attempt: Attempt) -> None:
        owner = attempt.people.owner(other)
        if owner is not None and not person.heads.keys().isdisjoint(owner.never_merge):
            owner.never_merge = [thread for thread in owner.never_merge if thread not in person.heads]
            attempt.changes.of(owner)

    with suppress(BeingErased):  # the other one goes as well, with this list
        recorder.change(work)


# --- events -------------------------------------------------------------------------------------


def event_page(store: Store, catalogue: Catalogue, person: Person) -> Page | None:
    """The next events to erase; None if there are none."""
    for thread, head in person.heads.items():
        entries = thread_page(store, thread, Span(limit=PAGE_EVENTS)) if head else []
        if entries:
            return page_of(catalogue, entries)
    return None


def page_of(catalogue: Catalogue, entries: Sequence[LogEntry]) -> Page:
    """Events, their index rows and their times."""
    rows: list[Key] = []
    recorded: list[int] = []
    for entry in entries:
        try:
            event = unpack_event(entry)
        except (StoreDamaged, msgspec.MsgspecError):
            log.warning("event %s is damaged: it is erased, but index rows of it may stay", entry.id)
            continue
        recorded.append(event.recorded_at)
        rows += rows_of(catalogue, event)
    return Page([entry.id for entry in entries], rows, recorded)


def rows_of(catalogue: Catalogue, recorded: Recorded) -> list[Key]:
    """The index rows of a single event."""
    return [Key(row.table, row.partition, row.sort) for row in catalogue.left_rows(recorded)]


def page_put(workspace: str, id: str, page: Page) -> Put:
    """What is noted of events before they are erased. A page that is done again is noted once."""
    tables = Counter(key.table for key in page.rows)
    first_and_last = (min(page.recorded, default=0), max(page.recorded, default=0))
    value = pack((b"".join(map(bytes.fromhex, page.ids)), dict(tables), first_and_last))
    return Put(Key(ERASURE_IDS, f"{workspace}/{id}", short_hash(*page.ids)), value)


class Erased(NamedTuple):
    """All events that an erasure has taken out of the log."""

    ids: list[str]
    """Sorted."""
    rows: Counter[str]
    """How many index rows they had, by table."""
    recorded: list[int]
    """When the first and the last was recorded; empty if none was."""


def erased_events(store: Store, workspace: str, id: str) -> Erased:
    """All events of an erasure, as they were noted."""
    ids: set[str] = set()
    rows = Counter[str]()
    times: list[int] = []
    for item in query_pages(store, ERASURE_IDS, f"{workspace}/{id}"):
        packed, tables, recorded = unpack(item.value)
        ids.update(packed[at : at + 16].hex() for at in range(0, len(packed), 16))
        rows.update(tables)
        times += [at for at in recorded if at]
    return Erased(sorted(ids), rows, [min(times), max(times)] if times else [])


# --- what there is ------------------------------------------------------------------------------


def counted(ports: Ports, catalogue: Catalogue, subject: Subject) -> Counter[str]:
    """How much there is of the person by kind, apart from their events and the index rows."""
    store, person = ports.store, subject.person
    counts = Counter(table.name for table, _ in items_about(catalogue, subject))
    assert isinstance(person, Person)
    counts[TIMER] = sum(1 for _ in present(store, timer_keys(person)))
    counts[ALIASES] = len(aliases(store, catalogue, person))
    counts[NEVER_MERGE] = len(set_apart_from(ports, subject))
    counts[THREAD] = sum(1 for _ in present(store, map(thread_key, person.heads)))
    counts[PERSON] = sum(1 for _ in present(store, [person_key(person.id)]))
    return counts
