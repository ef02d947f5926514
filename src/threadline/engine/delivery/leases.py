"""Leases: a share of the work belongs to one process at a time; after losing it, a process can commit nothing."""

from __future__ import annotations

from typing import NamedTuple

from threadline.engine.folding.packing import pack, unpack
from threadline.kernel.store import Batch, Check, Item, Key, Put, Store
from threadline.kernel.time import SECOND, Clock

LEASE = "lease"
LEASE_SECONDS = 30.0
_GIVEN_BACK = 0
"""In place of the end of a lease."""


class _Own(NamedTuple):
    """A lease of this owner: its fencing token, and when it was taken."""

    token: int
    taken_at: int


class _Foreign(NamedTuple):
    """A lease of another owner: the version of its item, and since when that has not changed, as seen here."""

    version: int
    since: int


class Leases:
    """The leases that one owner holds. Not thread-safe: each thread has its own.

    The version of the lease item is the fencing token: every commit of its holder is conditional on it, so one
    that was paused past its lease can commit nothing any more, whatever it believes.

    ``owner`` ends with ``@`` and an id of this process where no other process can write to the store: then the holder
    of another id is gone, and nobody waits for its lease.
    """

    def __init__(self, store: Store, clock: Clock, owner: str, seconds: float = LEASE_SECONDS) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._length = int(seconds * SECOND)
        self._held: dict[str, _Own] = {}
        self._foreign: dict[str, _Foreign] = {}
        self._taken_over: set[str] = set()

    def acquire(self, name: str, crowded: bool = False) -> Check | None:
        """The condition that holds while the lease is ours, or None while another holds it.

        Half of its time or more is left. ``crowded``: more is due than one process can do.
        """
        now = self._clock()
        key = Key(LEASE, name)
        lease = self._held.get(name)
        # Also renewed before it was taken, which is after a step back of the clock: by then others have taken it over.
        if lease is not None and lease.taken_at <= now < lease.taken_at + self._length // 2:
            return Check(key, lease.token)
        if lease is not None and crowded:
            # Given back instead of renewed: where more is due than one process can do, others get the lease.
            self._let_go(name)
            return None
        item = self._store.get([key])[0]
        if item is not None and self._belongs_to_another(item, now):
            self._held.pop(name, None)
            return None
        self._foreign.pop(name, None)
        version = item.version if item is not None else 0
        value = pack((self._owner, now + self._length))
        if self._store.commit([Batch(writes=[Put(key, value, version)])])[0] is not None:
            return None
        self._held[name] = _Own(version + 1, now)
        if item is not None and self._was_not_given_back(item):
            self._taken_over.add(name)
        return Check(key, version + 1)

    def took_over(self, name: str) -> bool:
        """Whether the lease was taken over from a process that did not give it back, since this was asked last."""
        took_over = name in self._taken_over
        self._taken_over.discard(name)
        return took_over

    def doubt(self, name: str) -> None:
        """Ask the store before the lease is relied on again: what was done under it was not committed."""
        self._held.pop(name, None)

    def let_go(self) -> None:
        """Give all back, so that others need not wait for them to run out."""
        for name in list(self._held):
            self._let_go(name)

    def _belongs_to_another(self, item: Item, now: int) -> bool:
        """Whether somebody else holds a lease: no longer than it says, nor than its length after it was first seen.

        A clock that was ahead when it was taken has written an end that is days away.
        """
        owner, until = unpack(item.value)
        if owner == self._owner or until <= now or self._is_gone(owner):
            return False
        name = item.key.partition
        known = self._foreign.get(name)
        if known is None or known.version != item.version or known.since > now:
            known = self._foreign[name] = _Foreign(item.version, now)
        return now < known.since + self._length

    def _was_not_given_back(self, item: Item) -> bool:
        owner, until = unpack(item.value)
        return bool(owner != self._owner and until != _GIVEN_BACK)

    def _is_gone(self, owner: str) -> bool:
        process = self._owner.partition("@")[2]
        return process != "" and owner.partition("@")[2] != process

    def _let_go(self, name: str) -> None:
        token = self._held.pop(name).token
        # If another has it by now, this is refused, as it should be.
        self._store.commit([Batch(writes=[Put(Key(LEASE, name), pack((self._owner, _GIVEN_BACK)), token)])])
