"""What operations ask of the engine: a port for each thing that it does, and `Ports`, which has them all.

Dependency injection by types: an operation asks ``context.engine.reader``, and mypy proves that there is such a port
and that the engine has it. A function that needs one port alone takes that one, such as a `PersonReader`. A test hands
over an engine on a memory store:

    >>> from threadline.app import open_engine
    >>> open_engine("memory:").rejected.page("default", "", 10)
    []
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from threadline.kernel.access import Accounts, Credentials, PasswordLinks, SecondFactors
from threadline.kernel.analytics import AnalyticsPort
from threadline.kernel.applied import (
    Advanced,
    DefinitionChange,
    DefinitionHistory,
    FilledIndexes,
    Foretold,
)
from threadline.kernel.audit import AuditLog
from threadline.kernel.background import Delivery, Jobs, Simulations
from threadline.kernel.confined import Confined
from threadline.kernel.consequences import Consequences
from threadline.kernel.erasure import Erasures
from threadline.kernel.event import Event, Identifier, Receipt, Recorded
from threadline.kernel.event_type import EventTypes
from threadline.kernel.finding import Finding
from threadline.kernel.identity import IdentityRules
from threadline.kernel.limits import EVENTS_PAGE_MAX
from threadline.kernel.names import Names
from threadline.kernel.object_storage import Storage
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Policy, PolicyView, Read
from threadline.kernel.projection import Projection, Row, State
from threadline.kernel.ranking import Ranks
from threadline.kernel.rejected import Reader, RejectedEntry, StoredEntry
from threadline.kernel.requirement import Requirement
from threadline.kernel.search import SearchIndex
from threadline.kernel.section import Declarations, Section
from threadline.kernel.sender import Queue
from threadline.kernel.store import Check, Delete, FeedEntry, Put, Refusal, Store
from threadline.kernel.time import Clock
from threadline.kernel.web import PublicAddress, Signer, Web

T = TypeVar("T")

Cursor = tuple[int, str]
"""(occurred_at, id) of the last event seen; unique among all events of a person."""


class Person(Protocol):
    """A person as the engine hands them out; to be passed back to it, and never changed."""

    id: str
    workspace: str
    created_at: int
    heads: dict[str, int]
    """Sequence of the last event of each thread."""
    identifiers: dict[str, Identifier]
    """The identifier of each thread."""

    @property
    def position(self) -> int:
        """How many events the person's threads hold."""
        ...

    @property
    def timers(self) -> dict[str, int]:
        """``thread/policy/key`` of each pending timer and when it is due."""
        ...


class IdentityHistory(Protocol):
    """A person, and who they were at any instant that is known."""

    def at(self, known_at: int) -> Person:
        """The person meant at an instant; raises `NotFound`."""
        ...

    def linked(self, person: Person, known_at: int) -> list[Identifier]:
        """The identifiers linked to this person at ``known_at``."""
        ...


