"""The type of event that an action in an application becomes."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from threadline.kernel.event_type import EventType, Maybe, Properties

ACTION = "app_action"


class _Action(Properties):
    topic: Annotated[Any, Meta(description="What it was about.")]
    scopes: Maybe[Annotated[Any, Meta(description="Where it happened: each a topic and a value.")]] = UNSET
    application_id: Maybe[Annotated[Any, Meta(description="The application.")]] = UNSET


EVENT_TYPES = (
    EventType(
        ACTION,
        "Somebody did something in an application.",
        _Action,
        shown=("action", "application", "scope", "topic"),
    ),
)
