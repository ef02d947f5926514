"""What the store has of a person about broadcasts: of which they are a recipient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.events import BROADCAST_ADDRESSED
from threadline.capabilities.reach.broadcasts.projection import STATUS
from threadline.capabilities.reach.broadcasts.repository import recipient_key
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.personal import PersonFile, StoreTable, Subject, joined, shown_events, shown_views
from threadline.kernel.store import Item, Key

_OPERATORS = "what operators send, to whomever"


def _keys(subject: Subject) -> Iterator[Key]:
    return (item.key for _, item in _rows(subject))


def _rows(subject: Subject) -> Iterator[tuple[str, Item]]:
    """The broadcasts that the person is a recipient of, and the row that says so."""
    store, stop = subject.engine.store, ""
    while True:
        page, stop = repository.page(store, subject.workspace, None, stop, PAGE_ITEMS_MAX)
        for created in page:
            keys = [recipient_key(subject.workspace, created.id, id) for id in sorted(subject.ids)]
            yield from ((created.id, item) for item in store.get(keys) if item is not None)
        if not stop:
            return


def _recipient(subject: Subject) -> Iterator[dict[str, Any]]:
    for id, item in _rows(subject):
        yield {"recipient_of": id, "arm": item.value.decode().strip("-")}


BROADCAST_TABLE = StoreTable(repository.BROADCAST, "nobody", why=_OPERATORS)
CREATED_TABLE = StoreTable(repository.BROADCAST_CREATED, "nobody", why=_OPERATORS)
STOPPED_TABLE = StoreTable(repository.STOPPED, "nobody", why=_OPERATORS)
RECIPIENT_TABLE = StoreTable(repository.RECIPIENT, "items", shown_in="broadcasts", keys=_keys)
STATUS_TABLE = StoreTable(STATUS, "event_rows", why="it counts what the person's events say of a broadcast")
BROADCASTS_FILE = PersonFile(
    "broadcasts",
    "Mailings to many",
    "Mailings to many people that were addressed to you as well.",
    joined(shown_views("broadcasts"), _recipient, shown_events(BROADCAST_ADDRESSED)),
    ("broadcasts",),
)
