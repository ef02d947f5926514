"""Consumers of the committed log: each gets every event of the feed in order, at least once, in one process at a time.

How far a consumer has come is an item of the store, committed under the fence of its lease: a process that was paused
past its lease cannot move it. A page that fails is handed over again after a while, longer each time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from threadline.engine.damage import DamagedEvents
from threadline.engine.delivery.leases import Leases
from threadline.engine.folding.packing import checked_event
from threadline.kernel.errors import Conflict, EventDamaged, InvalidValue, Unavailable
from threadline.kernel.event import Recorded
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.sender import rest_seconds
from threadline.kernel.store import Batch, FeedEntry, Item, Key, Put, Store, is_erased
from threadline.kernel.time import SECOND, Clock, is_over
from threadline.kernel.typed import prepared

FEED_CURSOR = "feed_cursor"
"""Table of one item for each consumer: how far it has come."""
_ALL = "-"
_PROBLEM_LENGTH_MAX = 500

log = logging.getLogger("threadline.feed")


class FeedPage(NamedTuple):
    """Consecutive entries of the feed, those of erased events included."""

    first: int
    """The position of the first: its number in the feed from 1, the same whenever it is read again."""
    entries: list[FeedEntry]

    def events(self, damage: DamagedEvents) -> Iterator[tuple[int, Recorded]]:
        """The events with their positions. Without those that are erased, and without damaged ones, which are noted."""
        for position, (cursor, entry) in enumerate(self.entries, self.first):
            if is_erased(entry):
                continue
            try:
                yield position, checked_event(entry, cursor)
            except EventDamaged as error:
                damage.note(error)


class FeedHandler(Protocol):
    """What a consumer does with a page."""

    @property
    def name(self) -> str:
        """The name of the consumer: whoever has the same name goes on where another process has stopped."""
        ...

    @property
    def page_events(self) -> int:
        """The most entries of a page, at most `PAGE_ITEMS_MAX`."""
        ...

    def handle(self, page: FeedPage) -> None:
        """Do what is to be done with these events. It may be called again with any of them; if it raises, it is."""
        ...


@prepared
class ConsumerState(msgspec.Struct, array_like=True, frozen=True):
    """How far a consumer has come, and whether its next page fails."""

    cursor: str = ""
    position: int = 0
    """Entries of the feed that were handed over."""
    before: str = ""
    """The cursor before the last of them."""
    last_id: str = ""
    """The id of the last of them: a cursor behind which another event stands belongs to another store."""
    processed_at: int = 0
    failures: int = 0
    """Attempts at the next page that failed in a row."""
    problem: str = ""
    retry_at: int = 0


class ConsumerStatus(NamedTuple):
    """A consumer as operators see it."""

    name: str
    state: ConsumerState
    behind_since: int | None
    """When the first event was recorded that it has not got; None: it has all. Where that one is erased or damaged,
    the instant of its last page."""


def cursor_key(name: str) -> Key:
    """Where it is kept how far a consumer has come."""
    return Key(FEED_CURSOR, _ALL, name)


def consumer_state(store: Store, name: str) -> ConsumerState:
    """How far a consumer has come."""
    return _state(store.get([cursor_key(name)])[0])


def consumers(store: Store) -> list[ConsumerStatus]:
    """Every consumer that has got anything, by name."""
    items = store.query(FEED_CURSOR, _ALL, limit=PAGE_ITEMS_MAX)
    return [_status(store, item.key.sort, _state(item)) for item in items]


def rewind(store: Store, name: str, position: int = 0) -> None:
    """Let a consumer go on after this position, whatever it has got already.

    Raises `InvalidValue` if the feed is shorter, and `Conflict` if the consumer moved on meanwhile.
    """
    item = store.get([cursor_key(name)])[0]
    _write(store, name, item, _at(store, position), None)


def _write(store: Store, name: str, item: Item | None, state: ConsumerState, leases: Leases | None) -> None:
    put = Put(cursor_key(name), msgspec.msgpack.encode(state), 0 if item is None else item.version)
    fence = [] if leases is None else [leases.acquire(_lease(name))]
    if None in fence or store.commit([Batch(writes=[put, *filter(None, fence)])])[0] is not None:
        raise Conflict(f"another process moved the consumer {name!r} at this moment")


def _lease(name: str) -> str:
    return f"{FEED_CURSOR}/{name}"


def _state(item: Item | None) -> ConsumerState:
    return ConsumerState() if item is None else msgspec.msgpack.decode(item.value, type=ConsumerState)


def _status(store: Store, name: str, state: ConsumerState) -> ConsumerStatus:
    ahead = store.feed(state.cursor, 1)
    if not ahead:
        return ConsumerStatus(name, state, None)
    try:
        since = state.processed_at if is_erased(ahead[0].entry) else checked_event(ahead[0].entry).recorded_at
    except EventDamaged:
        since = state.processed_at
    return ConsumerStatus(name, state, since)


def _at(store: Store, position: int) -> ConsumerState:
    """The state of a consumer that has got so many entries: the feed is read up to there."""
    state = ConsumerState()
    while state.position < position:
        page = store.feed(state.cursor, min(PAGE_ITEMS_MAX, position - state.position))
        if not page:
            raise InvalidValue(f"the feed has {state.position} entries, and not {position}")
        state = _after(state, page)
    return state


def _after(state: ConsumerState, page: list[FeedEntry]) -> ConsumerState:
    before = page[-2].cursor if len(page) > 1 else state.cursor
    return ConsumerState(page[-1].cursor, state.position + len(page), before, page[-1].entry.id)


class FeedConsumer:
    """Hands the feed of one store to a handler. Any number of processes may have the same one. Not thread-safe."""

    def __init__(self, store: Store, clock: Clock, handler: FeedHandler, leases: Leases) -> None:
        self._store = store
        self._clock = clock
        self.handler = handler
        self._leases = leases
        self._checked = False
        """Whether the cursor was found to belong to this store."""

    def step(self) -> int:
        """Hand over the next page; answers of how many entries. 0: there is none, or it is not for this process, or it
        is not time to try it again."""
        name = self.handler.name
        item = self._store.get([cursor_key(name)])[0]
        state = self._of_this_store(_state(item))
        now = self._clock()
        if not is_over(state.retry_at, now, rest_seconds(state.failures - 1) * SECOND):
            return 0
        # Before the lease is asked for: a feed in which nothing is new costs no write.
        if not self._store.feed(state.cursor, 1) or self._leases.acquire(_lease(name)) is None:
            return 0
        page = self._store.feed(state.cursor, min(self.handler.page_events, PAGE_ITEMS_MAX))
        try:
            self.handler.handle(FeedPage(state.position + 1, page))
        except Exception as error:  # noqa: BLE001 — the page comes again, and the state says why
            log.warning("%s: the page after position %d failed: %s", name, state.position, error)
            self._commit(item, self._failed(state, error))
            return 0
        after = replace(_after(state, page), processed_at=self._clock())
        return len(page) if self._commit(item, after) else 0

    def let_go(self) -> None:
        """Give the lease back, so that others need not wait for it to run out."""
        self._leases.let_go()

    def _commit(self, item: Item | None, state: ConsumerState) -> bool:
        try:
            _write(self._store, self.handler.name, item, state, self._leases)
        except Conflict as error:
            self._leases.doubt(_lease(self.handler.name))
            log.warning("%s", error)
            return False
        return True

    def _failed(self, state: ConsumerState, error: Exception) -> ConsumerState:
        problem = f"{type(error).__name__}: {error}. {getattr(error, 'hint', '')}".removesuffix(". ")
        return replace(
            state,
            failures=state.failures + 1,
            problem=problem[:_PROBLEM_LENGTH_MAX],
            retry_at=self._clock() + rest_seconds(state.failures) * SECOND,
        )

    def _of_this_store(self, state: ConsumerState) -> ConsumerState:
        """The state with a cursor of this store: the items of a store that was moved name cursors of the other one."""
        if self._checked or not state.position:
            return state
        try:
            page = self._store.feed(state.before, 1)
        except InvalidValue:
            page = []
        if not page or (page[0].cursor, page[0].entry.id) != (state.cursor, state.last_id):
            located = _at(self._store, state.position)
            if located.last_id != state.last_id:
                raise Conflict(
                    f"the feed has another event at position {state.position} than the consumer "
                    f"{self.handler.name!r} has got there",
                    hint="`threadline events rewind` says where it is to go on.",
                )
            state = replace(
                located,
                processed_at=state.processed_at,
                failures=state.failures,
                problem=state.problem,
                retry_at=state.retry_at,
            )
        else:
            self._checked = True
        return state


class FeedWorker:
    """Takes the steps of a consumer in a thread of its own, until there is nothing more in the feed."""

    def __init__(self, consumer: FeedConsumer) -> None:
        self._consumer = consumer
        self._thread: threading.Thread | None = None

    @property
    def name(self) -> str:
        """The name of the consumer."""
        return self._consumer.handler.name

    def start(self, stopping: threading.Event) -> None:
        """Start the thread if it is not running."""
        if self._thread is None or not self._thread.is_alive():
            name = f"threadline-feed-{self._consumer.handler.name}"
            self._thread = threading.Thread(target=self._run, args=(stopping,), name=name, daemon=True)
            self._thread.start()

    def _run(self, stopping: threading.Event) -> None:
        name = self._consumer.handler.name
        try:
            while not stopping.is_set() and self._consumer.step():
                pass
            return
        except Unavailable as error:
            log.warning("%s waits for the store: %s", name, error)
        except Exception:
            log.exception("%s failed; it goes on in a while", name)
        stopping.wait(rest_seconds(1))

    def step(self) -> int:
        """Hand over the next page in this thread; see `FeedConsumer.step`."""
        return self._consumer.step()

    def finish(self) -> None:
        """Wait for the page that is being handed over, and give the lease back."""
        if self._thread is not None:
            self._thread.join()
        self._consumer.let_go()
