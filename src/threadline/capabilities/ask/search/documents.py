"""What a search index has of an event: its words, its rule and status if it is a decision, the ids that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from threadline.capabilities.decide.rules.events import DECISION_MADE
from threadline.capabilities.decide.rules.projection import decision_of
from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.kernel.event import Event, Recorded
from threadline.kernel.limits import SEARCH_LINKS_MAX, SEARCH_TEXT_LENGTH_MAX
from threadline.kernel.opening import OPENING
from threadline.kernel.search import Document

SEARCHED_CONTEXT = ("traits", "campaign", "page", "referrer")
"""Of an event's context what people look for; the rest describes devices and libraries."""

_JOINED = "threadline.person_"
"""How the types of events begin that join people and part them."""
_ID = re.compile(r"[0-9a-f]{32}")
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Ranges for a regular expression: Thai, Lao, Burmese, Khmer, Japanese and Chinese put no blanks between words."""
_UNSPACED = re.compile(f"([{UNSPACED}])")


def document_of(recorded: Recorded) -> Document:
    """The document of an event."""
    event = recorded.event
    decision = decision_of(recorded) if event.type == DECISION_MADE else None
    rule, status = ("", "") if decision is None else (decision[0], decision[2])
    parts = _parts(event)
    # Of an event that has no text as long as an id nearly always nothing else has to be looked at.
    links = _links(recorded) if recorded.cause or event.object_id or 32 in map(len, parts) else ()
    text = "\n".join(parts)[:SEARCH_TEXT_LENGTH_MAX]
    if not text.isascii():
        text = spaced(text)
    text = text.replace("\0", " ")
    return Document(
        recorded.id,
        event.workspace,
        recorded.thread,
        event.type,
        event.occurred_at,
        text,
        rule,
        status,
        links,
        event.is_activity,
        "".join([f"{own.kind}:{own.value}\n" for own in event.identifiers]),
        event.type == IDENTIFY or event.type.startswith(_JOINED),
    )


def spaced(text: str) -> str:
    """The text with blanks around characters of scripts that have none, so that each is a word."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)


def texts_of(event: Event) -> Iterator[tuple[str, str]]:
    """Every searched text of an event, with where it stands."""
    yield "type", event.type.replace("_", " ")
    for identifier in event.identifiers:
        yield f"identifiers.{identifier.kind}", identifier.value
    if event.object_id:
        yield "object_id", event.object_id
    if event.type != OPENING:  # its states are numbers that nobody looks for
        yield from texts_in("properties", event.properties)
    for name in SEARCHED_CONTEXT:
        if name in event.context:
            yield from texts_in(f"context.{name}", event.context[name])


def texts_in(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text and number in a value, with where it stands."""
    if type(value) is str:
        yield path, value
    elif type(value) is dict:
        for name, inner in value.items():
            yield from texts_in(f"{path}.{name}", inner)
    elif type(value) in (list, tuple):
        for inner in value:
            yield from texts_in(path, inner)
    elif value is not None and type(value) is not bool:
        yield path, str(value)


def _parts(event: Event) -> list[str]:
    """The texts of `texts_of`, without where they stand: this is asked of every event of the log."""
    parts = [event.type.replace("_", " ")]
    for identifier in event.identifiers:
        parts.append(identifier.value)  # noqa: PERF401 — one or two: a comprehension would cost more
    if event.object_id:
        parts.append(event.object_id)
    if event.properties and event.type != OPENING:
        _collect(event.properties, parts)
    if event.context:
        for name in SEARCHED_CONTEXT:
            if name in event.context:
                _collect(event.context[name], parts)
    return parts


def _collect(value: Any, parts: list[str]) -> None:
    if type(value) is dict:
        value = value.values()
    elif type(value) not in (list, tuple):
        value = (value,)
    for inner in value:
        kind = type(inner)
        if kind is str:
            parts.append(inner)
        elif kind is dict or kind is list or kind is tuple:
            _collect(inner, parts)
        elif inner is not None and kind is not bool:
            parts.append(str(inner))


def _links(recorded: Recorded) -> tuple[str, ...]:
    links = ids_named(recorded)[: SEARCH_LINKS_MAX - 1]
    return (*links, recorded.event.object_id) if recorded.event.object_id else tuple(links)


def ids_named(recorded: Recorded) -> list[str]:
    """The ids that an event names, its cause first: of events, effects and people."""
    links = [recorded.cause] if recorded.cause and _ID.fullmatch(recorded.cause) else []
    for value in recorded.event.properties.values():
        if type(value) is str and len(value) == 32 and value != recorded.id and _ID.fullmatch(value):
            links.append(value)  # noqa: PERF401 — a comprehension is slower where nothing fits, as nearly always
    return list(dict.fromkeys(links)) if len(links) > 1 else links
