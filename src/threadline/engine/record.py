"""The one write path: events in, receipts out, everything durable or nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from threadline.engine import rejected
from threadline.engine.catalogue import Catalogue
from threadline.engine.group import Group, Poisoned, Request, Screened, screen
from threadline.engine.identity import Names
from threadline.engine.memo import Memo
from threadline.engine.person import Person
from threadline.kernel import limits
from threadline.kernel.errors import EventRejected, Unavailable
from threadline.kernel.event import Receipt
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import FUTURE_MAX_SECONDS
from threadline.kernel.store import Refusal, Store
from threadline.kernel.time import EARLIEST, LATEST, SECOND, Clock

T = TypeVar("T")

FENCED = "fenced"
"""Code of a request whose own conditions (a lease, a timer still there) no longer hold; not an event to keep."""
ATTEMPTS_MAX = 32
"""Attempts at a group whose people another process keeps changing, before the caller is told to retry."""
GROUP_EVENTS_MAX = 1_000
PEOPLE_CACHED = 8_000
OWNERS_CACHED = 60_000


class Recorder:
    """Records events. Thread-safe: one group is placed and committed at a time, under one lock.

    Callers that arrive while a group commits wait for the lock; surfaces with many callers should collect what
    waits and hand it over in one call (that is the group commit).
    """

    def __init__(self, store: Store, catalogue: Catalogue, clock: Clock) -> None:
        self.store = store
        self.catalogue = catalogue
        self.clock = clock
        self._lock = threading.Lock()
        self._people: Memo[str, Person] = Memo(PEOPLE_CACHED)
        self._owners: Memo[str, str] = Memo(OWNERS_CACHED)
        self._names = Names(catalogue.rules)

    def record(self, requests: Sequence[Request]) -> list[Receipt]:
        """Record events, each with its own receipt, in order. Returns when all that is accepted is durable.

        A rejected event is kept in the rejected log and never stops its neighbours. Raises `Unavailable`
        (with `StoreFull`, `StoreBusy`) when the store cannot take them; what was then not answered was not written,
        and sending the same events again is safe.
        """
        receipts: list[Receipt] = []
        for start in range(0, len(requests), GROUP_EVENTS_MAX):
            with self._lock:
                receipts += self._record(requests[start : start + GROUP_EVENTS_MAX])
        return receipts

    def _record(self, requests: Sequence[Request]) -> list[Receipt]:
        done: dict[int, Receipt] = {}
        refused: dict[int, EventRejected] = {}
        attempts = 0
        while todo := [i for i in range(len(requests)) if i not in done and i not in refused]:
            done.update(self._attempt(requests, todo, refused))
            # An attempt that settled something was not lost to other writers, and there are only so many to settle.
            attempts = 0 if len(done) + len(refused) > len(requests) - len(todo) else attempts + 1
            if attempts == ATTEMPTS_MAX:
                raise Unavailable("other writers keep changing the same people; send the events again")
        if refused:
            now = self.clock()
            unfit = {i: error for i, error in refused.items() if error.code != FENCED}
            rejected.keep(self.store, [rejected.entry_of(requests[i].event, e, now) for i, e in unfit.items()])
            for i, error in refused.items():
                done[i] = Receipt(status="rejected", code=error.code, message=str(error))
        return [done[i] for i in range(len(requests))]

    def _group(self) -> Group:
        return Group(self.store, self.catalogue, self._people, self._owners, self.clock())

    def _attempt(
        self, requests: Sequence[Request], todo: Sequence[int], refused: dict[int, EventRejected]
    ) -> dict[int, Receipt]:
        group = self._group()
        try:
            for one in self._fresh(group, requests, todo, refused):
                try:
                    group.place(one)
                except EventRejected as error:
                    refused[one.position] = error
            return self._commit(group, requests, refused)
        except Poisoned as poison:
            group.forget()
            for index in poison.indices:
                refused[index] = EventRejected(poison.code, str(poison))
            if not poison.indices:
                raise Unavailable(str(poison)) from poison
            return {}
        except BaseException:
            group.forget()
            raise

    def _fresh(
        self, group: Group, requests: Sequence[Request], todo: Sequence[int], refused: dict[int, EventRejected]
    ) -> list[Screened]:
        """The screened events that are not in the log yet; duplicates and conflicts get their receipts here."""
        screened: list[Screened] = []
        for index in todo:
            try:
                checked = checked_request(requests[index], group.now)
                screened.append(screen(index, checked, self._names, group.now))
            except EventRejected as error:
                refused[index] = error
        known = self.store.seen([one.id for one in screened])
        first: dict[str, int] = dict(known)
        fresh = []
        for one in screened:
            digest = first.setdefault(one.id, one.digest)
            if one.id not in known and digest == one.digest and one.id not in group.ids:
                group.ids.add(one.id)
                fresh.append(one)
            else:
                same = digest == one.digest
                group.receipts[one.position] = Receipt(status="duplicate" if same else "conflict", id=one.id)
                if not same:
                    for put in rejected.conflict_puts(one.event, one.id, one.digest, group.now):
                        group.loose[put.key] = put
        group.prefetch(fresh)
        return fresh

    def _commit(
        self, group: Group, requests: Sequence[Request], refused: dict[int, EventRejected]
    ) -> dict[int, Receipt]:
        batches = group.seal_all()
        outcomes = self.store.commit(batches) if batches else []
        lost: set[int] = set()
        for (draft, _), refusal in zip(group.sealed, outcomes, strict=False):
            if refusal is not None:
                lost.update(draft.requests)
                self._fence(draft.requests, requests, refused)
        if lost:
            group.forget()
        else:
            group.keep()
        for receipt_index in lost:
            group.receipts.pop(receipt_index, None)
        return group.answers(lost)

    def _fence(self, indices: Sequence[int], requests: Sequence[Request], refused: dict[int, EventRejected]) -> None:
        # A refused batch is tried again, except where a condition of the request itself no longer holds:
        # a lease that was taken over stays lost, a timer that was taken away is gone.
        for index in indices:
            conditions = [w for w in requests[index].writes if w.expected is not None]
            items = self.store.get([c.key for c in conditions])
            for condition, item in zip(conditions, items, strict=True):
                if (item.version if item is not None else 0) != condition.expected:
                    message = f"another process was faster: {condition.key.table} {condition.key.partition} has changed"
                    refused[index] = EventRejected(FENCED, message)

    def change(self, work: Callable[[Group], T]) -> T:
        """Run ``work`` on a group of its own and commit what it drafts: merges, splits and the like.

        Retried from the start when another process was faster; whatever ``work`` raises undoes everything.
        """
        with self._lock:
            for _ in range(ATTEMPTS_MAX):
                group = self._group()
                try:
                    result = work(group)
                    refusals: list[Refusal | None] = self.store.commit(group.seal_all()) if group.has_work else []
                except BaseException:
                    group.forget()
                    raise
                if not any(refusals):
                    group.keep()
                    return result
                group.forget()
        raise Unavailable("other writers keep changing the same people; try again")

    def clear_caches(self) -> None:
        """Forget every cached person: something else has written to the store."""
        with self._lock:
            self._people.clear()
            self._owners.clear()


def checked_request(request: Request, now: int) -> Request:
    """The request with a clamped time, or `EventRejected` for what no log may hold."""
    event = request.event
    if not event.type or len(event.type) > limits.EVENT_TYPE_LENGTH_MAX:
        raise EventRejected("invalid_type", f"an event type has 1 to {limits.EVENT_TYPE_LENGTH_MAX} characters")
    if event.type.startswith(SYSTEM_PREFIX) and event.source_type != "internal":
        raise EventRejected("reserved_type", f"types that begin with {SYSTEM_PREFIX} are Threadline's own")
    if not event.key or len(event.key) > limits.EVENT_KEY_LENGTH_MAX * 4:
        raise EventRejected("invalid_key", "an event needs an idempotency key that is not too long")
    if len(event.identifiers) > limits.IDENTIFIERS_PER_EVENT_MAX:
        raise EventRejected("too_many_identifiers", f"an event has at most {limits.IDENTIFIERS_PER_EVENT_MAX} identifiers")
    if not EARLIEST <= event.occurred_at <= LATEST:
        raise EventRejected("invalid_time", "the time is outside the years 1 to 9999")
    if event.occurred_at > now + FUTURE_MAX_SECONDS * SECOND:
        return request._replace(event=rejected.clamped(event, event.received_at or now))
    return request


