"""Whether everybody's index rows are written, and writing them where a new definition asks for others."""

from __future__ import annotations

from itertools import islice

from threadline.engine.catalogue import Catalogue
from threadline.engine.draft import index_rows
from threadline.engine.person import PERSON, Person, pack_person, unpack_person
from threadline.engine.refold import refold_person
from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.projection import Projection
from threadline.kernel.store import Batch, Delete, Item, Key, Put, Store, scan_pages

_MARK = "index"
"""Table of marks: under the name of a projection, for which definition everybody's rows are written."""
_NONE = b"-"
"""A mark that is taken back: for no definition."""
_ATTEMPTS_MAX = 32


def prepare(store: Store, catalogue: Catalogue) -> None:
    """Mark a store without people as complete: whoever comes will get their rows as they come.

    In one with people take back every mark of another definition. What is written from now on keeps that definition's
    rows no longer current, and it may be in force again one day.
    """
    wanted = {each.name: _mark(each) for each in catalogue.projections if each.all_rows}
    held = {item.key.partition: item for item in scan_pages(store, _MARK)}
    missing = [mark for name, mark in wanted.items() if name not in held or held[name].value != mark.value]
    right = {(mark.key, mark.value) for mark in wanted.values()}
    other = (item.key for item in held.values() if item.value != _NONE and (item.key, item.value) not in right)
    writes = {key: Put(key, _NONE) for key in other}
    if missing and not store.scan(PERSON, limit=1):
        writes |= {mark.key: mark for mark in missing}
    if not writes:
        return
    try:
        store.commit([Batch(writes=list(writes.values()))])
    except ThreadlineError:
        return  # it cannot be written to from here; then nothing is said about it either


def is_complete(store: Store, projection: Projection) -> bool:
    """Whether the rows of this projection, as it is declared now, are written for everybody."""
    mark = _mark(projection)
    item = store.get([mark.key])[0]
    return item is not None and item.value == mark.value


def write_rows(store: Store, catalogue: Catalogue) -> int:
    """Write whatever index rows are missing, of everybody, beside live traffic; answers how many people were read.

    Where another definition was in force before, all that is in the table is removed first: rows that it asked for may
    look like rows that are asked for now, and tell of somebody what was true then.
    """
    begun = [_begin(store, each) for each in catalogue.projections if each.all_rows and not is_complete(store, each)]
    for projection, _ in begun:
        _empty(store, projection.all_rows)
    people = sum(_write_person(store, catalogue, item) for item in scan_pages(store, PERSON))
    for projection, version in begun:
        # Refused if somebody else has begun since, and has removed what was written here: theirs is the last word.
        store.commit([Batch(writes=[_mark(projection)._replace(expected=version)])])
    return people


def _begin(store: Store, projection: Projection) -> tuple[Projection, int]:
    """Take the mark back; answers the version that it has then."""
    key = _mark(projection).key
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


def _write_person(store: Store, catalogue: Catalogue, item: Item) -> int:
    for _ in range(_ATTEMPTS_MAX):
        person = unpack_person(item, catalogue)
        if not isinstance(person, Person):
            return 0  # merged into somebody whose turn it will be, or was
        if person.stale:
            refold_person(store, catalogue, person, only=person.stale)
        rows = index_rows(person, catalogue)
        held = store.get(list(rows))
        missing = [key for key, old in zip(rows, held, strict=True) if old is None or old.value != rows[key]]
        if not missing and not person.stale:
            return 1
        # With the person in the same batch, so that no row is written that has become untrue meanwhile.
        writes = [Put(item.key, pack_person(person, catalogue), item.version), *(Put(k, rows[k]) for k in missing)]
        if store.commit([Batch(writes=writes)])[0] is None:
            return 1
        found = store.get([item.key])[0]
        assert found is not None, "people are never removed under their id"
        item = found
    raise Unavailable("other writers keep changing the same person; go on later")


def _mark(projection: Projection) -> Put:
    value = f"{projection.version}:{projection.fingerprint}"
    return Put(Key(_MARK, projection.name), value.encode())
