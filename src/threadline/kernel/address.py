"""Mail addresses: what is one (RFC 5321, 6531), and the one form in which it is compared, stored and sent to."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from threadline.kernel.errors import InvalidAddress

LOCAL_OCTETS_MAX = 64
"""RFC 5321, 4.5.3.1.1."""
ADDRESS_OCTETS_MAX = 254
"""RFC 5321, 4.5.3.1.3: a path has 256 octets with its brackets."""

_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_AROUND = re.compile(rf"^[\s{_INVISIBLE}]+|[\s{_INVISIBLE}]+$")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_PLAIN = re.compile(
    r"(?=[^@]{1,64}@)[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@"
    r"(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)+(?![0-9]+$)(?!-)[a-z0-9-]{1,63}(?<!-)"
)
"""Nearly all addresses, in their form: a shortcut, for identifiers are read with every event of somebody new."""


class MailAddress(NamedTuple):
    """An address in its parts."""

    local: str
    """What stands before the @, as it was given but in Unicode's composed form (NFC)."""
    domain: str
    """In lower case and in ASCII, as the name system has it."""


def trimmed(text: str) -> str:
    """A text without the blanks and invisible characters around it, which contacts and tables are copied with."""
    return text.strip() if text.isascii() else _AROUND.sub("", text)


def parse_address(text: str) -> MailAddress:
    """The address that a text is, without blanks around it and a dot at its end; raises `InvalidAddress`.

    The text is the address alone: a name or brackets around it, ``mailto:`` and a second address are refused.
    """
    given = trimmed(text)
    local, at, domain = given.rpartition("@")
    if not local.isascii():
        local = unicodedata.normalize("NFC", local)
    if not at or not _LOCAL.fullmatch(local) or not given.isprintable():
        raise _invalid(given, "what stands before the @ is not the name of a mailbox")
    ascii_domain = ascii_domain_of(domain.removesuffix("."))
    labels = ascii_domain.split(".")
    if not all(map(_LABEL.fullmatch, labels)) or labels[-1].isdigit():
        raise _invalid(given, f"{domain[:80]!r} is not a domain")
    if len(labels) < 2:
        raise _invalid(given, f"its domain {domain[:80]!r} has no dot")
    if len(local.encode()) > LOCAL_OCTETS_MAX or len(f"{local}@{ascii_domain}".encode()) > ADDRESS_OCTETS_MAX:
        raise _invalid(given, f"it may have {LOCAL_OCTETS_MAX} bytes before the @ and {ADDRESS_OCTETS_MAX} in all")
    return MailAddress(local, ascii_domain)


def _invalid(text: str, otherwise: str) -> InvalidAddress:
    signs = set(text)
    if "@" not in signs:
        why = "it has no @"
    elif text.count("@") > 1 or signs & set(",; \t\n"):
        why = "give one address alone, without separators and blanks"
    elif signs & set('<>()[]"') or text[:7].lower() == "mailto:":
        why = "give the address alone, without a name, brackets, quotation marks or mailto:"
    else:
        why = otherwise
    return InvalidAddress(f"{text[:80]!r} is not a mail address: {why}")


def checked_address(text: str, param: str) -> str:
    """The form under which an address is known: in lower case, composed, its domain in ASCII. Raises `InvalidAddress`,
    which names the parameter.

    Two spellings that reach one mailbox by the rules of a provider, such as dots at Gmail, stay two addresses.
    """
    plain = text.strip().lower()
    if _PLAIN.fullmatch(plain) and len(plain) <= ADDRESS_OCTETS_MAX:
        return plain
    try:
        local, domain = parse_address(text)
    except InvalidAddress as error:
        error.param = param
        raise
    # Not `casefold`: it writes straße as strasse. Lower case may decompose: İ becomes an i with a dot above.
    return f"{local.lower() if local.isascii() else unicodedata.normalize('NFC', local.lower())}@{domain}"


def normal_address(text: object) -> str:
    """The same; empty for what is no address."""
    try:
        return checked_address(text, "") if isinstance(text, str) else ""
    except InvalidAddress:
        return ""


def ascii_domain_of(domain: str) -> str:
    """A domain in ASCII, by which a bounce names bücher.example too; empty for what is none.

    The mapping is that of browsers (UTS 46, not transitional): "straße" and "strasse" are two domains of two owners.
    """
    if domain.isascii():
        return domain.lower()
    import idna  # its tables take 20 ms, and hardly an address needs them

    try:
        labels = idna.uts46_remap(domain, std3_rules=True, transitional=False).split(".")
        # Without the further rules of IDNA 2008: they forbid emoji, under which domains are registered.
        return ".".join(label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in labels)
    except UnicodeError:
        return ""
