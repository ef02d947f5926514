"""Law: engines that meet, join and part the same people at once know what is true."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given

from tests.laws import staging
from tests.laws.staging import Engine, event
from tests.laws.test_refold import diary
from threadline.engine.delivery.outcomes import identifier_of
from threadline.engine.folding.person import THREAD
from threadline.engine.reading.person_reader import PersonReader
from threadline.kernel.event import Event, Identifier, thread_id
from threadline.kernel.store import Batch, Item, Key, Refusal
from threadline.kernel.time import DAY
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios


def at_once(engines: list[Engine], calls: list[list[Event]]) -> None:
    """Each engine tells its calls, all of them at the same time."""
    barrier = threading.Barrier(len(engines))
    failures: list[BaseException] = []

    def work(on: Engine, told: list[Event]) -> None:
        barrier.wait()
        try:
            for one in told:
                assert staging.statuses(on.recorder.record([one])) == ["accepted"]
        except BaseException as error:  # noqa: BLE001 -- a thread can only hand its failure over
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(engines, calls, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("engines", [1, 2, 4])
def test_first_contacts_at_once_make_one_person(engines: int) -> None:
    for attempt in range(20):
        store = MemoryStore()
        ons = [staging.engine(store) for _ in range(engines)]
        calls = [
            [
                event("identify", {"user_id": f"u{attempt}", "anonymous_id": f"a{attempt}"}, f"{n}-{key}")
                for key in range(3)
            ]
            for n in range(4)
        ]
        at_once([ons[n % engines] for n in range(4)], calls)
        assert len(list(ons[0].reader.all_people("default"))) == 1
        staging.assert_log_is_whole(ons[0])
        staging.assert_refold_changes_nothing(ons[0])


def test_what_is_lost_for_who_has_gone_is_no_part_of_who_they_have_become() -> None:
    store, clock = MemoryStore(), staging.ticking()
    one, other = (staging.engine(store, clock, [diary()]) for _ in range(2))
    stays, goes = {"user_id": "u"}, {"anonymous_id": "a"}
    other.recorder.record([event("page", stays, "1")])
    one.recorder.record([event("page", goes, "2")])
    # One engine knows who goes as they were, and who stays as they are: what it places for the former is lost.
    other.identity.merge("default", "user_id:u", "anonymous_id:a", request="m")
    told = [
        event("tool_used", goes, "4", scenarios.NOW - 2 * DAY),
        event("tool_used", stays, "5", scenarios.NOW - 9 * DAY),
    ]
    seen = []

    def look(batches: object) -> None:
        staging.assert_refold_changes_nothing(other)
        seen.append(batches)

    one.recorder.watchers.append(look)
    assert staging.statuses(one.recorder.record(told)) == ["accepted"] * 2
    staging.assert_refold_changes_nothing(other)
    assert seen


def test_engines_at_once_on_one_store_know_what_is_true(seed: int) -> None:
    history = scenarios.history(Random(seed), people=5, count=240)
    store = MemoryStore()
    at_once([staging.engine(store) for _ in range(3)], [history[n::3] for n in range(3)])
    clean = staging.tell(MemoryStore(), [history])
    on = staging.engine(store)
    assert staging.timeless(on) == staging.timeless(clean)
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)


@given(scenarios.histories(people=2, count_max=40), scenarios.randoms)
def test_engines_that_merge_and_split_behind_each_other(history: list[Event], random: Random) -> None:
    store = MemoryStore()
    engines = [staging.engine(store) for _ in range(3)]
    for number, told in enumerate(history):
        assert staging.statuses(random.choice(engines).recorder.record([told])) == ["accepted"]
        if random.random() < 0.2:
            _meddle(random.choice(engines), random, str(number))
    on = staging.engine(store)
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)
    assert len(
        {each.id for person in on.reader.all_people("default") for each in on.reader.events(person, limit=500)}
    ) >= len(history)


def _meddle(on: Engine, random: Random, request: str) -> None:
    people = list(on.reader.all_people("default"))
    person = random.choice(people)
    if len(person.heads) > 1 and random.random() < 0.5:
        on.identity.split(
            "default", person.id, [str(random.choice(list(person.identifiers.values())))], request=request
        )
    elif len(people) > 1:
        one, other = random.sample(people, 2)
        on.identity.merge("default", one.id, other.id, request=request, force=True)


class BetweenTwoReadings:
    """A store in which something is done once after a thread was read, before its person is."""

    def __init__(self, store: MemoryStore, work: Callable[[], object]) -> None:
        self._store = store
        self._work = work

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        found = self._store.get(keys)
        if any(key.table == THREAD for key in keys):
            work, self._work = self._work, lambda: None
            work()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_who_is_split_between_two_readings_is_still_found() -> None:
    on = staging.engine()
    told = event("identify", {"user_id": "u", "anonymous_id": "a"}, "1")
    on.recorder.record([told])
    store: Any = BetweenTwoReadings(
        on.store,  # type: ignore[arg-type]
        lambda: on.identity.split("default", "user_id:u", ["anonymous_id:a"], request="s"),
    )
    reader = PersonReader(store, on.catalogue)
    identifier = told.identifiers[1]
    assert identifier_of(reader, thread_id("default", identifier)) == identifier
    assert reader.person("default", "anonymous_id:a").id != reader.person("default", "user_id:u").id


class OvertakenStore:
    """A store that does some work of another process right before its next commit."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.work: Callable[[], object] | None = None

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """Work, and commit."""
        work, self.work = self.work, None
        if work is not None:
            work()
        return self.store.commit(batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def test_what_is_committed_before_a_merge_that_is_lost_is_answered_with_its_own_person() -> None:
    store: Any = OvertakenStore(MemoryStore())
    one, other = staging.engine(store), staging.engine(store.store)
    # Of two people of one instant the one with the lesser id survives, and that is a hash.
    stays = {"email": "b@example.com"}
    least = thread_id("default", Identifier("email", "b@example.com"))
    goes = next(
        {"anonymous_id": f"a{n}"} for n in count() if thread_id("default", Identifier("anonymous_id", f"a{n}")) > least
    )
    call = [
        *(event("page", goes, f"{number}") for number in range(60)),  # more than a batch takes
        event("page", stays, "other"),
        event("page", {**stays, **goes}, "both"),
    ]
    store.work = lambda: other.recorder.record([event("page", {"user_id": "c", **stays}, "before")])
    receipts = one.recorder.record(call)
    assert set(staging.statuses(receipts)) == {"accepted"}
    [person] = one.reader.all_people("default")
    found = [one.reader.by_id(each.person) for each in receipts]
    assert [each is not None and each.id for each in found] == [person.id] * len(call)


class AfterSomeReadings:
    """A store in which something is done once after so many readings of items."""

    def __init__(self, store: MemoryStore, work: Callable[[], object]) -> None:
        self._store, self._work = store, work
        self.left = 0

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        found = self._store.get(keys)
        self.left -= 1
        if self.left == 0:
            self._work()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _merged_and_split(on: Engine) -> None:
    on.identity.merge("default", "user_id:u", "anonymous_id:a", request="m")
    on.identity.split("default", "user_id:u", ["user_id:u"], request="s")


def _erased(on: Engine) -> None:
    on.erasures.begin("default", "anonymous_id:a", request="e")


@pytest.mark.parametrize("do", [_merged_and_split, _erased])
@pytest.mark.parametrize("readings", range(1, 7))
def test_who_is_merged_into_somebody_older_after_any_reading_is_followed(
    do: Callable[[Engine], None], readings: int
) -> None:
    store, clock = MemoryStore(), staging.ticking()
    other = staging.engine(store, clock)
    for name in ("b", "a"):
        other.recorder.record([event("page", {"anonymous_id": name}, name)])
    other.recorder.record([event("page", {"user_id": "u"}, "u")])
    between: Any = AfterSomeReadings(
        store, lambda: other.identity.merge("default", "anonymous_id:b", "anonymous_id:a", request="o")
    )
    one = staging.engine(between, clock)
    between.left = readings
    do(one)
    assert between.left < 0, "all was read before"
    found = {each.id for each in other.reader.all_people("default")}
    if do is _erased:
        assert found == {other.reader.person("default", "user_id:u").id}
    else:
        assert len(found) == 2
        staging.assert_log_is_whole(other)


@pytest.mark.parametrize("readings", range(1, 7))
def test_two_who_erase_somebody_at_once_by_one_request_begin_one_erasure(readings: int) -> None:
    store, clock = MemoryStore(), staging.ticking()
    other = staging.engine(store, clock)
    other.recorder.record([event("page", {"anonymous_id": "a"}, "a")])
    between: Any = AfterSomeReadings(store, lambda: _erased(other))
    one = staging.engine(between, clock)
    between.left = readings
    begun = one.erasures.begin("default", "anonymous_id:a", request="e")
    assert [id for _, id in one.erasures.unfinished()] == [begun.id]
