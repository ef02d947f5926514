"""Whether a mail may be sent to an address: asked right before it is sent."""

from __future__ import annotations

from threadline.capabilities.consent.addresses import normal_address
from threadline.capabilities.consent.rows import statements_about, suppression_of
from threadline.capabilities.consent.standing import GETS_MAIL, default_of, statements_of_person, status
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import WithStore


def refusal(ports: WithStore, workspace: str, address: str, topic: str, transactional: bool, view: PersonView) -> str:
    """Why a mail about a topic ("": about none) may not be sent to an address of this person; empty: it may.

    ``invalid_address``; ``suppressed:REASON``, which stops transactional mail too; ``unsubscribed``, ``unconfirmed``
    and ``opted_out``. One query of the store, and a second one for what is not transactional.
    """
    normal = normal_address(address)
    if not normal:
        return "invalid_address"
    if (suppressed := suppression_of(ports.store, workspace, normal)) is not None:
        return f"suppressed:{suppressed.reason}"
    if transactional:
        return ""
    shown = view.view("consent")
    statements = statements_about(ports.store, workspace, normal, (topic,))[topic].newest(
        statements_of_person(shown, topic, normal)
    )
    declared = shown["topics"].get(topic)
    default = default_of(
        "opted_in" if declared is None else declared["default"],
        signalled=view.view("privacy")["global_privacy_control"],
    )
    found = status(statements, default, double=declared is not None and declared["double_opt_in"])
    return "" if found in GETS_MAIL else found
