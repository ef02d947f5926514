"""How somebody stands to a topic, from what was said and when: the one place that decides."""

from __future__ import annotations

from typing import Any, Literal

from threadline.capabilities.consent.definition import Topic
from threadline.capabilities.consent.rows import Said

Status = Literal["subscribed", "unsubscribed", "unconfirmed", "opted_in", "opted_out"]
"""``opted_in`` and ``opted_out``: nobody has said anything, and the topic's default counts."""
GETS_MAIL = frozenset({"subscribed", "opted_in"})


def status(said: Said, default: Status, *, double: bool) -> Status:
    """Whether mail about a topic may be sent. Of two words of one instant, unsubscribing counts."""
    if (said.confirmed if double else said.subscribed) > said.unsubscribed:
        return "subscribed"
    if double and said.subscribed > said.unsubscribed:
        return "unconfirmed"
    return "unsubscribed" if said.unsubscribed else default


def status_of(topic: Topic, said: Said) -> Status:
    """The same, by a topic's declaration."""
    return status(said, topic.default, double=bool(topic.confirm))


def said_of_person(shown: Any, topic: str, address: str) -> Said:
    """What a person said about a topic, from the view `consent`: unsubscribing with any address, subscribing with this
    one or without naming one."""
    view = shown["topics"].get(topic)
    if view is None:
        return Said(shown["unsubscribed_at"])
    words = [view["addresses"][each] for each in dict.fromkeys(("", address)) if each in view["addresses"]]
    return Said(
        view["unsubscribed_at"],
        max((each["confirmed_at"] for each in words), default=""),
        max((each["subscribed_at"] for each in words), default=""),
    )
