"""Names that events bring along, which nothing has to declare: their types and their properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.capabilities.foundation.events.seen import seen_names
from threadline.kernel.event import Event
from threadline.kernel.event_type import EventTypes
from threadline.kernel.names import EVENT_TYPE, PROPERTY, NameKind

DEPTH_MAX = 4
"""Levels of objects in an event's properties whose names are looked at."""
OFFERED_EVENTS_MAX = 1_000
"""Events at the beginning of the log whose properties a form suggests."""
ENTRIES_MAX = 20
"""Entries of a list whose names are."""


def _properties_declared(types: EventTypes) -> Iterator[str]:
    for type in types.known:
        yield from type.property_schemas


def properties_of(event: Event) -> Iterator[str]:
    """The names of an event's properties, of those inside objects and lists as paths: ``order.total``."""
    return _names_in(event.properties, "", DEPTH_MAX)


def _names_in(value: Any, start: str, depth: int) -> Iterator[str]:
    if type(value) is list:
        for entry in value[:ENTRIES_MAX]:
            if type(entry) is dict:
                yield from _names_in(entry, start, depth)
    elif type(value) is dict and depth:
        for name, inside in value.items():
            yield f"{start}{name}"
            if type(inside) in (dict, list):
                yield from _names_in(inside, f"{start}{name}.", depth - 1)


TYPE = NameKind(
    EVENT_TYPE,
    lambda definitions: None,
    never="nobody has ever sent",
    of_types=lambda types: types.names,
    brought=lambda event: (event.type,),
)
PROPERTY_KIND: NameKind = NameKind(
    PROPERTY,
    lambda definitions: None,
    never="no event ever had the property",
    of_types=_properties_declared,
    brought=properties_of,
    stored=lambda engine, workspace: seen_names(PROPERTY_KIND, engine, workspace, OFFERED_EVENTS_MAX),
    is_path=True,
)
