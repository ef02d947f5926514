"""A person at an instant: the one port by which policies, rules, segments and readers look at somebody."""

from __future__ import annotations

from typing import Any, Protocol

from threadline.kernel.event import Identifier, Recorded
from threadline.kernel.projection import Edge


class PersonView(Protocol):
    """A person at the instant `at`: exactly the events before it count.

    Views are the engine's own: look at them, never change them.
    """

    @property
    def person(self) -> str:
        """The person's id."""
        ...

    @property
    def workspace(self) -> str:
        """The workspace of the person."""
        ...

    @property
    def identifiers(self) -> tuple[Identifier, ...]:
        """The identifiers of the person."""
        ...

    @property
    def at(self) -> int:
        """The instant. For a policy it is right after the event that it reacts to; see `threadline.kernel.time`."""
        ...

    def view(self, name: str, at: int | None = None) -> Any:
        """A projection's view at `at`, exact, with the events of the same commit; None if there is no such projection.

        The argument ``at`` asks for another instant: the view then if nothing more happened, or the view in the past.
        """
        ...

    def events(self, name: str, edge: Edge) -> list[Recorded]:
        """The person's events in a range, of types that a projection folds, those of the same commit included.

        For what a bounded state no longer holds. It reads the log, so look at the state first.
        """
        ...

    def due(self, name: str, at: int | None = None) -> int | None:
        """The next instant after `at` at which that view changes through time alone; None: never, or unknown."""
        ...

    def ahead(self, at: int | None = None) -> int | None:
        """The next instant after `at` from which a further event in the log counts; None: there is none.

        ``at`` may be any other instant. It costs nothing for people without events after that instant.
        """
        ...
