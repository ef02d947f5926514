"""Mail addresses: the form under which consent finds one, and the form that a public page may show."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from threadline.kernel.ids import short_hash
from threadline.kernel.normalisation import normalised

ADDRESS_BYTES_MAX = 254
"""RFC 5321, 4.5.3.1.3: a path has 256 octets with its brackets."""
_DEVIATES = re.compile("[\u00df\u03c2\u200c\u200d]")
"""What IDNA of 2003 maps to something else and that of 2008 leaves as it is (RFC 5894, 7.2)."""
_ADDRESS = re.compile(r"[^\s\x00-\x1f\x7f@]+@[^\s\x00-\x1f\x7f@]+|\"[^\x00-\x1f\x7f]+\"@[^\s\x00-\x1f\x7f@]+")


class KnownAddress(NamedTuple):
    """An address in the form under which it is known, of a workspace."""

    workspace: str
    address: str


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
    domain = domain.rstrip(".")
    address = f"{local}@{ascii_domain_of(domain) or domain}"
    return address if len(address.encode("utf-8", "surrogatepass")) <= ADDRESS_BYTES_MAX else ""


def ascii_domain_of(domain: str) -> str:
    """A domain as the name system has it, by which a bounce names bücher.example too; empty for what is none."""
    domain = domain.lower()
    try:
        return domain if domain.isascii() else ".".join(map(_ascii_label, re.split("[.\u3002\uff0e\uff61]", domain)))
    except UnicodeError:
        return ""


def _ascii_label(label: str) -> str:
    # The standard library has the mapping of 2003, which takes "straße" for "strasse": today these are two domains of
    # two owners. A mail to the one must not go to the other, nor a bounce of the one suppress the other.
    if _DEVIATES.search(label):
        return "xn--" + unicodedata.normalize("NFC", label).encode("punycode").decode()
    return label.encode("idna").decode()


def address_hash(workspace: str, address: str) -> str:
    """What rows are found under: 32 hex digits, of the same length for every address."""
    return short_hash(workspace, address)


def masked(address: str) -> str:
    """An address as its owner recognises it and nobody else learns it: a•••@e•••.com."""
    local, _, domain = address.rpartition("@")
    name, dot, end = domain.rpartition(".")
    return f"{local[:1]}•••@{(name or end)[:1]}•••{dot}{end if dot else ''}"
