"""DKIM signatures (RFC 6376), where the relay does not sign."""

from __future__ import annotations

from pathlib import Path

from threadline.capabilities.reach.mail.definition import Sender
from threadline.kernel.address import ascii_domain_of
from threadline.kernel.errors import InvalidSetting

SIGNED = (
    b"from", b"to", b"subject", b"date", b"message-id", b"reply-to", b"mime-version", b"content-type",
    b"list-unsubscribe", b"list-unsubscribe-post", b"list-id", b"feedback-id", b"auto-submitted",
)  # fmt: skip
"""What is signed where it is there. RFC 8058 asks for both headers of unsubscribing."""


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
            message, declared.selector.encode(), ascii_domain_of(domain).encode(), file.read_bytes(),
            canonicalize=(b"relaxed", b"relaxed"), include_headers=[name for name in SIGNED if name in present],
        )  # fmt: skip
    except (OSError, ValueError, dkim.DKIMException) as error:
        raise InvalidSetting(f"{sender.place}: sender {sender.id!r}: cannot sign with {file}: {error}") from None
    return header + message
