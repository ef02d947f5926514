"""Switches accelerators off in this process, so that a benchmark shows what each saves. The product has no such switch.

A switch replaces names of modules and members of classes, in a process of its own and before an engine is opened.
"""

# ruff: noqa: SLF001 — what is switched off is private

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from threadline.capabilities.decide.rules import active_rules
from threadline.capabilities.foundation.conditions import Conditions, Subject
from threadline.capabilities.foundation.conditions.tree import Node
from threadline.engine import interpreter
from threadline.engine.folding import catalogue, late_arrival, person_packing
from threadline.engine.reading import lookup
from threadline.engine.recording.working_set import PeopleCache
from threadline.engine.two_generation_cache import TwoGenerationCache
from threadline.kernel.projection import Fold, Projection
from threadline.stores.sqlite import tail


def compiled_folds() -> None:
    """Folds as they are declared, without those written out for one event type."""

    def fold_of(projection: Projection, event_type: str) -> Fold | None:
        handled = catalogue._handled(projection.handles, event_type)
        return projection.fold if handled else None

    catalogue._fold_of = fold_of


def compiled_rules() -> None:
    """Trees of conditions asked one after the other, without the function that is written out for all of them."""

    def one_by_one(trees: Sequence[tuple[int, Node]]) -> Callable[[Subject], Iterator[int]]:
        tests = [(position, Conditions(tree).test) for position, tree in trees]
        return lambda subject: (position for position, test in tests if test(subject))

    active_rules.fused = one_by_one


def packed_states() -> None:
    """All states of a person unpacked as they are read, not each on first use."""
    made = person_packing._person_of

    def unpacked(*arguments: Any) -> Any:
        person = made(*arguments)
        if person is not None and not isinstance(person, str):
            for index in range(len(person.states)):
                person.states[index]
        return person

    person_packing._person_of = unpacked


def provisional_states() -> None:
    """While an event lies ahead of the clock, the states until then folded from the log at each read."""

    def keep_up(scene: Any, person: Any, recorded: Any, steps: Any, now: int, *, late: bool) -> int:
        person.provisional = None
        return sum(1 << index for index, _ in steps)

    late_arrival._keep_up = keep_up


def snapshot_and_tail() -> None:
    """All states of a person written with every event, not a head and the ids of the events since a snapshot."""
    person_packing.WHOLE_BYTES_MAX = 1 << 40


def index_tail() -> None:
    """The indexes of the log written with nearly every commit, in small parts, not from a tail in memory."""
    full = tail.Tail.__init__

    def small(self: Any, entries_max: int) -> None:
        full(self, 100)

    tail.Tail.__init__ = small


def deferred_collections() -> None:
    """The garbage collector at its usual threshold."""
    interpreter._DEFERRED_OBJECTS = 0


def reader_priority_of_reads() -> None:
    """Readers and the writer as the interpreter schedules them."""
    interpreter.ReaderPriority.give = lambda self: None


def recorder_people() -> None:
    """Every person of a call read from the store."""
    _empty(PeopleCache, "people", "owners")


def recent_events() -> None:
    """The events of a person's tail read from the log, also those that this process has recorded."""
    _empty(PeopleCache, "events")


def readers_people() -> None:
    """Every person unpacked and folded at each read, although nothing has changed."""
    _empty(lookup.Lookup, "_read")


def all_caches() -> None:
    """All bounded caches of the engine: people, owners, identifiers, sources, recent events."""
    TwoGenerationCache.put = lambda self, key, value: None


def _empty(of: Any, *names: str) -> None:
    """Let caches of a class hold nothing."""
    begun = of.__init__

    def begin(self: Any, *arguments: Any, **named: Any) -> None:
        begun(self, *arguments, **named)
        for name in names:
            setattr(self, name, _Empty(1))

    of.__init__ = begin


class _Empty(TwoGenerationCache[Any, Any]):
    """Holds nothing."""

    def put(self, key: Any, value: Any) -> None:
        """Drop it."""


SWITCHES: dict[str, Callable[[], None]] = {
    "": lambda: None,
    "compiled folds": compiled_folds,
    "compiled rules": compiled_rules,
    "states packed until first use": packed_states,
    "provisional states": provisional_states,
    "snapshot and tail": snapshot_and_tail,
    "index from a tail": index_tail,
    "deferred garbage collection": deferred_collections,
    "reader priority": reader_priority_of_reads,
    "the recorder's people": recorder_people,
    "recent events in memory": recent_events,
    "the readers' people": readers_people,
    "all bounded caches": all_caches,
}
"""Accelerator -> what switches it off; the first switches nothing off."""
