"""Mails that were asked for: those with an outcome, from the person's events, and those that wait in the outbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from threadline.capabilities.ask.unsent.answer import Unsent, unsent
from threadline.capabilities.ask.unsent.asked import LOOKED_AT_MAX, Subject, Wanted, about
from threadline.capabilities.ask.unsent.reasons import LEFT, SENT, WAITING
from threadline.capabilities.reach.journeys.projection import COMPLETED, runs_of
from threadline.capabilities.reach.journeys.reacting import LEFT_EARLY
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.capabilities.reach.mail.definition import KIND, QUEUE
from threadline.capabilities.reach.mail.events import MAIL_SENT, MAIL_SKIPPED
from threadline.capabilities.reach.mail.order import mail_effect
from threadline.capabilities.reach.mail.policy import NAME as MAIL
from threadline.capabilities.reach.messages.preparation import TEMPLATE_FAILED
from threadline.kernel.event import Recorded
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.outbox import Foreseen, PendingEffect
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_RETRIED, EFFECT_UNKNOWN, EFFECT_WITHDRAWN
from threadline.kernel.store import Item, Key
from threadline.kernel.time import time_key

_OUTCOMES = frozenset({MAIL_SENT, MAIL_SKIPPED, EFFECT_PARKED, EFFECT_UNKNOWN, EFFECT_WITHDRAWN})
_REFUSED = frozenset({MAIL_SKIPPED, EFFECT_PARKED, EFFECT_WITHDRAWN})
_NOBODY = "0" * 32
"""Stands for the id of a mail that nobody has asked for."""
_WAITING_MAX = 100
"""Mails of one person in the outbox that are looked at."""


class Asked(NamedTuple):
    """A mail that was asked for."""

    unsent: Unsent
    occurrence: str
    """Of which occurrence it is; empty where its effect is its only one."""


def asked_for(subject: Subject, wanted: Wanted) -> list[Asked]:
    """The mails that were asked for, those that wait before those with an outcome."""
    waiting = {mail.unsent.message: mail for mail in _waiting(subject, wanted)}
    settled = [mail for mail in _settled(subject, wanted) if mail.unsent.message not in waiting]
    return [*waiting.values(), *settled]


# --- with an outcome ------------------------------------------------------------------------------


def _settled(subject: Subject, wanted: Wanted) -> Iterator[Asked]:
    newest = subject.engine.reader.all_events(
        subject.person, types=_OUTCOMES, stop=subject.now + 1, reverse=True, counting=True
    )
    seen: set[str] = set()
    outcomes: list[tuple[Recorded, Any, str]] = []
    for _, recorded in zip(range(LOOKED_AT_MAX), newest, strict=False):
        properties = recorded.event.properties
        message = str(properties.get("message") or properties.get("effect") or "")
        data = properties.get("data") if recorded.event.type == EFFECT_WITHDRAWN else properties
        if message in seen or properties.get("kind", KIND) != KIND:
            continue
        seen.add(message)
        outcomes.append((recorded, data, message))
    # An event of a mail that a sender gave up on says which effect it was, and nothing more.
    unnamed = {message for _, data, message in outcomes if not about(data).template}
    given_up = _dead_letters(subject, unnamed)
    for recorded, data, message in outcomes:
        named = given_up.get(message, data)
        if wanted.has(about(named)):
            occurrence = str((named if isinstance(named, dict) else {}).get("occurrence") or "")
            yield Asked(_outcome(subject, recorded, named, message), occurrence)


def _dead_letters(subject: Subject, messages: set[str]) -> dict[str, Any]:
    """By id what mails that were given up on were asked for with, of those that are dead letters still."""
    letters: dict[str, Any] = {}
    cursor = ""
    while len(letters) < len(messages):
        page = subject.engine.delivery.dead_letters(subject.context.workspace, QUEUE, cursor, PAGE_ITEMS_MAX)
        letters |= {letter.pending.id: letter.pending.effect.data for letter in page if letter.pending.id in messages}
        if len(page) < PAGE_ITEMS_MAX:
            break
        cursor = page[-1].cursor
    return letters


def _outcome(subject: Subject, recorded: Recorded, data: Any, message: str) -> Unsent:
    reason, detail = _settled_reason(subject, recorded, data)
    at = recorded.event.occurred_at
    return unsent(about(data), reason, at=at, detail=detail, message=message, event=recorded.id)


def _settled_reason(subject: Subject, recorded: Recorded, data: Any) -> tuple[str, str]:
    """The reason of an outcome, and what others have written of it."""
    type, properties = recorded.event.type, recorded.event.properties
    if type == MAIL_SENT:
        return SENT, ""
    if type == MAIL_SKIPPED:
        return str(properties.get("reason")), ""
    if type == EFFECT_UNKNOWN:
        return "unknown", ""
    if type == EFFECT_WITHDRAWN:
        return withdrawn_reason(subject, data)
    if properties.get("reason") == TEMPLATE_FAILED:
        return TEMPLATE_FAILED, str(properties.get("details") or "")
    return "given_up", str(properties.get("why") or "")


def withdrawn_reason(subject: Subject, data: Any) -> tuple[str, str]:
    """Why a mail that was asked for was withdrawn: the run of its journey ended, or its broadcast was cancelled."""
    given = data if isinstance(data, dict) else {}
    if given.get("broadcast"):
        return "broadcast_cancelled", ""
    journey, id = given.get("journey"), given.get("run")
    if isinstance(journey, str) and subject.engine.catalogue.has(JOURNEYS):
        state = subject.engine.reader.state(subject.person, JOURNEYS, subject.now)
        ended = next((run.reason for run in runs_of(state, journey) if run.id == id), "")
        return left_reason(ended)
    return "withdrawn", ""


def left_reason(reason: str) -> tuple[str, str]:
    """Why a run ended, as answers have it: one of our reasons, or what somebody wrote who asked for it."""
    if reason == COMPLETED:
        return "other_path", ""
    return (f"{LEFT}:{reason}", "") if reason in LEFT_EARLY else (LEFT, reason)


# --- in the outbox --------------------------------------------------------------------------------


def _waiting(subject: Subject, wanted: Wanted) -> Iterator[Asked]:
    delivery = subject.engine.delivery
    mails = [
        pending
        for pending in delivery.waiting(subject.person.heads)
        if pending.effect.kind == KIND and wanted.has(about(pending.effect.data))
    ][:_WAITING_MAX]
    foreseen = delivery.foresee(mails) if mails else {}
    for pending in mails:
        yield Asked(
            _in_outbox(subject, pending, foreseen.get(pending.id, Foreseen())),
            str(pending.effect.data.get("occurrence") or ""),
        )


def asked_for_now(subject: Subject, template: str, variables: Mapping[str, Any]) -> Unsent | None:
    """What would become of a mail of a template if it was asked for now; None: it would be sent."""
    key = Key("outbox", "", f"{time_key(subject.now)}.{_NOBODY}")
    effect = mail_effect("", template, variables, "")
    workspace, thread = subject.context.workspace, subject.person.id
    pending = PendingEffect(Item(key, 0, b""), workspace, thread, MAIL, "", 0, effect, subject.now)
    foreseen = subject.engine.delivery.foresee([pending]).get(pending.id, Foreseen())
    if foreseen == Foreseen():
        return None
    reason, detail, until = _foreseen_reason(subject, pending, foreseen)
    return unsent(about(effect.data), reason, until=until, is_waiting=bool(until), detail=detail)


def _in_outbox(subject: Subject, pending: PendingEffect, foreseen: Foreseen) -> Unsent:
    due = pending.due_at if pending.due_at > subject.now else 0
    is_refused = foreseen.outcome in _REFUSED
    if foreseen != Foreseen():
        reason, detail, until = _foreseen_reason(subject, pending, foreseen)
        until = max(until, due)
    elif rests := _rests(subject):
        reason, detail, until = "queue_stopped", *rests
    else:
        reason, detail, until = "retrying" if pending.attempts else WAITING, "", due
    return unsent(
        about(pending.effect.data),
        reason,
        until=until,
        is_waiting=True,
        is_refused=is_refused,
        detail=detail,
        message=pending.id,
    )


def _foreseen_reason(subject: Subject, pending: PendingEffect, foreseen: Foreseen) -> tuple[str, str, int]:
    """The reason of what would become of a mail now, what others have written of it, and until when it would wait."""
    if foreseen.outcome == EFFECT_WITHDRAWN:
        return *withdrawn_reason(subject, pending.effect.data), 0
    if foreseen.outcome == EFFECT_PARKED:
        return TEMPLATE_FAILED, foreseen.why, 0
    if foreseen.outcome == EFFECT_RETRIED:
        return "retrying", foreseen.why, 0
    return foreseen.why, "", foreseen.until


def _rests(subject: Subject) -> tuple[str, int] | None:
    """Why the queue of mails is stopped, and until when the next is tried; None: it is not."""
    state = next((state for state in subject.engine.delivery.queues() if state.queue.name == QUEUE), None)
    if state is None:
        return None
    circuit = state.circuit
    if circuit.stopped_at:
        return circuit.why, 0
    return (circuit.why, circuit.rest_until) if circuit.rests_at(subject.now) else None
