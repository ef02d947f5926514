"""Mails and notifications that come in by other ways than the public webhook."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.reach.feedback.mails import take_mail
from threadline.capabilities.reach.feedback.notifications import take_queued
from threadline.capabilities.reach.feedback.operations import FEEDBACK_GROUP
from threadline.capabilities.reach.feedback.recording import Taken
from threadline.kernel.errors import InvalidValue
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Params, operation

RAW_LENGTH_MAX = 3_500_000
"""Characters of a mail in Base64: a request may have 4 MiB."""
Address = Annotated[str, Meta(max_length=320)]


class FeedbackReceiveParams(Params, kw_only=True):
    """A mail as it came."""

    raw: Annotated[str, Meta(description="The whole mail, headers and body, in Base64.", max_length=RAW_LENGTH_MAX)]
    recipients: Annotated[
        list[Address], Meta(description="The recipients of the envelope, where they are known.", max_length=100)
    ] = []
    sender: Annotated[Address | None, Meta(description="The sender of the envelope; empty for a bounce.")] = None


class FeedbackNotifyParams(Params, kw_only=True):
    """A notification of Amazon SES."""

    text: Annotated[
        str, Meta(description="The JSON of SES, or the message of SNS around it.", max_length=RAW_LENGTH_MAX)
    ]


@key_fields("status", "message")
class TakenView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The outcome of one thing that was sent in."""

    status: Annotated[
        str,
        Meta(
            description="recorded; counted: an open or a click like many before; duplicate; nothing: it says what is "
            "known; unmatched: about no mail of ours, and "
            "kept in the rejected log."
        ),
    ]
    event: str = ""
    message: str = ""


class FeedbackTaken(msgspec.Struct, kw_only=True):
    """The outcome of what was handed in."""

    kind: Annotated[
        str, Meta(description="What a mail was: bounce, delay, delivered, complaint, reply, auto_reply or other.")
    ]
    taken: list[TakenView]


@operation(
    "POST /v1/feedback/mails",
    FEEDBACK_GROUP,
    audited=False,
    scope="write",
    example=FeedbackReceiveParams(raw="RnJvbTogYWRhQGV4YW1wbGUuY29tDQoNCkhpDQo=", recipients=["reply@example.com"]),
)
def receive(context: Context, params: FeedbackReceiveParams) -> FeedbackTaken:
    """Hand in a mail that came back: a bounce, a complaint or a reply."""
    try:
        raw = b64decode("".join(params.raw.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValue("raw: not Base64", param="raw") from None
    mail = take_mail(context.engine, context.workspace, raw, params.recipients, params.sender)
    return FeedbackTaken(kind=mail.kind, taken=[_view(item) for item in mail.taken])


@operation(
    "POST /v1/feedback/notifications",
    FEEDBACK_GROUP,
    audited=False,
    scope="write",
    example=FeedbackNotifyParams(text='{"eventType": "Subscription", "mail": {}}'),
)
def notify(context: Context, params: FeedbackNotifyParams) -> FeedbackTaken:
    """Hand in a notification of Amazon SES."""
    taken = take_queued(context.engine, context.workspace, params.text)
    return FeedbackTaken(kind="notification", taken=[_view(item) for item in taken])


def _view(taken: Taken) -> TakenView:
    return TakenView(status=taken.status, event=taken.event, message=taken.message)
