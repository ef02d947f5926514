"""The event types that state, retract and restore facts."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from threadline.kernel.event_type import EventType, Maybe, Properties

FACT_REMEMBERED = "fact_remembered"
FACT_COMPUTED = "fact_computed"
FACT_RETRACTED = "fact_retracted"
FACT_RESTORED = "fact_restored"


class _Fact(Properties):
    type: Annotated[str, Meta(description="The type of the fact, such as `preference`.")]
    key: Annotated[str, Meta(description="What it is about, among the facts of its type.")]


class _Remembered(_Fact):
    value: Annotated[Any, Meta(description="What is so.")]
    expires_at: Maybe[Annotated[Any, Meta(description="Until when it counts.")]] = UNSET
    derived_from: Maybe[Annotated[Any, Meta(description="The ids of the events that it was concluded from.")]] = UNSET


class _Computed(_Remembered):
    confidence: Maybe[Annotated[Any, Meta(description="How sure it is, from 0 to 1.")]] = UNSET


class _Retracted(_Fact):
    reason: Maybe[Annotated[str, Meta(description="Why it counts no more.")]] = UNSET


class _Restored(_Fact):
    retraction: Annotated[str, Meta(description="The id of the retraction that counts no more.")]
    retracted_at: Annotated[int, Meta(description="When that was, in microseconds.")]


_SHOWN = ("derived_from", "key", "source", "type")
"""What of their properties is text and not personal."""
EVENT_TYPES = (
    EventType(
        FACT_REMEMBERED,
        "The person said so.",
        _Remembered,
        shown=_SHOWN,
        lasts="a fact is made of it",
    ),
    EventType(
        FACT_COMPUTED,
        "A system computed it.",
        _Computed,
        sentence="Known from now on: {key} is {value}",
        shown=_SHOWN,
        lasts="a fact is made of it",
    ),
    EventType(
        FACT_RETRACTED,
        "What was known by then under type and key counts no more.",
        _Retracted,
        shown=_SHOWN,
        lasts="a fact that was taken back would be there again",
    ),
    EventType(
        FACT_RESTORED,
        "A retraction counts no more.",
        _Restored,
        shown=_SHOWN,
        lasts="a fact is made of it",
    ),
)
