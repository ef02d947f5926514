"""A section of the files of definitions: its name and what may stand in it, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
