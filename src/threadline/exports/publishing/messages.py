"""A committed event as the message of a topic or a queue."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.foundation.events.forms import event_view
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.event import Recorded

TOUCHED = ("features", "memory")
"""The projections of which a message says whether the event may change them."""
MESSAGE_BYTES_MAX = 256 * 1_024
"""One message, and all messages of one call, attributes included: the limit of SNS and SQS."""
ATTRIBUTE_BYTES_MAX = 300
_UNSENDABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that SNS and SQS refuse a message for."""

_encode = msgspec.json.Encoder().encode


class Message(NamedTuple):
    """What is sent of an event."""

    id: str
    """The event's: whoever gets it twice knows it by this."""
    person: str
    body: str
    attributes: dict[str, str | list[str]]
    """What a filter of a subscription can ask for."""

    @property
    def size(self) -> int:
        """Bytes that count against the limit of a call."""
        names = sum(
            len(name) + len(_text(value).encode()) + len("String.Array") for name, value in self.attributes.items()
        )
        return len(self.body.encode()) + names

    def sent_attributes(self) -> dict[str, dict[str, str]]:
        """The attributes as SNS and SQS take them."""
        return {
            name: {"DataType": "String.Array" if isinstance(value, list) else "String", "StringValue": _text(value)}
            for name, value in self.attributes.items()
        }


def touched(catalogue: Catalogue, event_type: str) -> list[str]:
    """Those of `TOUCHED` that an event of this type may change."""
    return [name for name in TOUCHED if catalogue.touches(event_type, name)]


def message_of(catalogue: Catalogue, position: int, recorded: Recorded, person: str) -> Message:
    """The message of an event at a position of the feed. ``person`` is whose it is now."""
    event, touches = recorded.event, touched(catalogue, recorded.event.type)
    content: dict[str, Any] = {
        "position": position,
        "workspace": event.workspace,
        "touches": touches,
        "event": event_view(recorded, person),
    }
    attributes: dict[str, str | list[str]] = {
        "type": _attribute(event.type),
        "workspace": _attribute(event.workspace),
        "source_type": event.source_type,
    }
    if touches:
        attributes["touches"] = touches
    # What stands in JSON text unescaped is refused by SNS all the same, such as U+FFFF.
    body = _UNSENDABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", _encode(content).decode())
    return Message(recorded.id, person, body, attributes)


def _attribute(text: str) -> str:
    """Text that an attribute can be; a filter matches it as it stands here."""
    return _UNSENDABLE.sub("?", text).encode()[:ATTRIBUTE_BYTES_MAX].decode(errors="ignore") or "?"


def _text(value: str | list[str]) -> str:
    return value if isinstance(value, str) else json.dumps(value)
