"""What the section ``consent`` declares, and what is made of it."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.reach.consent.definition import CONSENT, read_consent
from threadline.capabilities.reach.consent.operations.subscriptions import operations
from threadline.capabilities.reach.consent.policy import confirmation_policy, leaving_policy
from threadline.capabilities.reach.consent.privacy import privacy_projection
from threadline.capabilities.reach.consent.projection import consent_projection
from threadline.capabilities.reach.consent.routes import routes


def declare(definitions: Definitions | None) -> list[Any]:
    """The section, the projection and the operations of its topics, and the pages with its texts.

    The policy that asks for a confirmation only where a topic has double opt-in: elsewhere no event costs anything.
    """
    consent = read_consent(definitions)
    signals = privacy_projection(needed=any(topic.default == "opted_in" for topic in consent.topics.values()))
    made: list[Any] = [CONSENT.declared, consent_projection(consent), signals, leaving_policy(consent)]
    made += [*operations(consent), *routes(consent)]
    asks = any(topic.confirm for topic in consent.topics.values())
    return [*made, confirmation_policy(consent)] if asks else made
