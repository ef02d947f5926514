"""What the capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.feedback.definition import FEEDBACK, read_feedback
from threadline.capabilities.feedback.policy import feedback_policy
from threadline.capabilities.feedback.routes import routes


def declare(declared: Definitions) -> list[Any]:
    """The section, the policy and the public routes."""
    rules = read_feedback(declared)
    return [FEEDBACK.declared, feedback_policy(rules), *routes(rules)]