class PersonReader(Protocol):
    """Reads people: who is meant, their events, their states and views at an instant."""

    def person(self, workspace: str, ref: str, *, known_at: int | None = None) -> Person:
        """The person of an id or of ``kind:value``, today or at an earlier instant; raises `NotFound`."""
        ...

    def by_thread(self, thread: str) -> Person | None:
        """The person a thread belongs to; None if there is none."""
        ...

    def by_threads(self, threads: Sequence[str]) -> Mapping[str, Person]:
        """By thread, the people that some threads belong to, read together."""
        ...

    def person_of(self, recorded: Recorded) -> Person:
        """The person in whose thread an event is."""
        ...

    def identity_history(self, workspace: str, ref: str) -> IdentityHistory:
        """Who the person meant by ``ref`` was at one instant and another; raises `NotFound`."""
        ...

    def people(self, workspace: str | None, after: str = "", limit: int = 1_000) -> tuple[Sequence[Person], str]:
        """A page of people in a stable order, and the id to continue after; workspace None: of all of them."""
        ...

    def all_people(self, workspace: str) -> Iterator[Person]:
        """Every person of a workspace, page by page."""
        ...

    def identifiers_of(self, workspace: str, ids: Sequence[str]) -> dict[str, list[str]]:
        """By id, how people are named as ``kind:value``, strongest first, read together; who has gone is left out."""
        ...

    def people_of(self, workspace: str, ids: Sequence[str]) -> dict[str, Person]:
        """By id, the people of a workspace, read together: who has gone is left out; a merged one is the survivor."""
        ...

    def upcoming(self, workspace: str, policy: str, before: int, after: str = "") -> Iterator[tuple[str, Person]]:
        """People for whom a policy has a timer due before an instant, by due time, with the cursor after each."""
        ...

    def views(
        self, person: Person, now: int, *, known_at: int | None = None, names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Each projection's view of a person at an instant, by name."""
        ...

    def state(self, person: Person, name: str, now: int, *, known_at: int | None = None) -> State:
        """The state of one projection at an instant."""
        ...

    def as_of(self, person: Person, at: int, *, known_at: int | None = None) -> PersonView:
        """A person at an instant; with ``known_at`` by what was known then."""
        ...

    def events(
        self, person: Person, *, start: int | None = None, stop: int | None = None, types: frozenset[str] = frozenset(),
        after: Cursor | None = None, limit: int = 100, reverse: bool = False, skip_damaged: bool = False,
    ) -> list[Recorded]:  # fmt: skip
        """A page of a person's events by (occurred_at, id), forward or backward.

        Raises `EventDamaged` at one that is not as it was written, or with ``skip_damaged`` goes past it.
        """
        ...

    def all_events(
        self, person: Person, *, start: int | None = None, stop: int | None = None, types: frozenset[str] = frozenset(),
        after: Cursor | None = None, reverse: bool = False, size: int = EVENTS_PAGE_MAX, skip_damaged: bool = False,
        counting: bool = False,
    ) -> Iterator[Recorded]:  # fmt: skip
        """The same to the end, in pages of ``size``; ``counting``: only those whose speaker may say them."""
        ...


class IndexRows(Protocol):
    """Reads the rows that projections ask for: see `threadline.kernel.projection.Index`."""

    def read(
        self, table: str, partition: str, start: str = "", stop: str | None = None, limit: int = 1_000,
        *, reverse: bool = False,
    ) -> list[Row]:  # fmt: skip
        """Rows of a partition with start <= sort < stop, by sort, at most ``limit``; go on after the last sort."""
        ...

    def has(self, table: str, partition: str, sorts: Sequence[str]) -> frozenset[str]:
        """Which of these sorts have a row in a partition: one read."""
        ...


class EventLog(Protocol):
    """Reads single events, and all of them in the order of commits."""

    @property
    def forms(self) -> Mapping[str, Callable[[Event], dict[str, Any]]]:
        """Member of `Event.wire` -> how the message that an event came in is written as it came."""
        ...

    def event(self, workspace: str, id: str) -> Recorded:
        """One event by its id; raises `NotFound`."""
        ...

    def events(self, workspace: str, ids: Sequence[str]) -> dict[str, Recorded]:
        """Those of these events that are there and are as they were written, by id: one read."""
        ...

    def of_key(self, workspace: str, source: str, key: str) -> Recorded | None:
        """The event that a source sent under an idempotency key; None if there is none."""
        ...

    def of_keys(self, workspace: str, sources: Sequence[str], keys: Sequence[str]) -> Recorded | None:
        """The event that the first of these sources sent under one of these keys; None if there is none."""
        ...

    def unerased_key(self, workspace: str, source: str, key: str) -> str:
        """A key of Threadline's own making, or another one made of it where the event of that key was erased."""
        ...

    def sources(self, workspace: str) -> list[str]:
        """Every source that has recorded in a workspace or has a credential for it."""
        ...

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """Every committed event once, in the order of commits, of all workspaces."""
        ...

    def read(self, feed_entry: FeedEntry) -> Recorded:
        """The event of an entry of the feed. Raises `EventDamaged` for one that is not as it was written."""
        ...

    def feed_end(self) -> str:
        """See `threadline.kernel.store.Store.feed_end`."""
        ...

    def feed_waits(self, cursor: str = "") -> bool:
        """Whether what lies behind a cursor is withheld until a writer that announced it has committed or gone."""
        ...

    def damaged(self, threads: Collection[str]) -> list[str]:
        """The ids of those events of these threads that are known to be damaged."""
        ...


class Recorder(Protocol):
    """Records events."""

    @property
    def clock(self) -> Clock:
        """The clock by which events are received."""
        ...

    def now(self) -> int:
        """The instant to read at: after everything that this process has recorded."""
        ...

    def record(
        self, events: Sequence[Event], *, expected: int | None = None, cause: str = "", known: bool = False
    ) -> list[Receipt]:
        """Record events; one receipt each, in order. What is accepted is durable when this returns."""
        ...

    def rehearse(self, event: Event, look: Callable[[Recorded, PolicyView], T]) -> T:
        """What ``look`` returns for an event and its person as a policy would see them. Nothing is recorded."""
        ...


class RejectedLog(Protocol):
    """Events that could not be recorded, kept until somebody decides about them."""

    @property
    def readers(self) -> Mapping[str, Reader]:
        """Form of a payload -> how to read it again."""
        ...

    def add(self, entries: Iterable[RejectedEntry]) -> None:
        """Keep what could not even be read as an event."""
        ...

    def entry(self, workspace: str, id: str) -> StoredEntry:
        """One entry; raises `NotFound`."""
        ...

    def page(self, workspace: str, before: str = "", limit: int = 100) -> list[tuple[str, RejectedEntry]]:
        """Entries newest first, with the cursor after each."""
        ...

    def resubmit(
        self, stored: StoredEntry, event: Event, *, expected: int | None = None
    ) -> tuple[Receipt, RejectedEntry]:
        """Record the correction of an entry, which is settled in the same commit."""
        ...

    def dismiss(self, stored: StoredEntry, reason: str) -> RejectedEntry:
        """Settle an entry without recording anything. Raises `Conflict` if somebody has decided about it."""
        ...


class IdentityAdministration(Protocol):
    """Joins and splits people on request."""

    def merge(
        self,
        workspace: str,
        first_ref: str,
        second_ref: str,
        *,
        request: str,
        reason: str = "",
        by: str = "",
        force: bool = False,
    ) -> tuple[str, str]:
        """Join two people; returns the ids of (survivor, merged)."""
        ...

    def split(
        self, workspace: str, person: str, identifiers: Sequence[str], *, request: str, reason: str = "", by: str = ""
    ) -> tuple[str, str]:
        """Take identifiers out of a person; returns the ids of (person, new person)."""
        ...

    def unmerge(self, workspace: str, event: str, *, request: str, reason: str = "", by: str = "") -> tuple[str, str]:
        """Undo the merge that this event records; returns the ids of (survivor, the person who is back)."""
        ...

    def review(self, workspace: str, id: str, *, join: bool, by: str = "") -> dict[str, Any]:
        """Decide about a quarantined join."""
        ...

    def quarantined(self, workspace: str, after: str = "", limit: int = 100) -> list[dict[str, Any]]:
        """Joins that were quarantined for review."""
        ...

    def preview_merge(self, workspace: str, first_ref: str, second_ref: str) -> tuple[Person, Person, str]:
        """The merged person, the one merged away, and what speaks against the merge. Writes nothing."""
        ...

    def foretell_merge(self, workspace: str, first_ref: str, second_ref: str) -> Consequences:
        """What a merge would cause. Writes nothing."""
        ...

    def preview_split(self, workspace: str, person: str, identifiers: Sequence[str]) -> tuple[Person, Person]:
        """The two people a split would leave. Writes nothing."""
        ...


class Maintenance(FilledIndexes, Protocol):
    """What a change of definitions asks for."""

    def stale(self) -> tuple[str, ...]:
        """What is older than the definitions in force: ``people`` or names of a `Refresh`."""
        ...

    def changes(self) -> Sequence[DefinitionChange]:
        """How the definitions in force differ from those that everybody was last brought up to."""
        ...

    def changed_projections(self) -> Sequence[str]:
        """The projections whose states have to be folded again for everybody."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of the definitions in force, the same in every process that goes by these."""
        ...

    @property
    def by_hand(self) -> int:
        """The version of what is made by hand that this process goes by; 0: none."""
        ...

    def reload(self) -> Maintenance:
        """Read the definitions again and put them in force; answers what does the same by the new ones.

        Raises `InvalidDefinition`, after which the old ones stay in force; `Conflict` where no server runs.
        """
        ...

    def fingerprint_with(self, by_hand: str) -> str:
        """The `fingerprint` that definitions would have if this text were all that is made by hand.

        Raises what `reload` would raise then; `Conflict` where no server runs.
        """
        ...

    def advance(self, cursor: str, limit: int) -> Advanced:
        """Bring some people up to date, from a cursor on ("": from the beginning)."""
        ...

    def foretell(self, cursor: str, limit: int) -> Foretold:
        """What `advance` would cause for some people: nothing is written."""
        ...

    def refresh(self, cursor: str, limit: int) -> Advanced:
        """Look at everybody's segments, leaderboards and milestones again, from a cursor on, where states have changed
        without an event."""
        ...

    def write_rows(self, name: str) -> int:
        """Write everybody's index rows, after a change of a projection; returns how many people were read."""
        ...

    def rows(self, person: Person, name: str) -> Iterable[Row]:
        """The index rows that a person's state asks for."""
        ...


class SharedValues(Protocol):
    """What policies share of a workspace."""

    def fresh(self, workspace: str, name: str) -> Any:
        """The value as the store has it now."""
        ...

    def writes(self, workspace: str, name: str, writes: Sequence[Put | Delete]) -> list[Put | Delete]:
        """Such changes with what belongs to them: for another commit, after which the engine reloads."""
        ...

    def change(self, workspace: str, name: str, writes: Sequence[Put | Delete | Check]) -> Refusal | None:
        """Commit changes of its items; None once they are durable, else why not."""
        ...


class Catalogue(Protocol):
    """Everything that is declared, and in force."""

    @property
    def rules(self) -> IdentityRules:
        """The kinds of identifiers."""
        ...

    @property
    def definitions(self) -> object:
        """The users' definitions that shaped it; None without any."""
        ...

    @property
    def layout(self) -> str:
        """Name, version and fingerprint of each projection."""
        ...

    @property
    def projections(self) -> tuple[Projection, ...]:
        """By name."""
        ...

    @property
    def policies(self) -> tuple[Policy, ...]:
        """By name."""
        ...

    @property
    def event_types(self) -> EventTypes:
        """What is declared of types of events."""
        ...

    @property
    def names(self) -> Names:
        """What is declared of every kind that has names."""
        ...

    @property
    def operations(self) -> tuple[Any, ...]:
        """By name; each is a `threadline.kernel.operation.Operation`, whose type is made with these ports."""
        ...

    @property
    def tables(self) -> tuple[Any, ...]:
        """By name; each is a `threadline.kernel.personal.StoreTable`, whose type is made with these ports."""
        ...

    @property
    def person_files(self) -> tuple[Any, ...]:
        """By name; each is a `threadline.kernel.personal.PersonFile`."""
        ...

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The declared queues by name."""
        ...

    @property
    def sections(self) -> tuple[Section, ...]:
        """By name."""
        ...

    @property
    def requirements(self) -> Mapping[str, Requirement]:
        """What events of a type have to fit, by type."""
        ...

    def policy(self, name: str) -> Policy | None:
        """The policy of this name."""
        ...

    def touches(self, event_type: str, name: str, path: tuple[str, ...] = ()) -> bool:
        """Whether an event of this type can change the value at a path of a projection's view."""
        ...

    def folds(self, event: Event) -> list[str]:
        """The projections that fold an event."""
        ...

    def has(self, projection: str) -> bool:
        """Whether there is a projection of this name."""
        ...

    def of_nobody(self, name: str, at: int) -> Any:
        """A projection's view of somebody about whom nothing is known; None if there is no such projection."""
        ...

    def refuse_unread(self, reads: Iterable[Read]) -> None:
        """Raise `InvalidDefinition` for parts of views that can never have a value."""
        ...

    def variant(self, definitions: Declarations) -> Catalogue:
        """The catalogue of other definitions."""
        ...


class Rehearsal(Protocol):
    """Everything at hand on what a store has now; nothing that it writes lasts, and nothing is sent."""

    @property
    def engine(self) -> Ports:
        """What to work with."""
        ...

    @property
    def consequences(self) -> Consequences:
        """What policies have added so far."""
        ...


class Doctor(Protocol):
    """Looks at a store while it is used."""

    def findings(self, now: int) -> Sequence[Finding]:
        """Everything that was looked at."""
        ...


Value = tuple[Any, int | None]
"""A value in plain data, and the next instant at which time alone may change it; None: never."""


class ValueAsked(NamedTuple):
    """Which value is asked for, of whom, and when."""

    workspace: str
    name: str
    """Such as ``features/monetary_total``."""
    content: str
    """Changes with every definition that decides the value."""
    look: Callable[[Person, int], Value]
    """A person's value at an instant: it depends on nothing but these and the definitions."""
    now: int


class ValuesRead(NamedTuple):
    """The values of people."""

    values: Sequence[tuple[str, Any]]
    """By person, in no particular order."""
    last: str
    """Up to which id everybody is among them; empty: everybody is."""
    as_of: int
    """The instant that they are of: now, or what another process took for it a moment ago."""


class PeopleValues(Protocol):
    """A value of each person of a workspace, such as a feature as of now. Where it is kept, somebody is looked at again
    only if something of theirs was recorded since, or if time alone may have changed the value."""

    def read(self, asked: ValueAsked, is_over: Callable[[], bool] = lambda: False) -> ValuesRead:
        """The values of everybody; where time ``is_over`` before, of those whose ids come first."""
        ...

    def close(self) -> None:
        """Release files."""
        ...


class Ports(Protocol):
    """What the engine gives to every operation: a port for each thing that it does."""

    @property
    def accounts(self) -> Accounts:
        """See `Accounts`."""
        ...

    @property
    def analytics(self) -> AnalyticsPort:
        """See `AnalyticsPort`."""
        ...

    @property
    def audit_log(self) -> AuditLog:
        """See `AuditLog`."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """See `Catalogue`."""
        ...

    @property
    def confined(self) -> Confined:
        """See `Confined`."""
        ...

    @property
    def second_factors(self) -> SecondFactors:
        """See `SecondFactors`."""
        ...

    @property
    def password_links(self) -> PasswordLinks:
        """See `PasswordLinks`."""
        ...

    @property
    def credentials(self) -> Credentials:
        """See `Credentials`."""
        ...

    @property
    def definition_history(self) -> DefinitionHistory:
        """See `DefinitionHistory`."""
        ...

    @property
    def delivery(self) -> Delivery:
        """See `Delivery`."""
        ...

    @property
    def doctor(self) -> Doctor:
        """See `Doctor`."""
        ...

    @property
    def erasures(self) -> Erasures:
        """See `Erasures`."""
        ...

    @property
    def exports(self) -> Callable[[], Storage] | None:
        """Opens the storage that exports are written to; None: none is set."""
        ...

    @property
    def identity(self) -> IdentityAdministration:
        """See `IdentityAdministration`."""
        ...

    @property
    def jobs(self) -> Jobs:
        """See `Jobs`."""
        ...

    @property
    def log(self) -> EventLog:
        """See `EventLog`."""
        ...

    @property
    def maintenance(self) -> Maintenance:
        """See `Maintenance`."""
        ...

    @property
    def people_values(self) -> PeopleValues:
        """See `PeopleValues`."""
        ...

    @property
    def public_address(self) -> PublicAddress:
        """See `PublicAddress`."""
        ...

    @property
    def ranks(self) -> Ranks:
        """See `Ranks`."""
        ...

    @property
    def reader(self) -> PersonReader:
        """See `PersonReader`."""
        ...

    @property
    def recorder(self) -> Recorder:
        """See `Recorder`."""
        ...

    @property
    def rejected(self) -> RejectedLog:
        """See `RejectedLog`."""
        ...

    @property
    def rows(self) -> IndexRows:
        """See `IndexRows`."""
        ...

    @property
    def search(self) -> SearchIndex:
        """See `SearchIndex`."""
        ...

    @property
    def shared(self) -> SharedValues:
        """See `SharedValues`."""
        ...

    @property
    def signer(self) -> Signer:
        """See `Signer`."""
        ...

    @property
    def simulations(self) -> Simulations:
        """See `Simulations`."""
        ...

    @property
    def store(self) -> Store:
        """See `Store`."""
        ...

    @property
    def web(self) -> Web:
        """See `Web`."""
        ...
