"""An event to ask about over HTTP, and what a problem is told by."""

from __future__ import annotations

from typing import Any

from tests.surfaces.conftest import NOW
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier

PROBLEM = "application/problem+json"
FIELDS = {"type", "title", "status", "code", "detail", "message", "instance"}


def record(engine: Engine, user: str = "1", key: str = "k", workspace: str = "default", **properties: Any) -> None:
    event = Event(
        type="click",
        identifiers=(Identifier("user_id", user),),
        occurred_at=NOW - 1,
        key=key,
        source="shop",
        workspace=workspace,
        properties=properties,
    )
    assert engine.recorder.record([event])[0].status == "accepted"
