"""What users declare, as its readers see it, and a section of it: its name and what may stand in it, for editors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from threadline.kernel.names import Reference
from threadline.kernel.policy import Read


@dataclass(frozen=True, slots=True)
class Section:
    """A top-level key that a capability reads, with the JSON Schema (2020-12) of its value.

    References within ``schema`` (``#/$defs/…``) lead to ``defs``, whose names are shared by all sections.
    """

    name: str
    schema: Mapping[str, Any]
    defs: Mapping[str, Any] = field(default_factory=dict)
    shapes: frozenset[str] = frozenset()
    """The names of the projections and policies that are made of it; empty: those that are named like it."""


class Declarations(Protocol):
    """What users declared. Whoever reads it notes mistakes in it; they are raised together once everybody has read."""

    failed: set[str]
    """Names of what is declared wrongly: what builds on one of these has no mistake of its own."""
    problems: list[str]

    known_names: dict[str, set[str]]
    """Names of free kinds that ship, or that what is declared makes, by their `NameKind`."""

    @property
    def known_types(self) -> set[str]:
        """Types of events that ship, or that what is declared makes."""
        ...

    @property
    def noted_paths(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        """The paths into views, each with its projection, of which it is known where they stand."""
        ...

    def note_unknown(self, unknown: Callable[[Reference], str], unread: Callable[[Read], str]) -> None:
        """Note every name and every path that leads nowhere where it stands. Both tell what is wrong, or nothing."""
        ...

    def contents(self) -> dict[str, dict[str, str]]:
        """Section -> name -> a hash of what is declared under it."""
        ...

    def refuse(self) -> None:
        """Raise `InvalidDefinition` with every mistake noted so far, if there is one."""
        ...

    def refuse_unknown(self, off: Mapping[str, str] = ...) -> None:
        """The same with every section that nobody has read. ``off``: section -> the capability that is switched off."""
        ...
