"""The events of journeys; only Threadline itself and this process are believed about them."""

from __future__ import annotations

from threadline.capabilities.feedback.events import MAIL_BOUNCED, MAIL_COMPLAINED
from threadline.capabilities.mail.events import MAIL_SENT, MAIL_SKIPPED
from threadline.capabilities.segments.events import SEGMENT_ENTERED, SEGMENT_LEFT
from threadline.kernel.event import Event
from threadline.kernel.lasting import Lasting, for_life

JOURNEY_ENTERED = "journey_entered"
"""The person entered a ``journey`` and went on to the ``step`` at which the ``run`` waits; docs/journeys.md lists the
properties of this and the next two."""
JOURNEY_MOVED = "journey_moved"
"""A run went on: the ids of the steps on its ``path``, the ``mails`` of these, and the ``step`` at which it waits."""
JOURNEY_EXITED = "journey_exited"
"""A run ended, for a ``reason``: completed, or why it was left before."""
JOURNEY_PAUSED = "journey_paused"
"""The person stays where they are in a ``journey``, or without one in all of them."""
JOURNEY_RESUMED = "journey_resumed"
"""The person goes on in a ``journey``, or without one in all of them; ``whole``: because the journey does."""
JOURNEY_ENTRY_REQUESTED = "journey_entry_requested"
"""A rule or an operator wants the person in a ``journey``, with ``properties``; a rule beside ``rule`` and
``version``."""
JOURNEY_EXIT_REQUESTED = "journey_exit_requested"
"""A rule or an operator wants the person out of a ``journey``."""

RUN_EVENTS = frozenset({JOURNEY_ENTERED, JOURNEY_MOVED, JOURNEY_EXITED})
REQUESTS = frozenset({JOURNEY_PAUSED, JOURNEY_RESUMED, JOURNEY_ENTRY_REQUESTED, JOURNEY_EXIT_REQUESTED})

SEGMENT_TYPES = frozenset({SEGMENT_ENTERED, SEGMENT_LEFT})

_TRUSTED = RUN_EVENTS | REQUESTS | SEGMENT_TYPES | {MAIL_SENT, MAIL_SKIPPED, MAIL_BOUNCED, MAIL_COMPLAINED}


def is_believed(event: Event) -> bool:
    """Whether an event may count: a public write key must not end a journey by a bounce that never was."""
    return event.source_type != "external" or event.type not in _TRUSTED


LASTING = Lasting(
    "journeys",
    {
        JOURNEY_ENTERED: "without it a journey would begin again",
        JOURNEY_MOVED: "where somebody is in a journey is known from it",
        JOURNEY_EXITED: "without it a journey would go on",
        JOURNEY_PAUSED: "without it a journey would go on",
        JOURNEY_RESUMED: "without it a journey would stand still",
    },
    if_read={
        ("journeys", "sent"): for_life((MAIL_SENT, MAIL_SKIPPED), "a condition asks whether a template was ever sent")
    },
    made=RUN_EVENTS | REQUESTS,
)
