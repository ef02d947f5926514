"""Whether mails may be sent to addresses: asked right before they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from threadline.capabilities.reach.consent.addresses import KnownAddress
from threadline.capabilities.reach.consent.rows import Statements, newest_suppressions, statements_of_each
from threadline.capabilities.reach.consent.standing import GETS_MAIL, default_of, statements_of_person, status
from threadline.kernel.address import normal_address
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports


class Mailing(NamedTuple):
    """A mail about a topic ("": about none) to an address of a person."""

    workspace: str
    address: str
    topic: str
    transactional: bool
    view: PersonView


def refusals(ports: Ports, mailings: Sequence[Mailing]) -> list[str]:
    """Why each of these mails may not be sent; empty: it may.

    ``invalid_address``; ``suppressed:REASON``, which stops transactional mail too; ``unsubscribed``, ``unconfirmed``
    and ``opted_out``. One reading of the store for all, and a second one for what is not transactional.
    """
    known = [KnownAddress(mailing.workspace, normal_address(mailing.address)) for mailing in mailings]
    reasons = ["" if address else "invalid_address" for _, address in known]
    valid = [index for index, why in enumerate(reasons) if not why]
    for index, newest in zip(
        valid, newest_suppressions(ports.store, [known[position] for position in valid]), strict=True
    ):
        reasons[index] = "" if newest is None or newest.lifted else f"suppressed:{newest.reason}"
    asked = [index for index in valid if not reasons[index] and not mailings[index].transactional]
    topics = [(known[index], (mailings[index].topic,)) for index in asked]
    for index, statements in zip(asked, statements_of_each(ports.store, topics) if topics else (), strict=True):
        reasons[index] = _unwanted(mailings[index], known[index].address, statements[mailings[index].topic])
    return reasons


def _unwanted(mailing: Mailing, address: str, across: Statements) -> str:
    """Why somebody does not want it; ``across``: what was said of the address, whoever has it."""
    shown = mailing.view.view("consent")
    declared = shown["topics"].get(mailing.topic)
    default = default_of(
        "opted_in" if declared is None else declared["default"],
        signalled=mailing.view.view("privacy")["global_privacy_control"],
    )
    statements = statements_of_person(shown, mailing.topic, address, across)
    current = status(statements, default, double=declared is not None and declared["double_opt_in"])
    return "" if current in GETS_MAIL else current
