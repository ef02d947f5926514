"""Identifiers of events: their normal form and their thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from threadline.engine.two_generation_cache import TwoGenerationCache
from threadline.kernel.event import Identifier, thread_id
from threadline.kernel.event_limits import check_kind
from threadline.kernel.identity import IdentityRules

NAMES_REMEMBERED = 30_000
KINDS_REMEMBERED = 1_000
PROBLEM_LENGTH_MAX = 500


class ResolvedIdentifier(msgspec.Struct, frozen=True, gc=False):
    """An identifier in its normal form and its thread."""

    identifier: Identifier
    thread: str
    priority: int
    identifies: bool
    joins: bool = True
    former: tuple[str, ...] = ()
    """The threads of other forms, in which an earlier version may know the same person. Events go into none of them."""

    def rank(self) -> tuple[int, str, str]:
        """The strongest identifier has the lowest rank; the order is the same for everyone."""
        return (self.priority, self.identifier.kind, self.identifier.value)


def threads_of(names: Sequence[ResolvedIdentifier]) -> list[str]:
    """The threads under which the people of an event may be known: those of its identifiers, then of former forms."""
    threads = [name.thread for name in names]
    for name in names:
        if name.former:
            threads += name.former
    return threads


class IdentifierResolver:
    """Identifiers as given -> `ResolvedIdentifier`; the latest are cached."""

    def __init__(self, rules: IdentityRules) -> None:
        self._rules = rules
        # Keyed by text and holding structs that the garbage collector does not track: tens of thousands of
        # cached names must not lengthen its passes.
        self._known: TwoGenerationCache[str, ResolvedIdentifier] = TwoGenerationCache(NAMES_REMEMBERED)
        self._kinds: set[str] = set()

    def of(self, workspace: str, identifier: Identifier) -> ResolvedIdentifier | None:
        """The resolved identifier, or None for junk. Raises `EventRejected` for an invalid kind."""
        if identifier.kind not in self._kinds:
            self._admit(identifier.kind)
        key = f"{workspace}\0{identifier.kind}\0{identifier.value}"
        named = self._known.get(key)
        if named is None:
            normal = self._rules.normalise(identifier)
            if normal is None:
                return None
            priority = self._rules.kind(normal.kind).priority
            identifies, joins = self._rules.identifies(normal), self._rules.joins(normal)
            former = tuple([thread_id(workspace, form) for form in self._rules.former_forms(identifier, normal)])
            named = ResolvedIdentifier(normal, thread_id(workspace, normal), priority, identifies, joins, former)
            self._known.put(key, named)
        return named

    def forms(self, workspace: str, identifier: Identifier) -> list[ResolvedIdentifier]:
        """Each form of an identifier under which its person may be known, with its own thread; for recorded events."""
        forms = (identifier, *self._rules.forms(identifier))
        priority = self._rules.kind(identifier.kind).priority
        return [
            ResolvedIdentifier(form, thread_id(workspace, form), priority, self._rules.identifies(form))
            for form in dict.fromkeys(forms)
        ]

    def nobody(self, identifiers: Iterable[Identifier]) -> str:
        """Why none of these identifiers finds anybody."""
        rules = self._rules
        why = [rules.problem(identifier) or f"{identifier.kind} does not identify" for identifier in identifiers]
        usable = "no usable identifier: give a user_id, anonymous_id, email, phone or external id"
        return "; ".join((usable, *why))[:PROBLEM_LENGTH_MAX]

    def _admit(self, kind: str) -> None:
        check_kind(kind)
        if len(self._kinds) >= KINDS_REMEMBERED:  # producers choose kinds freely, so the cache is bounded
            self._kinds.clear()
        self._kinds.add(kind)
