"""A message as it goes over the wire: RFC 5322 and MIME, UTF-8 anywhere, one recipient, nothing injected."""

from __future__ import annotations

import binascii
import re
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from typing import NamedTuple

from threadline.capabilities.reach.mail.address import Address
from threadline.capabilities.reach.mail.rendering import Rendered
from threadline.kernel.errors import InvalidValue
from threadline.kernel.time import SECOND

LINE_OCTETS_MAX = 998
"""Of one line without its end (RFC 5322, 2.1.1)."""
_FOLDED_LENGTH = 76
_ENCODED_BYTES = 39
"""Bytes of one encoded word: with ``Subject:`` before it the line stays below 76 characters."""

_PLAIN = re.compile(r"[\x20-\x7e]*")
_NAME = re.compile(r"[A-Za-z0-9-]+")
_FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Header(NamedTuple):
    """A header field; its value is ready for the wire."""

    name: str
    value: str


class Parties(NamedTuple):
    """Who a message is from and for."""

    name: str
    """The display name of the sender."""
    sender: Address
    recipient: Address


def compose(parties: Parties, rendered: Rendered, message_id: str, at: int, further: list[Header]) -> bytes:
    """The message. ``message_id`` is without its brackets; ``further`` are headers in the order given."""
    sender, recipient = parties.sender.mailbox, parties.recipient.mailbox
    headers = [
        Header("From", f"{phrase(parties.name)} <{sender}>" if parties.name else sender),
        Header("To", recipient),
        Header("Subject", unstructured(rendered.subject)),
        Header("Date", _date(at // SECOND)),
        Header("Message-ID", f"<{message_id}>"),
        *further,
        Header("MIME-Version", "1.0"),
    ]
    text = _part("plain", rendered.text)
    if not rendered.html:
        return b"".join([*map(_written, headers), text])
    # "=_" is never part of quoted-printable, so no text can hold the boundary.
    boundary = f"=_{message_id.partition('@')[0]}"
    headers.append(Header("Content-Type", f'multipart/alternative; boundary="{boundary}"'))
    line = f"--{boundary}\r\n".encode()
    html = _part("html", rendered.html)
    return b"".join([*map(_written, headers), b"\r\n", line, text, line, html, f"--{boundary}--\r\n".encode()])


@lru_cache(8)  # many mails are made at one instant
def _date(seconds: int) -> str:
    return format_datetime(datetime.fromtimestamp(seconds, UTC))


def unstructured(text: str) -> str:
    """The text of a header such as the subject: as it is, or in encoded words (RFC 2047)."""
    if not _PLAIN.fullmatch(text) or "=?" in text or any(len(part) > _FOLDED_LENGTH for part in text.split(" ")):
        return _encoded(text)
    return text


def phrase(text: str) -> str:
    """A display name: a quoted string, or encoded words."""
    if not _PLAIN.fullmatch(text) or "=?" in text:
        return _encoded(text)
    return '"{}"'.format(re.sub(r'(["\\])', r"\\\1", text))


def _encoded(text: str) -> str:
    words: list[bytes] = [b""]
    for character in text:
        octets = character.encode("utf-8", "replace")
        if len(words[-1]) + len(octets) > _ENCODED_BYTES:
            words.append(b"")
        words[-1] += octets
    return " ".join(f"=?utf-8?b?{binascii.b2a_base64(chunk, newline=False).decode()}?=" for chunk in words)


def _written(header: Header) -> bytes:
    """The field, folded at blanks. Raises `InvalidValue` for what would begin another field."""
    if not _NAME.fullmatch(header.name) or _FORBIDDEN.search(header.value):
        raise InvalidValue(f"the header {header.name[:40]!r} would hold a line break or a control character")
    lines = [f"{header.name}:"]
    if len(header.name) + len(header.value) + 2 <= _FOLDED_LENGTH:
        return f"{header.name}: {header.value}\r\n".encode("utf-8", "replace")
    for part in header.value.split(" "):
        if part and len(lines[-1]) + len(part) >= _FOLDED_LENGTH and lines[-1].strip(" ") and not _is_first(lines):
            lines.append(f" {part}")
        else:
            lines[-1] += f" {part}"
    octets = "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n"
    if max(map(len, octets.split(b"\r\n"))) > LINE_OCTETS_MAX:
        raise InvalidValue(f"the header {header.name!r} has a line of more than {LINE_OCTETS_MAX} bytes")
    return octets


def _is_first(lines: list[str]) -> bool:
    """Whether nothing but the name stands in the field yet: a line of blanks alone would end the headers for some."""
    return len(lines) == 1 and lines[0].endswith(":")


def _part(subtype: str, text: str) -> bytes:
    body = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").replace("\n", "\r\n") + "\r\n"
    return (
        f"Content-Type: text/{subtype}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n".encode()
        + binascii.b2a_qp(body.encode("utf-8", "replace"), quotetabs=False, istext=True, header=False)
    )
