"""Live people from call to call, the latest used, bounded by the bytes of their states."""

from __future__ import annotations

from threadline.engine.folding.person import Person
from threadline.engine.two_generation_cache import TwoGenerationCache

STATE_BYTES_MAX = 16 * 1_024 * 1_024
"""Packed states in one generation; alive they take about six times as much."""
PERSON_BYTES = 1_000
"""What a person counts for beside the states."""
OWNERS_CACHED = 60_000


class PeopleCache:
    """What a recorder remembers between calls. Another process may have changed it since: then a commit is refused.

    The people in it are alive: whoever takes one out, changes it and does not see the change committed has to forget
    it. Not thread-safe.
    """

    __slots__ = ("_bytes", "_old", "_young", "owners")

    def __init__(self) -> None:
        self._young: dict[str, Person] = {}
        self._old: dict[str, Person] = {}
        self._bytes = 0
        """Of the people in the young generation."""
        self.owners: TwoGenerationCache[str, str] = TwoGenerationCache(OWNERS_CACHED)
        """Thread -> the id of the person who has it."""

    def get(self, id: str) -> Person | None:
        """The person of an id, which counts as a use."""
        person = self._young.get(id)
        if person is None:
            person = self._old.get(id)
            if person is not None:
                self.put(person)
        return person

    def put(self, person: Person) -> None:
        """Keep a person as the store has them now; the generation that was not used lately goes when one is full."""
        if person.id not in self._young:
            self._bytes += person.size + PERSON_BYTES
            if self._bytes > STATE_BYTES_MAX:
                self._old, self._young, self._bytes = self._young, {}, person.size + PERSON_BYTES
        self._young[person.id] = person

    def forget(self, id: str) -> None:
        """Drop a person if they are there."""
        self._young.pop(id, None)
        self._old.pop(id, None)

    def clear(self) -> None:
        """Drop everything."""
        self._young, self._old, self._bytes = {}, {}, 0
        self.owners.clear()
