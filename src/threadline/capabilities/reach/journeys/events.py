"""The events of journeys; only Threadline itself and this process are believed about them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from threadline.capabilities.profile.segments.events import SEGMENT_ENTERED, SEGMENT_LEFT
from threadline.capabilities.reach.mail.events import MAIL_SENT, MAIL_SKIPPED
from threadline.kernel.event_type import EventType, Maybe, Properties
from threadline.kernel.lasting import Lasting, for_life

JOURNEY_ENTERED = "journey_entered"
JOURNEY_MOVED = "journey_moved"
JOURNEY_EXITED = "journey_exited"
JOURNEY_PAUSED = "journey_paused"
JOURNEY_RESUMED = "journey_resumed"
JOURNEY_ENTRY_REQUESTED = "journey_entry_requested"
JOURNEY_EXIT_REQUESTED = "journey_exit_requested"

RUN_EVENTS = frozenset({JOURNEY_ENTERED, JOURNEY_MOVED, JOURNEY_EXITED})
REQUESTS = frozenset({JOURNEY_PAUSED, JOURNEY_RESUMED, JOURNEY_ENTRY_REQUESTED, JOURNEY_EXIT_REQUESTED})

SEGMENT_TYPES = frozenset({SEGMENT_ENTERED, SEGMENT_LEFT})


class _OfRun(Properties):
    journey: Annotated[str, Meta(description="The journey.")]
    run: Annotated[str, Meta(description="Which way through it: the id of the event that let the person enter.")]
    n: Annotated[int, Meta(description="The number of this event in its run, from 0.")]
    version: Annotated[int, Meta(description="The version of the journey.")]
    entered_at: Annotated[str, Meta(description="When the run began.")]
    path: Annotated[list[str], Meta(description="The steps that were done.")]
    mails: Annotated[list[Any], Meta(description="Of each mail of these the step, the template and the arm.")]
    step: Annotated[str, Meta(description="Where the person waits now.")]
    actions: Maybe[
        Annotated[list[Any], Meta(description="Of each action of these the step, what it is, and its problem, if any.")]
    ] = UNSET
    key: Maybe[Annotated[str | int | float, Meta(description="What the run is about, in a journey with a key.")]] = (
        UNSET
    )
    began: Maybe[Annotated[str, Meta(description="Since when.")]] = UNSET
    until: Maybe[Annotated[str, Meta(description="Until when, if time ends it.")]] = UNSET
    reason: Maybe[Annotated[str, Meta(description="Why the run ended.")]] = UNSET
    holdout: Maybe[Annotated[bool, Meta(description="Whether mails are left out.")]] = UNSET


class _Entered(_OfRun):
    since: Maybe[Annotated[str, Meta(description="When the trigger occurred.")]] = UNSET
    draw: Maybe[Annotated[int, Meta(description="What decides the variants, from 0 to 65,535.")]] = UNSET
    variables: Maybe[Annotated[dict[str, Any], Meta(description="The variables of the run.")]] = UNSET


class _Moved(_OfRun):
    came: Maybe[Annotated[bool, Meta(description="Whether the event came that the paused run waits for.")]] = UNSET


class _Exited(_OfRun):
    interrupted: Maybe[Annotated[bool, Meta(description="Whether something else than its steps ended it.")]] = UNSET


class _Paused(Properties):
    journey: Maybe[Annotated[str, Meta(description="The journey; all of them if absent.")]] = UNSET


class _Resumed(_Paused):
    whole: Maybe[Annotated[bool, Meta(description="Whether it goes on for everybody.")]] = UNSET


class _Requested(Properties):
    journey: Annotated[str, Meta(description="The journey.")]
    rule: Maybe[Annotated[str, Meta(description="The rule that asks for it.")]] = UNSET
    version: Maybe[Annotated[int, Meta(description="The rule's version.")]] = UNSET


class _EntryRequested(_Requested):
    properties: Maybe[Annotated[dict[str, Any], Meta(description="The variables of the run.")]] = UNSET


class _ExitRequested(_Requested):
    reason: Maybe[Annotated[str, Meta(description="Why.")]] = UNSET


_SHOWN = ("action", "arm", "journey", "path", "step", "template")
"""What of their properties is text and not personal."""
EVENT_TYPES = (
    EventType(
        JOURNEY_ENTERED,
        "The person entered a journey and went on to the step at which the run waits.",
        _Entered,
        speaker="process",
        sentence="Entered the journey {journey}",
        shown=_SHOWN,
        lasts="without it a journey would begin again",
    ),
    EventType(
        JOURNEY_MOVED,
        "A run of a journey went on.",
        _Moved,
        speaker="process",
        sentence="Went on in the journey {journey}",
        shown=_SHOWN,
        lasts="where somebody is in a journey is known from it",
    ),
    EventType(
        JOURNEY_EXITED,
        "A run of a journey ended: completed, or left before.",
        _Exited,
        speaker="process",
        sentence="Left the journey {journey}: {reason}",
        shown=_SHOWN,
        lasts="without it a journey would go on",
    ),
    EventType(
        JOURNEY_PAUSED,
        "The person stays where they are, in one journey or in all.",
        _Paused,
        speaker="process",
        sentence="Paused in the journey {journey}",
        shown=("journey",),
        lasts="without it a journey would go on",
    ),
    EventType(
        JOURNEY_RESUMED,
        "The person goes on, in one journey or in all.",
        _Resumed,
        speaker="process",
        sentence="Goes on in the journey {journey}",
        shown=("journey",),
        lasts="without it a journey would stand still",
    ),
    EventType(
        JOURNEY_ENTRY_REQUESTED,
        "A rule or an operator wants the person in a journey.",
        _EntryRequested,
        speaker="process",
        sentence="Is to enter the journey {journey}",
        shown=("journey", "rule"),
    ),
    EventType(
        JOURNEY_EXIT_REQUESTED,
        "A rule or an operator wants the person out of a journey.",
        _ExitRequested,
        speaker="process",
        sentence="Is to leave the journey {journey}",
        shown=("journey", "rule"),
    ),
)
LASTING = Lasting(
    "journeys",
    if_read={
        ("journeys", "sent"): for_life((MAIL_SENT, MAIL_SKIPPED), "a condition asks whether a template was ever sent")
    },
)
