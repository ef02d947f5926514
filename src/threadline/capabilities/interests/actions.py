"""Reads what an event says of its person's interest: a topic, an application and scopes, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from threadline.capabilities.interests.definition import Source
from threadline.capabilities.interests.lengths import (
    APPLICATION_LENGTH_MAX,
    SCOPE_LENGTH_MAX,
    TOPIC_LENGTH_MAX,
    VALUE_LENGTH_MAX,
)

SEPARATOR = "\x1f"
"""Between the parts of a cell's name; a text that holds it is none of these parts."""


class Cell(NamedTuple):
    """What is counted as one: a value of a scope, within a topic and an application; all but the topic may be empty."""

    topic: str
    application: str
    scope: str
    value: str


def cell_of(name: str) -> Cell:
    """The cell that a name was made of."""
    return Cell(*name.split(SEPARATOR))


def action_of(source: Source, properties: dict[str, Any]) -> tuple[str, list[str]] | None:
    """The topic of an event and the names of the cells that it counts in, each once; None if it tells no interest."""
    topic = source.topic or _text(properties.get(source.topic_field), TOPIC_LENGTH_MAX)
    if not topic:
        return None
    application = _text(properties.get(source.application_field), APPLICATION_LENGTH_MAX)
    start = f"{topic}{SEPARATOR}{application}{SEPARATOR}"
    if source.listed:
        scopes = _listed(properties.get("scopes"))
    else:
        scopes = _fields(source.scopes, properties)
    names = list(dict.fromkeys([f"{start}{scope}{SEPARATOR}{value}" for scope, value in scopes]))
    # An action without scopes is an interest in its topic as such.
    return topic, names or [f"{start}{SEPARATOR}"]


def _fields(scopes: tuple[tuple[str, str], ...], properties: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for scope, field in scopes:
        told = properties.get(field)
        for each in told if type(told) is list else (told,):
            value = _text(each, VALUE_LENGTH_MAX)
            if value:
                yield scope, value


def _listed(told: object) -> Iterator[tuple[str, str]]:
    for each in told if type(told) is list else ():
        if type(each) is dict:
            scope, value = _text(each.get("topic"), SCOPE_LENGTH_MAX), _text(each.get("value"), VALUE_LENGTH_MAX)
            if scope or value:
                yield scope, value


def _text(value: object, length_max: int) -> str:
    """A text, or a whole number as text; "" for anything else, for what is too long, and for what holds a separator."""
    if type(value) is int:
        value = str(value)
    if type(value) is not str or len(value) > length_max or SEPARATOR in value:
        return ""
    return value.strip()
