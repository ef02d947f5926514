"""After a crash effects are prepared one by one, each noted in the store: the one that ends its process is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadline.engine.delivery.leases import LEASE, Leases
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.store import Batch, Check, Key, Put, Store

DEATHS_MAX = 5
"""Processes in a row that end while they prepare one effect alone, until it is given up on.

Fewer would give up on innocent ones where processes are killed from outside: a kill meets whatever is being prepared,
and the next one may meet it again. An effect that does end its process does so each time.
"""
ENDED_OFTEN = (
    f"{DEATHS_MAX} processes in a row ended while they were preparing this effect alone; "
    "send it again when the cause is known"
)
_NOTHING = b"-"


class Alone:
    """What follows from a lease whose last holder did not give it back: it may have died of an effect that is due.

    A store whose processes end in order has no write more for it. Otherwise, as many effects as a page has are
    prepared one at a time, and each is noted under the lease while that lasts. A process that finds the note of an
    effect that still waits counts it, and gives up on the effect after `DEATHS_MAX`. One that was sent, retried or
    redriven since has another number of attempts, so that a note from before says nothing about it.
    """

    def __init__(self, store: Store, leases: Leases, page: int) -> None:
        self._store = store
        self._leases = leases
        self._page = page
        self._left: dict[str, int] = {}
        self._noted: dict[str, str] = {}

    def next(self, lease: str) -> Alone | None:
        """This, if the next effect under a lease that this process has is to be prepared alone; else None."""
        if self._leases.took_over(lease):
            self._left[lease] = self._page
            note = self._store.get([_noted_key(lease)])[0]
            self._noted[lease] = note.value.decode() if note is not None else ""
        if (left := self._left.get(lease, 0)) <= 0:
            return None
        self._left[lease] = left - 1
        return self

    def has_ended_many(self, pending: PendingEffect, check: Check) -> bool:
        """Whether as many processes as are allowed ended one after the other while they were preparing this effect."""
        return self._deaths(pending, check.key.partition) >= DEATHS_MAX

    def _deaths(self, pending: PendingEffect, lease: str) -> int:
        effect, _, deaths = self._noted.get(lease, "").rpartition("/")
        return int(deaths) if effect == _note(pending) else 0

    @contextmanager
    def noted(self, pending: PendingEffect, check: Check) -> Iterator[None]:
        """While this lasts, whoever takes the lease over knows that this effect is being prepared."""
        lease = check.key.partition
        note = f"{_note(pending)}/{self._deaths(pending, lease) + 1}"
        # Refused if the lease is lost: then nothing that is prepared here can be committed either.
        self._store.commit([Batch(writes=[Put(_noted_key(lease), note.encode()), check])])
        try:
            yield
        except Exception:
            self._clear(lease, check)
            raise
        self._clear(lease, check)

    def _clear(self, lease: str, check: Check) -> None:
        self._store.commit([Batch(writes=[Put(_noted_key(lease), _NOTHING), check])])


def _noted_key(lease: str) -> Key:
    return Key(LEASE, lease, "alone")


def _note(pending: PendingEffect) -> str:
    return f"{pending.id}/{pending.attempts}"
