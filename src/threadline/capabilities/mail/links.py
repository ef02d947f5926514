"""The links in a mail that act for its recipient, and those that report that it was read."""

from __future__ import annotations

from typing import NamedTuple

from threadline.kernel.ports import Ports


class MailLinks(NamedTuple):
    """Links of one mail to one address. Empty ones are left out of it."""

    unsubscribe: str = ""
    """Ends the subscription of this address to the topic: GET shows, POST acts (RFC 8058)."""
    preferences: str = ""


def links_of(ports: Ports, workspace: str, address: str, topic: str, transactional: bool) -> MailLinks:
    """The links of a mail; a transactional one has none. Raises `InvalidSetting` where the world reaches no server."""
    if transactional:
        return MailLinks()
    token = ports.signer.sign("unsubscribe", workspace, address, topic)
    return MailLinks(ports.public_address.url(f"/u/{token}"), ports.public_address.url(f"/u/{token}"))
