"""Names: of which kinds there are some, how one is spelled, which are known, and which is near one that is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec import Meta

from threadline.kernel.errors import NotFound
from threadline.kernel.suggestion import nearest

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""How whatever is declared is called: names become parts of keys, addresses and paths of fields."""
PATH_NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9][a-z0-9_-]*([./][a-z0-9_-]+)*")
"""How a mail template is called: as a file in folders, such as ``onboarding/welcome``."""
VARIABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""How a variable is called, which stands in expressions, where ``a-b`` is a difference."""
SPELLING = "lower-case letters, digits, - and _"
PATH_SPELLING = "lower-case letters, digits, -, _, / and ."


@dataclass(frozen=True, slots=True)
class NameKind:
    """A kind of things that have names, declared by the capability whose they are. Found by discovery."""

    name: str
    """What one is called, such as ``segment``."""
    declared: Callable[[Any], Collection[str] | None]
    """Those that definitions declare, rightly or wrongly; None: any name may be right, as nothing is declared here."""
    plain: re.Pattern[str] = NAME
    stored: Callable[[Any, str], Iterable[str]] | None = None
    """(engine, workspace) -> those that operations have written into the store."""
    listed_by: str = ""
    """The operation that lists them, if there is one of this name."""


class Reference(NamedTuple):
    """A name that definitions write for something that is declared elsewhere."""

    kind: str
    name: str
    what: str
    """What names it, e.g. ``journey 'welcome'``."""


@dataclass(frozen=True)
class Names:
    """All names that the definitions in force know, of every kind."""

    kinds: Mapping[str, NameKind] = field(default_factory=dict)
    known: Mapping[str, Collection[str] | None] = field(default_factory=dict)
    """Kind -> what is declared; None: any name may be right."""

    @classmethod
    def of(cls, kinds: Iterable[NameKind], definitions: object) -> Names:
        """Those of these definitions, None for none."""
        by_name = {kind.name: kind for kind in kinds}
        known = {} if definitions is None else {name: kind.declared(definitions) for name, kind in by_name.items()}
        return cls(by_name, known)

    def unknown(self, kind: str, name: str, besides: Iterable[str] = ()) -> str:
        """What to say of a name that nothing has; empty if something has it. ``besides``: further known names."""
        declared = self.known.get(kind)
        if declared is None or name in declared:
            return ""
        further = frozenset(besides)
        return "" if name in further else f"there is no {kind} {name[:64]!r}; {hint(name, {*declared, *further})}"

    def refuse(self, kind: str, name: str, param: str, engine: Any, workspace: str) -> None:
        """Raise `NotFound` with the nearest name if nothing in a workspace has this one, which a parameter names."""
        stored = self.kinds[kind].stored if kind in self.kinds else None
        problem = self.unknown(kind, name)
        if problem and stored is not None:
            problem = self.unknown(kind, name, stored(engine, workspace))
        if problem:
            listing = self.kinds[kind].listed_by if kind in self.kinds else ""
            is_listed = any(operation.name == listing for operation in engine.catalogue.operations)
            raise NotFound(problem, param=param, hint=f"`{listing}` lists them all" if is_listed else "")


NEAR_MAX = 8
"""Known names that an error lists where none is near."""


def hint(name: str, known: Collection[str]) -> str:
    """What to write instead of a name that nothing has: the nearest, else all if they are few."""
    if not known:
        return "none is declared"
    near = nearest_named(name, known)
    if near is not None:
        return f"did you mean {near!r}?"
    few = len(known) <= NEAR_MAX
    return f"choose from {', '.join(sorted(known))}" if few else f"there are {len(known):,}"


def nearest_named(name: str, known: Collection[str]) -> str | None:
    """The known name that somebody means who writes this: by how it reads, else by its letters."""
    return named_as(name, known) or nearest(name, known)


def named_as(name: str, known: Collection[str]) -> str | None:
    """The known name that reads like this one, as ``Signed up`` is ``signed_up``; None if none does, or several do."""
    read = key_of(name)
    alike = [other for other in known if key_of(other) == read]
    return alike[0] if len(alike) == 1 else None


def key_of(name: str) -> str:
    """A name as it compares with how it reads: ``Signed up`` is ``signed_up``."""
    return "_".join(re.findall(r"[^\W_]+", name.casefold()))


def names_a(kind: str) -> Meta:
    """Marks a parameter that is a name of this kind: a name that nothing has is refused, forms suggest the others."""
    return Meta(extra={"names": kind})
