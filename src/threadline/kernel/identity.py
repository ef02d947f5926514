"""Whom an event is about: the kinds of identifiers, what each may hold, and the guards before a merge."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.kernel.event import Identifier
from threadline.kernel.limits import IDENTIFIER_KIND_LENGTH_MAX, IDENTIFIER_LENGTH_MAX, THREADS_PER_PERSON_MAX
from threadline.kernel.normalisation import Form, normalised

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
        return self.personal or self.normalise in ("email", "phone")


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

    def kind(self, name: str) -> IdentifierKind:
        """The rules for a kind of this name."""
        return self.kinds.get(name, self.default)

    def normalise(self, identifier: Identifier) -> Identifier | None:
        """The form in which it is stored, or None if it is junk and names nobody."""
        raw = identifier.value
        form = self.kind(identifier.kind).normalise
        value = normalised(raw, form)
        # Junk is looked for in both forms: as a phone number "-1" becomes "1", which somebody may have.
        if not 0 < len(value) <= IDENTIFIER_LENGTH_MAX or self._names_nobody(value):
            return None
        if form != "strip" and value != raw and self._names_nobody(raw.strip()):
            return None
        return identifier if value == raw else Identifier(identifier.kind, value)

    def _names_nobody(self, value: str) -> bool:
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
