"""Links to the pages of consent. Each names a person, an address and a topic, and is valid for ever."""

from __future__ import annotations

from typing import NamedTuple

from threadline.kernel.event import is_thread_id
from threadline.kernel.ports import Ports

UNSUBSCRIBE_PATH, PREFERENCES_PATH, CONFIRM_PATH = "/u/{token}", "/p/{token}", "/c/{token}"
"""A path is also the purpose of its tokens. Neither may ever change: links in old mails stay."""
_HALF = 16


class Recipient(NamedTuple):
    """Whom a link is for."""

    workspace: str
    person: str
    """The id that the person had when the link was made."""
    address: str
    topic: str
    """Empty: everything."""


def unsubscribe_url(ports: Ports, workspace: str, person: str, address: str, topic: str) -> str:
    """The one link of `List-Unsubscribe`: POST unsubscribes, GET shows a button. Raises `InvalidSetting` without a
    `public_url`."""
    return _url(ports, UNSUBSCRIBE_PATH, Recipient(workspace, person, address, topic))


def preferences_url(ports: Ports, workspace: str, person: str, address: str) -> str:
    """The page on which somebody chooses their topics."""
    return _url(ports, PREFERENCES_PATH, Recipient(workspace, person, address, ""))


def confirm_url(ports: Ports, workspace: str, person: str, address: str, topic: str) -> str:
    """The link of a mail that asks whether somebody really wants a topic."""
    return _url(ports, CONFIRM_PATH, Recipient(workspace, person, address, topic))


def _url(ports: Ports, path: str, recipient: Recipient) -> str:
    return ports.public_address.url(path_to(ports, path, recipient))


def path_to(ports: Ports, path: str, recipient: Recipient) -> str:
    """The path of one of these pages for a recipient."""
    workspace, person, address, topic = recipient
    # As two numbers an id takes half the room, and headers of mails are short of it.
    id = [int(person[:_HALF], 16) - (1 << 63), int(person[_HALF:], 16) - (1 << 63)] if is_thread_id(person) else [0, 0]
    return path.replace("{token}", ports.signer.sign(path, workspace, address, topic, *id))


def recipient_of(ports: Ports, path: str, token: str) -> Recipient | None:
    """Whom the link with this token was made for; None if it is none of ours."""
    signed = ports.signer.read(path, token)
    if signed is None:
        return None
    address, topic, first, last = signed.values
    person = f"{int(first) + (1 << 63):016x}{int(last) + (1 << 63):016x}"
    return Recipient(signed.workspace, person, str(address), str(topic))
