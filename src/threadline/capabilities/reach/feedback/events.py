"""The event types of feedback. A write key must not forge a bounce, so none of them counts over a wire.

Their time is that of the provider.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from threadline.kernel.event_type import EventType, Maybe, Properties

MAIL_SENT = "mail_sent"
MAIL_SKIPPED = "mail_skipped"
MAIL_DELIVERED = "mail_delivered"
MAIL_DELAYED = "mail_delayed"
MAIL_FETCHED = "mail_fetched"
MAIL_SCANNED = "mail_scanned"
MAIL_OPENED = "mail_opened"
MAIL_CLICKED = "mail_clicked"
MAIL_BOUNCED = "mail_bounced"
MAIL_COMPLAINED = "mail_complained"
MAIL_REPLIED = "mail_replied"

ENGAGEMENT = frozenset(
    {MAIL_DELIVERED, MAIL_DELAYED, MAIL_OPENED, MAIL_CLICKED, MAIL_BOUNCED, MAIL_COMPLAINED, MAIL_REPLIED}
)
"""What a mail led to."""
COUNTED = ENGAGEMENT | {MAIL_SENT, MAIL_SKIPPED}
"""What is counted under its own name."""
FETCHES = frozenset({MAIL_FETCHED, MAIL_SCANNED})
"""Requests of mail programs, browsers and machines, of which opens and clicks are made."""
ABOUT = ("template", "topic", "journey", "broadcast", "step", "arm", "address", "test")
"""What every one of them says about the mail, where the mail has it."""


SOURCE = "threadline.feedback"
"""The source of what comes in; keys are those of the feedback."""


class _AboutMail(Properties):
    message: Annotated[str, Meta(description="The id of the effect that was the mail.")]
    address: Maybe[Annotated[str, Meta(description="The address that it went to.")]] = UNSET
    template: Maybe[Annotated[str, Meta(description="Its template.")]] = UNSET
    topic: Maybe[Annotated[str, Meta(description="Its topic.")]] = UNSET
    journey: Maybe[Annotated[str, Meta(description="The journey that sent it.")]] = UNSET
    broadcast: Maybe[Annotated[str, Meta(description="The broadcast that it belongs to.")]] = UNSET
    step: Maybe[Annotated[str, Meta(description="The step of the journey.")]] = UNSET
    arm: Maybe[Annotated[str, Meta(description="The variant.")]] = UNSET
    test: Maybe[Annotated[bool, Meta(description="Whether it is a test, which no count has.")]] = UNSET


class _Outgoing(_AboutMail):
    rule: Maybe[Annotated[Any, Meta(description="The rule that sent it.")]] = UNSET
    occurrence: Maybe[Annotated[str, Meta(description="Nobody gets two mails for one.")]] = UNSET
    transactional: Maybe[Annotated[bool, Meta(description="Whether it is one that is always sent.")]] = UNSET
    effect: Maybe[Annotated[str, Meta(description="The effect.")]] = UNSET
    kind: Maybe[Annotated[str, Meta(description="The kind of the effect.")]] = UNSET
    policy: Maybe[Annotated[str, Meta(description="The policy that asked for it.")]] = UNSET
    cause: Maybe[Annotated[str, Meta(description="The event that it follows from.")]] = UNSET


class _Sent(_Outgoing):
    subject: Maybe[Annotated[str, Meta(description="Its subject.")]] = UNSET
    sender: Maybe[Annotated[str, Meta(description="Its sender, as declared.")]] = UNSET
    domain: Maybe[Annotated[str, Meta(description="The domain of its message id.")]] = UNSET
    version: Maybe[Annotated[str, Meta(description="The hash of the template.")]] = UNSET
    language: Maybe[Annotated[str, Meta(description="The language, of a template that has several.")]] = UNSET
    variables: Maybe[Annotated[dict[str, Any], Meta(description="What it was filled in with.")]] = UNSET
    event: Maybe[Annotated[str, Meta(description="The event that the template saw.")]] = UNSET
    warm_up: Maybe[Annotated[bool, Meta(description="Whether it counts for the warm-up of its sender.")]] = UNSET
    provider: Maybe[Annotated[str, Meta(description="The provider.")]] = UNSET
    provider_id: Maybe[Annotated[str, Meta(description="The provider's own id.")]] = UNSET
    by: Maybe[Annotated[str, Meta(description="Who settled it, where its outcome was unknown.")]] = UNSET


class _Skipped(_Outgoing, kw_only=True):
    reason: Annotated[str, Meta(description="Why, such as `unsubscribed` or `frequency_cap`.")]


class _Reported(_AboutMail):
    code: Maybe[Annotated[str, Meta(description="The enhanced status code.")]] = UNSET
    text: Maybe[Annotated[str, Meta(description="What the server said, or the visible part of an answer.")]] = UNSET


class _Bounced(_Reported, kw_only=True):
    bounce: Annotated[
        str,
        Meta(
            description="`permanent` (because of the address), `transient` (of what may pass, such as a full mailbox) "
            "or `content` (of what was sent, which says nothing about the address)."
        ),
    ]


class _Seen(_AboutMail):
    machine: Maybe[Annotated[bool, Meta(description="Whether a machine did it.")]] = UNSET
    why: Maybe[Annotated[str, Meta(description="By what that is known.")]] = UNSET
    agent: Maybe[Annotated[str, Meta(description="The user agent.")]] = UNSET
    link: Maybe[Annotated[str, Meta(description="The link, of a click.")]] = UNSET
    of: Maybe[Annotated[str, Meta(description="The id of the fetch that it is decided of.")]] = UNSET


class _Fetched(_Seen):
    fetch: Maybe[Annotated[str, Meta(description="What was asked for: `opened`, the picture, or `clicked`.")]] = UNSET
    count: Maybe[Annotated[int, Meta(description="So many more like one before; they lead to nothing.")]] = UNSET


class _Complained(_AboutMail):
    feedback: Maybe[Annotated[str, Meta(description="The type of complaint (RFC 5965), such as `abuse`.")]] = UNSET


class _Replied(_Reported):
    subject: Maybe[Annotated[str, Meta(description="The subject of the answer.")]] = UNSET
    sender: Maybe[Annotated[str, Meta(description="Who wrote it.")]] = UNSET


_BELONGS = ("arm", "broadcast", "journey", "message", "provider", "provider_id", "sender", "step", "template", "topic")
"""What of the properties of each is text and not personal."""
_LED_TO = (*_BELONGS, "bounce", "code", "feedback", "why")
_FETCH = (*_BELONGS, "fetch", "why")
EVENT_TYPES = (
    EventType(
        MAIL_SENT,
        "A provider has accepted a mail.",
        _Sent,
        speaker="process",
        sentence="Mail “{template}” was sent",
        shown=(*_BELONGS, "kind", "policy", "version"),
    ),
    EventType(
        MAIL_SKIPPED,
        "A mail that a policy asked for was not sent.",
        _Skipped,
        speaker="process",
        sentence="Mail “{template}” was not sent: {reason}",
        shown=(*_BELONGS, "kind", "policy", "reason"),
    ),
    EventType(
        MAIL_DELIVERED,
        "The recipient's server has accepted a mail.",
        _Reported,
        speaker="process",
        sentence="Mail “{template}” was delivered",
        shown=_LED_TO,
    ),
    EventType(
        MAIL_DELAYED,
        "A server goes on trying to deliver a mail.",
        _Reported,
        speaker="process",
        sentence="Mail “{template}” is delayed",
        shown=_LED_TO,
    ),
    EventType(
        MAIL_FETCHED,
        "A link of a mail was asked for; whether a person did is decided ten seconds later.",
        _Fetched,
        speaker="process",
        sentence="A picture or link of the mail “{template}” was asked for",
        shown=_FETCH,
    ),
    EventType(
        MAIL_SCANNED,
        "A machine has followed a link of a mail, or repeated what it asked for.",
        _Fetched,
        speaker="process",
        sentence="A machine looked through the mail “{template}”",
        shown=_FETCH,
    ),
    EventType(
        MAIL_OPENED,
        "The picture of a mail was loaded: a person looked at it, or with `machine` true a machine did.",
        _Seen,
        speaker="process",
        is_activity=True,
        sentence="Opened the mail “{template}”",
        of_machine=MAIL_SCANNED,
        shown=_LED_TO,
    ),
    EventType(
        MAIL_CLICKED,
        "A person has followed a link of a mail.",
        _Seen,
        speaker="process",
        is_activity=True,
        sentence="Clicked a link in the mail “{template}”",
        shown=_LED_TO,
    ),
    EventType(
        MAIL_BOUNCED,
        "A mail was not delivered.",
        _Bounced,
        speaker="process",
        sentence="Mail “{template}” bounced",
        shown=_LED_TO,
        lasts="without it mail would be sent again",
    ),
    EventType(
        MAIL_COMPLAINED,
        "The recipient has marked a mail as spam.",
        _Complained,
        speaker="process",
        is_activity=True,
        sentence="Marked the mail “{template}” as spam",
        shown=_LED_TO,
        lasts="without it mail would be sent again",
    ),
    EventType(
        MAIL_REPLIED,
        "The recipient has answered a mail.",
        _Replied,
        speaker="process",
        is_activity=True,
        sentence="Answered the mail “{template}”",
        shown=_LED_TO,
    ),
)
