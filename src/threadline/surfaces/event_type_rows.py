"""What the docs say of each declared event type, in Markdown and on the page of the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from threadline.kernel.event_type import EventType, Speaker

SPEAKERS: Mapping[Speaker, str] = {
    "threadline": "Threadline alone",
    "process": "Threadline, and the program that has opened the store",
    "anyone": "anyone",
}


class EventTypeRow(NamedTuple):
    """A type in words, names between backticks."""

    name: str
    about: str
    speaker: str
    properties: str
    lasts: str
    """Why its events are never erased by their age; empty: what reads them decides."""


def event_type_rows(types: Iterable[EventType]) -> list[EventTypeRow]:
    """A row for each type, by name."""
    return [
        EventTypeRow(
            type.name,
            _cell(type.about),
            SPEAKERS[type.speaker],
            _cell(_properties(type.property_schemas)),
            _cell(type.lasts),
        )
        for type in sorted(types, key=lambda type: type.name)
    ]


def _properties(schemas: Mapping[str, Mapping[str, Any]]) -> str:
    described = ((name, str(schema.get("description", "")).rstrip(".")) for name, schema in schemas.items())
    return "; ".join(f"`{name}`: {about}" if about else f"`{name}`" for name, about in described)


def _cell(text: str) -> str:
    """In one line, and without what ends a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
