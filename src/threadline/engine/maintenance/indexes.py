"""Whether everybody's index rows are written, and writing them where a new definition asks for others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import PERSON, THREAD, Person, thread_key
from threadline.engine.folding.person_packing import Erasing, index_rows, people_of, person_writes
from threadline.engine.folding.refold import catch_up
from threadline.kernel.errors import StoreDamaged, ThreadlineError, Unavailable
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.projection import Projection
from threadline.kernel.store import Batch, Check, Delete, Item, Key, Put, Store, scan_pages

MARKS = "index"
"""Table of marks: under the name of a projection, for which definition everybody's rows are written; under ``all`` and
the name of a step, for which everybody is up to date in it."""
PEOPLE = "people"
"""The step that comes first: everybody's states. The others are those of a `Refresh`."""
_NAMES = Key(MARKS, "names of marks")
"""The item that lists every name under which there may be a mark. DynamoDB can only find them by reading everything."""
_NONE = b"-"
"""A mark that is taken back: for no definition."""
_ATTEMPTS_MAX = 32
_PAGE_ROWS = 500
_PERSON_ID = re.compile("[0-9a-f]{32}")


def prepare(store: Store, catalogue: Catalogue, besides: Put) -> None:
    """Mark a store without people as complete: whoever comes will get their rows as they come. ``besides`` says the
    same of the definitions as a whole.

    In one with people take back every mark of another definition. What is written from now on keeps that definition's
    rows no longer current, and it may be in force again one day.
    """
    for _ in range(_ATTEMPTS_MAX):
        try:
            writes = _writes_of_marks(store, _marks(catalogue), besides)
        except StoreDamaged:
            return  # who reads the marks will hear of it, and `verify` of all that is damaged
        try:
            if not writes or store.commit([Batch(writes=writes)])[0] is None:
                return
        except ThreadlineError:
            return  # it cannot be written to from here; then nothing is said about it either
    raise Unavailable("other processes keep opening the store with other definitions; try again")


def _marks(catalogue: Catalogue) -> dict[str, Put]:
    """Every mark that says that all is up to date, by the name that it stands under."""
    marks = [_mark(projection) for projection in _indexed(catalogue)]
    marks += [_step_mark(catalogue, name) for name in (PEOPLE, *(refresh.name for refresh in catalogue.refreshes))]
    return {mark.key.partition: mark for mark in marks}


def step_version(catalogue: Catalogue, step: str) -> str:
    """What changes with the definitions that a step goes by: `PEOPLE` or the name of a `Refresh`."""
    return next((refresh.fingerprint for refresh in catalogue.refreshes if refresh.name == step), catalogue.layout)


def _step_mark(catalogue: Catalogue, step: str) -> Put:
    return Put(Key(MARKS, f"all {step}"), step_version(catalogue, step).encode())


def mark(store: Store, catalogue: Catalogue, step: str) -> None:
    """Note that everybody is up to date in a step: `PEOPLE` or the name of a `Refresh`."""
    wanted = _step_mark(catalogue, step)
    _list(store, wanted.key.partition)
    store.commit([Batch(writes=[wanted])])


def is_marked(store: Store, catalogue: Catalogue, step: str) -> bool:
    """Whether everybody is up to date in a step, by the definitions in force."""
    wanted = _step_mark(catalogue, step)
    item = store.get([wanted.key])[0]
    return item is not None and item.value == wanted.value


def _writes_of_marks(store: Store, wanted: Mapping[str, Put], besides: Put) -> list[Put]:
    """Refused if anybody else writes marks meanwhile: of two processes that open a store without people with different
    definitions, the later one would leave marks of the other, for which it will write no rows."""
    # Before the marks: whoever changes these after that changes what was applied as well.
    applied, listing = store.get([besides.key, _NAMES])
    listed = frozenset() if listing is None else _names(listing)
    if listing is None:  # a new store, or one of an earlier version
        marks: Iterable[Item | None] = (item for item in scan_pages(store, MARKS) if item.key != _NAMES)
    else:
        marks = store.get([Key(MARKS, name) for name in sorted(listed | wanted.keys())])
    stored = {item.key.partition: item for item in marks if item is not None}
    missing = [mark for name, mark in wanted.items() if name not in stored or stored[name].value != mark.value]
    right = {(mark.key, mark.value) for mark in wanted.values()}
    other = (item.key for item in stored.values() if item.value != _NONE and (item.key, item.value) not in right)
    writes = {key: Put(key, _NONE) for key in other}
    versions = {item.key: item.version for item in stored.values()}
    if applied is None or applied.value != besides.value:
        missing.append(besides)
    if missing and not store.scan(PERSON, limit=1):
        writes |= {mark.key: mark for mark in missing}
    if listing is None or not listed >= wanted.keys():
        writes[_NAMES] = _listing(listed.union(wanted, stored))
    versions |= {item.key: item.version for item in (applied, listing) if item is not None}
    return [put._replace(expected=versions.get(put.key, 0)) for put in writes.values()]


def _names(listing: Item) -> frozenset[str]:
    return msgspec.json.decode(listing.value, type=frozenset[str])


def _listing(names: Iterable[str]) -> Put:
    return Put(_NAMES, msgspec.json.encode(sorted(names)))


def _list(store: Store, name: str) -> None:
    """See to it that a name is listed before there is a mark under it; without a list all of them are found yet."""
    for _ in range(_ATTEMPTS_MAX):
        listing = store.get([_NAMES])[0]
        if listing is None or name in (names := _names(listing)):
            return
        if store.commit([Batch(writes=[_listing({*names, name})._replace(expected=listing.version)])])[0] is None:
            return
    raise Unavailable("other processes keep opening the store with other definitions; try again")


def is_complete(store: Store, projection: Projection) -> bool:
    """Whether the rows of this projection, as it is declared now, are written for everybody."""
    mark = _mark(projection)
    item = store.get([mark.key])[0]
    return item is not None and item.value == mark.value


def write_changed_rows(store: Store, catalogue: Catalogue) -> None:
    """Write the rows of each projection that has changed since everybody's were written, except the `complete` ones.

    To be called when everybody's states have been derived anew; it reads nobody where nothing has changed.
    """
    changed = [
        projection
        for projection in _indexed(catalogue)
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
    begun = [_begin(store, projection) for projection in projections if not is_complete(store, projection)]
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
        store.commit([Batch(writes=[_mark(projection)._replace(expected=version)])])
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


def _indexed(catalogue: Catalogue) -> Iterator[Projection]:
    return (projection for projection in catalogue.projections if projection.index.tables)


def _begin(store: Store, projection: Projection) -> tuple[Projection, int]:
    """Take the mark back; answers the version that it has then."""
    key = _mark(projection).key
    _list(store, key.partition)
    for _ in range(_ATTEMPTS_MAX):
        item = store.get([key])[0]
        version = 0 if item is None else item.version
        if store.commit([Batch(writes=[Put(key, _NONE, version)])])[0] is None:
            return projection, version + 1
    raise Unavailable("other processes keep writing the same rows anew; try again")


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


def _mark(projection: Projection) -> Put:
    value = f"{projection.version}:{projection.fingerprint}"
    return Put(Key(MARKS, projection.name), value.encode())
