"""The journeys of a workspace as policies read them: every version that somebody may be in, and which are paused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.capabilities.reach.feedback.events import MAIL_BOUNCED, MAIL_COMPLAINED
from threadline.capabilities.reach.journeys.definition import Journey, journey_of_content
from threadline.capabilities.reach.journeys.events import REQUESTS
from threadline.capabilities.reach.journeys.program import Program, compiled
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.policy import REMEMBERED, TIMER_FIRED, Declared

PAUSED = "paused/"
"""What items of paused journeys are sorted by: this and the name. The value is since when."""

_ALWAYS = REQUESTS | {MAIL_BOUNCED, MAIL_COMPLAINED, TIMER_FIRED, MERGED, SPLIT}


class Compiled(NamedTuple):
    """One version of a journey."""

    journey: Journey
    program: Program


class Book:
    """All journeys. Immutable: replaced as a whole."""

    def __init__(
        self,
        journeys: Iterable[Journey],
        earlier: Iterable[Journey] = (),
        paused: Mapping[str, int] | None = None,
        zone: str = "UTC",
    ) -> None:
        self.in_force: Mapping[str, Compiled] = {
            journey.name: Compiled(journey, compiled(journey)) for journey in journeys
        }
        """Those of the definitions, by name."""
        self.paused: Mapping[str, int] = paused or {}
        """Since when a whole journey is paused, by name."""
        self.zone = zone
        """Of people who name none, where the journey names none."""
        self.transactional: frozenset[str] = frozenset()
        """The templates whose mails wait for no quiet hours."""
        self.removed: frozenset[str] = frozenset()
        """Journeys that are not declared any more. One that is merely unknown here may be new in another process."""
        self.remembered: Mapping[str, bytes] = {}
        """The items of earlier versions, of which `make_book` has made them."""
        # Journeys that are not declared any more have nobody in them.
        known = [journey for journey in earlier if journey.name in self.in_force]
        self._versions = {(journey.name, journey.version): Compiled(journey, compiled(journey)) for journey in known}
        self._versions |= {(active.journey.name, active.journey.version): active for active in self.in_force.values()}
        listening: dict[str, list[str]] = {}
        for name, active in sorted(self.in_force.items()):
            for type in sorted({type for on in active.journey.trigger for type in on.types}):
                listening.setdefault(type, []).append(name)
        self._triggered = {type: tuple(names) for type, names in listening.items()}
        self._types = {type for version in self._versions.values() for type in version.journey.types}
        if any(version.journey.follows_zone for version in self._versions.values()):
            self._types.add(IDENTIFY)

    def handles(self, event_type: str) -> bool:
        """Whether any journey, or anybody in one, goes by events of a type."""
        return event_type in self._types or event_type in _ALWAYS

    def triggered(self, event_type: str) -> tuple[str, ...]:
        """The journeys that events of a type may let people enter, by name."""
        return self._triggered.get(event_type, ())

    def version(self, journey: str, version: int) -> Compiled | None:
        """One version; the one in force in the place of an earlier one whose people go on in it. None: unknown."""
        current = self.in_force.get(journey)
        if current is None or current.journey.on_change == "move":
            return current
        return self._versions.get((journey, version))


def make_book(
    declared: tuple[Journey, ...], zone: str, transactional: frozenset[str], items: Mapping[str, bytes], before: object
) -> Book:
    """The book of what the definitions declare and of the items of a workspace, which hold earlier versions too."""
    earlier: list[Journey] = []
    removed: set[str] = set()
    for sort, content in items.items():
        if sort.startswith(REMEMBERED):
            name, _, version = sort.removeprefix(REMEMBERED).partition("/")
            if not int(version):
                removed.add(name)
                continue
            try:
                earlier.append(journey_of_content(name, int(version), content))
            except InvalidDefinition:
                continue  # it was right when it was declared; whoever is in it stays until it is declared again
    remembered = {sort: content for sort, content in items.items() if sort.startswith(REMEMBERED)}
    paused = {sort.removeprefix(PAUSED): int(value) for sort, value in items.items() if sort.startswith(PAUSED)}
    book = Book(declared, earlier, paused, zone)
    book.remembered, book.removed, book.transactional = remembered, frozenset(removed), transactional
    return book


def declared_versions(journeys: Iterable[Journey]) -> tuple[Declared, ...]:
    """What the definitions declare, to be remembered."""
    return tuple(Declared(journey.name, journey.version, journey.content, journey.place) for journey in journeys)
