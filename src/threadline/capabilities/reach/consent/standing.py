"""How somebody stands to a topic, from what was said and when: the one place that decides."""

from __future__ import annotations

from typing import Any, Literal

from threadline.capabilities.reach.consent.definition import Topic
from threadline.capabilities.reach.consent.rows import Statements
from threadline.kernel.identity import former_addresses

Status = Literal["subscribed", "unsubscribed", "unconfirmed", "opted_in", "opted_out"]
"""``opted_in`` and ``opted_out``: nobody has said anything, and the topic's default counts."""
GETS_MAIL = frozenset({"subscribed", "opted_in"})


def status(statements: Statements, default: Status, *, double: bool) -> Status:
    """Whether mail about a topic may be sent. Of two words of one instant, unsubscribing counts."""
    counted = statements.counted
    if (counted.confirmed if double else counted.subscribed) > counted.unsubscribed:
        return "subscribed"
    if double and counted.subscribed > counted.unsubscribed:
        return "unconfirmed"
    return "unsubscribed" if counted.unsubscribed else default


def status_of(topic: Topic, statements: Statements, *, signalled: bool = False) -> Status:
    """The same, by a topic's declaration; ``signalled``: the person's browser sends Global Privacy Control."""
    return status(statements, default_of(topic.default, signalled=signalled), double=bool(topic.confirm))


def default_of(declared: Literal["opted_in", "opted_out"], *, signalled: bool) -> Literal["opted_in", "opted_out"]:
    """What counts for somebody who has said nothing. By that signal they have agreed to nothing by default."""
    return "opted_out" if signalled else declared


def statements_of_person(shown: Any, topic: str, address: str, across: Statements) -> Statements:
    """What was said about a topic, ``across`` by whoever has the address, and by a person, from the view `consent`:
    unsubscribing with any address, subscribing with this one or without naming one.

    A subscription that names no address is of whoever said it then. It opens nothing that somebody else has closed who
    has the address, or who was joined with them: that is for a subscription that names the address.
    """
    view = shown["topics"].get(topic)
    if view is None:
        return across.newest(Statements(shown["unsubscribed_at"], closed=shown["closed_at"]))
    entries = [view["addresses"][key] for key in (address, *former_addresses(address)) if key in view["addresses"]]
    nameless = view["addresses"].get("")
    if nameless is not None and across.unsubscribed <= nameless["after"]:
        entries.append(nameless)
    statements = across.newest(Statements(view["unsubscribed_at"], closed=view["closed_at"]))
    for entry in entries:
        statements = statements.newest(subscriptions_in(entry))
    return statements


def subscriptions_in(entry: Any) -> Statements:
    """The subscriptions of an address in the view `consent`."""
    return Statements(
        "",
        entry["confirmed_at"],
        entry["subscribed_at"],
        imported_confirmed=entry["imported_confirmed_at"],
        imported=entry["imported_at"],
    )
