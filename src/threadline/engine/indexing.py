"""Whether everybody's index rows are written, and writing them where a new definition asks for others."""

from __future__ import annotations

from threadline.engine.catalogue import Catalogue
from threadline.engine.draft import index_rows
from threadline.engine.person import PERSON, Person, pack_person, unpack_person
from threadline.engine.refold import refold_person
from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.kernel.projection import Projection
from threadline.kernel.store import Batch, Item, Key, Put, Store, scan_pages

_MARK = "index"
"""Table of marks: under the name of a projection, for which definition everybody's rows are written."""
_ATTEMPTS_MAX = 32


def prepare(store: Store, catalogue: Catalogue) -> None:
    """Mark a store without people as complete: whoever comes will get their rows as they come."""
    watched = [each for each in catalogue.projections if each.all_rows and not is_complete(store, each)]
    if not watched or store.scan(PERSON, limit=1):
        return
    try:
        store.commit([Batch(writes=[_mark(projection) for projection in watched])])
    except ThreadlineError:
        return  # it cannot be written to from here; then nothing is said about it either


def is_complete(store: Store, projection: Projection) -> bool:
    """Whether the rows of this projection, as it is declared now, are written for everybody."""
    mark = _mark(projection)
    item = store.get([mark.key])[0]
    return item is not None and item.value == mark.value


def write_rows(store: Store, catalogue: Catalogue) -> int:
    """Write whatever index rows are missing, of everybody, beside live traffic; answers how many people were read.

    Rows that an older definition asked for stay where they are; who reads must not look for them there.
    """
    people = sum(_write_person(store, catalogue, item) for item in scan_pages(store, PERSON))
    store.commit([Batch(writes=[_mark(each) for each in catalogue.projections if each.rows is not None])])
    return people


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
