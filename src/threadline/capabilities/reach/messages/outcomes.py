"""What became of a message: the events of its attempts, and the one that says that it was sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from threadline.kernel.event import Recorded, event_id
from threadline.kernel.ports import EventLog, Ports
from threadline.kernel.sender import EFFECT_UNKNOWN

DISPATCH = "threadline.dispatch"
"""The source of outcomes; their keys are the id of the effect and the number of the attempt."""
ATTEMPTS_MAX = 200
"""Outcomes of one effect that are looked at."""


def outcomes_of(log: EventLog, workspace: str, message: str) -> Iterator[Recorded]:
    """What became of the attempts to send a message, in their order."""
    for number in range(ATTEMPTS_MAX):
        recorded = log.of_key(workspace, DISPATCH, f"{message}/{number}")
        if recorded is None:
            return
        yield recorded


def last_outcomes(
    log: EventLog, workspace: str, messages: Iterable[str], until: int, final: Collection[str]
) -> dict[str, Recorded]:
    """By message, what became of the last attempt to send it up to an instant; messages without any are left out.
    After an outcome of a ``final`` type there is no further attempt.

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
        left = [message for message, recorded in outcomes.items() if recorded.event.type not in final]
    return last


def sent_event(ports: Ports, workspace: str, message: str, sent: Collection[str], by: str) -> Recorded | None:
    """The outcome of one of the types ``sent``; None if there is none yet.

    Whoever asks has heard of the message from outside: one of which nobody knew whether it was sent was. This settles
    its effect, in the name of ``by``.
    """
    last, number = None, 0
    for last in outcomes_of(ports.log, workspace, message):
        if last.event.type in sent:
            return last
        number += 1
    if last is None or last.event.type != EFFECT_UNKNOWN:
        return None
    ports.delivery.resolve(workspace, message, None, by=by)
    settled = ports.log.of_key(workspace, DISPATCH, f"{message}/{number}")
    return settled if settled is not None and settled.event.type in sent else None
