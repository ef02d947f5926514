"""Moving: the target holds the same as the source, after every interruption, and whatever is written meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given

from tests.laws import staging
from tests.laws.staging import Crash, event
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.leases import LEASE
from threadline.engine.engine import Engine
from threadline.engine.maintenance import move as moving
from threadline.engine.maintenance.dump import dump
from threadline.engine.maintenance.marks import MARKS
from threadline.engine.maintenance.move import NOT_MOVED, Move, fingerprint
from threadline.kernel.errors import Conflict
from threadline.kernel.event import Recorded
from threadline.kernel.policy import TIMER_FIRED, Effect, Emit, Policy, Timer, Wish
from threadline.kernel.store import Batch, Key, Put, Refusal, Store, feed_pages, scan_pages
from threadline.kernel.time import DAY
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing import scenarios


def react(recorded: Recorded, known: object) -> Sequence[Wish]:
    if recorded.event.type == "page":
        days = len(recorded.event.key) % 3
        return [Timer(key="call", due_at=scenarios.NOW + days * DAY), Effect(kind="box", key="mail")]
    return [Emit(type="called", key="call", occurred_at=recorded.event.occurred_at)]


POLICY = Policy(name="care", handles=frozenset({"page", TIMER_FIRED}), react=react)
CATALOGUE = staging.engine(values=[POLICY]).catalogue


def told(random: Random, store: Store, count: int = 30) -> Engine:
    """A store with something in every kind of table: people joined and split, timers, leases, rejections, keys."""
    on = Engine(store, CATALOGUE, staging.ticking())
    for call in scenarios.batched(random, scenarios.history(random, 3, count)):
        on.recorder.record(call)
    on.recorder.record([event("page", {"anonymous_id": f"lone-{number}"}, f"lone-{number}") for number in range(4)])
    on.identity.merge("default", "anonymous_id:lone-0", "anonymous_id:lone-1", request="m")
    on.identity.merge("default", "anonymous_id:lone-0", "anonymous_id:lone-2", request="m2")
    on.identity.split("default", "anonymous_id:lone-0", ["anonymous_id:lone-2"], request="s")
    on.recorder.record([event("", {"user_id": "1"}, "nameless")])
    on.credentials.create("default", "write_key", "web")
    Dispatcher(on, {}, "worker").run_once()
    return on


def items(store: Store) -> dict[Key, bytes]:
    tables = set(store.tables()) - set(NOT_MOVED)
    return {item.key: item.value for table in tables for item in scan_pages(store, table)}


def assert_equal(source: Store, target: Store) -> None:
    assert items(source) == items(target)
    assert [each.entry for each in feed_pages(source)] == [each.entry for each in feed_pages(target)]
    assert dump(source, CATALOGUE) == dump(target, CATALOGUE)


def move(source: Store, target: Store, name: str = "old") -> Move:
    return Move(source, target, CATALOGUE, name)


def test_a_target_that_was_opened_before_is_empty_all_the_same() -> None:
    source, target = MemoryStore(), MemoryStore()
    told(Random(1), source)
    profile = Key(MARKS, "profile")
    source.commit([Batch(writes=[Put(profile, b"of another version")])])
    Engine(target, CATALOGUE, staging.ticking())
    assert target.get([profile])[0] is not None
    move(source, target).run()
    assert_equal(source, target)


@given(scenarios.randoms)
def test_the_target_holds_what_the_source_holds(random: Random) -> None:
    source, target = MemoryStore(), MemoryStore()
    told(random, source)
    moved = move(source, target).run()
    assert_equal(source, target)
    assert (moved.events, moved.items) == (len(list(feed_pages(source))), len(items(source)))
    assert moved.dump.number == len(dump(source, CATALOGUE))
    assert LEASE in source.tables()
    assert LEASE not in target.tables()
    # And goes on as the source would: duplicates are known, timers fire, people are found and joined.
    both = [Engine(store, CATALOGUE, lambda: scenarios.NOW + 30 * DAY) for store in (source, target)]
    again = scenarios.history(Random(1), 3, 5, "again")
    for engine in both:
        engine.recorder.record(again)
        engine.identity.merge("default", "anonymous_id:lone-0", "anonymous_id:lone-3", request="later")
        assert Dispatcher(engine, {}, "other").run_once() > 0
        assert staging.statuses(engine.recorder.record(again)) == ["duplicate"] * 5
    assert staging.whole(both[0]) == staging.whole(both[1])


class CrashingTarget:
    """A target whose ``at``-th commit crashes, before it, after it or half-way; then it is used no more."""

    def __init__(self, store: Store, at: int, when: str) -> None:
        self.crashing = staging.CrashingStore(store, at, when)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.crashing, name)


@given(scenarios.randoms)
def test_broken_off_anywhere_and_begun_again_it_ends_the_same(random: Random) -> None:
    source, target = MemoryStore(), MemoryStore()
    told(random, source, 12)
    crashes = 0
    while True:
        try:
            move(
                source,
                CrashingTarget(
                    target, random.randint(1, 4 + crashes), random.choice(("before", "half", "apart", "after"))
                ),
            ).run()
            break
        except Crash:
            crashes += 1
            assert crashes < 500
        except Conflict as error:  # it died over the last commit of all, which says that the move is done
            assert "moved there already" in str(error)  # noqa: PT017 - the loop ends with it
            break
    assert_equal(source, target)


def test_what_is_copied_already_is_not_copied_again() -> None:
    source, target = MemoryStore(), MemoryStore()
    told(Random(1), source)
    move(source, target).copy()
    done: list[str] = []
    begun = Move(source, target, CATALOGUE, "old", lambda what, _: done.append(what))
    begun.run()
    assert set(done) <= {"items compared", "events verified", "lines verified"}


def test_a_target_with_data_of_its_own_is_refused() -> None:
    source, target = MemoryStore(), MemoryStore()
    told(Random(1), source)
    told(Random(2), target)
    with pytest.raises(Conflict, match="data of its own"):
        move(source, target)


def test_a_move_of_another_source_is_not_gone_on_with() -> None:
    source, target = MemoryStore(), MemoryStore()
    told(Random(1), source)
    move(source, target).copy()
    with pytest.raises(Conflict, match="a move of old into it was begun"):
        move(source, target, "another")


def test_what_is_moved_is_not_moved_over() -> None:
    source, target = MemoryStore(), MemoryStore()
    told(Random(1), source)
    move(source, target).run()
    with pytest.raises(Conflict, match="moved there already"):
        move(source, target)


@pytest.mark.parametrize("table", ["rejected", "person", "timer"])
def test_a_difference_that_stays_is_noticed(table: str) -> None:
    """A target that keeps another value than it is given: verification compares what can be read."""
    source, target = MemoryStore(), MemoryStore()
    told(Random(1), source)

    class Forgetful:
        def __getattr__(self, name: str) -> Any:
            return getattr(target, name)

        def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
            kept = [batch._replace(writes=[w for w in batch.writes if w.key.table != table]) for batch in batches]
            return target.commit(kept)

    with pytest.raises(Conflict):
        move(source, Forgetful()).run()  # type: ignore[arg-type]


@pytest.mark.parametrize(("which", "until"), [("source", 5), ("target", 2)])
def test_events_that_a_store_holds_back_for_a_while_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, which: str, until: int
) -> None:
    """As a store does whose last writer was killed: it cannot know yet whether that one wrote more."""
    monkeypatch.setattr(moving, "SETTLING_SECONDS", 0.0)
    monkeypatch.setattr(moving, "SETTLING_ROUNDS_MAX", 3)
    source, target = MemoryStore(), MemoryStore()
    told(Random(1), source)
    held = source if which == "source" else target

    class HoldingBack:
        looks, until = 0, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(held, name)

        def feed(self, cursor: str = "", limit: int = 1_000) -> Any:
            page = held.feed(cursor, limit)
            self.looks += bool(cursor)
            return page if self.looks > self.until else [each for each in page if int(each.cursor) <= 5]

    def run() -> None:
        holding: Any = HoldingBack()
        move(*((holding, target) if which == "source" else (source, holding))).run()

    HoldingBack.until = 100
    with pytest.raises(Conflict, match="not equal: 5 of"):
        run()
    HoldingBack.until = until
    run()
    assert_equal(source, target)


def test_a_changed_event_is_noticed() -> None:
    source, target = MemoryStore(), MemoryStore()
    told(Random(1), source)
    begun = move(source, target)
    begun.copy()
    target._log[3] = target._log[3]._replace(digest=1)
    with pytest.raises(Conflict, match="not equal"):
        begun.run()


def test_a_source_that_does_not_hold_still_is_noticed_and_gone_on_with_later() -> None:
    source, target = MemoryStore(), MemoryStore()
    on = told(Random(1), source)
    count = iter(range(10**6))

    def write(what: str, done: int) -> None:
        if what == "items compared":
            on.recorder.record([event("page", {"user_id": "1"}, f"meanwhile-{next(count)}")])

    with pytest.raises(Conflict, match="being written to"):
        Move(source, target, CATALOGUE, "old", write).run()
    move(source, target).run()
    assert_equal(source, target)


@pytest.fixture
def followed() -> Iterator[Callable[[Move], None]]:
    """Let a move follow in a thread of its own until the test ends."""
    stopping, threads = threading.Event(), []

    def follow(begun: Move) -> None:
        def run() -> None:
            begun.follow(stopping, time.monotonic, idle_seconds=0.01, level_seconds=3_600)

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()

    yield follow
    stopping.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def until(holds: Callable[[], bool], what: str) -> None:
    patience = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < patience, what
        time.sleep(0.01)


def test_a_shadow_follows_people_as_they_change(followed: Callable[[Move], None]) -> None:
    """Joins, splits and undone joins as well; after the first comparison only what the feed tells of is looked at."""
    random, source, target = Random(7), MemoryStore(), MemoryStore()
    on = told(random, source)
    begun, levelled = move(source, target), threading.Event()
    level = begun.level

    def noticed(between: Callable[[], object]) -> int:
        differing = level(between)
        levelled.set()
        return differing

    begun.level = noticed  # type: ignore[method-assign]
    followed(begun)
    assert levelled.wait(60)
    for number, call in enumerate(scenarios.batched(random, scenarios.history(Random(9), 5, 60))):
        on.recorder.record([each for each in call if each.type != ""])
        if number == 3:
            on.identity.merge("default", "anonymous_id:lone-0", "anonymous_id:lone-3", request="a")
            on.identity.merge("default", "anonymous_id:lone-2", "anonymous_id:lone-3", request="b")
        if number == 5:
            on.identity.split("default", "anonymous_id:lone-0", ["anonymous_id:lone-3"], request="c")
    loose = {"outbox", "rejected", "rejected_time", "credential", "credential_list", "quarantine"}
    tables = set(source.tables()) - loose - set(NOT_MOVED)
    assert tables >= {"person", "thread", "timer", "tag"}
    until(
        lambda: all(_values(source, table) == _values(target, table) for table in tables),
        "people of the shadow are behind",
    )


def test_a_join_between_two_tables_of_a_comparison_is_carried_all_the_same() -> None:
    """The shadow has the person who was joined away as they were, and their thread already as the survivor's."""
    source, target = MemoryStore(), MemoryStore()
    on = told(Random(3), source)
    shadow = move(source, target)
    shadow.copy()
    shadow.level_table("person")
    on.identity.merge("default", "anonymous_id:lone-0", "anonymous_id:lone-3", request="a")
    shadow.level_table("thread")
    assert _values(source, "person") != _values(target, "person")
    shadow.keep_up()
    assert _values(source, "person") == _values(target, "person")


