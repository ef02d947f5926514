"""What to write instead of a name that nobody knows, for the end of an error message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is spelled most like ``name``; None if none is near. ``likeness`` is 0 to 1."""
    matches = difflib.get_close_matches(name, sorted(known), n=1, cutoff=likeness)
    return matches[0] if matches else None


def suggestion(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """``did you mean 'x'?`` with the nearest known name; where none is near ``otherwise``, or all the known names."""
    choices = sorted(known)
    near = nearest(name, choices)
    if near is not None:
        return f"did you mean {near!r}?"
    return otherwise or (f"choose from {', '.join(choices)}" if choices else "there are none")
