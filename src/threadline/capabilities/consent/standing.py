"""How somebody stands to a topic, from what was said and when: the one place that decides."""

from __future__ import annotations

from typing import Any, Literal

from threadline.capabilities.consent.definition import Topic
from threadline.capabilities.consent.rows import Statements
from threadline.kernel.former_forms import former_addresses

Status = Literal["subscribed", "unsubscribed", "unconfirmed", "opted_in", "opted_out"]
"""``opted_in`` and ``opted_out``: nobody has said anything, and the topic's default counts."""
GETS_MAIL = frozenset({"subscribed", "opted_in"})


def status(statements: Statements, default: Status, *, double: bool) -> Status:
    """Whether mail about a topic may be sent. Of two words of one instant, unsubscribing counts."""
    if (statements.confirmed if double else statements.subscribed) > statements.unsubscribed:
        return "subscribed"
    if double and statements.subscribed > statements.unsubscribed:
        return "unconfirmed"
    return "unsubscribed" if statements.unsubscribed else default


def status_of(topic: Topic, statements: Statements, *, signalled: bool = False) -> Status:
    """The same, by a topic's declaration; ``signalled``: the person's browser sends Global Privacy Control."""
    return status(statements, default_of(topic.default, signalled=signalled), double=bool(topic.confirm))


def default_of(declared: Literal["opted_in", "opted_out"], *, signalled: bool) -> Literal["opted_in", "opted_out"]:
    """What counts for somebody who has said nothing. By that signal they have agreed to nothing by default."""
    return "opted_out" if signalled else declared


def statements_of_person(shown: Any, topic: str, address: str) -> Statements:
    """What a person said about a topic, from the view `consent`: unsubscribing with any address, subscribing with this
    one or without naming one."""
    view = shown["topics"].get(topic)
    if view is None:
        return Statements(shown["unsubscribed_at"])
    forms = dict.fromkeys(("", address, *former_addresses(address)))
    entries = [view["addresses"][key] for key in forms if key in view["addresses"]]
    return Statements(
        view["unsubscribed_at"],
        max((entry["confirmed_at"] for entry in entries), default=""),
        max((entry["subscribed_at"] for entry in entries), default=""),
    )
