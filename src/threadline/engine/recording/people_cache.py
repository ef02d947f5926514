"""The recorder's cache: live people, owners of threads, and the newest events."""

from __future__ import annotations

from threadline.engine.folding.person import Person
from threadline.engine.two_generation_cache import TwoGenerationCache
from threadline.kernel.event import Recorded

STATE_BYTES_MAX = 8 * 1_024 * 1_024
"""Packed states in one generation; alive they take about six times as much. Twice as many make a server of a million
events 90 MB larger, and its writer no faster that could be measured."""
PERSON_BYTES = 1_000
"""Weight of a person besides the states."""
OWNERS_CACHED = 60_000
EVENTS_CACHED = 8_000
"""Events of tails, which readers of this process then need not read and decode. Alive one takes about a kilobyte."""


class PeopleCache:
    """The recorder's cache between calls. A commit on outdated entries is refused.

    The people in it are mutable: after a change that is not committed they must be dropped. Only the recorder uses it,
    apart from `events`.
    """

    __slots__ = ("events", "owners", "people")

    def __init__(self) -> None:
        self.people: TwoGenerationCache[str, Person] = TwoGenerationCache(STATE_BYTES_MAX, _bytes)
        """People by id, as the store has them now."""
        self.owners: TwoGenerationCache[str, str] = TwoGenerationCache(OWNERS_CACHED)
        """Thread -> the id of the person who has it."""
        self.events: TwoGenerationCache[str, Recorded] = TwoGenerationCache(EVENTS_CACHED)
        """Id -> event, of the events in people's tails that were committed last."""

    def put(self, person: Person) -> None:
        """Keep a person whose changes were committed."""
        if person.tail:
            for recorded in person.pending:
                self.events.put(recorded.id, recorded)
        person.pending = []
        self.people.put(person.id, person)

    def clear(self) -> None:
        """Drop everything."""
        self.people.clear()
        self.owners.clear()
        self.events.clear()


def _bytes(person: Person) -> int:
    return person.size + PERSON_BYTES
