"""The links in a mail that act for its recipient."""

from __future__ import annotations

from threadline.capabilities.reach.consent.links import confirm_url, preferences_url, unsubscribe_url
from threadline.capabilities.reach.mail.order import Order
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports

UNSUBSCRIBE, PREFERENCES, CONFIRM = "unsubscribe_url", "preferences_url", "confirm_url"
_EXAMPLE = "https://threadline.invalid/"


def links_of(ports: Ports, view: PersonView, order: Order) -> dict[str, str]:
    """The links that the mail needs, by the names that templates know. Raises `InvalidSetting` without a `public_url`.

    Marketing mail needs the one by which a program unsubscribes, whatever its template says.
    """
    person, address, topic = view.person, order.address, order.topic
    links = {}
    for name in needed(order):
        if name == UNSUBSCRIBE:
            links[name] = unsubscribe_url(ports, order.workspace, person, address, topic)
        elif name == PREFERENCES:
            links[name] = preferences_url(ports, order.workspace, person, address)
        elif order.is_confirmation:
            links[name] = confirm_url(ports, order.workspace, person, address, topic)
    return links


def example_links(order: Order) -> dict[str, str]:
    """What stands for them where nobody has said at which address the world reaches this server."""
    return {name: f"{_EXAMPLE}{name}" for name in needed(order)}


def needed(order: Order) -> list[str]:
    """The names of the links that the mail needs."""
    return [
        name
        for name in (UNSUBSCRIBE, PREFERENCES, CONFIRM)
        if order.compiled.read_below(name) or (name == UNSUBSCRIBE and not order.transactional)
    ]
