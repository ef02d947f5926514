"""Finds the mail that feedback is about: the event of its effect, in the thread of the person who got it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from threadline.capabilities.reach.feedback.events import MAIL_BOUNCED, MAIL_SENT, MAIL_SKIPPED
from threadline.capabilities.reach.feedback.links import message_in
from threadline.capabilities.reach.feedback.rows import message_of
from threadline.kernel.event import Recorded, event_id
from threadline.kernel.ports import EventLog, Ports
from threadline.kernel.sender import EFFECT_UNKNOWN

DISPATCH = "threadline.dispatch"
"""The source of outcomes; their keys are the id of the effect and the number of the attempt."""
ATTEMPTS_MAX = 200
"""Outcomes of one effect that are looked at."""
_SENT = frozenset({MAIL_SENT, MAIL_BOUNCED})
_FINAL = frozenset({MAIL_SENT, MAIL_SKIPPED})


def find_mail(ports: Ports, workspace: str, names: Iterable[str], provider_id: str = "") -> Recorded | None:
    """The outcome of the mail that one of these names means; None if there is none.

    ``names`` are addresses with a token and Message-IDs. Feedback about a mail of which nobody knew whether it was sent
    says that it was: this settles its effect.
    """
    messages = dict.fromkeys(message for name in names if (message := message_in(name)))
    for message in messages:
        if (outcome := _outcome(ports, workspace, message)) is not None:
            return outcome
    message = message_of(ports.store, workspace, provider_id) if provider_id else ""
    return _outcome(ports, workspace, message) if message else None


def outcomes_of(log: EventLog, workspace: str, message: str) -> Iterator[Recorded]:
    """What became of the attempts to send a mail, in their order."""
    for number in range(ATTEMPTS_MAX):
        recorded = log.of_key(workspace, DISPATCH, f"{message}/{number}")
        if recorded is None:
            return
        yield recorded


def last_outcomes(log: EventLog, workspace: str, messages: Iterable[str], until: int) -> dict[str, Recorded]:
    """By mail, what became of the last attempt to send it up to an instant; mails without any are left out.

    One reading of the log for all first attempts, and one for each further attempt that some of them needed.
    """
    last: dict[str, Recorded] = {}
    left = list(messages)
    for number in range(ATTEMPTS_MAX):
        ids = {event_id(workspace, DISPATCH, f"{message}/{number}"): message for message in left}
        known = log.events(workspace, list(ids)) if ids else {}
        outcomes = {ids[id]: recorded for id, recorded in known.items() if recorded.event.occurred_at <= until}
        if not outcomes:
            break
        last |= outcomes
        left = [message for message, recorded in outcomes.items() if recorded.event.type not in _FINAL]
    return last


def _outcome(ports: Ports, workspace: str, message: str) -> Recorded | None:
    last, number = None, 0
    for last in outcomes_of(ports.log, workspace, message):
        if last.event.type in _SENT:
            return last
        number += 1
    if last is None or last.event.type != EFFECT_UNKNOWN:
        return None
    ports.delivery.resolve(workspace, message, None, by="feedback")
    settled = ports.log.of_key(workspace, DISPATCH, f"{message}/{number}")
    return settled if settled is not None and settled.event.type in _SENT else None
