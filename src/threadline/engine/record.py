"""The one write path: events in, receipts out, everything durable or nothing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from threadline.engine import rejected
from threadline.engine.catalogue import Catalogue
from threadline.engine.collecting import seldom_collected
from threadline.engine.group import Group
from threadline.engine.names import Names
from threadline.engine.people import People, nothing_cached
from threadline.engine.placing import fold_only, place
from threadline.engine.reactors import Reactors
from threadline.engine.right_of_way import RightOfWay
from threadline.engine.screen import Care, Request, Screened, checked_request, screen, unmet
from threadline.engine.shared import SharedValues
from threadline.engine.sources import Sources
from threadline.engine.turns import Turns
from threadline.engine.void import TOO_MANY_CHANGES, Overtaken, Poisoned
from threadline.kernel.errors import EventRejected, InvalidValue, LimitExceeded, Unavailable
from threadline.kernel.event import Receipt, Recorded, is_workspace
from threadline.kernel.policy import Known
from threadline.kernel.store import Batch, Refusal, Store
from threadline.kernel.time import Clock

T = TypeVar("T")

FENCED = "fenced"
"""Code of a request whose own conditions (a lease, a timer still there) no longer hold; not an event to keep."""
ATTEMPTS_MAX = 64
"""Attempts at a group whose people another process keeps changing, before the caller is told to retry."""
GROUP_EVENTS_MAX = 1_000
PAUSE_SECONDS_MAX = 0.1


class _Call:
    """One call of `record`: its requests, and what is settled about them so far, by position."""

    __slots__ = ("care", "done", "refused", "requests")

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
        self.done: dict[int, Receipt] = {}
        self.refused: dict[int, EventRejected] = {}
        self.care = Care(set(), set())

    def todo(self) -> list[int]:
        """What the next attempt is made at."""
        return [i for i in range(len(self.requests)) if i not in self.done and i not in self.refused]

    @property
    def settled(self) -> int:
        """Grows with whatever an attempt finds out, to an end: there is only so much to settle."""
        return len(self.done) + len(self.refused) + sum(map(len, self.care))


class Recorder:
    """Records events. Thread-safe: one group is placed and committed at a time, under one lock.

    Callers that arrive while a group commits wait for the lock; surfaces with many callers should collect what
    waits and hand it over in one call (that is the group commit).
    """

    def __init__(self, store: Store, catalogue: Catalogue, clock: Clock) -> None:
        self.store = store
        self.catalogue = catalogue
        self.clock = clock
        self.recorded_until = 0
        """The instant right after the newest ``recorded_at`` of this process; 0 before its first commit."""
        self._lock = threading.Lock()
        self.way = RightOfWay()
        self._cached = nothing_cached()
        self._turns = Turns(store, self._cached)
        self._names = Names(catalogue.rules)
        self.shared = SharedValues(store, catalogue, clock)
        self.sources = Sources(store)
        self.watchers: list[Callable[[Sequence[Batch] | None], None]] = []
        """Called with the batches of each commit before the next one is made; with None if it is unknown which went
        through."""

    @property
    def committing(self) -> threading.Lock:
        """Held while a group is placed and committed: what is done under it meets no commit of this process halfway."""
        return self._lock

    def now(self) -> int:
        """The clock, or the instant right after all that this process has recorded, whichever is later."""
        return max(self.clock(), self.recorded_until)

    def record(self, requests: Sequence[Request]) -> list[Receipt]:
        """Record events, each with its own receipt, in order. Returns when everything accepted is durable.

        A rejected event is kept in the rejected log and never stops its neighbours. Raises `Unavailable`
        (with `StoreFull`, `StoreBusy`) when the store cannot take them; what was then not answered was not written,
        and sending the same events again is safe.
        """
        receipts: list[Receipt] = []
        for start in range(0, len(requests), GROUP_EVENTS_MAX):
            with self._lock, seldom_collected():
                receipts += self._record(requests[start : start + GROUP_EVENTS_MAX])
        return receipts

    def _record(self, requests: Sequence[Request]) -> list[Receipt]:
        call = _Call(requests)
        attempts = progress = 0
        while todo := call.todo():
            call.done.update(self._attempt(call, todo, certain=attempts + progress > 0))
            # An attempt that settled something was not lost to other writers.
            attempts, progress = (0 if call.settled > progress else attempts + 1), call.settled
            if attempts == ATTEMPTS_MAX:
                raise Unavailable("other writers keep changing the same people; send the events again")
            _pause(attempts)
        if call.refused:
            now = self.clock()
            unfit = {i: error for i, error in call.refused.items() if error.code != FENCED}
            rejected.keep(self.store, [rejected.entry_of(requests[i].event, e, now) for i, e in unfit.items()])
            for i, error in call.refused.items():
                call.done[i] = Receipt(status="rejected", code=error.code, message=str(error))
        return [call.done[i] for i in range(len(requests))]

    def _group(self, requests: Iterable[Request], care: Care | None = None, *, cached: bool = True) -> Group:
        """A group for these requests; without ``cached`` it believes the store alone."""
        people = People(self.store, self.catalogue, self._cached if cached else nothing_cached())
        # Before the clock is: what an event is decided by has begun by the time that the event bears.
        reactors = Reactors(self.catalogue, self.shared)
        reactors.look({workspace for each in requests if is_workspace(workspace := each.event.workspace)})
        return Group(self.store, self.catalogue, people, self.clock(), reactors, care or Care(set(), set()))

    def _attempt(self, call: _Call, todo: Sequence[int], *, certain: bool) -> dict[int, Receipt]:
        """The receipts that this attempt settles. Until it is ``certain`` which events are new, it rejects none of
        them."""
        asked = [call.requests[index] for index in todo]
        group = self._group(asked, call.care)
        try:
            fresh = self._fresh(group, call, todo, certain=certain)
            contended = self._turns.needed(fresh)
            if not contended:
                return self._placed(group, fresh, call, certain=certain)
            if len(contended) == len(fresh):
                with self._turns.taken(contended.values()):
                    # Made anew, for what waited bears the time of its turn: it became known no earlier.
                    group = self._group(asked, call.care)
                    fresh = self._fresh(group, call, todo, certain=certain)
                    return self._placed(group, fresh, call, certain=certain)
            # Those for whom others may have to be waited for come in an attempt of their own.
            group.put_off.update(one.id for one in fresh if one.position in contended)
            quiet = [one for one in fresh if one.position not in contended]
            return self._placed(group, quiet, call, certain=certain)
        except Overtaken:
            group.people.forget(self._cached)
            return {}
        except Poisoned as poison:
            group.people.forget(self._cached, everybody=True)
            if certain:
                _heed(poison, call)
            return {}
        except BaseException:
            group.people.forget(self._cached)
            raise

    def _placed(self, group: Group, fresh: Sequence[Screened], call: _Call, *, certain: bool) -> dict[int, Receipt]:
        group.people.prefetch(fresh)
        for one in fresh:
            self.way.give()
            try:
                place(group, one)
            except EventRejected as error:
                if not certain:
                    raise Overtaken("it may have been recorded a moment ago") from error
                call.refused[one.position] = error
        receipts = self._commit(group, call)
        group.dissolve(self.way.give)
        return receipts

    def _fresh(self, group: Group, call: _Call, todo: Sequence[int], *, certain: bool = True) -> list[Screened]:
        """The screened events that are not in the log yet; duplicates and conflicts get their receipts here."""
        requests, refused = call.requests, call.refused
        screened: list[Screened] = []
        for index in todo:
            self.way.give()
            try:
                checked = checked_request(requests[index], group.now, self.catalogue.never_ahead)
                screened.append(screen(index, checked, self._names, group.now, requests[index].event.sent_time))
            except EventRejected as error:
                refused[index] = error
        # Of what is known as well: the first attempt at it may have died between the event and the row of its source.
        for put in self.sources.missing({(one.event.workspace, one.event.source) for one in screened}):
            group.commit_apart([put])
        known = self.store.seen([one.id for one in screened], certain=certain)
        unfit = self._unfit(screened, known, certain=certain)
        first: dict[str, int] = dict(known)
        fresh = []
        for one in screened:
            if one.position in unfit and one.id not in first:
                refused[one.position] = unfit[one.position]
                continue
            digest = first.setdefault(one.id, one.digest)
            if one.id not in known and digest == one.digest and one.id not in group.ids:
                group.ids.add(one.id)
                fresh.append(one)
            else:
                same = digest == one.digest
                group.receipts[one.position] = Receipt(status="duplicate" if same else "conflict", id=one.id)
                if not same:
                    group.commit_apart(rejected.conflict_writes(self.store, one.event, one.id, one.digest, group.now))
        return fresh

    def _unfit(self, screened: Sequence[Screened], known: dict[str, int], *, certain: bool) -> dict[int, EventRejected]:
        """By position, why new events do not meet the requirements of their type. Adds to ``known`` what is known
        after all."""
        if not self.catalogue.requirements:
            return {}
        new = [one for one in screened if one.id not in known]
        unfit = unmet(new, self.catalogue.requirements)
        if unfit and not certain:
            known.update(self.store.seen([one.id for one in new if one.position in unfit]))
        return unfit

    def _commit(self, group: Group, call: _Call) -> dict[int, Receipt]:
        batches = group.seal_all(self.way.give)
        outcomes = self._committed(batches, group.now)
        self.sources.written(group.loose)
        lost: set[int] = set()
        overtaken: set[str] = set()
        for (draft, _), refusal in zip(group.sealed, outcomes, strict=False):
            if refusal is not None:
                lost.update(draft.requests)
                overtaken |= draft.ids
                self._fence(draft.requests, call)
        if lost:
            group.people.forget(self._cached)
        else:
            group.people.keep()
        self._turns.note(group.people.touched, overtaken)
        # With an event that is not recorded yet, whatever this call says of it a second time is not settled either.
        unsettled = {group.receipts[index].id for index in lost if index in group.receipts} | group.put_off
        group.receipts = {i: receipt for i, receipt in group.receipts.items() if receipt.id not in unsettled}
        return group.answers()

    def _fence(self, positions: Sequence[int], call: _Call) -> None:
        # A refused batch is tried again, except where a condition of the request itself no longer holds:
        # a lease that was taken over stays lost, a timer that was taken away is gone.
        for position in positions:
            conditions = [w for w in call.requests[position].writes if w.expected is not None]
            items = self.store.get([c.key for c in conditions])
            for condition, item in zip(conditions, items, strict=True):
                if (item.version if item is not None else 0) != condition.expected:
                    message = f"another process was faster: {condition.key.table} {condition.key.partition} has changed"
                    call.refused[position] = EventRejected(FENCED, message)

    def rehearse(self, request: Request, look: Callable[[Recorded, Known], T]) -> T:
        """What ``look`` returns for an event that is placed and folded like any other, and then forgotten.

        Raises `EventRejected` for what could not be recorded, and `InvalidValue` for what is recorded already.
        """
        with self._lock:
            call = _Call([request])
            group = self._group(call.requests, cached=False)
            fresh = self._fresh(group, call, call.todo())
            group.people.prefetch(fresh)
            for error in call.refused.values():
                raise error
            if not fresh:
                raise InvalidValue("an event with this key is recorded already; name it by its id")
            try:
                return look(*fold_only(group, fresh[0]))
            except (Poisoned, Overtaken) as error:
                raise Unavailable(f"the event cannot be tried now: {error}") from None

    def change(self, work: Callable[[Group], T]) -> T:
        """Run ``work`` on a group of its own and commit what it drafts: merges, splits and the like.

        Retried from the start when another process was faster; whatever ``work`` raises undoes everything.
        """
        with self._lock:
            for attempt in range(ATTEMPTS_MAX):
                _pause(attempt)
                # Nothing from the caches: what an operator names must be judged by what is so now.
                group = self._group((), cached=False)
                try:
                    result = work(group)
                    refusals = self._committed(group.seal_all(), group.now)
                except Overtaken:
                    continue
                except Poisoned as poison:
                    hint = "Take some tags off first." if poison.code == TOO_MANY_CHANGES else ""
                    raise LimitExceeded(str(poison), hint=hint) from poison
                finally:
                    group.people.forget(self._cached)
                if not any(refusals):
                    return result
        raise Unavailable("other writers keep changing the same people; try again")

    def _committed(self, batches: Sequence[Batch], now: int) -> list[Refusal | None]:
        """Commit and tell the watchers; returns what became of each batch."""
        outcomes: list[Refusal | None] = []
        done: list[Batch] | None = None
        try:
            if batches:
                # Before the commit: a commit that raises may have gone through.
                self.recorded_until = now + 1
                outcomes = self.store.commit(batches)
            done = [batch for batch, refusal in zip(batches, outcomes, strict=True) if refusal is None]
        finally:
            for watcher in self.watchers:
                watcher(done)
        return outcomes

    def clear_caches(self) -> None:
        """Forget every cached person: something else has written to the store."""
        with self._lock:
            self._cached.clear()


def _heed(poison: Poisoned, call: _Call) -> None:
    """Take care at the next attempt of what made this one void; reject it where care was taken already."""
    unfit = set(poison.positions)
    assert unfit, "whatever is placed here belongs to a request"
    if len(unfit) > 1 and not unfit <= call.care.alone:
        # One of a batch is unfit: with a batch for each it shows which, and its neighbours are recorded.
        call.care.alone.update(unfit)
    elif poison.code == TOO_MANY_CHANGES and not unfit <= call.care.apart:
        # It may be the joining of people that is too much: then that is set aside, and not the event.
        call.care.apart.update(unfit)
    else:
        call.refused.update({position: EventRejected(poison.code, str(poison)) for position in unfit})


def _pause(attempts: int) -> None:
    """Wait a little after attempts that settled nothing: longer each time, and for a random time, unlike other
    writers."""
    if attempts:
        time.sleep(random.uniform(0, min(0.001 * 2**attempts, PAUSE_SECONDS_MAX)))
