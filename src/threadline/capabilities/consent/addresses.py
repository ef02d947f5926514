"""Mail addresses: the form under which consent finds one, and the form that a public page may show."""

from __future__ import annotations

import re

from threadline.kernel.ids import short_hash
from threadline.kernel.normalisation import normalised

ADDRESS_BYTES_MAX = 254
"""RFC 5321, 4.5.3.1.3: a path has 256 octets with its brackets."""
_ADDRESS = re.compile(r"[^\s\x00-\x1f\x7f@]+@[^\s\x00-\x1f\x7f@]+|\"[^\x00-\x1f\x7f]+\"@[^\s\x00-\x1f\x7f@]+")


def normal_address(text: object) -> str:
    """The form under which an address is known, as identifiers of the kind `email` are; empty for what is none.

    Two spellings that reach one mailbox by the rules of a provider, such as dots at Gmail, stay two addresses.
    """
    if not isinstance(text, str):
        return ""
    address = normalised(text, "email")
    if not _ADDRESS.fullmatch(address):
        return ""
    local, _, domain = address.rpartition("@")
    address = f"{local}@{_domain(domain)}"
    return address if len(address.encode("utf-8", "surrogatepass")) <= ADDRESS_BYTES_MAX else ""


def _domain(domain: str) -> str:
    """A domain as the DNS has it: a bounce names bücher.example as xn--bcher-kva.example."""
    domain = domain.rstrip(".")
    if domain.isascii():
        return domain
    try:
        return domain.encode("idna").decode("ascii")
    except UnicodeError:
        return domain


def address_hash(workspace: str, address: str) -> str:
    """What rows are found under: 32 hex digits, of the same length for every address."""
    return short_hash(workspace, address)


def masked(address: str) -> str:
    """An address as its owner recognises it and nobody else learns it: a•••@e•••.com."""
    local, _, domain = address.rpartition("@")
    name, dot, end = domain.rpartition(".")
    return f"{local[:1]}•••@{(name or end)[:1]}•••{dot}{end if dot else ''}"
