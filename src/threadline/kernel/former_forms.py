"""The forms that version 0.1 gave addresses and numbers: its threads, rows and hashes are found under them.

It took whatever stood in a field, composed no letters, and left the domain of an identifier in Unicode. New events have
the forms of `address.py` and `phone.py`; whoever looks something up tries these as well, so that nobody who was known
becomes unknown and nobody who was suppressed gets mail.
"""

from __future__ import annotations

import re
import unicodedata

from threadline.kernel.address import ADDRESS_OCTETS_MAX
from threadline.kernel.normalisation import Form

_DEVIATES = re.compile("[\u00df\u03c2\u200c\u200d]")
"""What IDNA of 2003 maps to something else and that of 2008 leaves as it is (RFC 5894, 7.2)."""
_ADDRESS = re.compile(r"[^\s\x00-\x1f\x7f@]+@[^\s\x00-\x1f\x7f@]+|\"[^\x00-\x1f\x7f]+\"@[^\s\x00-\x1f\x7f@]+")


def former_value(value: str, form: Form) -> str:
    """The value of an identifier, whatever it holds: of an address in lower case, of a number its digits and a +."""
    value = value.strip()
    if form == "strip":
        return value
    if form == "email":
        return value.lower()
    digits = re.sub(r"[^0-9]", "", value)
    return ("+" if value.startswith(("+", "00")) else "") + (digits[2:] if value.startswith("00") else digits)


def address_in_event(text: object) -> str:
    """The form in which an address in an event counts; empty for what is none.

    For ever the form of version 0.1: rows and states of recorded events must stay where they are. It changes nothing
    of a normal address, which is what today's operations write into events.
    """
    if not isinstance(text, str):
        return ""
    address = former_value(text, "email")
    if not _ADDRESS.fullmatch(address):
        return ""
    local, _, domain = address.rpartition("@")
    domain = domain.rstrip(".")
    address = f"{local}@{_ascii_domain(domain) or domain}"
    return address if len(address.encode("utf-8", "surrogatepass")) <= ADDRESS_OCTETS_MAX else ""


def _ascii_domain(domain: str) -> str:
    try:
        return domain if domain.isascii() else ".".join(map(_ascii_label, re.split("[.\u3002\uff0e\uff61]", domain)))
    except UnicodeError:
        return ""


def _ascii_label(label: str) -> str:
    # The standard library has the mapping of 2003, which takes "straße" for "strasse".
    if _DEVIATES.search(label):
        return "xn--" + unicodedata.normalize("NFC", label).encode("punycode").decode()
    return label.encode("idna").decode()


def former_addresses(address: str) -> tuple[str, ...]:
    """The other forms of an address in its normal form: decomposed, as it may have been written, and its domain in
    Unicode. Nearly all addresses have none."""
    if address.isascii() and "xn--" not in address:
        return ()
    local, _, domain = address.rpartition("@")
    shown = _unicode_domain(domain)
    locals_ = dict.fromkeys((local, unicodedata.normalize("NFD", local)))
    domains = dict.fromkeys((domain, shown, unicodedata.normalize("NFD", shown)))
    return tuple(form for before in locals_ for after in domains if (form := f"{before}@{after}") != address)


def _unicode_domain(domain: str) -> str:
    try:
        return ".".join(
            label[4:].encode().decode("punycode") if label.startswith("xn--") else label for label in domain.split(".")
        )
    except UnicodeError:
        return domain
