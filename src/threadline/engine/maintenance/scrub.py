"""The scrub: the whole store is read and checked again and again, page by page, at a pace that takes days."""

from __future__ import annotations

import logging
import threading

import msgspec
from msgspec.structs import replace

from threadline.engine.damage import DamagedEvents, damage_of
from threadline.engine.delivery.leases import Leases
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import PERSON, Person
from threadline.engine.folding.person_packing import people_of
from threadline.engine.maintenance.rebuild import compared
from threadline.kernel.errors import StoreDamaged, Unavailable
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.store import Batch, Check, Item, Key, Put, Store
from threadline.kernel.time import DAY, SECOND, Clock
from threadline.kernel.typed import prepared

SCRUB = "scrub"
"""Table of one item: how far the scrub has come, and what came of the last one."""
STATE_KEY = Key(SCRUB, "-")
PEOPLE_PAGE = 100
CHEAP_EVENTS_MAX = 500
"""A person with more events is compared with a fold by `verify` only."""
PAUSE_SECONDS_MAX = 60.0
RETRY_SECONDS = 60.0
PACE = 0.8
"""The share of the declared time in which a pass is meant to be done."""

log = logging.getLogger("threadline.damage")


class Pass(msgspec.Struct, array_like=True, frozen=True):
    """One reading of the whole store."""

    began_at: int = 0
    done_at: int = 0
    """0: not yet."""
    entries: int = 0
    people: int = 0
    damaged: int = 0
    """Events that were damaged."""
    differing: int = 0
    """People whose states were not the fold of their events, or who could not be folded."""
    problem: str = ""
    """Why the log could not be read to its end, if that is so."""


@prepared
class Scrubbed(msgspec.Struct, array_like=True, frozen=True):
    """How far the scrub has come."""

    now: Pass = Pass()
    last: Pass = Pass()
    """The last one that is complete."""
    cursor: str = ""
    """How far the log has been read."""
    after: str = ""
    """How far people have been, once the log is done."""
    at_people: bool = False


def scrubbed(store: Store) -> Scrubbed:
    """How far the scrub of a store has come."""
    return _state(store.get([STATE_KEY])[0])


def _state(item: Item | None) -> Scrubbed:
    return Scrubbed() if item is None else msgspec.msgpack.decode(item.value, type=Scrubbed)


class Scrub:
    """Reads one store through in ``days``. `step` checks one page, under the fence of a lease: one process does it."""

    def __init__(self, store: Store, catalogue: Catalogue, damage: DamagedEvents, clock: Clock, days: float) -> None:
        self._store = store
        self._catalogue = catalogue
        self._damage = damage
        self._clock = clock
        self._length = int(days * DAY)

    def is_due(self) -> bool:
        """Whether a pass is under way, or the last one began long enough ago; or ahead of the clock, as it is now."""
        state = scrubbed(self._store)
        return bool(state.now.began_at) or not 0 <= self._clock() - state.last.began_at < self._length

    def step(self, fence: Check) -> float:
        """Check the next page; returns how many seconds are to pass before the next step."""
        item = self._store.get([STATE_KEY])[0]
        state = _state(item)
        if not state.now.began_at:
            state = Scrubbed(Pass(began_at=self._clock()), state.last)
        state = self._people(state) if state.at_people else self._log(state)
        if state.now.done_at:
            self._damage.recheck()
            state = Scrubbed(last=state.now)
        put = Put(STATE_KEY, msgspec.msgpack.encode(state), 0 if item is None else item.version)
        self._store.commit([Batch(writes=[put, fence])])
        return self._pause_seconds(state)

    def _log(self, state: Scrubbed) -> Scrubbed:
        current = state.now
        try:
            page = self._store.feed(state.cursor, PAGE_ITEMS_MAX)
            damaged = damage_of(self._store, page)
        except StoreDamaged as error:
            log.error("the scrub cannot read the log beyond %r: %s", state.cursor, error)
            return replace(state, at_people=True, now=replace(current, problem=str(error)))
        for damage in damaged:
            self._damage.note(damage.error)
        if not page:
            return replace(state, at_people=True)
        current = replace(current, entries=current.entries + len(page), damaged=current.damaged + len(damaged))
        return replace(state, now=current, cursor=page[-1].cursor)

    def _people(self, state: Scrubbed) -> Scrubbed:
        current, after = state.now, Key(PERSON, state.after) if state.after else None
        items = self._store.scan(PERSON, after=after, limit=PEOPLE_PAGE)
        if not items:
            return replace(state, now=replace(current, done_at=self._clock()))
        differing = self._differing(items)
        current = replace(current, people=current.people + len(items), differing=current.differing + differing)
        return replace(state, now=current, after=items[-1].key.partition)

    def _differing(self, items: list[Item]) -> int:
        """How many of these people are not the fold of their events, and have not changed meanwhile."""
        try:
            people = people_of(self._store, self._catalogue, items)
            cheap = [
                item
                for item, person in zip(items, people, strict=True)
                if isinstance(person, Person) and not person.stale and person.position <= CHEAP_EVENTS_MAX
            ]
            done = compared(self._store, self._catalogue, cheap)
        except StoreDamaged as error:
            log.error("the scrub cannot read people: %s", error)
            return 1
        wrong = [comparison for comparison in done if comparison.differs or comparison.unreadable]
        stands = self._store.get([comparison.item.key for comparison in wrong])
        differing = [comparison for comparison, item in zip(wrong, stands, strict=True) if item == comparison.item]
        for comparison in differing:
            log.error(
                "person %s is not what a fold of the log makes of them: %s; `threadline verify` checks everybody",
                comparison.item.key.partition,
                comparison.unreadable or "states differ",
            )
        return len(differing)

    def _pause_seconds(self, state: Scrubbed) -> float:
        entries = self._store.stats().get("log_entries") or state.last.entries or PAGE_ITEMS_MAX * PAGE_ITEMS_MAX
        pages = entries / PAGE_ITEMS_MAX + (state.last.people or entries / 10) / PEOPLE_PAGE + 1
        return min(PACE * self._length / SECOND / pages, PAUSE_SECONDS_MAX)


class ScrubWorker:
    """Takes the steps of a scrub in a thread of its own, as long as its process has the lease."""

    def __init__(self, scrub: Scrub, leases: Leases, clock: Clock) -> None:
        self._scrub = scrub
        self._leases = leases
        self._clock = clock
        self._looked_at = 0
        self._pause_seconds = 0.0
        self._thread: threading.Thread | None = None

    def start(self, stopping: threading.Event) -> None:
        """Take a step if it is time for one."""
        waited = self._clock() - self._looked_at
        if (self._thread is None or not self._thread.is_alive()) and not 0 <= waited < self._pause_seconds * SECOND:
            self._thread = threading.Thread(target=self._step, name="threadline-scrub", daemon=True)
            self._thread.start()

    def _step(self) -> None:
        self._looked_at, self._pause_seconds = self._clock(), RETRY_SECONDS
        try:
            if not self._scrub.is_due():
                self._leases.let_go()
            elif (fence := self._leases.acquire(SCRUB)) is not None:
                self._pause_seconds = self._scrub.step(fence)
        except Unavailable as error:
            log.warning("the scrub waits for the store: %s", error)
        except Exception:
            log.exception("the scrub failed; it goes on in a while")

    def step(self) -> int:
        """Nothing: nobody waits for a scrub, and it would take as long as there is time."""
        return 0

    def finish(self) -> None:
        """Wait for the page that is being checked, and give the lease back."""
        if self._thread is not None:
            self._thread.join()
        self._leases.let_go()
