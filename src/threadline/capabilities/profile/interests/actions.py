"""Reads what an event says of its person's interest: a topic, an application and scopes, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from threadline.capabilities.profile.interests.definition import (
    APPLICATION_LENGTH_MAX,
    SCOPE_LENGTH_MAX,
    TOPIC_LENGTH_MAX,
    VALUE_LENGTH_MAX,
    Source,
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


Action = tuple[str, list[str]]
"""The topic of an event and the names of the cells that it counts in, each once."""

Reader = Callable[[dict[str, Any]], Action | None]
"""Reads the properties of an event; None if they show no interest."""


def reader_of(source: Source) -> Reader:
    """How events of this source are read. It is on the way of every such event, so what can be is made ready here."""
    scopes = tuple((f"{SEPARATOR}{scope}{SEPARATOR}", field) for scope, field in source.scopes)

    def read(properties: dict[str, Any]) -> Action | None:
        topic = source.topic or _text(properties.get(source.topic_field), TOPIC_LENGTH_MAX)
        if not topic:
            return None
        start = topic + SEPARATOR
        if source.application_field:
            start += _text(properties.get(source.application_field), APPLICATION_LENGTH_MAX)
        if source.listed:
            names = [f"{start}{scope}" for scope in _listed(properties.get("scopes"))]
        else:
            names = []
            for scope, field in scopes:
                given = properties.get(field)
                for item in given if type(given) is list else (given,):
                    value = _text(item, VALUE_LENGTH_MAX)
                    if value:
                        names.append(f"{start}{scope}{value}")
        if len(names) > 1:
            names = list(dict.fromkeys(names))
        # An action without scopes is an interest in its topic as such.
        return topic, names or [f"{start}{SEPARATOR}{SEPARATOR}"]

    return read


def _listed(given: object) -> Iterator[str]:
    for item in given if type(given) is list else ():
        if type(item) is dict:
            scope, value = _text(item.get("topic"), SCOPE_LENGTH_MAX), _text(item.get("value"), VALUE_LENGTH_MAX)
            if scope or value:
                yield f"{SEPARATOR}{scope}{SEPARATOR}{value}"


def _text(value: object, length_max: int) -> str:
    """A text, or a whole number as text; "" for anything else, for what is too long, and for what holds a separator."""
    if type(value) is not str:
        if type(value) is not int:
            return ""
        value = str(value)
    if len(value) > length_max or SEPARATOR in value:
        return ""
    return value.strip()
