"""The message of a mail: headers and bytes as they go over the wire (RFC 5322, MIME), addresses, signature."""

from __future__ import annotations

import binascii
import re
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from threadline.capabilities.reach.feedback.links import track
from threadline.capabilities.reach.mail.definition import Sender
from threadline.capabilities.reach.mail.order import UNSUBSCRIBE, Order
from threadline.capabilities.reach.mail.templates import Rendered, TemplateFailed
from threadline.kernel.address import ascii_domain_of, parse_address
from threadline.kernel.errors import InvalidAddress, InvalidSetting, InvalidValue
from threadline.kernel.ports import Ports
from threadline.kernel.time import SECOND

LINE_OCTETS_MAX = 998
"""Of one line without its end (RFC 5322, 2.1.1)."""
TEST = "[Test]"
"""What the subject of a test begins with."""
_FOLDED_LENGTH = 76
_ENCODED_BYTES = 39
"""Bytes of one encoded word: with ``Subject:`` before it the line stays below 76 characters."""
SIGNED = (
    b"from",
    b"to",
    b"subject",
    b"date",
    b"message-id",
    b"reply-to",
    b"mime-version",
    b"content-type",
    b"list-unsubscribe",
    b"list-unsubscribe-post",
    b"list-id",
    b"feedback-id",
    b"auto-submitted",
)
"""What is signed where it is there. RFC 8058 asks for both headers of unsubscribing."""

_PLAIN = re.compile(r"[\x20-\x7e]*")
_NAME = re.compile(r"[A-Za-z0-9-]+")
_FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Message(NamedTuple):
    """A mail that is made: its order, what it says, and its bytes."""

    order: Order
    rendered: Rendered
    recipient: Address
    envelope: str
    """The envelope sender."""
    octets: bytes
    """As they go over the wire, with their signature."""

    @property
    def record(self) -> dict[str, Any]:
        """The properties of the event that says that it was sent."""
        order = self.order
        record = {
            "message": order.id,
            "template": order.compiled.template.name,
            "version": order.compiled.version,
            "sender": order.sender.id,
            "domain": order.sender.id_domain,
            "address": order.address,
            "subject": self.rendered.subject,
            "topic": order.topic,
            "transactional": order.transactional,
            **order.about,
        }
        if language := order.compiled.shown_language:
            record["language"] = language
        if order.sender.warm_up is not None:
            record["warm_up"] = True
        if order.variables:
            record["variables"] = order.variables
        return record


def message_of(ports: Ports, order: Order, rendered: Rendered | TemplateFailed, *, is_tracked: bool = True) -> Message:
    """The message of an order whose template is filled in. Raises `TemplateFailed` where something that it says is not
    known, and `InvalidValue` for what is no address."""
    if isinstance(rendered, TemplateFailed):
        raise rendered
    recipient, sender = address_of(order.address), address_of(order.sender.address)
    if recipient is None or sender is None:
        raise InvalidValue(f"{order.address[:80]!r} is not an address")
    if order.about.get("test") is True:
        is_tracked, rendered = False, rendered._replace(subject=f"{TEST} {rendered.subject}")
    if is_tracked:
        html, text = track(ports, order.workspace, order.id, rendered.html, rendered.text)
        # A mail of text alone stays one: without HTML there is no picture to load.
        rendered = rendered._replace(html=html if rendered.html else "", text=text)
    parties = Parties(order.sender.display_name, sender, recipient)
    message_id = f"{order.id}@{ascii_domain_of(order.sender.id_domain)}"
    octets = compose(parties, rendered, message_id, order.at, _headers(order))
    bounces = address_of(tagged(order.sender.bounces, order.id)) if order.sender.bounces else None
    envelope = (bounces or sender).mailbox
    return Message(order, rendered, recipient, envelope, signed(octets, order.sender))


def _headers(order: Order) -> list[Header]:
    sender, domain = order.sender, order.sender.id_domain
    headers = []
    answers = order.reply_to or (tagged(sender.replies, order.id) if sender.replies else sender.reply_to)
    if (reply_to := address_of(answers)) is not None:
        headers.append(Header("Reply-To", reply_to.mailbox))
    if order.transactional:
        # Nobody's holiday notice is an answer to a receipt (RFC 3834); marketing mail has List-Id for that.
        headers.append(Header("Auto-Submitted", "auto-generated"))
    else:
        headers.append(Header("List-Unsubscribe", f"<{order.links[UNSUBSCRIBE]}>"))
        headers.append(Header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"))
        headers.append(Header("List-Id", f"<{order.topic or 'mail'}.{domain}>"))
    campaign = str(order.about.get("journey") or order.about.get("broadcast") or "single")
    kind = "transactional" if order.transactional else "marketing"
    fields = (campaign, order.compiled.template.name, kind, sender.id)
    headers.append(Header("Feedback-ID", ":".join(_token(field) for field in fields)))
    headers.append(Header("X-Threadline-Message", order.id))
    return headers


@lru_cache(1_024)  # those of few templates and senders
def _token(text: str) -> str:
    return "".join(
        character if character.isascii() and (character.isalnum() or character in "-_.") else "_" for character in text
    )[:60]


# --- over the wire --------------------------------------------------------------------------------


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


# --- addresses ------------------------------------------------------------------------------------


class Address(NamedTuple):
    """Where a mail goes, as the protocol has it."""

    mailbox: str
    """The domain in ASCII; the part before it as it was given."""
    smtputf8: bool
    """Whether only a server that speaks UTF-8 can deliver it."""


@lru_cache(1_024)  # that of a sender is asked for with every mail
def address_of(text: str) -> Address | None:
    """The address that a text is; None if mail cannot be sent there."""
    try:
        local, domain = parse_address(text)
    except InvalidAddress:
        return None
    return Address(f"{local}@{domain}", not local.isascii())


def tagged(address: str, tag: str) -> str:
    """The address with a tag before the @, such as ``bounces+TAG@shop.example``: delivered like the one without."""
    local, _, domain = address.rpartition("@")
    return f"{local}+{tag}@{domain}"


# --- signatures -----------------------------------------------------------------------------------


def signed(message: bytes, sender: Sender) -> bytes:
    """The message, with the signature that its sender declares. Raises `InvalidSetting` without a usable key."""
    declared = sender.dkim
    if declared is None:
        return message
    import dkim

    file = Path(sender.place.rpartition(":")[0]).parent / declared.key_file
    domain = declared.domain or sender.address.rpartition("@")[2]
    try:
        present = {line.partition(b":")[0].lower() for line in message.partition(b"\r\n\r\n")[0].split(b"\r\n")}
        header: bytes = dkim.sign(
            message,
            declared.selector.encode(),
            ascii_domain_of(domain).encode(),
            file.read_bytes(),
            canonicalize=(b"relaxed", b"relaxed"),
            include_headers=[name for name in SIGNED if name in present],
        )
    except (OSError, ValueError, dkim.DKIMException) as error:
        raise InvalidSetting(f"{sender.place}: sender {sender.id!r}: cannot sign with {file}: {error}") from None
    return header + message
