"""The event types that the shipped definitions know by name. Any other name is as good: types are free.

What their properties look like is in the schemas that ship, see `threadline.capabilities.foundation.schemas`.
"""

from __future__ import annotations

from threadline.kernel.event_type import EventType

PURCHASE_COMPLETED = "purchase_completed"
PURCHASE_REFUNDED = "purchase_refunded"
PURCHASE_ABANDONED = "purchase_abandoned"
PRODUCT_VIEWED = "product_viewed"
PRODUCT_ASKED = "product_asked"
INTEREST_DETECTED = "interest_detected"
SENTIMENT_DETECTED = "sentiment_detected"
CONVERSATION_STARTED = "conversation_started"
CONVERSATION_ENDED = "conversation_ended"
CAMPAIGN_DELIVERED = "campaign_delivered"
CAMPAIGN_ENGAGED = "campaign_engaged"
CAMPAIGN_IGNORED = "campaign_ignored"
SUBSCRIPTION_CREATED = "subscription_created"
SUBSCRIPTION_CANCELLED = "subscription_cancelled"
FORM_SUBMITTED = "form_submitted"
DISCOUNT_REQUESTED = "discount_requested"
DISCOUNT_ACCEPTED = "discount_accepted"
AGENT_INSIGHT = "agent_insight"
OBJECTION_RAISED = "objection_raised"

EVENT_TYPES = (
    EventType(PURCHASE_COMPLETED, "The person bought; `total` in `currency`."),
    EventType(PURCHASE_REFUNDED, "Money went back; `total` in `currency`, a positive number."),
    EventType(PURCHASE_ABANDONED, "The person had chosen and did not buy."),
    EventType(PRODUCT_VIEWED, "The person looked at a product."),
    EventType(PRODUCT_ASKED, "The person asked about a product."),
    EventType(INTEREST_DETECTED, "Something showed interest in a `topic`."),
    EventType(SENTIMENT_DETECTED, "A mood was read from what the person wrote; `score` from -1 to 1."),
    EventType(CONVERSATION_STARTED, "The person began to talk with us, on a `channel`."),
    EventType(CONVERSATION_ENDED, "The talk is over; `message_count` and `response_time_seconds` sum it up."),
    EventType(
        CAMPAIGN_DELIVERED,
        "A message of the campaign `campaign_id` reached the person.",
        lasts="a campaign would count as ignored, or as new",
    ),
    EventType(
        CAMPAIGN_ENGAGED,
        "The person opened or clicked it; `action` is `open` or `click`.",
        lasts="a campaign would count as ignored, or as new",
    ),
    EventType(
        CAMPAIGN_IGNORED,
        "Days passed and the person did neither.",
        sentence="Ignored the campaign {campaign_id}",
        shown=("campaign_id",),
        lasts="a campaign would count as ignored, or as new",
    ),
    EventType(SUBSCRIPTION_CREATED, "The person subscribed to something."),
    EventType(SUBSCRIPTION_CANCELLED, "The person ended a subscription."),
    EventType(FORM_SUBMITTED, "The person filled in the form `form`; `answers` by question."),
    EventType(DISCOUNT_REQUESTED, "The person asked for a better price."),
    EventType(DISCOUNT_ACCEPTED, "The person took the better price."),
    EventType(AGENT_INSIGHT, "An agent, human or not, noted something about the person."),
    EventType(OBJECTION_RAISED, "The person gave a reason against buying."),
)
