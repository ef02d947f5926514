"""One person as the engine holds them: threads, identity guards, timers and the states of all projections."""

from __future__ import annotations

from typing import Any

from threadline.engine.catalogue import Catalogue
from threadline.engine.packing import pack, unpack
from threadline.kernel.event import Identifier
from threadline.kernel.projection import State
from threadline.kernel.store import Item, Key

PERSON = "person"
THREAD = "thread"

_ALIAS, _PERSON = 0, 1
"""The first element of a packed person item says whether it is a person or points to the survivor of a merge."""

Packed = tuple[int, bytes]
"""A person's item as a cache keeps it: version and value."""


class Person:
    """A set of threads and what is folded from their union. Mutable: the recorder owns it while it works.

    The whole person is one packed item, written once per commit: that is one key to read, one version to
    condition on, and every projection at the same position.
    """

    __slots__ = (
        "apart", "created_at", "heads", "id", "identifiers", "latest", "packed", "stale", "states", "timers", "version", "workspace"
    )  # fmt: skip

    def __init__(self, id: str, workspace: str, created_at: int, states: list[State]) -> None:
        self.id = id
        self.workspace = workspace
        self.created_at = created_at
        self.version = 0
        self.packed = b""
        """The bytes last sealed for the store."""
        self.heads: dict[str, int] = {}
        """Sequence of the last event of each thread; a thread that holds no event yet has 0."""
        self.identifiers: dict[str, Identifier] = {}
        """The identifier that each thread belongs to."""
        self.apart: list[str] = []
        """Threads of others from which an operator has split this person: they are never joined by themselves."""
        self.timers: dict[str, int] = {}
        """``thread/policy/key`` of each pending timer and when it is due."""
        self.latest: tuple[int, str] = (-(1 << 63), "")
        """(occurred_at, id) of the newest event folded."""
        self.states = states
        self.stale: tuple[int, ...] = ()
        """Projections whose stored state is of another version and must be folded again before use."""

    @property
    def position(self) -> int:
        """How many events the person's threads hold: the position at which everything here is true."""
        return sum(self.heads.values())

    def add_thread(self, thread: str, identifier: Identifier, head: int = 0) -> None:
        """Let a thread belong to this person."""
        self.heads[thread] = head
        self.identifiers[thread] = identifier


def person_key(person: str) -> Key:
    """Where a person's packed item lives."""
    return Key(PERSON, person)


def thread_key(thread: str) -> Key:
    """Where it is written whose a thread is."""
    return Key(THREAD, thread)


def pack_person(person: Person, catalogue: Catalogue) -> bytes:
    """The packed item of a person."""
    states = {
        p.name: (f, s) for p, f, s in zip(catalogue.projections, catalogue.fingerprints, person.states, strict=True)
    }
    threads = {t: (i.kind, i.value, person.heads[t]) for t, i in person.identifiers.items()}
    return pack(
        (_PERSON, person.workspace, person.created_at, threads, person.apart, person.timers, person.latest, states)
    )


def pack_alias(survivor: str) -> bytes:
    """The packed item of a person who was merged into another."""
    return pack((_ALIAS, survivor))


def unpack_person(item: Item, catalogue: Catalogue) -> Person | str:
    """The person of a packed item, or the id of the survivor if they were merged into another."""
    data: Any = unpack(item.value)
    if data[0] == _ALIAS:
        return str(data[1])
    _, workspace, created_at, threads, apart, timers, latest, stored = data
    person = Person(item.key.partition, workspace, created_at, [])
    person.version = item.version
    for thread, (kind, value, head) in threads.items():
        person.add_thread(thread, Identifier(kind, value), head)
    person.apart, person.timers, person.latest = apart, timers, (latest[0], latest[1])
    stale = []
    for index, (projection, fingerprint) in enumerate(zip(catalogue.projections, catalogue.fingerprints, strict=True)):
        kept = stored.get(projection.name)
        if kept is not None and kept[0] == fingerprint:
            person.states.append(kept[1])
        else:
            person.states.append(projection.empty())
            stale.append(index)
    person.stale = tuple(stale)
    return person
