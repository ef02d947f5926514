"""Policies: double opt-in is asked about by mail, once a day; who leaves a topic that does not exist leaves all."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.capabilities.reach.consent.definition import Consent
from threadline.capabilities.reach.consent.events import SUBSCRIBED, UNSUBSCRIBED, statement_of
from threadline.capabilities.reach.consent.rows import Statements
from threadline.capabilities.reach.consent.standing import statements_of_person, status_of
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Effect, Emit, Policy, PolicyView, Read, Wish
from threadline.kernel.time import DAY

MAIL = "mail"
"""The kind of effect and the queue of mails."""


def confirmation_policy(consent: Consent) -> Policy:
    """The policy. Its mail is transactional: the person has just asked for it, and has not agreed to others."""

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        statement = statement_of(recorded.event)
        topic = consent.topics.get(statement.topic) if statement is not None else None
        if (
            statement is None
            or topic is None
            or not topic.confirm
            or statement.kind == "confirmed"
            or not recorded.event.is_news
        ):
            return ()
        shown = known.view("consent")
        standing = shown["topics"][topic.name]["status"]
        if statement.address:
            statements = statements_of_person(shown, topic.name, statement.address, Statements())
            standing = status_of(topic, statements)
        if standing != "unconfirmed":
            return ()
        data = {
            "template": topic.confirm,
            "topic": topic.name,
            "transactional": True,
            "confirm": True,
            "variables": {"topic_title": topic.shown},
            # Whoever types a stranger's address into a form again and again has one mail sent.
            "occurrence": f"confirm/{topic.name}/{recorded.recorded_at // DAY}",
            **({"address": statement.address} if statement.address and statement.is_own else {}),
        }
        return (Effect(kind=MAIL, queue=MAIL, key="confirm", data=data),)

    return Policy(
        name="consent",
        handles=frozenset({SUBSCRIBED}),
        react=react,
        emits=frozenset(),
        sends=frozenset({MAIL}),
        reads=(Read("consent"),),
    )


def leaving_policy(consent: Consent) -> Policy:
    """The policy ``consent_leaving``: who leaves a topic that is not declared leaves everything, and an event says so.

    The topics of that instant decide. Our own links name topics that were declared once, and leave those alone.
    """

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        event, statement = recorded.event, statement_of(recorded.event)
        if statement is None or statement.topic in ("", *consent.topics) or not event.is_activity:
            return ()
        properties = {"reason": f"there is no topic {statement.topic}"}
        if statement.address:
            properties["address"] = statement.address
        return (Emit(type=UNSUBSCRIBED, key="all", occurred_at=event.occurred_at, properties=properties),)

    return Policy(
        name="consent_leaving",
        handles=frozenset({UNSUBSCRIBED}),
        react=react,
        emits=frozenset({UNSUBSCRIBED}),
        sends=frozenset(),
    )
