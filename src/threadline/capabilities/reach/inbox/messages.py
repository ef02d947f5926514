"""A stored message taken apart: its headers, its two texts, its links and its attachments."""

from __future__ import annotations

import re
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from html import unescape
from typing import NamedTuple

LINKS_MAX = 200
_HREF = re.compile(r"""(?i)<a\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class Attachment(NamedTuple):
    """A part that is neither of the texts."""

    name: str
    type: str
    size: int


class Parts(NamedTuple):
    """What a message is made of, as far as it can be read."""

    headers: list[tuple[str, str]]
    """In their order, decoded."""
    html: str
    text: str
    links: list[str]
    """Addresses of the HTML part, each one once."""
    attachments: list[Attachment]


def parts_of(message: bytes) -> Parts:
    """The parts of a message. What cannot be decoded shows as replacement characters."""
    parsed = message_from_bytes(message, EmailMessage, policy=policy.default)
    html, text = _text(parsed.get_body(("html",))), _text(parsed.get_body(("plain",)))
    links = dict.fromkeys(unescape(double or single) for double, single in _HREF.findall(html))
    attached = [
        Attachment(part.get_filename() or "", part.get_content_type(), len(part.get_payload(decode=True) or b""))
        for part in parsed.iter_attachments()
    ]
    headers = [(name, str(value)) for name, value in parsed.items()]
    return Parts(headers, html, text, list(links)[:LINKS_MAX], attached)


def _text(part: MIMEPart | None) -> str:
    if part is None:
        return ""
    payload = part.get_payload(decode=True)
    charset = part.get_content_charset("utf-8")
    try:
        return payload.decode(charset, "replace") if isinstance(payload, bytes) else ""
    except LookupError:
        return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
