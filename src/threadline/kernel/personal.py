"""Where a person's data lies: what each table of the store has of people, and which file of an archive shows it.

The data map of privacy law (GDPR access and erasure, CCPA). The export and the erasure of a person go by the same
declarations. Each capability makes its own, beside its projection or, where there are several, in `personal.py`; the
engine's are in `engine/maintenance/store_tables.py`. A table or a projection without one fails a law.

    >>> from threadline.kernel.personal import PersonFile
    >>> chats = PersonFile(
    ...     name="chats", title="Chats", summary="Your favourite channel.", projections=("favourite_channel",),
    ...     lines=lambda subject: iter([subject.views["favourite_channel"]]),
    ... )
    >>> chats.order
    50

`PersonFile` is a file of the archive; `StoreTable` says of whom the rows of a table are, and how they are removed;
`Copy` is a copy outside of the store, such as a lake or a search index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from threadline.kernel.event import Identifier, Recorded, source_type_of
from threadline.kernel.limits import JSON_DEPTH_MAX, PAGE_ITEMS_MAX
from threadline.kernel.outbox import DeadLetter, UnknownEffect
from threadline.kernel.ports import Person, Ports
from threadline.kernel.projection import Row
from threadline.kernel.rejected import RejectedEntry
from threadline.kernel.store import Item, Key
from threadline.kernel.time import EARLIEST, LATEST, format_time


class Subject:
    """A person whose data is asked for: everything at the position at which the person was read.

    It is the `Context` of the operations that it is asked with.
    """

    def __init__(self, engine: Ports, person: Person, now: int, source: str = "direct") -> None:
        self.engine = engine
        self.person = person
        """As read; its heads bound the events."""
        self.now = now
        """The instant of the views, microseconds."""
        self.source = source
        self.source_type = source_type_of(source)
        self.ids = frozenset({person.id, *person.heads})
        """Every id that the person ever had, and everybody merged into them: a person has the id of a thread."""
        self._views: Mapping[str, Any] | None = None

    @property
    def workspace(self) -> str:
        """The person's workspace."""
        return self.person.workspace

    @property
    def views(self) -> Mapping[str, Any]:
        """What each projection says of the person, by name."""
        # No `cached_property`: Python 3.11's holds one lock for all instances, and this reads the store.
        if self._views is None:
            self._views = self.engine.reader.views(self.person, self.now)
        return self._views

    def has(self, identifier: Identifier) -> bool:
        """Whether an identifier is one of the person's."""
        threads = self.engine.catalogue.rules.threads(self.workspace, identifier)
        return any(thread in self.person.heads for thread in threads)

    def events(self, types: frozenset[str] = frozenset()) -> Iterator[Recorded]:
        """The person's events in occurred order, of these types (empty: of all), page by page, but for damaged ones."""
        return self.engine.reader.all_events(self.person, types=types, size=_EVENTS_READ, skip_damaged=True)

    def dead_letters(self) -> Iterator[DeadLetter]:
        """The effects about the person that were given up on."""

        def page(after: str) -> list[DeadLetter]:
            return self.engine.delivery.dead_letters(self.workspace, "", after, PAGE_ITEMS_MAX)

        return (
            letter
            for letter in _pages(page, lambda letter: letter.cursor)
            if letter.pending.thread in self.person.heads
        )

    def unknown_effects(self) -> Iterator[UnknownEffect]:
        """The effects about the person of which nobody knows whether they happened."""

        def page(after: str) -> list[UnknownEffect]:
            return self.engine.delivery.unknown(self.workspace, after, PAGE_ITEMS_MAX)

        return (
            unknown
            for unknown in _pages(page, lambda unknown: unknown.cursor)
            if unknown.pending.thread in self.person.heads
        )

    def rejected(self) -> Iterator[RejectedEntry]:
        """The rejected events that name the person."""
        before = ""
        kinds = {_plain(name): name for name in self.engine.catalogue.rules.kinds}
        values = [
            identifier.value
            for identifier in self.person.identifiers.values()
            if len(identifier.value) >= _TEXT_SOUGHT_MIN
        ]
        while page := self.engine.rejected.page(self.workspace, before, PAGE_ITEMS_MAX):
            for _, entry in page:
                if entry.form == "text":
                    named = any(value in str(entry.payload) for value in values)
                else:
                    named = any(map(self.has, _identifiers_in(entry.payload, kinds)))
                if named:
                    yield entry
            before = page[-1][0]

    def quarantined(self) -> Iterator[dict[str, Any]]:
        """Joins of the person with somebody that wait for a decision, or were decided about."""

        def page(after: str) -> list[dict[str, Any]]:
            return self.engine.identity.quarantined(self.workspace, after, PAGE_ITEMS_MAX)

        for entry in _pages(page, lambda entry: entry["id"]):
            if not self.person.heads.keys().isdisjoint(entry["threads"]):
                yield entry


_TEXT_SOUGHT_MIN = 6
"""Characters of an identifier that is looked for in a rejected event which was kept as text: a shorter one is found in
the texts of others as well."""


def _plain(name: str) -> str:
    return name.replace("_", "").casefold()


