"""Leases: a share of the work belongs to one process at a time; after losing it, a process can commit nothing."""

from __future__ import annotations

from threadline.engine.folding.packing import pack, unpack
from threadline.kernel.store import Batch, Check, Key, Put, Store
from threadline.kernel.time import SECOND, Clock

LEASE = "lease"


class Leases:
    """The leases that one owner holds. Not thread-safe: each thread has its own.

    The version of the lease item is the fencing token: every commit of its holder is conditional on it, so one
    that was paused past its lease can commit nothing any more, whatever it believes.
    """

    def __init__(self, store: Store, clock: Clock, owner: str, seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._length = int(seconds * SECOND)
        self._held: dict[str, tuple[int, int]] = {}
        """Lease name -> (fencing token, until when)."""

    def acquire(self, name: str, crowded: bool = False) -> Check | None:
        """The condition that holds while the lease is ours, or None while another holds it.

        Half of its time or more is left. ``crowded``: more is due than one process can do.
        """
        now = self._clock()
        key = Key(LEASE, name)
        lease = self._held.get(name)
        if lease is not None and now < lease[1] - self._length // 2:
            return Check(key, lease[0])
        if lease is not None and crowded:
            # Given back instead of renewed: where more is due than one process can do, others get the lease.
            self._let_go(name)
            return None
        item = self._store.get([key])[0]
        if item is not None:
            owner, until = unpack(item.value)
            if owner != self._owner and until > now:
                self._held.pop(name, None)
                return None
        version = item.version if item is not None else 0
        until = now + self._length
        if self._store.commit([Batch(writes=[Put(key, pack((self._owner, until)), version)])])[0] is not None:
            return None
        self._held[name] = (version + 1, until)
        return Check(key, version + 1)

    def let_go(self) -> None:
        """Give all back, so that others need not wait for them to run out."""
        for name in list(self._held):
            self._let_go(name)

    def _let_go(self, name: str) -> None:
        token, _ = self._held.pop(name)
        # If another has it by now, this is refused, as it should be.
        self._store.commit([Batch(writes=[Put(Key(LEASE, name), pack((self._owner, 0)), token)])])
