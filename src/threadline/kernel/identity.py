"""Whom an event is about: the kinds of identifiers, their normal and former forms, and the guards before a merge."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.kernel.address import ADDRESS_OCTETS_MAX, checked_address, trimmed
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Identifier, thread_id
from threadline.kernel.limits import IDENTIFIER_KIND_LENGTH_MAX, IDENTIFIER_LENGTH_MAX, THREADS_PER_PERSON_MAX
from threadline.kernel.phone import EXTENSION, parse_phone

Form = Literal["strip", "email", "phone", "whatsapp"]
"""``strip`` (without blanks around), ``email`` (an address of mail), ``phone`` (a number), ``whatsapp`` (one that may
lack its +)."""


def normalised(value: str, form: Form, region: str = "") -> str:
    """A value in this form; raises `InvalidValue` for what is no address or no number. Numbers without a country are
    those of ``region``."""
    if form == "strip":
        return value.strip()
    if form == "email":
        return checked_address(value, "")
    if form == "whatsapp" and (digits := trimmed(value)).isdigit():
        value = f"+{digits}"  # WhatsApp names everybody by a number with its country code and without the +
    return parse_phone(value, region)


MERGED = "threadline.person_merged"
SPLIT = "threadline.person_split"
ALIAS = "alias"
"""The type of events that say what somebody was called before, in `Event.object_ref`."""
SYSTEM_PREFIX = "threadline."
"""Types of events that Threadline itself puts in a thread; no producer may use them."""


KIND_FORM = f"up to {IDENTIFIER_KIND_LENGTH_MAX} printable characters without a colon"
"""What a kind of identifier may be called, in words."""


def is_kind(name: str) -> bool:
    """Whether this is a valid name for a kind of identifier."""
    # People are looked up as kind:value, so nobody could be found by a kind with a colon. A NUL would let two pairs of
    # kind and value share one thread, whose id is made of both.
    return 0 < len(name) <= IDENTIFIER_KIND_LENGTH_MAX and ":" not in name and name.isprintable()


class IdentifierKind(msgspec.Struct, frozen=True):
    """One kind of identifier. Events are kept in the thread of their identifier with the lowest ``priority``."""

    name: str
    priority: Annotated[
        int,
        Meta(
            ge=0, le=1_000, description="The lowest decides whose thread an event with several identifiers is kept in."
        ),
    ] = 50
    limit: Annotated[
        int, Meta(ge=1, le=THREADS_PER_PERSON_MAX, description="How many of this kind one person may have.")
    ] = 5
    """A merge that would exceed it is quarantined."""
    normalise: Form = "strip"
    """The normal form of its values."""
    identifying: Annotated[bool, Meta(description="Whether it finds and joins people.")] = True
    joins: Annotated[
        bool, Meta(description="False: it finds people only where nothing else in an event does, so it joins nobody.")
    ] = True
    shared: Annotated[bool, Meta(description="The same value names the same human in every workspace.")] = False
    personal: Annotated[
        bool,
        Meta(
            description="Whether a value by itself says who somebody is, as an address does and a number of yours not."
        ),
    ] = False

    @property
    def is_personal(self) -> bool:
        """Whether a value says by itself who somebody is; addresses and phone numbers always do."""
        return self.personal or self.normalise != "strip"


_OTHER = IdentifierKind("external_id")


@dataclass(frozen=True, slots=True)
class IdentityRules:
    """The kinds in force, by name; an unknown kind is treated like ``default``."""

    kinds: Mapping[str, IdentifierKind]
    junk: frozenset[str]
    """Case-folded values that name nobody, such as ``null`` or ``undefined``."""
    default: IdentifierKind = _OTHER
    blocked: frozenset[Identifier] = field(default=frozenset())
    """Single identifiers declared non-identifying, such as a shared mailbox."""
    not_junk: frozenset[str] = frozenset()
    """Case-folded values that name somebody, although they look like a placeholder."""
    phone_region: str = ""
    """The country of numbers that do not name theirs, such as DE; empty: they identify nobody."""

    def kind(self, name: str) -> IdentifierKind:
        """The rules for a kind of this name."""
        return self.kinds.get(name, self.default)

    def normalise(self, identifier: Identifier) -> Identifier | None:
        """The form in which it is stored, or None if it is no address, no number or junk, and names nobody."""
        try:
            value = self._normal_value(identifier)
        except InvalidValue:
            return None
        return identifier if value == identifier.value else Identifier(identifier.kind, value)

    def problem(self, identifier: Identifier) -> str:
        """Why it names nobody; empty if it does."""
        try:
            self._normal_value(identifier)
        except InvalidValue as error:
            return f"{identifier.kind} {error}"
        return ""

    def former(self, identifier: Identifier) -> Identifier | None:
        """The form in which version 0.1 stored it, which took any text for an address or a number."""
        value = former_value(identifier.value, self.kind(identifier.kind).normalise)
        junk = self._is_junk(value) or self._is_junk(identifier.value.strip())
        if junk or not 0 < len(value) <= IDENTIFIER_LENGTH_MAX:
            return None
        return Identifier(identifier.kind, value)

    def forms(self, identifier: Identifier) -> tuple[Identifier, ...]:
        """The forms under which its person may be known: that of today, then those of version 0.1."""
        normal = self.normalise(identifier)
        if normal is None:
            former = self.former(identifier)
            return () if former is None else (former,)
        return (normal, *self.former_forms(identifier, normal))

    def former_forms(self, identifier: Identifier, normal: Identifier) -> tuple[Identifier, ...]:
        """The forms of version 0.1, of an identifier in its ``normal`` form. Nearly all have none."""
        form = self.kind(identifier.kind).normalise
        # The digits of an extension at the end of a number make another number, of somebody else.
        if form == "strip" or EXTENSION in normal.value:
            return ()
        values = former_addresses(normal.value) if form == "email" else ()
        former = former_value(identifier.value, form)
        if former != normal.value and former not in values and not self._is_junk(former):
            values += (former,)
        return tuple([Identifier(identifier.kind, value) for value in values])

    def threads(self, workspace: str, identifier: Identifier) -> list[str]:
        """The threads of these forms, in their order."""
        return [thread_id(workspace, form) for form in self.forms(identifier)]

    def _normal_value(self, identifier: Identifier) -> str:
        raw = identifier.value
        form = self.kind(identifier.kind).normalise
        stripped = raw.strip()
        if len(stripped) > IDENTIFIER_LENGTH_MAX:
            raise InvalidValue(f"{raw[:80]!r}… is longer than {IDENTIFIER_LENGTH_MAX} characters")
        # Junk is looked for in both forms, and first: of "-1" it would be said that it is no number.
        if self._names_nobody(stripped):
            raise InvalidValue(f"{raw[:80]!r} names nobody")
        value = normalised(raw, form, self.phone_region)
        if form != "strip" and value != raw and self._names_nobody(value):
            raise InvalidValue(f"{raw[:80]!r} names nobody")
        return value

    def _names_nobody(self, value: str) -> bool:
        return not value or self._is_junk(value) or (is_placeholder(value) and value.casefold() not in self.not_junk)

    def _is_junk(self, value: str) -> bool:
        return value.casefold() in self.junk or _ZEROS.fullmatch(value) is not None

    def rank(self, identifier: Identifier) -> tuple[int, str, str]:
        """What identifiers are sorted by: the strongest has the lowest rank; the order is the same for everyone."""
        return (self.kind(identifier.kind).priority, identifier.kind, identifier.value)

    def joins(self, identifier: Identifier) -> bool:
        """Whether this one may join the person it finds with those that others find."""
        return self.kind(identifier.kind).joins

    def identifies(self, identifier: Identifier) -> bool:
        """Whether this one may find and join people."""
        return self.kind(identifier.kind).identifying and identifier not in self.blocked


_ZEROS = re.compile(r"[+0\s.-]+")
_PLACEHOLDER = re.compile(
    r"""
    \\n | \( (?:null|nil|none|nan|undefined|empty|unknown) \)                   # of databases and languages
    | \#? (?:n/a|null!|ref!|value!|name\?|div/0!|num!|spill!|calc!)             # of spreadsheets
    | (?:anonymous|user|customer|client|visitor|person|contact|member|account|device|profile|external)[_\ -]?id
    | %[a-z][\w.-]*% | %%[\w.-]+%% | __[a-z_]+__                                # names that nobody replaced by a value
    | \{[a-z_][\w.]*\} | <[a-z_][\w.\ -]*> | \[[a-z_][\w.\ -]*\]
    | .*(?: \{\{.*\}\} | \$\{.*\} | \#\{.*\} | \{%.*%\} | <%.*%> | \*\|.*\|\* | \[\[.*\]\] ).*    # of templates
    """,
    re.I | re.X | re.S,
)
_SIGNS = frozenset("\\#<([{%$*")
_WORDS = re.compile(r"[a-z _-]{1,20}", re.I)


def is_placeholder(value: str) -> bool:
    """Whether a value is what stands where nobody has filled in one: ``\\N``, ``#N/A``, ``{{user_id}}``, ``userId``."""
    # Nearly all values have none of these signs, and something else than letters.
    may_be = not _SIGNS.isdisjoint(value) or _WORDS.fullmatch(value) is not None
    return may_be and _PLACEHOLDER.fullmatch(value) is not None


# --- forms of an earlier version -------------------------------------------------------------------
#
# Version 0.1 took whatever stood in a field, composed no letters, and left the domain of an identifier in Unicode. Its
# threads, rows and hashes are found under these forms: whoever looks something up tries them as well, so that nobody
# who was known becomes unknown and nobody who was suppressed gets mail.

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
