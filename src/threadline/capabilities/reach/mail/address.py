"""What a mail is sent to: an address as the protocol has it, and whether the way there must speak UTF-8 (RFC 6531)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from threadline.kernel.address import parse_address
from threadline.kernel.errors import InvalidAddress


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
