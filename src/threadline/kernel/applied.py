"""What bringing everybody up to changed definitions has come to, and what has changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from threadline.kernel.consequences import Consequences


class Advanced(NamedTuple):
    """How far everybody was brought up to the definitions in force by one call."""

    step: str
    """``people``, whose states are folded again, or the name of a `Refresh`; empty: everybody was up to date."""
    people: int
    """People looked at."""
    next: str
    """Where to go on; empty when everybody is up to date."""


class IndexPart(NamedTuple):
    """What has to be written for everybody before it can be read: of an index or of a `Refresh`, one thing declared."""

    name: str
    """The projection whose rows are read, or a `Refresh`: ``segments``, ``leaderboards``, ``profile``."""
    of: str = ""
    """Which one, such as the name of a segment; empty: all of them."""
    rows: bool = True
    """Whether rows are read; False: only what the views of people say of it."""


class Filling(NamedTuple):
    """A part that is not filled as of the definitions in force."""

    part: IndexPart
    share: float
    """How much of everybody was looked at since; 0: nobody yet."""

    def __str__(self) -> str:
        name = f"{self.part.name}.{self.part.of}" if self.part.of else self.part.name
        return f"{name}: {self.share:.0%} of everybody looked at" if self.share else name


class FilledIndexes(Protocol):
    """As of which definitions that is filled which is written for everybody."""

    def filling(self, parts: Iterable[IndexPart]) -> Sequence[Filling]:
        """Which of these are not filled as of the definitions in force, and how far each is.

        Nothing is decided for good by what these hold.
        """
        ...

    def filled_as(self, parts: Iterable[IndexPart]) -> str:
        """A hash of the definitions by which these are filled: their own, and those of what they read."""
        ...

    def note_refreshed(self, name: str, after: str) -> None:
        """Note how far everybody was looked at by a `Refresh`: up to an id, or all of them if it is empty."""
        ...


class Foretold(NamedTuple):
    """What bringing some people up to the definitions in force would cause."""

    people: int
    """People looked at."""
    consequences: Consequences
    next: str
    """Where to go on; empty when everybody was looked at."""


class DefinitionChange(NamedTuple):
    """A definition that differs from the one that everybody was last brought up to."""

    change: str
    """``added``, ``changed`` or ``removed``."""
    section: str
    name: str


class DefinitionHistory(Protocol):
    """What the definitions have declared over time."""

    def names(self, shared: str) -> list[str]:
        """Every name that was ever declared."""
        ...

    def transitions(self, shared: str, name: str) -> list[tuple[int, int]]:
        """(instant, version) of each change, oldest first; version 0: nothing declared."""
        ...

    def content(self, shared: str, name: str, version: int) -> bytes | None:
        """The content of a version that was declared at some time; None if it never was."""
        ...
