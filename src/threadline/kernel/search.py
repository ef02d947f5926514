"""The port of a search index: what it has of an event, what can be asked of it, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from threadline.kernel.event import Recorded
from threadline.kernel.event_type import SeenTypes


class Document(msgspec.Struct, frozen=True, gc=False):
    """An event as an index has it. A decision is an event, too."""

    id: str
    workspace: str
    thread: str
    type: str
    occurred_at: int
    text: str
    """What a search for words looks at."""
    rule: str = ""
    """The rule of a decision; empty for any other event."""
    status: str = ""
    """The status of a decision."""
    links: tuple[str, ...] = ()
    """Ids that the event names: its cause, the event that it decides about, the effect whose outcome it is."""
    is_activity: bool = True
    """Whether the person was seen at the time of the event."""
    naming: str = ""
    """The identifiers of the event, as one text."""
    is_naming: bool = False
    """Whether it says more of who its person is than its identifiers do."""


Documents = Callable[[Recorded], Document]
"""What makes the document of an event. Pure, so that an index that is built anew is the same."""


class NamedPerson(msgspec.Struct, frozen=True, gc=False):
    """A person as an index has them: by what names them now."""

    id: str
    workspace: str
    threads: tuple[str, ...]
    name: str
    """What lists that are sorted by name go by, folded."""
    text: str
    """What names them, folded, each on a line of its own."""
    created_at: int
    last_seen_at: int | None


PeopleOf = Callable[[Sequence[str]], Mapping[str, NamedPerson]]
"""By thread, the people to whom threads belong now; who has gone or cannot be read is left out."""
PeopleOrder = Literal["last_seen", "created", "name"]


class PeopleQuery(NamedTuple):
    """Which people of a workspace, and in which order."""

    workspace: str
    texts: tuple[tuple[str, ...], ...] = ()
    """Somebody matches whose text has all parts of one of these; none given: everybody."""
    order: PeopleOrder = "last_seen"
    is_descending: bool = True
    seen_from: int | None = None
    seen_before: int | None = None
    among: tuple[str, ...] | None = None
    """Only people with these ids; None: anybody."""
    without: tuple[str, ...] = ()
    """Nobody with these ids."""
    is_counted: bool = True
    """Whether the total is asked for; of many it takes longer than the page."""
    cursor: str = ""
    limit: int = 25


class Phrase(NamedTuple):
    """Words that stand next to each other, in this order."""

    words: tuple[str, ...]
    is_beginning: bool = False
    """Whether the last one may be the beginning of a longer word."""
    is_excluded: bool = False
    """Whether events with it are not wanted."""


class Query(NamedTuple):
    """Which events of a workspace. All that is given must be true of an event; nothing given: every event."""

    workspace: str
    phrases: tuple[Phrase, ...] = ()
    decisions: bool | None = None
    """True: only decisions; False: everything else."""
    type: str = ""
    threads: tuple[str, ...] | None = None
    """Any of these; None: any at all."""
    rule: str = ""
    status: str = ""
    links: tuple[str, ...] = ()
    """Events that name any of these ids."""
    start: int | None = None
    stop: int | None = None
    cursor: str = ""
    limit: int = 20
    facets: bool = False

    @property
    def contradicts_itself(self) -> bool:
        """Whether it wants a phrase and excludes it: nothing matches, and every event with the phrase would be read."""
        excluded = {(phrase.words, phrase.is_beginning) for phrase in self.phrases if phrase.is_excluded}
        return any(
            (phrase.words, True) in excluded or (phrase.words, phrase.is_beginning) in excluded
            for phrase in self.phrases
            if not phrase.is_excluded
        )


class Facets(NamedTuple):
    """How many of the newest matches have which value, each with the most frequent first."""

    counted: int
    """Matches that were counted."""
    is_complete: bool
    """Whether these were all."""
    values: Mapping[str, Mapping[str, int]]
    """By ``type``, ``rule`` and ``status``."""


class IndexProgress(NamedTuple):
    """How much of the log an index has."""

    position: int
    """Entries of the feed from the first on; all that matches of these is found, and of later ones nothing."""
    is_complete: bool
    """Whether the feed had no more when it was looked at."""


class Matches(NamedTuple):
    """A page of matches, the newest first."""

    ids: list[str]
    next: str
    """The cursor of the next page; empty at the end."""
    progress: IndexProgress
    facets: Facets | None = None


class PeopleMatches(NamedTuple):
    """A page of people."""

    cursors: dict[str, str]
    """By id, in order, the cursor with which the list goes on after each."""
    is_last: bool
    """Whether nobody comes after them."""
    total: int
    """How many people match, on all pages; 0 where it was not asked for."""
    is_total: bool
    """False: there are more than ``total``, and they were not counted."""
    progress: IndexProgress


class IndexStatus(NamedTuple):
    """An index as operators see it."""

    engine: str
    progress: IndexProgress
    documents: int
    bytes: int
    location: str


class SearchIndex(Protocol):
    """Finds events by what is in them. It derives from the log, catches up with it, and can be built anew."""

    def search(self, query: Query) -> Matches:
        """The matches of a query, after catching up, but with at most `SEARCH_CATCH_UP_EVENTS` entries of the feed.

        Raises `Unavailable` without an index.
        """
        ...

    def people(self, query: PeopleQuery) -> PeopleMatches:
        """The people who match now, after catching up as `search` does.

        Raises `Unavailable` without an index, and `NotConfigured` where the index has events only.
        """
        ...

    def types(self, workspace: str) -> SeenTypes:
        """The types of a workspace's events, at most `SEEN_TYPES_MAX`, from what the index has now.

        Raises `Unavailable` without an index, and before one was begun.
        """
        ...

    def catch_up(self, limit: int) -> IndexProgress:
        """Take in at most so many entries of the feed, and take out what was erased."""
        ...

    def rebuild(self) -> None:
        """Forget everything; catching up begins at the start of the feed."""
        ...

    def status(self) -> IndexStatus:
        """How it stands, without catching up."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
