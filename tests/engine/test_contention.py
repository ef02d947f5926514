"""People whom several processes change: who was overtaken waits for a turn, until nobody else has been there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from hypothesis import given

from tests.laws import staging
from threadline.kernel.event import Event
from threadline.kernel.store import Key
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios


class Watched:
    """A store that notes for whom turns are taken."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.locks: list[list[str]] = []
        self.before: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def advisory_lock(self, keys: Sequence[Key]) -> AbstractContextManager[None]:
        self.locks.append([key.partition for key in keys])
        self.before()
        return self._store.advisory_lock(keys)


def page(who: str, key: str) -> Event:
    return staging.event("page", {"user_id": who}, key)


def test_whoever_was_overtaken_waits_for_a_turn_until_nobody_else_has_been_there() -> None:
    store = MemoryStore()
    watched = Watched(store)
    one, other = staging.engine(watched), staging.engine(store)  # type: ignore[arg-type]
    [ada, _] = (receipt.person for receipt in one.recorder.record([page("ada", "1"), page("bob", "1b")]))
    assert watched.locks == []
    other.recorder.record([page("ada", "2")])
    one.recorder.record([page("ada", "3"), page("bob", "3b")])
    assert watched.locks == [[ada]], "found out by a refusal, and tried again in a turn"
    other.recorder.record([page("ada", "4")])
    one.recorder.record([page("ada", "5")])
    one.recorder.record([page("ada", "6")])
    assert watched.locks == [[ada]] * 3
    one.recorder.record([page("ada", "7"), page("bob", "7b")])
    assert watched.locks == [[ada]] * 3, "nobody else has been there"
    assert other.reader.person("default", "user_id:ada").position == 7
    staging.assert_log_is_whole(one)


def test_what_waited_for_its_turn_bears_the_time_of_the_turn() -> None:
    store = MemoryStore()
    times = staging.ticking()
    watched = Watched(store)
    one, other = staging.engine(watched, times), staging.engine(store, times)  # type: ignore[arg-type]
    one.recorder.record([page("ada", "1")])
    other.recorder.record([page("ada", "2")])
    one.recorder.record([page("ada", "3")])
    # Somebody else records in the moment in which the turn is waited for.
    watched.before = lambda: other.recorder.record([page("ada", "4")])
    one.recorder.record([page("ada", "5")])
    person = one.reader.person("default", "user_id:ada")
    told = one.reader.events(person)
    assert [each.event.key for each in sorted(told, key=lambda each: each.sequence)] == ["1", "2", "3", "4", "5"]
    recorded = [each.recorded_at for each in sorted(told, key=lambda each: each.sequence)]
    assert recorded == sorted(set(recorded))


def test_what_waits_for_a_turn_is_not_overtaken_by_what_comes_after_it() -> None:
    store = MemoryStore()
    one, other = staging.engine(store), staging.engine(store)
    device = {"anonymous_id": "x"}
    one.recorder.record([page("ada", "1"), staging.event("page", device, "2")])
    other.recorder.record([staging.event("page", device, "3")])
    one.recorder.record([staging.event("page", device, "4")])
    # The device is somebody for whom a turn is taken; ada is not, and becomes one with them.
    told = [staging.event("identify", {"user_id": "ada", **device}, "5"), page("ada", "6"), page("bob", "7")]
    receipts = one.recorder.record(told)
    assert staging.statuses(receipts) == ["accepted"] * 3
    assert receipts[0].thread == receipts[1].thread
    assert receipts[0].sequence < receipts[1].sequence
    staging.assert_log_is_whole(one)


def test_what_is_said_twice_in_a_call_is_answered_once_its_first_is_recorded() -> None:
    store = MemoryStore()
    one, other = staging.engine(store), staging.engine(store)
    one.recorder.record([page("ada", "1")])
    other.recorder.record([page("ada", "2")])
    one.recorder.record([page("ada", "3")])
    receipts = one.recorder.record([page("ada", "4"), page("bob", "5"), page("ada", "4"), page("bob", "4")])
    assert staging.statuses(receipts) == ["accepted", "accepted", "duplicate", "conflict"]
    assert receipts[0].id == receipts[2].id == receipts[3].id


@given(scenarios.histories(count_max=60), scenarios.randoms)
def test_engines_in_turn_know_what_one_knows(history: list[Event], random: Any) -> None:
    store = MemoryStore()
    engines = [staging.engine(store) for _ in range(3)]
    at = 0
    while at < len(history):
        count = random.randint(1, 6)
        receipts = random.choice(engines).recorder.record(history[at : at + count])
        assert set(staging.statuses(receipts)) <= {"accepted", "duplicate"}
        at += count
    assert staging.timeless(engines[0]) == staging.timeless(staging.tell(MemoryStore(), [history]))
    staging.assert_log_is_whole(engines[0])
