"""The policy ``consent``: a subscription to a topic with double opt-in is asked about by mail, at most once a day."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.capabilities.consent.definition import Consent
from threadline.capabilities.consent.events import SUBSCRIBED, statement_of
from threadline.capabilities.consent.standing import statements_of_person, status_of
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Effect, Policy, PolicyView, Read, Wish
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
            standing = status_of(topic, statements_of_person(shown, topic.name, statement.address))
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
            **({"address": statement.address} if statement.address else {}),
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
