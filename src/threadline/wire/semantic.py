"""Which of Segment's event names say the same as a type of Threadline's catalogue."""

from __future__ import annotations

from typing import Any

CATALOGUE = (
    "agent_insight",
    "campaign_delivered",
    "campaign_engaged",
    "campaign_ignored",
    "conversation_ended",
    "conversation_started",
    "discount_accepted",
    "discount_requested",
    "form_submitted",
    "interest_detected",
    "objection_raised",
    "product_asked",
    "product_viewed",
    "purchase_abandoned",
    "purchase_completed",
    "purchase_refunded",
    "sentiment_detected",
    "subscription_cancelled",
    "subscription_created",
)
"""The types that the shipped definitions know."""

# The catalogue's own names are also understood in Segment's style: `Form Submitted` is `form_submitted`.
SEMANTIC = {name.replace("_", " ").title(): name for name in CATALOGUE} | {
    # E-commerce, version 2 of the specification and the names of version 1 that are still sent.
    "Order Completed": "purchase_completed",
    "Completed Order": "purchase_completed",
    "Order Refunded": "purchase_refunded",
    "Product Viewed": "product_viewed",
    "Viewed Product": "product_viewed",
    # The specification has no event for what did not happen. These are the names that shops use for it.
    "Cart Abandoned": "purchase_abandoned",
    "Checkout Abandoned": "purchase_abandoned",
    "Abandoned Cart": "purchase_abandoned",
    "Abandoned Checkout": "purchase_abandoned",
    # E-mail.
    "Email Delivered": "campaign_delivered",
    "Email Opened": "campaign_engaged",
    "Email Link Clicked": "campaign_engaged",
    # Live chat and copilot.
    "Live Chat Conversation Started": "conversation_started",
    "Live Chat Conversation Ended": "conversation_ended",
}
"""Segment's event name -> Threadline's type. A name that is not here is the type itself."""

_ACTIONS = {"Email Opened": "open", "Email Link Clicked": "click"}
_TOTAL = "total", ("revenue", "value")
_CAMPAIGN = "campaign_id", ("campaign_name", "email_id")
_WANTED = {
    "purchase_completed": _TOTAL,
    "purchase_refunded": _TOTAL,
    "campaign_delivered": _CAMPAIGN,
    "campaign_engaged": _CAMPAIGN,
}
"""Type -> the property that is read, and where else producers put it, first choice first."""


def complete(name: str, type_: str, properties: dict[str, Any]) -> list[str]:
    """Add the properties that a type's features read, where the producer said the same under another name.

    Changes ``properties``: what is there stays as it is. Answers with the names that were added.
    """
    added: list[str] = []
    wanted, sources = _WANTED.get(type_, ("", ()))
    if wanted not in properties:
        for source in sources:
            if properties.get(source) is not None:
                properties[wanted] = properties[source]
                added.append(wanted)
                break
    if name in _ACTIONS and "action" not in properties:
        properties["action"] = _ACTIONS[name]
        added.append("action")
    return added
