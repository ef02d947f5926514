"""A what-if: two variants of what decides, the evaluators that decide in each, and the tally of what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

from threadline.kernel.event import Recorded
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Emit, Wish
from threadline.kernel.store import Key

Decisions = Mapping[str, Any]
"""What was decided about one event, by the name of what decided."""


class Evaluator(Protocol):
    """Decides about events in the place of a policy."""

    name: str
    """The policy in whose place it decides."""
    reads: Sequence[tuple[str, tuple[str, ...]]]
    """The projections whose views it reads, and the steps inside each: it looks at nothing else of them."""

    def handles(self, event_type: str) -> bool:
        """Whether it wants to see events of a type."""
        ...

    def decisions(self, recorded: Recorded, person: PersonView) -> Decisions:
        """What it decides. Pure."""
        ...

    def wishes(self, recorded: Recorded, decisions: Any, matters: Callable[[str], bool]) -> Sequence[Wish]:
        """What it wants because of that. Of a wish that nobody would notice no more has to be right than its kind.

        ``matters`` says whether an event of a type changes anything that is looked at.
        """
        ...

    def decides_as(self, other: Any, event_type: str) -> bool:
        """Whether it decides about events of a type exactly as another evaluator of its class does."""
        ...

    def alike(self, wish: Emit) -> Any:
        """The part of an event it wants that others can notice: variants that are equal in it share one simulation."""
        ...


class Pair(NamedTuple):
    """An event, and what was decided about it in each of the two variants."""

    recorded: Recorded
    old: Decisions
    new: Decisions


class Tally(Protocol):
    """Counts what comes of it. Adding up people in any order gives the same."""

    def take(self, person: str, pairs: Sequence[Pair]) -> bool:
        """Count a person; whether to explain what is different."""
        ...

    def explain(self, person: str, pairs: Sequence[Pair]) -> None:
        """What is different for a person; the later word, with every reason, is the better one."""
        ...

    def end(self, person: str, old: Any, new: Any) -> None:
        """What the two variants say of a person at the end, where they need not say the same."""
        ...

    def cut(self, events: int) -> None:
        """Events of a person of which more came under the candidate than may come of one: the rest is left out."""
        ...

    def fail(self, person: str, problem: str) -> None:
        """A person whose history cannot be replayed under the candidate."""
        ...


class VariantSpec(NamedTuple):
    """One of the two variants that are compared."""

    catalogue: Any
    """A catalogue that the engine made: see `threadline.kernel.ports.Catalogue.variant`."""
    evaluator: Evaluator
    explaining: Evaluator
    """The same evaluator, giving every reason."""
    replayed: Set[str]
    """Further policies that react again."""
    shared: Mapping[str, Any]
    """What these share, by name."""


Ending = Callable[[PersonView], Any]
"""What is compared of a person's views at the end."""
RecordedDecision = Callable[[Recorded], tuple[str, str, Any] | None]
"""Reads (event, by what, decision) from an event of the log; None for an event of another type."""


class PageDone(NamedTuple):
    """A page of people is done."""

    after: Key | None
    """Where to go on; None at the end."""
    people: int
    events: int


Pages = Callable[[Key | None], Iterator[PageDone]]
"""Runs a what-if page by page, from a key on."""
