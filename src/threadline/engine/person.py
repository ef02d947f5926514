"""One person as the engine holds them: threads, identity guards, timers and the states of all projections."""

from __future__ import annotations

from typing import Any

import msgspec

from threadline.engine.catalogue import Catalogue
from threadline.engine.meanwhile import Meanwhile
from threadline.engine.packing import pack, unpack
from threadline.engine.states import States
from threadline.kernel.event import Identifier
from threadline.kernel.limits import ITEM_BYTES_MAX, KEY_BYTES_MAX
from threadline.kernel.store import Item, Key

PERSON = "person"
THREAD = "thread"

_ALIAS, _PERSON = 0, 1
"""The first element of a packed person item says whether it is a person or points to the survivor of a merge."""

VALUE_BYTES_MAX = ITEM_BYTES_MAX - KEY_BYTES_MAX
"""What is left for a value when the store counts its key as well."""

Packed = tuple[int, bytes]
"""A person's item as a cache keeps it: version and value."""


class Person:
    """A set of threads and what is folded from their union. Mutable: the recorder owns it while it works.

    The whole person is one packed item, written once per commit: that is one key to read, one version to
    condition on, and every projection at the same position.
    """

    __slots__ = (
        "apart", "created_at", "heads", "id", "identifiers", "latest", "meanwhile", "packed", "packed_timers", "stale",
        "states", "unwritten", "version", "workspace",
    )  # fmt: skip

    def __init__(self, id: str, workspace: str, created_at: int, states: States) -> None:
        self.id = id
        self.workspace = workspace
        self.created_at = created_at
        self.version = 0
        self.packed = b""
        """The bytes in the store, or last sealed for it."""
        self.heads: dict[str, int] = {}
        """Sequence of the last event of each thread; a thread that holds no event yet has 0."""
        self.identifiers: dict[str, Identifier] = {}
        """The identifier that each thread belongs to."""
        self.apart: list[str] = []
        """Threads of others from which an operator has split this person: they are never joined by themselves."""
        self.packed_timers: dict[str, int] | msgspec.Raw = {}
        """`timers` as they are kept: still packed until somebody looks."""
        self.latest: tuple[int, str] = (-(1 << 63), "")
        """(occurred_at, id) of the newest event folded."""
        self.states = states
        self.meanwhile: Meanwhile | None = None
        """What is so until the newest events have happened, for somebody who has events ahead of the clock."""
        self.stale: tuple[int, ...] = ()
        """Projections whose stored state is of another version and must be folded again before use."""
        self.unwritten: frozenset[int] = frozenset()
        """Those that were folded again since the person was read: none of their index rows is known to be stored."""

    @property
    def timers(self) -> dict[str, int]:
        """``thread/policy/key`` of each pending timer and when it is due."""
        if isinstance(self.packed_timers, msgspec.Raw):
            self.packed_timers = _flat(unpack(self.packed_timers))
        return self.packed_timers

    @timers.setter
    def timers(self, timers: dict[str, int]) -> None:
        self.packed_timers = timers

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


class _Layout(msgspec.Struct, array_like=True, gc=False):
    """A packed person, field after field. What few events touch is left packed."""

    kind: int
    workspace: str
    created_at: int
    threads: list[str]
    heads: list[int]
    identifiers: list[Identifier]
    apart: list[str]
    timers: msgspec.Raw
    latest: tuple[int, str]
    layout: str
    states: list[msgspec.Raw]
    meanwhile: tuple[tuple[int, str], int, list[msgspec.Raw]] | None = None


_LASTING = len(_Layout.__struct_fields__) - 1
_layout = msgspec.msgpack.Decoder(_Layout).decode
_ALIAS_START = b"\x92" + pack(_ALIAS)
"""The head of a MessagePack array of two, which no person's is."""


def pack_person(person: Person, catalogue: Catalogue) -> bytes:
    """The packed item of a person."""
    fields = (
        _PERSON, person.workspace, person.created_at, list(person.heads), list(person.heads.values()),
        [person.identifiers[thread] for thread in person.heads], person.apart, _nested(person.packed_timers),
        person.latest, catalogue.layout, person.states.kept(),
    )  # fmt: skip
    if person.meanwhile is not None:
        packed = pack((*fields, person.meanwhile.kept()))
        if len(packed) <= VALUE_BYTES_MAX:
            return packed
    return pack(fields)


def lasting(packed: bytes) -> Any:
    """What a packed item says; without what is kept only until it is later."""
    return unpack(packed)[:_LASTING]  # of one who was merged away it is all


def _nested(timers: dict[str, int] | msgspec.Raw) -> dict[str, dict[str, dict[str, int]]] | msgspec.Raw:
    """Timers as they are kept: their names share threads and policies, which would else be most of the item."""
    if isinstance(timers, msgspec.Raw):
        return timers
    kept: dict[str, dict[str, dict[str, int]]] = {}
    for name, due_at in timers.items():
        thread, policy, key = name.split("/", 2)
        kept.setdefault(thread, {}).setdefault(policy, {})[key] = due_at
    return kept


def _flat(kept: dict[str, dict[str, dict[str, int]]]) -> dict[str, int]:
    return {
        f"{thread}/{policy}/{key}": due_at
        for thread, policies in kept.items()
        for policy, timers in policies.items()
        for key, due_at in timers.items()
    }


def pack_alias(survivor: str) -> bytes:
    """The packed item of a person who was merged into another."""
    return pack((_ALIAS, survivor))


def unpack_person(item: Item, catalogue: Catalogue) -> Person | str:
    """The person of a packed item, or the id of the survivor if they were merged into another."""
    if item.value.startswith(_ALIAS_START):
        return str(unpack(item.value)[1])
    data = _layout(item.value)
    kept: list[Any] = data.states
    stale: tuple[int, ...] = ()
    if data.layout != catalogue.layout:
        kept, stale = _relaid(data, catalogue)
    person = Person(item.key.partition, data.workspace, data.created_at, States(catalogue, kept))
    person.version = item.version
    person.heads = dict(zip(data.threads, data.heads, strict=True))
    person.identifiers = dict(zip(data.threads, data.identifiers, strict=True))
    person.apart, person.latest, person.stale = data.apart, data.latest, stale
    person.packed_timers = data.timers
    person.packed = item.value
    if data.meanwhile is not None and not stale and data.layout == catalogue.layout:
        latest, until, meanwhile = data.meanwhile
        person.meanwhile = Meanwhile(States(catalogue, list(meanwhile)), latest, until)
    return person


def _relaid(data: _Layout, catalogue: Catalogue) -> tuple[list[Any], tuple[int, ...]]:
    """States of another layout put in the order of this one; those of another version are empty and named as stale."""
    known = dict(zip(data.layout.split(), data.states, strict=True))
    kept: list[Any] = [known.get(name) for name in catalogue.layout.split()]
    stale = tuple(index for index, state in enumerate(kept) if state is None)
    for index in stale:
        kept[index] = catalogue.projections[index].empty()
    return kept, stale
