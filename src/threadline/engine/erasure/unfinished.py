"""An erasure that is not done, as it is stored: who the person was, and how far the removal has come."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person
from threadline.engine.folding.states import States
from threadline.kernel.erasure import ERASURE_OPEN
from threadline.kernel.event import Identifier
from threadline.kernel.store import Check, Item, Key, Put, Store
from threadline.kernel.typed import prepared

Stage = Literal["sealed", "counted", "cleared", "closed"]
"""``sealed``: nobody can add to the person. ``counted``: what there is was counted. ``cleared``: all but the events is
removed. ``closed``: everything is removed and certified; what deleted rows left in the files is still to be
overwritten."""


@prepared
class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An erasure that is not done."""

    id: str
    workspace: str
    stage: Stage
    at: int
    by: str
    reason: str
    person: str = ""
    created_at: int = 0
    heads: dict[str, int] = {}
    identifiers: dict[str, Identifier] = {}
    never_merge: list[str] = []
    timers: dict[str, int] = {}
    counts: dict[str, int] = {}
    """What there was, by kind."""
    remaining: dict[str, dict[str, str]] = {}
    """What outlives the person; see `Certificate.remaining`."""
    erased: int = 0
    """Events that are erased so far, for whoever waits: one that is erased again after a kill counts twice."""
    rows_left: bool = False
    """Whether the seal had no room for all index rows."""
    again: str = ""
    """The id of the erasure of another copy of this store that is done again here."""
    certified: bytes = b""
    """The certificate, once it is closed."""

    def stand_in(self, catalogue: Catalogue) -> Person:
        """The person as they were when they were sealed, but for the states."""
        person = Person(self.person, self.workspace, self.created_at, States(catalogue))
        person.heads, person.identifiers = dict(self.heads), dict(self.identifiers)
        person.timers, person.never_merge = dict(self.timers), list(self.never_merge)
        return person


class Stored(NamedTuple):
    """A record, and the item that it was read from."""

    item: Item
    record: Record

    @property
    def fence(self) -> Check:
        """Holds as long as nobody has got further with it."""
        return Check(self.item.key, self.item.version)

    def changed(self, record: Record) -> Put:
        """The write that puts another state of it in place, if nobody was faster."""
        return Put(self.item.key, packed(record), self.item.version)


def record_key(workspace: str, id: str) -> Key:
    """Where an erasure that is not done lies."""
    return Key(ERASURE_OPEN, workspace, id)


def packed(record: Record) -> bytes:
    """A record as it is stored."""
    return msgspec.msgpack.encode(record)


def stored(store: Store, workspace: str, id: str) -> Stored | None:
    """An erasure that is not done; None if there is none."""
    item = store.get([record_key(workspace, id)])[0] if id else None
    return None if item is None else unpacked(item)


def unpacked(item: Item) -> Stored:
    """The record of an item."""
    return Stored(item, msgspec.msgpack.decode(item.value, type=Record))
