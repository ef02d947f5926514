"""What the tests of Segment's format share: one instant of receipt, and short ways to send a message."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from threadline.kernel.event import Event
from threadline.kernel.time import parse_time
from threadline.wire import segment
from threadline.wire.rejection import Decoded, Rejection

RECEIVED = parse_time("2026-11-21T00:46:26Z")


def send(body: Any, kind: str | None = None, received_at: int = RECEIVED) -> Decoded:
    """Decode a body, JSON or bytes, as one request of a source named ``shop``."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    numbers = count(1)
    return segment.decode(
        raw,
        kind=kind,
        source="shop",
        workspace="acme",
        received_at=received_at,
        fresh_key=lambda: f"fresh-{next(numbers)}",
    )


def one(message: Any, **envelope: Any) -> Event:
    """The event of a message in a batch of its own; fails if it was rejected."""
    (result,) = send({"batch": [message], **envelope}).results
    assert isinstance(result, Event), result
    return result


def refused(message: Any, **envelope: Any) -> Rejection:
    """The rejection of a message in a batch of its own; fails if it was accepted."""
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    rest = "".join(f",{json.dumps(name)}:{json.dumps(value)}" for name, value in envelope.items())
    (result,) = send(b'{"batch":[' + raw + b"]" + rest.encode() + b"}").results
    assert isinstance(result, Rejection), result
    return result


def track(**fields: Any) -> dict[str, Any]:
    """A track call that is fine, with some fields as given; a value of ``...`` leaves one out."""
    message = {"type": "track", "event": "Signed Up", "userId": "u1", "messageId": "m1", **fields}
    return {name: value for name, value in message.items() if value is not ...}