def _identifiers_in(payload: Any, kinds: Mapping[str, str], depth: int = 0) -> Iterator[Identifier]:
    """What a payload that may be no event names a person by: members that are called like a kind, and pairs."""
    if depth > JSON_DEPTH_MAX:
        return
    if isinstance(payload, dict):
        kind, value = payload.get("kind"), payload.get("value")
        if isinstance(kind, str) and isinstance(value, str):
            yield Identifier(kind, value)
        for name, member in payload.items():
            if (known := kinds.get(_plain(name))) is not None and isinstance(member, str | int):
                yield Identifier(known, str(member))
            else:
                yield from _identifiers_in(member, kinds, depth + 1)
    elif isinstance(payload, list | tuple):
        if len(payload) == 2 and isinstance(payload[0], str) and isinstance(payload[1], str):
            yield Identifier(*payload)
        else:
            for member in payload:
                yield from _identifiers_in(member, kinds, depth + 1)


_EVENTS_READ = 200
"""Events that are read at a time: a large one has 32 KiB, and a page of them lies in memory."""

T = TypeVar("T")


def _pages(page: Callable[[str], list[T]], cursor: Callable[[T], str]) -> Iterator[T]:
    after = ""
    while items := page(after):
        yield from items
        if len(items) < PAGE_ITEMS_MAX:
            return
        after = cursor(items[-1])


Contents = Literal["person", "state_rows", "event_rows", "items", "nobody"]


@dataclass(frozen=True, slots=True)
class StoreTable:
    """A table of the store, and what of a person is in it.

    ``person``: the person's own items, threads and timers; `engine/maintenance/person_keys.py` finds their keys.
    ``state_rows``: rows that a projection asks for by a person's state. ``event_rows``: rows of single events. Both
    follow from the catalogue. ``items``: `keys` gives those about a person. ``nobody``: nothing in it is about people.
    """

    name: str
    contents: Contents
    shown_in: str = ""
    """The `PersonFile` that shows what it has of a person."""
    why: str = ""
    """Why no file has to show it, such as that it repeats what another one shows."""
    keys: Callable[[Subject], Iterator[Key]] | None = None
    """The keys of the items about a person. Set with ``items``. It needs no state of the person."""
    without: Callable[[Subject, Item], bytes | None] | None = None
    """The value of such an item without the person; None: nothing of it is left. Unset: each is about one person only,
    and nothing of it is left."""

    def __post_init__(self) -> None:
        if (self.keys is not None) != (self.contents == "items"):
            raise ValueError(f"table {self.name!r}: `keys` belongs to `items`, and to nothing else")
        if bool(self.shown_in) == bool(self.why):
            raise ValueError(f"table {self.name!r}: give the file that shows it, or why none has to")


@dataclass(frozen=True, slots=True)
class Copy:
    """Where data of people lies besides the tables of the store. Declared in the folder that writes it; what writes to
    files or to other systems in a folder without one fails a law.

    No archive shows a copy: it repeats what the store has.
    """

    name: str
    """What it is; docs/erasure.md says under this name what becomes of it."""
    taken_out_by: Callable[..., Any] | None = None
    """What takes out of it what was erased."""
    why: str = ""
    """Why an erasure does not reach it, or need not; set where nothing takes out anything."""

    def __post_init__(self) -> None:
        if (self.taken_out_by is None) != bool(self.why):
            raise ValueError(f"copy {self.name!r}: say what takes out of it what was erased, or why nothing does")


@dataclass(frozen=True, slots=True)
class Remainder:
    """What outlives the erasure of a person, as pseudonyms. Declared by a capability, and found by discovery."""

    name: str
    """What it is, in words."""
    rows: Callable[[Subject, Callable[[str], str]], Iterable[Row]]
    """(subject, pseudonym) -> the rows that are kept, of a table that holds nothing else; ``pseudonym`` makes one of a
    text."""


@dataclass(frozen=True, slots=True)
class PersonFile:
    """A file in the archive of a person, as JSON Lines, and a chapter of its readable page."""

    name: str
    """Such as ``points``; the file is ``points.jsonl``."""
    title: str
    summary: str
    """What it holds, in words that the person understands; ends with a full stop."""
    lines: Callable[[Subject], Iterator[dict[str, Any]]]
    """Its lines, of plain data, read page by page."""
    projections: tuple[str, ...] = ()
    """The projections whose views it shows."""
    order: int = 50
    """Its position among the files of an archive: the lowest is the first that is read, then by name."""


Lines = Callable[[Subject], Iterator[dict[str, Any]]]


def shown_views(*projections: str) -> Lines:
    """The lines of what projections say of a person: one for each name in their views, and that of a plain value."""

    def lines(subject: Subject) -> Iterator[dict[str, Any]]:
        for projection in projections:
            view = subject.views.get(projection)
            for name, value in view.items() if isinstance(view, Mapping) else ():
                if value not in ({}, [], None, ""):
                    yield {"of": projection, "name": name, "value": value}

    return lines


def shown_events(*types: str) -> Lines:
    """The lines of a person's events of these types, in short: `events.jsonl` has the whole of them."""

    def lines(subject: Subject) -> Iterator[dict[str, Any]]:
        for recorded in subject.events(frozenset(types)):
            event = recorded.event
            yield {
                "event": recorded.id,
                "type": event.type,
                "occurred_at": shown_time(event.occurred_at),
                "properties": event.properties,
            }

    return lines


def joined(*parts: Lines) -> Lines:
    """The lines of several, one after the other."""
    return lambda subject: (line for lines in parts for line in lines(subject))


def shown_time(at: int) -> str:
    """A time as text; one that text cannot hold is the nearest that it can."""
    return format_time(min(max(at, EARLIEST), LATEST))
