"""What users declare in the section ``feedback``: topics of SNS, when bounces suppress, what is a machine."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import Single, duration, listed, struct, text
from threadline.kernel.time import DAY, SECOND

TOPICS_MAX = 100
_TOPIC = text("the ARN of a topic of SNS", "arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+")
TRANSIENT_MAX = 50
"""The largest limit of transient bounces; a state remembers as many."""


class FeedbackRules(msgspec.Struct, frozen=True, kw_only=True):
    """What Threadline makes of what became of mails."""

    topics: Annotated[
        tuple[str, ...],
        listed(
            _TOPIC,
            most=TOPICS_MAX,
        ),
        Meta(description="The topics of Amazon SNS whose messages are believed. Others are refused."),
    ] = ()
    transient_max: Annotated[
        int,
        Meta(
            ge=1,
            le=TRANSIENT_MAX,
            description="Transient bounces of one address of a person after which it is suppressed.",
        ),
    ] = 5
    transient_within: Annotated[
        int, duration(), Meta(description="How long a transient bounce counts. A delivery in between begins anew.")
    ] = 30 * DAY
    machine_within: Annotated[
        int,
        duration(),
        Meta(description="An open or a click so soon after the mail was handed over is that of a machine."),
    ] = 2 * SECOND


FEEDBACK = Single("feedback", struct(FeedbackRules))


def read_feedback(definitions: Definitions | None) -> FeedbackRules:
    """What is declared; without the section what ships. Problems are noted in the documents."""
    return FeedbackRules() if definitions is None else FEEDBACK.read(definitions, FeedbackRules())
