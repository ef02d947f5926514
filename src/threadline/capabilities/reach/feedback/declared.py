"""What the capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features.definition import CAMPAIGNS, Campaigns
from threadline.capabilities.reach.feedback.definition import FEEDBACK, read_feedback
from threadline.capabilities.reach.feedback.own_campaigns import own_mail_policy
from threadline.capabilities.reach.feedback.policy import feedback_policy
from threadline.capabilities.reach.feedback.routes import routes


def declare(declared: Definitions) -> list[Any]:
    """The section, the policies and the public routes."""
    rules = read_feedback(declared)
    own_mail = CAMPAIGNS.read(declared, Campaigns()).own_mail
    return [FEEDBACK.declared, feedback_policy(rules), *[own_mail_policy()] * own_mail, *routes(rules)]
