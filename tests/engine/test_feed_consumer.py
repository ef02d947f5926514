"""Consumers of the feed: every event at least once and in order, whoever dies, fails or takes over, whenever it is."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.laws import staging
from tests.mortal import Fate, Killed
from threadline.engine.damage import DamagedEvents
from threadline.engine.delivery.feed_consumer import (
    FEED_CURSOR,
    FeedConsumer,
    FeedPage,
    FeedWorker,
    consumer_state,
    consumers,
    cursor_key,
    rewind,
)
from threadline.engine.delivery.leases import LEASE_SECONDS, Leases
from threadline.engine.engine import Engine
from threadline.kernel.errors import Conflict, InvalidValue, Unavailable
from threadline.kernel.store import Batch, Key, Put, Refusal, Store, feed_pages
from threadline.kernel.time import SECOND
from threadline.stores.memory import MemoryStore

NAME = "test"
PAGE = 3


class Clock:
    def __init__(self) -> None:
        self.now = staging.NOW

    def __call__(self) -> int:
        return self.now


class Got:
    """A handler that notes what it gets, and fails when it is told to."""

    def __init__(self) -> None:
        self.name, self.page_events = NAME, PAGE
        self.pages: list[FeedPage] = []
        self.failing = False

    def handle(self, page: FeedPage) -> None:
        if self.failing:
            raise OSError("the other side is away")
        self.pages.append(page)

    @property
    def ids(self) -> dict[int, str]:
        """Position -> id; a position that came again had the same id."""
        found: dict[int, str] = {}
        for page in self.pages:
            for position, each in enumerate(page.entries, page.first):
                assert found.setdefault(position, each.entry.id) == each.entry.id
        return found


class Stage:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store: Store = MemoryStore()
        self.fate = Fate(self.store)
        self.got = Got()
        self.recorded = 0
        self.engine: Engine = staging.engine(self.store, self.clock)

    def consumer(self, owner: str = "one") -> FeedConsumer:
        return FeedConsumer(self.store, self.clock, self.got, Leases(self.store, self.clock, owner))

    def record(self, number: int) -> None:
        events = [
            staging.event("seen", {"user_id": f"p{n % 4}"}, f"e{n}")
            for n in range(self.recorded, self.recorded + number)
        ]
        self.recorded += number
        assert set(staging.statuses(self.engine.recorder.record(events))) <= {"accepted"}

    def all_ids(self) -> list[str]:
        return [each.entry.id for each in feed_pages(self.store)]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("record"), st.integers(1, 7)),
            st.tuples(st.just("step"), st.sampled_from(["one", "two"])),
            st.tuples(st.just("killed"), st.sampled_from([0, 1])),
            st.tuples(st.just("failing"), st.booleans()),
            st.tuples(st.just("new process"), st.sampled_from(["one", "two"])),
            st.tuples(st.just("wait"), st.sampled_from([1, 20, 700])),
        ),
        max_size=30,
    )
)
def test_every_event_is_handed_over_in_order_whatever_fails(script: list[tuple[str, object]]) -> None:
    on = Stage()
    processes = {owner: on.consumer(owner) for owner in ("one", "two")}
    for what, value in script:
        if what == "record":
            assert isinstance(value, int)
            on.record(value)
        elif what == "step":
            processes[str(value)].step()
        elif what == "killed":
            on.fate.commits, on.fate.killed_at = 0, 1
            on.fate.through = 1_000 if value else 0
            try:
                processes["one"].step()
            except Killed:
                processes["one"] = on.consumer("one again")
            on.fate.killed_at = -1
        elif what == "failing":
            on.got.failing = bool(value)
        elif what == "new process":
            processes[str(value)] = on.consumer(str(value))
        else:
            assert isinstance(value, int)
            on.clock.now += value * SECOND
        state = consumer_state(on.store, NAME)
        assert sorted(on.got.ids) == list(range(1, len(on.got.ids) + 1)), "no gap"
        assert state.position <= len(on.got.ids), "no cursor ahead of what was handed over"
    on.got.failing = False
    on.clock.now += 3_600 * SECOND
    last = on.consumer("last")
    while last.step():
        pass
    assert list(on.got.ids.values()) == on.all_ids()
    state = consumer_state(on.store, NAME)
    assert (state.position, state.failures) == (len(on.all_ids()), 0)
    firsts = [page.first for page in on.got.pages]
    assert all(len(page.entries) <= PAGE for page in on.got.pages)
    assert firsts[-1:] == [max(firsts)] if firsts else True


def test_two_processes_take_no_page_at_the_same_time_and_the_second_goes_on_after_the_lease() -> None:
    on = Stage()
    on.record(9)
    one, two = on.consumer("one"), on.consumer("two")
    assert (one.step(), two.step(), one.step()) == (3, 0, 3)
    on.clock.now += int(LEASE_SECONDS * SECOND) + 1
    assert two.step() == 3
    assert [page.first for page in on.got.pages] == [1, 4, 7]


def test_a_process_that_was_overtaken_while_it_handled_a_page_moves_nothing() -> None:
    on = Stage()
    on.record(6)
    slow, other = on.consumer("slow"), on.consumer("other")

    class Overtaken(Got):
        def handle(self, page: FeedPage) -> None:
            if not self.pages:
                super().handle(page)
                on.clock.now += int(LEASE_SECONDS * SECOND) + 1
                while other.step():
                    pass

    on.got = Overtaken()
    slow.handler = on.got
    others = Got()
    other.handler = others
    assert slow.step() == 0
    assert consumer_state(on.store, NAME).position == len(others.ids) == len(on.all_ids())


def test_a_cursor_that_comes_to_the_store_after_another_process_went_on_is_refused() -> None:
    on = Stage()
    on.record(6)
    slow, other = on.consumer("slow"), on.consumer("other")
    commit, paused = on.store.commit, [True]

    def late(batches: Sequence[Batch]) -> list[Refusal | None]:
        if paused and any(write.key == cursor_key(NAME) for batch in batches for write in batch.writes):
            paused.clear()
            on.clock.now += int(LEASE_SECONDS * SECOND) + 1
            assert (other.step(), other.step()) == (3, 3)
        return commit(batches)

    on.store.commit = late  # type: ignore[method-assign]
    assert slow.step() == 0
    assert consumer_state(on.store, NAME).position == 6


def test_a_page_that_fails_is_tried_again_after_a_while_and_says_why() -> None:
    on = Stage()
    on.record(2)
    on.got.failing = True
    consumer = on.consumer()
    assert consumer.step() == 0
    state = consumer_state(on.store, NAME)
    assert (state.failures, state.problem, state.position) == (1, "OSError: the other side is away", 0)
    on.got.failing = False
    assert consumer.step() == 0
    on.clock.now += 10 * SECOND
    assert consumer.step() == 2
    assert consumer_state(on.store, NAME).problem == ""


def test_a_clock_that_was_ahead_puts_no_retry_off_for_days() -> None:
    on = Stage()
    on.record(1)
    on.got.failing = True
    on.clock.now += 10 * 86_400 * SECOND
    assert on.consumer().step() == 0
    on.clock.now -= 10 * 86_400 * SECOND
    on.got.failing = False
    assert on.consumer("other").step() == 0, "the lease is believed for its length"
    on.clock.now += int(LEASE_SECONDS * SECOND) + 1
    assert on.consumer().step() == 1


def test_status_tells_since_when_a_consumer_is_behind() -> None:
    on = Stage()
    assert consumers(on.store) == []
    on.record(4)
    on.consumer().step()
    on.clock.now += 5 * SECOND
    (status,) = consumers(on.store)
    assert (status.name, status.state.position, status.behind_since) == (NAME, 3, staging.NOW)
    on.consumer().step()
    assert consumers(on.store)[0].behind_since is None


def test_nothing_new_in_the_feed_costs_no_write() -> None:
    on = Stage()
    on.record(1)
    consumer = on.consumer()
    consumer.step()
    on.clock.now += 3_600 * SECOND
    on.fate.commits = 0
    assert consumer.step() == 0
    assert on.fate.commits == 0


def test_rewound_consumer_gets_the_rest_again() -> None:
    on = Stage()
    on.record(5)
    consumer = on.consumer()
    while consumer.step():
        pass
    rewind(on.store, NAME, 2)
    on.got.pages.clear()
    while consumer.step():
        pass
    assert list(on.got.ids) == [3, 4, 5]
    with pytest.raises(InvalidValue, match="the feed has 5 entries, and not 6"):
        rewind(on.store, NAME, 6)


def test_cursor_of_another_store_is_found_anew_by_its_position() -> None:
    on = Stage()
    on.record(5)
    consumer = on.consumer()
    consumer.step()
    third = consumer_state(on.store, NAME).last_id
    # As after a move: the item is the same, and its cursors mean nothing here.
    for before, cursor in (("no cursor", "nor this"), ("4", "5"), ("0" * 30, "x")):
        moved = replace(consumer_state(on.store, NAME), before=before, cursor=cursor, position=3, last_id=third)
        on.store.commit([Batch(writes=[Put(cursor_key(NAME), msgspec.msgpack.encode(moved))])])
        on.got.pages.clear()
        assert on.consumer().step() == 2
        assert list(on.got.ids.items()) == list(enumerate(on.all_ids(), 1))[3:]


def test_cursor_behind_which_another_log_stands_is_refused() -> None:
    on, other = Stage(), Stage()
    on.record(4)
    on.consumer().step()
    item = on.store.get([cursor_key(NAME)])[0]
    assert item is not None
    other.recorded = 100
    other.record(4)
    other.store.commit([Batch(writes=[Put(item.key, item.value)])])
    with pytest.raises(Conflict, match="another event at position 3"):
        other.consumer().step()


def test_erased_events_have_a_position_and_are_not_given_out() -> None:
    on = Stage()
    on.record(3)
    on.store.erase([on.all_ids()[1]])
    on.consumer().step()
    damage = DamagedEvents(on.store, on.clock)
    (page,) = on.got.pages
    assert [position for position, _ in page.events(damage)] == [1, 3]


def test_worker_takes_steps_until_the_end_and_gives_the_lease_back() -> None:
    on = Stage()
    on.record(7)
    worker = FeedWorker(on.consumer())
    worker.start(threading.Event())
    worker.finish()
    assert len(on.got.ids) == 7
    on.record(1)
    assert on.consumer("two").step() == 1


def test_store_that_is_away_ends_the_round_and_not_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    on = Stage()
    on.record(2)
    stopping = threading.Event()
    stopping.set()
    consumer = on.consumer()
    on.fate.unavailable = True
    with pytest.raises(Unavailable):
        consumer.step()
    on.fate.unavailable = False
    assert consumer.step() == 2
    assert on.store.get([Key(FEED_CURSOR, "-", NAME)])[0] is not None
