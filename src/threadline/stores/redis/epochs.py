"""When a shared cache may be believed: one small item in the store that every process knows of, a second old at most.

A cache beside a store is only right as long as every writer can tell it what changed. So the store itself says
whether the cache is in use. Its word has three phases, and a process believes what it read of it for ``lease_seconds``:

    closed    nobody reads the cache
    opening   every writer tells the cache what it changes, nobody reads it yet
    open      every writer tells it, and readers may answer from it

Each change is a write on the expected version, and comes at the earliest when everybody's belief in the phase before
the last one has run out. Two processes are therefore never more than one phase apart, and neighbours get on with
each other. A writer that cannot reach the cache closes it, waits until that is known to all, and writes.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.store import Batch, Key, Put, Store
from threadline.kernel.typed import prepared
from threadline.stores.redis.client import RedisUnreachable

EPOCH = Key("cache", "epoch")
CLOSED, OPENING, OPEN = "closed", "opening", "open"

MARGIN = 1.25
"""Times the lease that others wait: clocks of different machines do not run at exactly one speed."""
CALM_SECONDS = 600.0
"""A cache that was open for so long is trusted anew when it fails: it is tried again soon."""
PATIENCE_DOUBLINGS_MAX = 6


@prepared
class Epoch(msgspec.Struct, frozen=True):
    """What the store says of the cache. The nonce names one life of the cache: nothing of another one is ever read."""

    phase: str = CLOSED
    nonce: str = ""
    server: str = ""
    """The run id of the one Redis that this life is in."""
    failures: int = 0
    """How often in a row it had to be closed soon after it was opened."""


class Known(NamedTuple):
    """What this process knows of the epoch, and how long it may rely on it."""

    epoch: Epoch
    version: int
    since: float
    """When this process learnt of this version; it was never in force later than that."""
    until: float


class Epochs:
    """This process's view of the epoch, refreshed as calls come in; there is no thread behind it. Thread-safe.

    ``prepare`` readies Redis for a new life under a nonce, and answers the server's run id.
    """

    def __init__(
        self,
        store: Store,
        prepare: Callable[[str], str],
        *,
        lease_seconds: float,
        retry_seconds: float,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._prepare = prepare
        self._lease = lease_seconds
        self._settled = lease_seconds * MARGIN
        self._retry = max(retry_seconds, self._settled)
        self._seconds = seconds
        self._sleep = sleep
        self._lock = threading.Lock()
        self._known = Known(Epoch(), -1, 0.0, float("-inf"))
        self._next_attempt = float("-inf")

    def to_read(self) -> Epoch | None:
        """The epoch from which a reader may answer now; None if it must ask the store."""
        known = self._known
        if self._seconds() >= known.until:
            # One caller asks the store how things are; the others need not wait for it, they have the store as well.
            if not self._lock.acquire(blocking=False):
                return None
            try:
                known = self._refresh()
            finally:
                self._lock.release()
        return known.epoch if known.epoch.phase == OPEN else None

    def to_write(self) -> tuple[Epoch, bool]:
        """The epoch in force, and whether a writer has to tell its cache of what it changes, or nobody reads that."""
        known = self._current()
        closed = known.epoch.phase == CLOSED and self._seconds() >= known.since + self._settled
        return known.epoch, not closed

    def current(self) -> Epoch:
        """The epoch in force."""
        return self._current().epoch

    def close(self, nonce: str, *, wait: bool = True) -> None:
        """See to it that nobody reads this life of the cache any more; with ``wait``, when this returns.

        Raises what the store raises if it cannot take that now: then nothing may be written past the cache.
        """
        while True:
            known = self._current()
            epoch = known.epoch
            if epoch.nonce != nonce:
                return  # it was closed long ago, or another one could not have begun
            if epoch.phase == CLOSED:
                if wait:
                    self._sleep(max(0.0, known.since + self._settled - self._seconds()))
                return
            calm = epoch.phase == OPEN and self._seconds() - known.since > CALM_SECONDS
            failures = 1 if calm else epoch.failures + 1
            with self._lock:
                self._write(known, msgspec.structs.replace(epoch, phase=CLOSED, failures=failures))

    def _current(self) -> Known:
        with self._lock:
            return self._known if self._seconds() < self._known.until else self._refresh()

    def _refresh(self) -> Known:
        """Ask the store, and take the next step if its time has come. The caller holds the lock."""
        began = self._seconds()
        item = self._store.get([EPOCH])[0]
        version = item.version if item is not None else 0
        epoch = Epoch() if item is None else msgspec.json.decode(item.value, type=Epoch)
        if version != self._known.version:
            # What was never written was never anything else: nobody has to be waited for.
            self._known = Known(epoch, version, self._seconds() if version else float("-inf"), began + self._lease)
        else:
            self._known = self._known._replace(until=began + self._lease)
        known, now = self._known, self._seconds()
        # Where the store cannot take the next step now, another call or another process will.
        with suppress(ThreadlineError):
            if epoch.phase == OPENING and now >= known.since + self._settled:
                self._write(known, msgspec.structs.replace(epoch, phase=OPEN))
            elif epoch.phase == CLOSED and now >= max(known.since + self._patience(epoch), self._next_attempt):
                self._open(known)
        return self._known

    def _patience(self, epoch: Epoch) -> float:
        return self._retry * 2.0 ** min(max(epoch.failures - 1, 0), PATIENCE_DOUBLINGS_MAX)

    def _open(self, known: Known) -> None:
        nonce = secrets.token_hex(8)
        try:
            server = self._prepare(nonce)
        except RedisUnreachable:
            self._next_attempt = self._seconds() + self._retry
            return
        self._write(known, msgspec.structs.replace(known.epoch, phase=OPENING, nonce=nonce, server=server))

    def _write(self, known: Known, epoch: Epoch) -> None:
        """Put an epoch in the place of the known one. If another process was faster, the store is asked next time."""
        began = self._seconds()
        self._known = self._known._replace(until=float("-inf"))
        put = Put(EPOCH, msgspec.json.encode(epoch), known.version)
        if self._store.commit([Batch(writes=[put])]) == [None]:
            self._known = Known(epoch, known.version + 1, self._seconds(), began + self._lease)
