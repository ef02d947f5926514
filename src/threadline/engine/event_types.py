"""The event types of the engine: joins and splits of people, timers, policies, and what becomes of effects."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from threadline.kernel.event_type import EventType, Maybe, Properties
from threadline.kernel.identity import ALIAS, MERGED, SPLIT
from threadline.kernel.opening import OPENING, Opening
from threadline.kernel.policy import CASCADE_CUT, POLICY_FAILED, TIMER_FIRED
from threadline.kernel.sender import (
    EFFECT_DONE,
    EFFECT_PARKED,
    EFFECT_PRINTED,
    EFFECT_REDRIVEN,
    EFFECT_RETRIED,
    EFFECT_UNKNOWN,
    EFFECT_WITHDRAWN,
)


class _Merged(Properties):
    survivor: Annotated[str, Meta(description="The person who is both now.")]
    merged: Annotated[str, Meta(description="The person who is that one now.")]
    threads: Annotated[list[str], Meta(description="The threads of the merged person.")]
    reason: Annotated[str, Meta(description="Why.")]
    by: Maybe[Annotated[str, Meta(description="Who joined them, where it was an operator.")]] = UNSET
    merged_created_at: Maybe[Annotated[int, Meta(description="When the merged one came to be, microseconds.")]] = UNSET


class _Split(Properties):
    person: Annotated[str, Meta(description="The person who was split.")]
    split: Annotated[str, Meta(description="The person who was split off.")]
    threads: Annotated[list[str], Meta(description="The threads that were split off.")]
    reason: Maybe[Annotated[str, Meta(description="Why.")]] = UNSET
    by: Maybe[Annotated[str, Meta(description="Who did it.")]] = UNSET


class _Timer(Properties):
    policy: Annotated[str, Meta(description="The policy that set the timer.")]
    key: Annotated[str, Meta(description="The timer's key.")]
    data: Maybe[Annotated[dict[str, Any], Meta(description="What the policy gave it.")]] = UNSET
    history: Maybe[Annotated[int, Meta(description="Until when what it follows from is history.")]] = UNSET
    why: Maybe[Annotated[str, Meta(description="Why what it follows from happened: see `Event.why`.")]] = UNSET


class _Failed(Properties):
    policy: Annotated[str, Meta(description="The policy.")]
    event_type: Annotated[str, Meta(description="The type of the event, which is the cause.")]
    error: Annotated[str, Meta(description="What it raised.")]


class _Cut(Properties):
    policy: Annotated[str, Meta(description="The policy whose requests were left out.")]


class _Effect(Properties):
    effect: Annotated[str, Meta(description="The effect.")]
    kind: Annotated[str, Meta(description="Its kind, such as `mail`.")]
    policy: Annotated[str, Meta(description="The policy that asked for it.")]
    cause: Annotated[str, Meta(description="The event that it follows from.")]
    by: Maybe[Annotated[str, Meta(description="Who decided it.")]] = UNSET
    why: Maybe[Annotated[str, Meta(description="Why.")]] = UNSET


class _Retried(_Effect):
    retry_at: Maybe[Annotated[str, Meta(description="When it is tried again.")]] = UNSET
    error: Maybe[Annotated[str, Meta(description="What went wrong.")]] = UNSET


class _Withdrawn(_Effect):
    data: Maybe[Annotated[dict[str, Any], Meta(description="What the policy gave it.")]] = UNSET


_SHOWN = ("by", "kind", "policy", "queue", "template", "topic")
"""What of their properties is text and not personal."""
EVENT_TYPES = (
    EventType(
        ALIAS,
        "Somebody was called otherwise before; the object names it.",
        sentence="Was known under another name",
        lasts="who is one person is known from it",
    ),
    EventType(
        MERGED,
        "Two people are one.",
        _Merged,
        speaker="threadline",
        sentence="Joined with another person",
        shown=("by",),
        lasts="who is one person is known from it",
    ),
    EventType(
        SPLIT,
        "A person was split.",
        _Split,
        speaker="threadline",
        sentence="Split off from another person",
        shown=("by",),
        lasts="who is one person is known from it",
    ),
    EventType(
        OPENING,
        "What events leave behind that were erased by their age: states go on from it.",
        Opening,
        speaker="threadline",
        sentence="Sum of {events} older events",
        shown=("types",),
        lasts="states go on from it",
    ),
    EventType(
        TIMER_FIRED,
        "A timer of a policy was due.",
        _Timer,
        speaker="threadline",
        sentence="Checked {policy} again",
        shown=("key", "policy"),
    ),
    EventType(
        POLICY_FAILED,
        "A policy raised about the event that is the cause.",
        _Failed,
        speaker="threadline",
        sentence="The policy {policy} failed: {error}",
        shown=("event_type", "policy"),
    ),
    EventType(
        CASCADE_CUT,
        "More followed from one cause than a cascade may have; the rest was left out.",
        _Cut,
        speaker="threadline",
        sentence="Too much followed at once: {policy} was cut short",
        shown=("policy",),
    ),
    EventType(EFFECT_DONE, "An effect happened.", _Effect, speaker="threadline", sentence="Done: {kind}", shown=_SHOWN),
    EventType(
        EFFECT_PRINTED,
        "An effect was only printed: nobody received it, and it is not tried again.",
        _Effect,
        speaker="threadline",
        sentence="Printed only: {kind}",
        shown=_SHOWN,
    ),
    EventType(
        EFFECT_RETRIED,
        "An effect did not happen yet and is tried again.",
        _Retried,
        speaker="threadline",
        sentence="Did not happen yet: {kind}, tried again at {retry_at}",
        shown=_SHOWN,
    ),
    EventType(
        EFFECT_PARKED,
        "An effect was given up on, until somebody drives it again.",
        _Effect,
        speaker="threadline",
        sentence="Given up on: {kind}, {why}",
        shown=_SHOWN,
    ),
    EventType(
        EFFECT_REDRIVEN,
        "A dead letter is due again.",
        _Effect,
        speaker="threadline",
        sentence="Is tried again: {kind}",
        shown=_SHOWN,
    ),
    EventType(
        EFFECT_WITHDRAWN,
        "An effect is not sent any more: nothing has left.",
        _Withdrawn,
        speaker="threadline",
        sentence="Not sent any more: {kind}, {why}",
        shown=_SHOWN,
    ),
    EventType(
        EFFECT_UNKNOWN,
        "An effect was begun, and its outcome is not known. A later event about the same effect settles it.",
        _Effect,
        speaker="threadline",
        sentence="Outcome not known: {kind}",
        shown=_SHOWN,
    ),
)
