"""The policy ``feedback``: which bounces and complaints suppress an address, in the same commit."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.capabilities.consent.events import ADDRESS_SUPPRESSED
from threadline.capabilities.feedback.definition import FeedbackRules
from threadline.capabilities.feedback.events import MAIL_BOUNCED, MAIL_COMPLAINED, is_trusted
from threadline.capabilities.feedback.projection import FEEDBACK_PROJECTION, address_of, transient_bounces
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Emit, Policy, PolicyView, Read, Wish


def feedback_policy(rules: FeedbackRules) -> Policy:
    """Suppress after a complaint, a permanent bounce, or as many transient ones as are declared."""

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        event = recorded.event
        address = address_of(recorded)
        if not address or not is_trusted(event):
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
