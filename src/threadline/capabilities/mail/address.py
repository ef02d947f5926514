"""Addresses of mail: what can be written to, and whether the way there must speak UTF-8 (RFC 5321, 6531)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from threadline.capabilities.consent.addresses import ascii_domain_of

LOCAL_OCTETS_MAX = 64
ADDRESS_OCTETS_MAX = 254

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]+"
_LOCAL = re.compile(rf"{_ATOM}(\.{_ATOM})*")
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")


class Address(NamedTuple):
    """Where a mail goes, as the protocol has it."""

    mailbox: str
    """The domain in ASCII; the part before it as it was given."""
    smtputf8: bool
    """Whether only a server that speaks UTF-8 can deliver it."""


def address_problem(text: str) -> str:
    """What is wrong with an address; empty if mail can be sent there."""
    local, at, domain = text.rpartition("@")
    if not at or not _LOCAL.fullmatch(local):
        return f"{text[:80]!r} is not an address"
    if not text.isprintable():
        return "an address holds no control characters"
    ascii_domain = ascii_domain_of(domain)
    labels = ascii_domain.split(".")
    if len(labels) < 2 or not all(map(_LABEL.fullmatch, labels)) or labels[-1].isdigit():
        return f"{domain[:80]!r} is not a domain"
    if len(local.encode()) > LOCAL_OCTETS_MAX or len(f"{local}@{ascii_domain}".encode()) > ADDRESS_OCTETS_MAX:
        return f"an address has at most {LOCAL_OCTETS_MAX} bytes before the @ and {ADDRESS_OCTETS_MAX} in all"
    return ""


@lru_cache(1_024)  # that of a sender is asked for with every mail
def address_of(text: str) -> Address | None:
    """The address that a text is; None if mail cannot be sent there."""
    text = text.strip()
    if address_problem(text):
        return None
    local, _, domain = text.rpartition("@")
    return Address(f"{local}@{ascii_domain_of(domain)}", not local.isascii())


def tagged(address: str, tag: str) -> str:
    """The address with a tag before the @, such as ``bounces+TAG@shop.example``: delivered like the one without."""
    local, _, domain = address.rpartition("@")
    return f"{local}+{tag}@{domain}"
