"""Names: of which kinds there are some, how one is spelled, which are known, and which is near one that is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec import Meta

from threadline.kernel.errors import NotFound
from threadline.kernel.event import Event
from threadline.kernel.event_type import EventTypes
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
    has: Callable[[Any, str, str], bool] | None = None
    """(engine, workspace, name) -> whether one is stored that `stored` may leave out, which lists some of many."""
    listed_by: str = ""
    """The operation that lists them, if there is one of this name."""
    never: str = ""
    """Of a kind that is free, what to say of a name that nobody has used, such as ``nobody has ever sent``. Empty: a
    name that is neither declared nor stored is a mistake."""
    of_types: Callable[[EventTypes], Iterable[str]] = lambda types: ()
    """The names of a free kind that declared types of events know."""
    brought: Callable[[Event], Iterable[str]] = lambda event: ()
    """The names of a free kind that an event brings."""
    is_path: bool = False
    """Whether a name is a path: below one that is declared anything may be."""

    @property
    def is_free(self) -> bool:
        """Whether nothing has to declare them."""
        return bool(self.never)

    def is_among(self, name: str, names: Collection[str]) -> bool:
        """Whether a name is one of these, or a path that begins with one."""
        if name in names or not self.is_path:
            return name in names
        steps = name.split(".")
        return any(".".join(steps[:count]) in names for count in range(1, len(steps)))


EVENT_TYPE, PROPERTY, TRAIT, TAG, INTEREST = "event type", "property", "trait", "tag", "topic of interest"
"""Names of the free kinds that definitions mention in conditions."""


def property_name(steps: Iterable[str]) -> str:
    """The name of a property at some steps into an event's properties: places in lists are no part of it."""
    return ".".join(step for step in steps if not step.isdecimal())


class Mention(NamedTuple):
    """A name of a free kind that definitions write."""

    kind: str
    name: str
    place: str
    """File and line."""
    column: int
    """From 1."""
    what: str
    """What names it, e.g. ``feature 'order_count'``."""


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
    made: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Kind that is free -> what ships, or comes of what is declared."""

    @classmethod
    def of(cls, kinds: Iterable[NameKind], definitions: Any) -> Names:
        """Those of these definitions, None for none."""
        by_name = {kind.name: kind for kind in kinds}
        known = {} if definitions is None else {name: kind.declared(definitions) for name, kind in by_name.items()}
        return cls(by_name, known, {} if definitions is None else definitions.known_names)

    def unknown(self, kind: str, name: str, besides: Iterable[str] = ()) -> str:
        """What to say of a name that nothing has; empty if something has it. ``besides``: further known names."""
        declared = self.known.get(kind)
        if declared is None or name in declared:
            return ""
        further = frozenset(besides)
        return "" if name in further else f"there is no {kind} {name[:64]!r}; {hint(name, {*declared, *further})}"

    def refuse(self, kind: str, name: str, param: str, engine: Any, workspace: str) -> None:
        """Raise `NotFound` with the nearest name if nothing in a workspace has this one, which a parameter names. Of a
        free kind one that nothing is near to may be right."""
        of = self.kinds.get(kind)
        problem = self.unknown(kind, name)
        is_sought = of is not None and (of.is_free or problem)
        if of is None or not is_sought or (of.has is not None and of.has(engine, workspace, name)):
            return
        stored = frozenset(of.stored(engine, workspace) if of.stored is not None else ())
        if of.is_free:
            known = stored.union(self.made.get(kind, ()))
            near = None if name in known else nearest_named(name, known)
            problem = "" if near is None else f"{of.never} {name[:64]!r}; did you mean {near!r}?"
        else:
            problem = self.unknown(kind, name, stored)
        if problem:
            is_listed = any(operation.name == of.listed_by for operation in engine.catalogue.operations)
            raise NotFound(problem, param=param, hint=f"`{of.listed_by}` lists them all" if is_listed else "")

    def offered(self, kind: str, engine: Any, workspace: str) -> list[str]:
        """The names of a kind that forms suggest: those that are declared, or known, and those that the store has."""
        of = self.kinds.get(kind)
        if of is None:
            return []
        stored = of.stored(engine, workspace) if of.stored is not None else ()
        declared = {*(self.known.get(kind) or ()), *self.made.get(kind, ()), *of.of_types(engine.catalogue.event_types)}
        return sorted(declared.union(stored))[:OFFERED_MAX]


OFFERED_MAX = 1_000
"""Names that a form suggests."""
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


Lacking = Callable[[Any, str, str], str]
"""(engine, workspace, value) -> what to say of names in a value that nothing has; empty if there are none."""


def refused_if(lacking: Lacking) -> Meta:
    """Marks a parameter whose value has names in it; it is refused with what ``lacking`` says of one nothing has."""
    return Meta(extra={"lacking": lacking})


def offers(kind: str) -> Meta:
    """Marks a parameter that may be a name of this kind and that may be another text: forms suggest those there are."""
    return Meta(extra={"offers": kind})


def names_a(kind: str) -> Meta:
    """Marks a parameter that is a name of this kind: a name that nothing has is refused, forms suggest the others."""
    return Meta(extra={"names": kind})
