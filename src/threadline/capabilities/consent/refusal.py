"""Whether mails may be sent to addresses: asked right before they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from threadline.capabilities.consent.addresses import KnownAddress, normal_address
from threadline.capabilities.consent.rows import Statements, newest_suppressions, statements_of_each
from threadline.capabilities.consent.standing import GETS_MAIL, default_of, statements_of_person, status
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import WithStore


class Mailing(NamedTuple):
    """A mail about a topic ("": about none) to an address of a person."""

    workspace: str
    address: str
    topic: str
    transactional: bool
    view: PersonView


def refusals(ports: WithStore, mailings: Sequence[Mailing]) -> list[str]:
    """Why each of these mails may not be sent; empty: it may.

    ``invalid_address``; ``suppressed:REASON``, which stops transactional mail too; ``unsubscribed``, ``unconfirmed``
    and ``opted_out``. One reading of the store for all, and a second one for what is not transactional.
    """
    known = [KnownAddress(mailing.workspace, normal_address(mailing.address)) for mailing in mailings]
    found = ["" if address else "invalid_address" for _, address in known]
    valid = [place for place, why in enumerate(found) if not why]
    for place, newest in zip(valid, newest_suppressions(ports.store, [known[each] for each in valid]), strict=True):
        found[place] = "" if newest is None or newest.lifted else f"suppressed:{newest.reason}"
    asked = [place for place in valid if not found[place] and not mailings[place].transactional]
    topics = [(known[place], (mailings[place].topic,)) for place in asked]
    for place, statements in zip(asked, statements_of_each(ports.store, topics) if topics else (), strict=True):
        found[place] = _unwanted(mailings[place], known[place].address, statements[mailings[place].topic])
    return found


def _unwanted(mailing: Mailing, address: str, across: Statements) -> str:
    """Why somebody does not want it; ``across``: what was said of the address, whoever has it."""
    shown = mailing.view.view("consent")
    declared = shown["topics"].get(mailing.topic)
    default = default_of(
        "opted_in" if declared is None else declared["default"],
        signalled=mailing.view.view("privacy")["global_privacy_control"],
    )
    statements = across.newest(statements_of_person(shown, mailing.topic, address))
    found = status(statements, default, double=declared is not None and declared["double_opt_in"])
    return "" if found in GETS_MAIL else found
