"""The types of events that a log has, for fields that offer names and for names that may be misspelt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from threadline.kernel.errors import EventDamaged, NotConfigured, Unavailable
from threadline.kernel.event import Event
from threadline.kernel.event_type import EventTypes, SeenTypes
from threadline.kernel.limits import PAGE_ITEMS_MAX, SEEN_TYPES_EVENTS_MAX
from threadline.kernel.names import NameKind
from threadline.kernel.ports import EventLog, Ports
from threadline.kernel.store import FeedEntry, is_erased


def known_types(engine: Ports, workspace: str) -> EventTypes:
    """Every type that a workspace can be asked about: the declared ones, and those that somebody has sent."""
    return engine.catalogue.event_types.and_seen(seen_types(engine, workspace).names)


def seen_types(engine: Ports, workspace: str) -> SeenTypes:
    """The types of a workspace's events: as the search index has them; without one, from the beginning of the log."""
    try:
        return engine.search.types(workspace)
    except (NotConfigured, Unavailable):
        entries = list(islice(_entries(engine.log), SEEN_TYPES_EVENTS_MAX + 1))
        return SeenTypes(
            frozenset(event.type for event in _events(engine.log, entries, workspace)),
            len(entries) <= SEEN_TYPES_EVENTS_MAX,
        )


def seen_names(kind: NameKind, engine: Ports, workspace: str, most: int) -> frozenset[str]:
    """The names of a free kind that a workspace's events brought, as far as ``most`` of them are looked at from the
    beginning."""
    events = _events(engine.log, islice(_entries(engine.log), most), workspace)
    return frozenset(name for event in events for name in kind.brought(event))


def _entries(log: EventLog) -> Iterator[FeedEntry]:
    cursor = ""
    while page := log.feed(cursor, PAGE_ITEMS_MAX):
        yield from page
        cursor = page[-1].cursor


def _events(log: EventLog, entries: Iterable[FeedEntry], workspace: str) -> Iterator[Event]:
    for entry in entries:
        if not is_erased(entry.entry):
            with suppress(EventDamaged):
                event = log.read(entry).event
                if event.workspace == workspace:
                    yield event
