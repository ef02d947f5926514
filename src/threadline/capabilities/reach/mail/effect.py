"""The effect by which any policy has a mail sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.capabilities.reach.mail.definition import KIND, QUEUE
from threadline.kernel.policy import Effect

BELONGS_TO = ("journey", "broadcast", "rule", "step", "arm", "occurrence")
"""What of an effect's data says why there is this mail; it is in every event about the mail."""


def mail_effect(
    key: str, template: str, variables: Mapping[str, Any], occurrence: str, due_at: int = 0, **about: Any
) -> Effect:
    """A mail to the person of the event that a policy reacts to.

    ``occurrence``: nobody gets two mails for one, whoever they are by then; empty: this effect is its only one.
    ``about``: ``sender``, ``subject``, ``topic`` and ``transactional`` where they are not the template's; ``event``,
    the id of the event that the template sees, if not that of the cause; ``address``, if not the person's; and
    `BELONGS_TO`.
    """
    given = {name: value for name, value in about.items() if value not in (None, "")}
    data = {"template": template, "variables": dict(variables), "occurrence": occurrence, **given}
    return Effect(kind=KIND, key=key, due_at=due_at, data=data, queue=QUEUE)
