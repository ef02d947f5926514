"""What can stand in a view, so that a path to what never is there is a mistake where it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from threadline.kernel.names import Names, hint


@dataclass(frozen=True, slots=True)
class Parts:
    """The keys of an object in a view. Under each there are further ones; None: anything may be there."""

    known: Mapping[str, Parts | None] = field(default_factory=lambda: MappingProxyType({}))
    """Those that are called the same for everybody."""
    named: str | None = None
    """The others are names of this `NameKind`; empty: they can be called anything; None: there are no others."""
    inside: Parts | None = None
    """What is under a key that is a name."""

    def lacks(self, path: tuple[str, ...], what: str, names: Names) -> str:
        """Why there never is a value at a path into the view called ``what``; empty where there may be one."""
        parts: Parts | None = self
        for number, step in enumerate(path):
            if parts is None:
                return ""
            if step in parts.known:
                parts = parts.known[step]
            elif parts.named is not None:
                if parts.named and (problem := names.unknown(parts.named, step)):
                    return problem
                parts = parts.inside
            elif parts is not VALUE:
                return f"{what} has no {'.'.join(path[: number + 1])!r}; {hint(step, parts.known)}"
            else:
                return f"{'.'.join((what, *path[:number]))} is a plain value; nothing is inside it"
        return ""


VALUE = Parts()
"""A plain value, inside which nothing is."""


def values(*names: str) -> dict[str, Parts | None]:
    """Keys with a plain value each."""
    return dict.fromkeys(names, VALUE)
