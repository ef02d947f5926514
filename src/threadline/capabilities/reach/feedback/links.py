"""The signed links of a mail, for clicks and the pixel; and the mail that an address or a Message-ID names."""

from __future__ import annotations

import re

from threadline.capabilities.reach.feedback.tracking import tracked_html, tracked_text
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.ports import Ports

CLICK = "mail_click"
OPEN = "mail_open"
LINK_LENGTH_MAX = 2_000
"""Characters of a web address; a longer one stays as it is in the mail."""

_MESSAGE = re.compile(r"[0-9a-f]{32}")
_TOKEN_IN_ADDRESS = re.compile(r"\+([0-9a-f]{32})@", re.IGNORECASE)


def track(ports: Ports, workspace: str, message: str, html: str, text: str) -> tuple[str, str]:
    """HTML and text of a mail with tracked links, a pixel and a link that only programs find.

    Unchanged where nobody has said where the world reaches this server. ``message`` is the id of the mail's effect.
    """
    try:
        own = ports.public_address.url("/")
    except InvalidSetting:
        return html, text

    def click(link: str) -> str:
        # Links to Threadline's own pages, such as that for unsubscribing, are for people and act by themselves.
        return "" if link.startswith(own) else click_url(ports, workspace, message, link)

    pixel = pixel_url(ports, workspace, message)
    return tracked_html(html, click, pixel, _click(ports, workspace, message, "")), tracked_text(text, click)


def click_url(ports: Ports, workspace: str, message: str, link: str) -> str:
    """The link that records a click and leads to ``link``, and nowhere else; empty for one that is too long."""
    return _click(ports, workspace, message, link) if len(link) <= LINK_LENGTH_MAX else ""


def pixel_url(ports: Ports, workspace: str, message: str) -> str:
    """The address of the picture that records an open."""
    return ports.public_address.url(f"/m/o/{ports.signer.sign(OPEN, workspace, message)}.gif")


def message_in(text: str) -> str:
    """The mail that an address or a Message-ID names: ``reply+MESSAGE@…``, ``MESSAGE@…``; empty if it names none."""
    if (token := _TOKEN_IN_ADDRESS.search(text)) is not None:
        return token[1].lower()
    local = text.strip("<> ").partition("@")[0]
    return local if _MESSAGE.fullmatch(local) else ""


def _click(ports: Ports, workspace: str, message: str, link: str) -> str:
    return ports.public_address.url(f"/m/c/{ports.signer.sign(CLICK, workspace, message, link)}")
