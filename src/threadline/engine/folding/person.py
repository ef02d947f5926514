"""One person as the engine holds them: threads, identity guards, timers and the states of all projections."""

from __future__ import annotations

import msgspec

from threadline.engine.folding.packing import pack, unpack
from threadline.engine.folding.provisional import ProvisionalStates
from threadline.engine.folding.states import NO_PROJECTIONS, States
from threadline.kernel import ports
from threadline.kernel.event import Identifier, Recorded
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import ITEM_BYTES_MAX, KEY_BYTES_MAX
from threadline.kernel.store import Key

PERSON = "person"
SNAPSHOT = "snapshot"
THREAD = "thread"

VALUE_BYTES_MAX = ITEM_BYTES_MAX - KEY_BYTES_MAX
"""The largest value, where the store counts the key as well."""


class Person:
    """A set of threads and what is folded from their union. Mutable: the recorder owns it while it works."""

    __slots__ = (
        "_described",
        "_never_merge",
        "_packed_timers",
        "_timers",
        "begins",
        "created_at",
        "heads",
        "id",
        "identifiers",
        "latest",
        "pending",
        "provisional",
        "size",
        "snapshot_item",
        "snapshot_version",
        "stale",
        "states",
        "tail",
        "unwritten",
        "version",
        "workspace",
    )

    def __init__(self, id: str, workspace: str, created_at: int, states: States) -> None:
        self.id = id
        self.workspace = workspace
        self.created_at = created_at
        self.version = 0
        self.begins = 1
        """The version with which the item begins if there is none; see `begins_of`."""
        self.heads: dict[str, int] = {}
        """Sequence of the last event of each thread; a thread that holds no event yet has 0."""
        self.identifiers: dict[str, Identifier] = {}
        """The identifier that each thread belongs to."""
        self._never_merge: list[str] = []
        self._described: msgspec.Raw | None = None
        """The packed part of a head that few events change; None: to be packed again."""
        self._timers: dict[str, int] | None = {}
        self._packed_timers: msgspec.Raw | None = None
        self.latest: tuple[int, str] = (-(1 << 63), "")
        """(occurred_at, id) of the newest event folded."""
        self.states = states
        self.provisional: ProvisionalStates | None = None
        """Set while events lie ahead of the clock; see `provisional.py`."""
        self.snapshot_version = 0
        """The version with which the snapshot was written; 0: there is none."""
        self.snapshot_item: int | None = 0
        """The version of the snapshot's own item, 0 for none; None: unknown."""
        self.tail: list[bytes] | None = None
        """Ids of the events folded since the snapshot; None: the next commit writes the states."""
        self.size = 0
        """Bytes of the states when they were packed last."""
        self.pending: list[Recorded] = []
        """Events of the attempt at work that are not in the store yet."""
        self.stale: tuple[int, ...] = ()
        """Projections whose stored state has another version and is folded again before use."""
        self.unwritten = NO_PROJECTIONS
        """Projections folded again since the person was read: their stored index rows are unknown."""

    @property
    def never_merge(self) -> list[str]:
        """Threads of people whom an operator has split from this one: events never merge them again."""
        return self._never_merge

    @never_merge.setter
    def never_merge(self, threads: list[str]) -> None:
        self._never_merge, self._described = threads, None

    @property
    def timers(self) -> dict[str, int]:
        """``thread/policy/key`` of each pending timer and when it is due; changed by `set_timer` and `drop_timer`."""
        if self._timers is None:
            self._timers = _flat(unpack(self._packed_timers or b"\x80"))
        return self._timers

    @timers.setter
    def timers(self, timers: dict[str, int]) -> None:
        self._timers, self._packed_timers = timers, None

    def set_timer(self, name: str, due_at: int) -> None:
        """Note that a timer is pending."""
        self.timers[name] = due_at
        self._packed_timers = None

    def drop_timer(self, name: str) -> int | None:
        """Remove a pending timer; returns when it was due."""
        due_at = self.timers.pop(name, None)
        if due_at is not None:
            self._packed_timers = None
        return due_at

    def keep_packed_timers(self, timers: msgspec.Raw) -> None:
        """Take the timers as they are stored; they are unpacked on first use."""
        # A copy: what was read together with them would stay in memory.
        self._timers, self._packed_timers = None, timers.copy()

    def packed_timers(self) -> msgspec.Raw:
        """The timers as they are stored."""
        if self._packed_timers is None:
            self._packed_timers = msgspec.Raw(pack(_nested(self._timers or {})))
        return self._packed_timers

    @property
    def position(self) -> int:
        """The number of events in the person's threads."""
        return sum(self.heads.values())

    def add_thread(self, thread: str, identifier: Identifier, head: int = 0) -> None:
        """Add a thread."""
        self.heads[thread] = head
        self.identifiers[thread] = identifier
        self._described = None

    def remove_thread(self, thread: str) -> tuple[Identifier, int]:
        """Remove a thread; returns its identifier and its head."""
        self._described = None
        return self.identifiers.pop(thread), self.heads.pop(thread)

    def keep_described(self, described: msgspec.Raw) -> None:
        """Take the described part as it is stored."""
        self._described = described.copy()

    def described(self) -> msgspec.Raw:
        """The packed part of a head that few events change: threads, identifiers and the like."""
        if self._described is None:
            identifiers = [self.identifiers[thread] for thread in self.heads]
            fields = (self.workspace, self.created_at, list(self.heads), identifiers, self._never_merge)
            self._described = msgspec.Raw(pack(fields))
        return self._described

    def stored_heads(self) -> dict[str, int]:
        """The heads of the person's threads as far as they are in the store."""
        heads = dict(self.heads)
        for recorded in self.pending:
            heads[recorded.thread] -= 1
        return heads


def _nested(timers: dict[str, int]) -> dict[str, dict[str, dict[str, int]]]:
    """Timers as they are stored: grouped, since repeated threads and policies would be most of the item."""
    nested: dict[str, dict[str, dict[str, int]]] = {}
    for name, due_at in timers.items():
        thread, policy, key = name.split("/", 2)
        nested.setdefault(thread, {}).setdefault(policy, {})[key] = due_at
    return nested


def _flat(nested: dict[str, dict[str, dict[str, int]]]) -> dict[str, int]:
    return {
        f"{thread}/{policy}/{key}": due_at
        for thread, policies in nested.items()
        for policy, timers in policies.items()
        for key, due_at in timers.items()
    }


def own(person: ports.Person) -> Person:
    """The engine's own person behind the port that operations hand back."""
    assert isinstance(person, Person), "operations hand back the people that they were handed"
    return person


def begins_of(cause: str) -> int:
    """The version with which a person's item begins: a hash of the id of the first event, or of what else creates them.

    Whoever is erased and comes back has the same key, but no id of an event ever comes back. So a process that still
    remembers the former item loses the race for the next one.
    """
    return int(short_hash(cause)[:12], 16) or 1


def person_key(person: str) -> Key:
    """Where a person's item lives."""
    return Key(PERSON, person)


def snapshot_key(person: str) -> Key:
    """Where the snapshot of a person's states lives, if there is one."""
    return Key(SNAPSHOT, person)


def thread_key(thread: str) -> Key:
    """The key of a thread's owner."""
    return Key(THREAD, thread)
