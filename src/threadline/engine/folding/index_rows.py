"""The index rows that a person's states ask for."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person
from threadline.kernel.store import Key


def index_rows(person: Person, catalogue: Catalogue, only: Iterable[int] | None = None) -> dict[Key, bytes]:
    """The index rows of all projections, or of ``only`` some, by key."""
    found: dict[Key, bytes] = {}
    for index in catalogue.with_rows if only is None else only:
        rows = catalogue.projections[index].index.rows
        assert rows is not None
        for row in rows(person.states[index], person.workspace, person.id):
            found[Key(row.table, row.partition, row.sort)] = row.value or b"\x00"
    return found
