"""Reads as of an instant: who is meant, and what is known of them, as it would have been answered then."""

from __future__ import annotations

from typing import Any, NamedTuple

from threadline.capabilities.foundation.events.forms import Instant, instant, past_instant
from threadline.kernel.operation import Context
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import IdentityHistory, Person


class PersonAsOf(NamedTuple):
    """Somebody at the instant that was asked about."""

    context: Context
    person: Person
    """Whoever was meant then."""
    as_of: int | None
    """The instant; None for the present."""
    known_at: int | None
    """By when something has to be known to count; None: it is all that is."""
    past: IdentityHistory | None
    """Their identity at other instants; None without an ``as_of``."""

    @property
    def at(self) -> int:
        """The instant that is looked at."""
        return self.context.now if self.as_of is None else self.as_of

    @property
    def shown_at(self) -> Instant:
        """The same, for the answer."""
        return instant(self.at)

    @property
    def view(self) -> PersonView:
        """The person at that instant."""
        return self.context.engine.reader.as_of(self.person, self.at, known_at=self.known_at)

    def views(self, *names: str) -> dict[str, Any]:
        """What these projections say, by name; all of them for none."""
        return self.context.engine.reader.views(self.person, self.at, known_at=self.known_at, names=names or None)

    def state(self, name: str) -> Any:
        """The state of a projection."""
        return self.context.engine.reader.state(self.person, name, self.at, known_at=self.known_at)


def person_as_of(context: Context, ref: str, as_of: str | None, known: str = "then") -> PersonAsOf:
    """Who is meant by ``ref`` as of an instant, or now.

    Raises `NotFound`, and `InvalidValue` for an instant that lies ahead.
    """
    at = past_instant(context, as_of)
    if at is None or known == "now":
        return PersonAsOf(context, context.engine.reader.person(context.workspace, ref), at, None, None)
    past = context.engine.reader.identity_history(context.workspace, ref)
    return PersonAsOf(context, past.at(at), at, at, past)