def _values(store: Store, table: str) -> dict[Key, bytes]:
    return {item.key: item.value for item in scan_pages(store, table)}


def test_a_shadow_is_cut_over(tmp_path: Path, followed: Callable[[Move], None]) -> None:
    source = SqliteStore(tmp_path / "old.db")
    target = SqliteStore(tmp_path / "new.db")
    on = told(Random(3), source)
    stopping = threading.Event()
    follower = move(SqliteStore(tmp_path / "old.db", readonly=True), target)
    thread = threading.Thread(target=lambda: follower.follow(stopping, time.monotonic, idle_seconds=0.01), daemon=True)
    thread.start()
    for call in scenarios.batched(Random(4), scenarios.history(Random(11), 4, 80, "other")):
        on.recorder.record(call)
    stopping.set()
    thread.join(60)
    assert not thread.is_alive()
    follower.source.close()
    moved = move(source, target).run()
    assert moved.events == len(list(feed_pages(source)))
    assert_equal(source, target)
    source.close()
    target.close()


@pytest.mark.parametrize("what", ["events", "items", "items compared"])
def test_a_follower_ends_between_two_pages_when_it_is_told_to(what: str) -> None:
    source, target = MemoryStore(), MemoryStore()
    told(Random(3), source)
    stopping, done = threading.Event(), list[str]()

    def stop(at: str, count: int) -> None:
        done.append(at)
        if at == what:
            stopping.set()

    Move(source, target, CATALOGUE, "old", stop).follow(stopping, time.monotonic)
    assert done.count(what) == 1, "a first copy takes hours"
    move(source, target).run()
    assert_equal(source, target)


def test_a_follower_keeps_up_while_it_compares() -> None:
    source, target = MemoryStore(), MemoryStore()
    on = told(Random(3), source)
    stopping, late = threading.Event(), list[int]()

    def write(what: str, count: int) -> None:
        if what == "items compared":
            late.append(len(source.feed()) - len(target.feed()))
            on.recorder.record([event("page", {"user_id": "late"}, f"late {len(late)}")])
            if len(late) == 5:
                stopping.set()

    Move(source, target, CATALOGUE, "old", write).follow(stopping, time.monotonic)
    assert late == [0] * 5, "a comparison takes minutes, and new events follow meanwhile"


def test_large_items_travel_in_batches_that_fit() -> None:
    source, target = MemoryStore(), MemoryStore()
    for number in range(60):
        source.commit([Batch(writes=[Put(Key("large", f"{number}"), bytes(390_000))])])
    move(source, target).run()
    assert_equal(source, target)


def test_a_fingerprint_knows_sets_from_each_other() -> None:
    assert fingerprint([b"a", b"b"]) == fingerprint([b"b", b"a"])
    different = [fingerprint(each) for each in ([], [b"a"], [b"a", b"a"], [b"a", b"b"], [b"ab"])]
    assert len(set(different)) == 5
