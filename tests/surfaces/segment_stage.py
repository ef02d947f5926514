"""What tests send as a client of Segment does."""

from __future__ import annotations

from base64 import b64encode
from typing import Any


def basic(secret: str) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{secret}:'.encode()).decode()}"}


def track(key: str, **more: Any) -> dict[str, Any]:
    return {"type": "track", "userId": "1", "event": "click", "messageId": key, **more}
