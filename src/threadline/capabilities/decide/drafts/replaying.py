"""What people would be by a draft: their histories replayed beside what is in force, and one value of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

from threadline.capabilities.decide.drafts.draft import read_draft
from threadline.capabilities.foundation.events.sample import Deadline, Sample, sample
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Recorded
from threadline.kernel.operation import Context
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Emit, Wish
from threadline.kernel.ports import Catalogue
from threadline.kernel.simulation import Decisions, Pair, VariantSpec
from threadline.kernel.time import EARLIEST

FAILURES_MAX = 5
PAGE = 50
"""People between two looks at the clock."""


class Ended(NamedTuple):
    """A person at the end of both variants."""

    person: str
    old: Any
    """By what is in force."""
    new: Any
    """By the draft."""


class Looked(NamedTuple):
    """The people who were looked at."""

    ended: Sequence[Ended]
    sample: Sample
    failures: dict[str, str]
    """Person -> what went wrong with their events, for some."""


class Reading:
    """Decides nothing, and reads one part of a view, such as one feature."""

    def __init__(self, projection: str, part: str, catalogue: Catalogue, at: int) -> None:
        self.name = projection
        known = catalogue.of_nobody(projection, at) or {}
        self.reads: Sequence[tuple[str, tuple[str, ...]]] = [(projection, (part,))] if part in known else []
        self._part = part

    def value(self, person: PersonView) -> Any:
        """The part of the view; None where there is no such part."""
        return person.view(self.name)[self._part] if self.reads else None

    def handles(self, event_type: str) -> bool:
        """None of them."""
        return False

    def decisions(self, recorded: Recorded, person: PersonView) -> Decisions:
        """Nothing."""
        return {}

    def wishes(self, recorded: Recorded, decisions: Any, matters: Callable[[str], bool]) -> Sequence[Wish]:
        """Nothing follows from nothing."""
        return ()

    def decides_as(self, other: Any, event_type: str) -> bool:
        """Always: nothing is decided."""
        return True

    def alike(self, wish: Emit) -> Any:
        """All of it."""
        return wish


class _Ends:
    """Collects what people are at the end, in force and by the draft."""

    def __init__(self) -> None:
        self.ended: list[Ended] = []
        self.failures: dict[str, str] = {}

    def take(self, person: str, pairs: Sequence[Pair]) -> bool:
        return False

    def explain(self, person: str, pairs: Sequence[Pair]) -> None:
        """Nothing is decided, so there is nothing to explain."""

    def end(self, person: str, old: Any, new: Any) -> None:
        self.ended.append(Ended(person, old, new))

    def cut(self, events: int) -> None:
        """What is cut is cut of both variants."""

    def fail(self, person: str, problem: str) -> None:
        if len(self.failures) < FAILURES_MAX:
            self.failures[person] = problem[:500]


def drafted(context: Context, text: str, section: str, name: str) -> Catalogue:
    """The catalogue with a draft in its place. Raises `InvalidDefinition` with what is wrong with it."""
    read = read_draft(context, text, section, name)
    if read.catalogue is None:
        raise InvalidDefinition("\n".join(map(str, read.problems)), param="text")
    return read.catalogue


def looked_at(
    context: Context,
    catalogue: Catalogue,
    reading: Callable[[Catalogue], Reading],
    seconds: float,
    replayed: Set[str] = frozenset(),
) -> Looked:
    """As many people as the time allows, each with the value of a ``reading`` in force and by a catalogue of a draft.

    ``replayed``: the policies that react again in both.
    """
    in_force, ends = context.engine.catalogue, _Ends()
    old, new = reading(in_force), reading(catalogue)
    policies = frozenset(replayed)
    before = VariantSpec(in_force, old, old, policies, {})
    becoming = VariantSpec(catalogue, new, new, policies, {})
    deadline, people, after = Deadline(context, seconds), 0, ""
    while True:
        page, after = context.engine.reader.people(context.workspace, after, PAGE)
        pages = context.engine.simulations.replay(
            context.workspace,
            before,
            becoming,
            EARLIEST,
            context.now,
            ends,
            people=[person.id for person in page],
            endings=(old.value, new.value),
        )
        people += sum(done.people for done in pages(None))
        if not after or deadline.is_over:
            return Looked(ends.ended, sample(people, after), ends.failures)
