"""What a journey is made of, read from the section ``journeys``."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions.fields import viewed
from threadline.capabilities.foundation.definitions import Part
from threadline.capabilities.foundation.definitions.declaring import (
    NAME_FORM,
    Form,
    Given,
    Named,
    NotWritten,
    Problems,
    duration,
    listed,
    name_of,
    one_or_many,
    parsed,
    struct,
    text,
)
from threadline.capabilities.reach.journeys.actions import JOURNEY, Action
from threadline.capabilities.reach.journeys.steps import (
    DURATION_FORM,
    DURATION_MAX,
    FIELD_FORM,
    JOURNEYS,
    SEND_FORM,
    STEPS_FORM,
    On,
    Send,
    Step,
    Trigger,
    placeholders_in,
    steps_of,
)
from threadline.capabilities.reach.messages.limits import QuietHours
from threadline.kernel.calendar import canonical_zone
from threadline.kernel.canonical import canonical_json, read_canonical
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import JOURNEYS_MAX
from threadline.kernel.policy import Read
from threadline.kernel.time import DAY, YEAR, format_duration

ONCE, ALWAYS = -1, 0
AT_ONCE_MAX = 20
VERSION_MAX = 99_999_999


def _reentry(part: Part) -> int:
    written = part.value
    return {"once": ONCE, "always": ALWAYS}[written] if written in ("once", "always") else _COOLDOWN.make(part)


def _share(part: Part) -> float:
    if not 0 <= part.value < 1:
        raise InvalidValue("must be a share from 0 to less than 1, such as 0.1")
    return float(part.value)


_SHARE = Form((int, float), "a share from 0 to 1", _share, {"type": "number", "minimum": 0, "exclusiveMaximum": 1})
_COOLDOWN = duration(most=DURATION_MAX)
_REENTRY: Form[int] = Form(
    (str,),
    "once, always, or a duration such as 90d",
    _reentry,
    {"anyOf": [{"enum": ["once", "always"]}, _COOLDOWN.schema]},
    shown=lambda size: {ONCE: "once", ALWAYS: "always"}.get(size) or format_duration(size),
)
_ZONE = parsed(canonical_zone, "a zone of the IANA database, such as Europe/Rome", examples=["Europe/Rome"])


class EventMail(On, frozen=True, kw_only=True, dict=True):
    """A single mail on an event while the person is in the journey."""

    id: Annotated[str, NAME_FORM] = ""
    send: Annotated[Send, SEND_FORM]


class Journey(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Steps that a person goes through after an event, once at a time."""

    name: Given
    steps: Annotated[tuple[Step, ...], STEPS_FORM]
    version: Annotated[int, Meta(ge=1, le=VERSION_MAX, description="Raise it with every change.")] = 1
    description: Annotated[str, text(least=0, most=2_000)] = ""
    trigger: Annotated[
        tuple[Trigger, ...],
        one_or_many(struct(Trigger), most=20),
        Meta(description="What lets people enter; without it rules and operators do."),
    ] = ()
    events: Annotated[tuple[EventMail, ...], listed(struct(EventMail), most=50)] = ()
    exit_on: Annotated[tuple[On, ...], one_or_many(struct(On), most=20), Meta(description="What ends it.")] = ()
    key: Annotated[
        tuple[str, ...] | None,
        FIELD_FORM,
        Meta(
            title="A run for each",
            description="The field of the trigger by which runs are told apart, such as event.properties.cart_id: a "
            "person has one run for each value. Without it one at a time.",
        ),
    ] = None
    at_once: Annotated[
        int, Meta(ge=1, le=AT_ONCE_MAX, description="Runs that one person may have at a time; goes with `key`.")
    ] = 10
    reentry: Annotated[int, _REENTRY, Meta(description="A duration counts from when it was left.")] = ONCE
    existing: Annotated[
        bool,
        Meta(
            title="Those noticed only now enter too",
            description="Whether those enter, too, who did what it waits for before, and are only noticed now.",
        ),
    ] = False
    late: Annotated[
        int,
        duration(most=YEAR),
        Meta(title="Oldest event that lets in", description="How old an event may be to let somebody enter."),
    ] = DAY
    timeout: Annotated[int | None, DURATION_FORM, Meta(description="When it ends in any case.")] = None
    transactional: Annotated[bool, Meta(description="Not marketing: nobody can unsubscribe from it.")] = False
    topic: Annotated[str, name_of("topic")] = ""
    sender: Annotated[str, name_of("sender")] = ""
    reply_to: Annotated[str, text(most=320)] = ""
    quiet_hours: Annotated[QuietHours | None, struct(QuietHours)] = None
    holdout: Annotated[
        float, _SHARE, Meta(description="The share of people who go through it without any mail, to compare with.")
    ] = 0.0
    on_change: Annotated[
        Literal["keep", "move"], Meta(description="Whether people in it keep their version or go on in this one.")
    ] = "keep"
    on_bounce: Annotated[Literal["exit", "continue"], Meta(description="After a permanent bounce.")] = "exit"
    on_complaint: Literal["exit", "continue"] = "exit"
    timezone: Annotated[
        str, _ZONE, Meta(description="Of people without the trait `timezone`, if not that of the section `timezone`.")
    ] = ""
    place: Given = ""
    content: NotWritten[bytes] = b""
    """What its author wrote, version and description apart: it never changes under one version."""

    def problems(self, written: Collection[str]) -> Problems:
        """What the whole cannot be."""
        if self.transactional and self.topic:
            yield "topic", "a transactional journey has no `topic`: nobody can unsubscribe from it"
        if self.key is None:
            if "at_once" in written:
                yield "at_once", "`at_once` goes with `key`: without one a person has one run at a time"
            if any("key" in placeholders_in(part) for on in self.ons for part in on.where.parts):
                yield "", "a `where` compares with ${journey.key}, and the journey has no `key`"

    @property
    def ons(self) -> Iterator[On]:
        """Everything in it that waits for events."""
        yield from (*self.trigger, *self.events, *self.exit_on)
        yield from (step.wait for step in steps_of(self.steps) if step.wait is not None and step.wait.is_for_event)

    @property
    def sends(self) -> Iterator[Send]:
        """Every mail in it."""
        yield from (step.send for step in steps_of(self.steps) if step.send is not None)
        yield from (mail.send for mail in self.events)

    @property
    def actions(self) -> Iterator[Action]:
        """Everything else that its steps do."""
        yield from (step.action for step in steps_of(self.steps) if step.action is not None)

    @cached_property
    def types(self) -> frozenset[str]:
        """The types of the events that it looks at."""
        return frozenset(type for on in self.ons for type in on.types)

    @cached_property
    def follows_zone(self) -> bool:
        """Whether the recipient's zone decides when somebody goes on."""
        return self.quiet_hours is not None or any(
            step.wait is not None and step.wait.until is not None for step in steps_of(self.steps)
        )

    @property
    def reads(self) -> tuple[Read, ...]:
        """The parts of views that it goes by."""
        trees = [on.conditions for on in self.ons]
        for step in steps_of(self.steps):
            trees += [step.condition, *(branch.conditions for branch in step.choice)]
        reads = [read for tree in trees if tree is not None for read in tree.reads]
        reads += [viewed(path) for on in self.trigger for path in on.variables.values()]
        reads += [] if self.key is None else [viewed(self.key)]
        reads += [viewed(path) for action in self.actions for path in action.holes]
        place = f"{self.place}: journey {self.name!r}"
        return tuple(Read(*read, place) for read in dict.fromkeys(reads) if read[0] not in ("", JOURNEY))


_FORM = struct(Journey)


def _journey(part: Part) -> Journey:
    written = {name: value for name, value in part.value.items() if name not in ("version", "description")}
    return msgspec.structs.replace(_FORM.make(part), content=canonical_json(written))


DECLARED = Named(
    JOURNEYS,
    "journey",
    replace(_FORM, make=_journey),
    "Journeys by name: mails in steps.",
    "welcome",
    most=JOURNEYS_MAX,
)
SECTION = DECLARED.declared
KIND = replace(DECLARED.kind, stored=lambda engine, workspace: engine.definition_history.names(JOURNEYS))
"""Who asks what became of people may name one that is declared no more."""


def journey_of_content(name: str, version: int, content: bytes) -> Journey:
    """The journey of a content that was declared at some time. Raises `InvalidDefinition`."""
    return DECLARED.read_json(name, {**read_canonical(content), "version": version}, "content")
