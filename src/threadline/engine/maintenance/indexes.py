"""Everybody's index rows written, where a new definition asks for others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import PERSON, THREAD, Person, thread_key
from threadline.engine.folding.person_packing import Erasing, index_rows, people_of, person_writes
from threadline.engine.folding.refold import catch_up
from threadline.engine.maintenance.marks import begin, indexed, is_complete, rows_mark
from threadline.kernel.errors import Unavailable
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.projection import Projection
from threadline.kernel.store import Batch, Check, Delete, Item, Key, Put, Store, scan_pages

_ATTEMPTS_MAX = 32
_PAGE_ROWS = 500
_PERSON_ID = re.compile("[0-9a-f]{32}")


def write_changed_rows(store: Store, catalogue: Catalogue) -> None:
    """Write the rows of each projection that has changed since everybody's were written, except the `complete` ones.

    To be called when everybody's states have been derived anew; it reads nobody where nothing has changed.
    """
    changed = [
        projection
        for projection in indexed(catalogue)
        if not projection.index.complete and not is_complete(store, projection)
    ]
    if changed:
        write_rows(store, catalogue, changed)


def write_rows(store: Store, catalogue: Catalogue, projections: Sequence[Projection]) -> int:
    """Write whatever index rows are missing, of everybody, beside live traffic; answers how many people were read.

    Where another definition of one of these projections was in force before, rows that it asked for may look like rows
    that are asked for now, and tell of somebody what was true then. They are removed last, so that nobody who belongs
    on a list is missing from it meanwhile; but first where nobody reads a list before its rows are complete.
    """
    begun = [begin(store, projection) for projection in projections if not is_complete(store, projection)]
    for table in (table for projection, _ in begun if projection.index.complete for table in projection.index.tables):
        _empty(store, table)
    people = sum(write_person(store, catalogue, item) for item in scan_pages(store, PERSON))
    for table in (
        table for projection, _ in begun if not projection.index.complete for table in projection.index.tables
    ):
        rows = scan_pages(store, table)
        while page := list(islice(rows, _PAGE_ROWS)):
            remove_unasked(store, catalogue, page)
    for projection, version in begun:
        # Refused if somebody else has begun since, and has removed what was written here: theirs is the last word.
        store.commit([Batch(writes=[rows_mark(projection)._replace(expected=version)])])
    return people


def remove_unasked(store: Store, catalogue: Catalogue, rows: Sequence[Item]) -> None:
    """Remove those of these index rows for which nobody asks, beside live traffic."""
    for _ in range(_ATTEMPTS_MAX):
        owners = _get(store, owners_of(rows))
        asked = asked_for(store, catalogue, owners.values(), lambda person: index_rows(person, catalogue))
        batches = []
        unasked = [row for row in rows if row.key not in asked]
        for row in unasked:
            # Only if nobody whose row it may be has changed meanwhile: they may ask for it now.
            checks = [Check(key, owners[key].version if key in owners else 0) for key in owners_of([row])]
            batches.append(Batch(writes=[Delete(row.key, row.version), *checks]))
        refused = [row.key for row, refusal in zip(unasked, store.commit(batches), strict=True) if refusal is not None]
        rows = list(_get(store, refused).values())
        if not rows:
            return
    raise Unavailable("other writers keep changing the same person; go on later")


def owners_of(rows: Iterable[Item]) -> list[Key]:
    """Whose rows these may be. Two people's would be one if the key of a row did not tell; a thread's value tells."""
    names = (row.value.decode() if row.key.table == THREAD else f"{row.key.sort} {row.key.partition}" for row in rows)
    return [Key(PERSON, id) for id in {id for text in names for id in _PERSON_ID.findall(text)}]


def asked_for(
    store: Store, catalogue: Catalogue, items: Iterable[Item], rows: Callable[[Person], Iterable[Key]]
) -> set[Key]:
    """The keys of all rows for which these people ask, as their states are now."""
    asked: set[Key] = set()
    for person in people_of(store, catalogue, items):
        if isinstance(person, Person):
            catch_up(store, catalogue, person)
            asked.update(rows(person))
        elif isinstance(person, Erasing):
            asked.update(map(thread_key, person.threads))
    return asked


def _get(store: Store, keys: Sequence[Key]) -> dict[Key, Item]:
    return {item.key: item for item in store.get(keys) if item is not None}


def _empty(store: Store, table: str) -> None:
    """Remove all that is in a table. What comes in meanwhile may go too: its person's turn is still to come."""
    items = scan_pages(store, table)
    while deletes := [Delete(item.key) for item in islice(items, BATCH_WRITES_MAX)]:
        store.commit([Batch(writes=deletes)])


def catch_up_page(store: Store, catalogue: Catalogue, after: str, limit: int) -> tuple[int, str]:
    """Write the states, and with them the index rows, of people whose states are older than the definitions in force.

    Answers how many people were looked at, and the id after which to go on; empty: that was everybody.
    """
    items = store.scan(PERSON, after=Key(PERSON, after) if after else None, limit=limit)
    people = people_of(store, catalogue, items)
    stale = [
        (item, person)
        for item, person in zip(items, people, strict=True)
        if isinstance(person, Person) and person.stale
    ]
    batches = [Batch(writes=_writes_of_person(store, catalogue, item, person)) for item, person in stale]
    for (item, _), refusal in zip(stale, store.commit(batches) if batches else (), strict=True):
        if refusal is not None:  # somebody was faster
            write_person(store, catalogue, store.get([item.key])[0] or item)
    return len(items), items[-1].key.partition if len(items) == limit else ""


def write_person(store: Store, catalogue: Catalogue, item: Item) -> int:
    """Write whatever index rows of a person are missing, or say something else; answers how many people that were."""
    for _ in range(_ATTEMPTS_MAX):
        [person] = people_of(store, catalogue, [item])
        if not isinstance(person, Person):
            return 0  # merged into somebody whose turn it will be, or was
        writes = _writes_of_person(store, catalogue, item, person)
        if not writes or store.commit([Batch(writes=writes)])[0] is None:
            return 1
        current = store.get([item.key])[0]
        if current is None:
            return 0  # erased
        item = current
    raise Unavailable("other writers keep changing the same person; go on later")


def _writes_of_person(store: Store, catalogue: Catalogue, item: Item, person: Person) -> list[Put | Delete]:
    """A person whose states were stale or who lacks index rows, with these; nothing if all is as it should be."""
    was_stale = bool(person.stale)
    catch_up(store, catalogue, person)
    rows = index_rows(person, catalogue)
    stored = store.get(list(rows))
    missing = [
        Put(key, rows[key]) for key, old in zip(rows, stored, strict=True) if old is None or old.value != rows[key]
    ]
    if not missing and not was_stale:
        return []
    # With the person in the same batch, so that no row is written that has become untrue meanwhile.
    person.version = item.version
    return [*person_writes(person, catalogue), *missing]
