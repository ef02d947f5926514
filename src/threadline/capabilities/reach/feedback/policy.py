"""Policies: bounces and complaints suppress an address in the same commit; a click is decided ten seconds later."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from threadline.capabilities.reach.consent.events import ADDRESS_SUPPRESSED
from threadline.capabilities.reach.feedback.definition import FeedbackRules
from threadline.capabilities.reach.feedback.events import (
    MAIL_BOUNCED,
    MAIL_CLICKED,
    MAIL_COMPLAINED,
    MAIL_FETCHED,
    MAIL_OPENED,
    MAIL_SCANNED,
)
from threadline.capabilities.reach.feedback.fetches import DECIDED_AFTER, MAIL_FETCHES, by_machine, fetch_of
from threadline.capabilities.reach.feedback.projection import FEEDBACK_PROJECTION, address_of, transient_bounces
from threadline.kernel.event import Recorded
from threadline.kernel.policy import TIMER_FIRED, Emit, Policy, PolicyView, Read, Timer, TimerSentence, Wish


def feedback_policy(rules: FeedbackRules) -> Policy:
    """Suppress after a complaint, a permanent bounce, or as many transient ones as are declared."""

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        event = recorded.event
        address = address_of(recorded)
        if not address:
            return ()
        reason, note = "complaint", str(event.properties.get("feedback", ""))[:100]
        if event.type == MAIL_BOUNCED:
            reason, note = "bounce", _bounced(recorded, known, rules, address)
            if not note:
                return ()
        properties = {"address": address, "reason": reason, "by": "feedback", "note": note}
        return (Emit(type=ADDRESS_SUPPRESSED, key=address, occurred_at=event.occurred_at, properties=properties),)

    return Policy(
        name="feedback",
        handles=frozenset({MAIL_BOUNCED, MAIL_COMPLAINED}),
        react=react,
        emits=frozenset({ADDRESS_SUPPRESSED}),
        sends=frozenset(),
        reads=(Read(FEEDBACK_PROJECTION.name),),
    )


def _bounced(recorded: Recorded, known: PolicyView, rules: FeedbackRules, address: str) -> str:
    """Why the address is suppressed; empty: it is not."""
    event = recorded.event
    bounce = event.properties.get("bounce")
    if bounce == "permanent":
        code, text = event.properties.get("code", ""), event.properties.get("text", "")
        return f"{code} {text}".strip()[:300] or "permanent"
    if bounce != "transient":
        return ""
    since = event.occurred_at - rules.transient_within
    count = transient_bounces(known.get(FEEDBACK_PROJECTION.name, {}), address, since)
    return f"{count} transient bounces" if count >= rules.transient_max else ""


def _decide(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    event = recorded.event
    if event.type == MAIL_FETCHED:
        if "count" in event.properties:
            return ()
        data = {"id": recorded.id, "at": event.occurred_at, "properties": event.properties}
        return (Timer(key=recorded.id, due_at=recorded.recorded_at + DECIDED_AFTER, data=data),)
    id, at, properties = (event.properties["data"][name] for name in ("id", "at", "properties"))
    fetch = fetch_of(replace(event, properties=properties))
    why = by_machine(known.get(MAIL_FETCHES.name, []), fetch, at)
    if why:
        decided = {**properties, "machine": True, "why": why, "of": id}
        return (Emit(type=MAIL_SCANNED, key=id, occurred_at=at, properties=decided),)
    decided = {name: value for name, value in properties.items() if name != "fetch"} | {"machine": False, "of": id}
    return (Emit(type=MAIL_CLICKED if fetch.link else MAIL_OPENED, key=id, occurred_at=at, properties=decided),)


FETCHES_POLICY = Policy(
    name="mail_fetches",
    handles=frozenset({MAIL_FETCHED, TIMER_FIRED}),
    react=_decide,
    timers=(TimerSentence("Decides whether a person or a machine looked at a mail"),),
    emits=frozenset({MAIL_OPENED, MAIL_CLICKED, MAIL_SCANNED}),
    sends=frozenset(),
    reads=(Read(MAIL_FETCHES.name),),
)
