"""The policy ``own_mail``: mails that Threadline sends are campaigns, where users declare it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from threadline.capabilities.profile.features.campaigns import (
    CAMPAIGN_DELIVERED,
    CAMPAIGN_ENGAGED,
    CAMPAIGN_ID_LENGTH_MAX,
    times_of,
)
from threadline.capabilities.reach.feedback.events import MAIL_CLICKED, MAIL_OPENED, MAIL_SENT
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Emit, Policy, PolicyView, Read, Wish

_ACTIONS = {MAIL_OPENED: "open", MAIL_CLICKED: "click"}


def campaign_of_mail(properties: dict[str, Any]) -> str:
    """The campaign that a mail is part of: its broadcast, else the mail itself, as ``template.message``; empty if it
    names neither. A template that is sent every week is another campaign each time."""
    broadcast, template, message = (properties.get(name) for name in ("broadcast", "template", "message"))
    if isinstance(broadcast, str) and broadcast:
        return broadcast[:CAMPAIGN_ID_LENGTH_MAX]
    return f"{template or 'mail'}.{message[:12]}"[-CAMPAIGN_ID_LENGTH_MAX:] if isinstance(message, str) else ""


def own_mail_policy() -> Policy:
    """The policy. It needs the projection ``campaigns``."""
    return Policy(
        name="own_mail",
        handles=frozenset({MAIL_SENT, *_ACTIONS}),
        react=_react,
        emits=frozenset({CAMPAIGN_DELIVERED, CAMPAIGN_ENGAGED}),
        sends=frozenset(),
        reads=(Read("campaigns"),),
    )


def _react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    event, properties = recorded.event, recorded.event.properties
    campaign = campaign_of_mail(properties)
    if not campaign:
        return ()
    about = {"campaign_id": campaign, "channel": "email"}
    if event.type == MAIL_SENT:
        if properties.get("transactional") is True:
            return ()
        return (Emit(type=CAMPAIGN_DELIVERED, key="sent", occurred_at=event.occurred_at, properties=about),)
    # Of a mail that is no campaign, transactional or sent before this was declared, nothing is one either; nor is what
    # earlier versions recorded of machines.
    if times_of(known.get("campaigns", []), campaign) is None or properties.get("machine") is True:
        return ()
    engaged = {**about, "action": _ACTIONS[event.type]}
    return (Emit(type=CAMPAIGN_ENGAGED, key="engaged", occurred_at=event.occurred_at, properties=engaged),)
