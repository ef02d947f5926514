"""Published states compared with those of the store: what was folded elsewhere must equal what is folded here."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from threadline.engine.folding.catalogue import Catalogue
from threadline.exports.lake.lake import Lake
from threadline.exports.spark.folding import PersonRow, stored_rows
from threadline.exports.spark.recipe import definitions_of
from threadline.exports.spark.states import STATES, published_rows
from threadline.kernel.errors import Conflict
from threadline.kernel.store import Store


class Checked(NamedTuple):
    """What a comparison has shown."""

    people: int
    """Whose states were compared."""
    newer: int
    """Who have other events in one of the two, since they were recorded or erased after the lake was synced."""
    differing: tuple[str, ...]
    """Who have the same events, and other states: there are none unless something is wrong."""


def check_states(store: Store, catalogue: Catalogue, lake: Lake) -> Checked:
    """Compare everybody's states in a lake with those in the store. Takes a hundred bytes of memory a person.

    Raises `Conflict` for states that other definitions have made: these differ as they should.
    """
    folded: dict[str, tuple[int, bytes]] = {}
    for workspace in sorted({file.workspace for file in lake.manifest().files if file.table == STATES}):
        for row, definitions in published_rows(lake, workspace):
            if definitions != definitions_of(catalogue.layout):
                hint = "`threadline lake refold` makes them anew"
                raise Conflict("the states of the lake were folded by other definitions than those in force", hint=hint)
            folded[row.person] = row.events, _digest(row)
    people = newer = 0
    differing: list[str] = []
    for row in stored_rows(store, catalogue):
        events, digest = folded.pop(row.person, (0, b""))
        is_same = digest == _digest(row)
        # Of somebody of whom events were erased the store counts more than a lake can have.
        if events != row.events and not is_same:
            newer += 1
            continue
        people += 1
        if not is_same:
            differing.append(row.person)
    return Checked(people, newer + len(folded), tuple(differing))


def _digest(row: PersonRow) -> bytes:
    return hashlib.blake2b(repr(row._replace(events=0)).encode(), digest_size=16).digest()
