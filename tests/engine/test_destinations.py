"""Queues: one for each destination, which backs off while it fails, stops when it is gone, and parks what fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from tests.engine.test_dispatch import NOW, Box, Clock, left, tell, types
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.circuit import circuit_of
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.retry_schedule import RETRY_SECONDS_FIRST, RETRY_SECONDS_MAX, wait_seconds
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.scheduled import OUTBOX, PARKED
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.policy import Effect, Policy, Wish
from threadline.kernel.sender import (
    EFFECT_PARKED,
    EFFECT_REDRIVEN,
    EFFECT_RETRIED,
    REST_SECONDS_FIRST,
    REST_SECONDS_MAX,
    Outcome,
    Queue,
)
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, system_clock
from threadline.stores.memory import MemoryStore

FAILING = Outcome(type="x", retry_after_seconds=0.0, destination="failing")
POOR = Outcome(type="x", retry_after_seconds=0.0)
"""The place is well, but does not like what it gets."""
GONE = Outcome(type="x", parked="gone for good", destination="gone")
SENT = Outcome(type="mail_sent")


def react(recorded: Recorded, known: Any) -> Sequence[Wish]:
    queue = recorded.event.properties.get("queue", "crm")
    kind = recorded.event.properties.get("kind", "box")
    return [Effect(kind=kind, key="call", queue=queue, data={"queue": queue})]


POLICY = Policy(name="care", handles=frozenset({"write"}), react=react)


def engine_on(store: Any, clock: Any, *queues: Queue) -> Engine:
    values = [*discover("threadline.capabilities.profile.people.projection", definitions=None), POLICY, *queues]
    return Engine(store, Catalogue(values, rules()), clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> Engine:
    return engine_on(MemoryStore(), clock, Queue("crm", give_up_seconds=DAY // SECOND, failures_max=3))


def write(engine: Engine, count: int, queue: str = "crm", start: int = 0, kind: str = "box") -> None:
    for number in range(start, start + count):
        event = Event(
            type="write",
            identifiers=(Identifier("user_id", f"{queue}{number}"),),
            occurred_at=NOW,
            key=f"{queue}{number}",
            properties={"queue": queue, "kind": kind},
        )
        assert engine.recorder.record([event])[0].status == "accepted"


def settle_all(dispatcher: Dispatcher, clock: Clock, until: int, step: int = 2 * MINUTE) -> None:
    while clock.now < until:
        if not dispatcher.run_once():
            clock.now += step


def test_what_is_in_a_queue_is_sent_once_and_what_names_an_unknown_one_waits_among_the_others(engine: Engine) -> None:
    write(engine, 3)
    write(engine, 2, queue="nobody declared this")
    box = Box()
    assert Dispatcher(engine, {"box": box}, "one").run_once() == 5
    assert len(set(box.sent)) == len(box.sent) == 5
    assert left(engine, OUTBOX) == 0
    assert types(engine, "crm0") == ["write", "mail_sent"]


def test_a_place_that_fails_is_left_alone_and_then_asked_by_one_effect(engine: Engine, clock: Clock) -> None:
    write(engine, 20)
    box = Box([FAILING] * 4 + [SENT])
    dispatcher = Dispatcher(engine, {"box": box}, "one")
    dispatcher.run_once()
    assert len(box.sent) == 3, "three failures in a row, and no more is sent"
    assert circuit_of(engine.store, "crm").state.rest_until == clock.now + REST_SECONDS_FIRST * SECOND
    clock.now += REST_SECONDS_FIRST * SECOND - 1
    assert dispatcher.run_once() == 0
    clock.now += 1
    dispatcher.run_once()
    assert len(box.sent) == 4, "one is enough to see that it still fails"
    again = circuit_of(engine.store, "crm").state
    assert again.rest_until == clock.now + 2 * REST_SECONDS_FIRST * SECOND
    clock.now = again.rest_until
    assert dispatcher.run_once() == 1
    assert circuit_of(engine.store, "crm").state.rests == 0, "it is well"
    settle_all(dispatcher, clock, clock.now + HOUR, 20 * MINUTE)
    assert left(engine, OUTBOX) == 0
    assert sorted(types(engine, f"crm{n}")[-1] for n in range(20)) == ["mail_sent"] * 20


def test_rests_grow_to_a_bound(engine: Engine, clock: Clock) -> None:
    write(engine, 1)
    dispatcher = Dispatcher(engine, {"box": Box([FAILING] * 100)}, "one")
    longest = 0
    for _ in range(400):
        dispatcher.run_once()
        longest = max(longest, circuit_of(engine.store, "crm").state.rest_until - clock.now)
        clock.now += MINUTE
    assert longest == REST_SECONDS_MAX * SECOND


def test_an_effect_that_nobody_likes_rests_no_place(engine: Engine, clock: Clock) -> None:
    write(engine, 10)
    box = Box([POOR] * 10)
    Dispatcher(engine, {"box": box}, "one").run_once()
    assert len(box.sent) == 10
    assert circuit_of(engine.store, "crm").state.rests == 0


def test_another_process_goes_by_the_rest_of_the_first(engine: Engine, clock: Clock) -> None:
    write(engine, 9)
    Dispatcher(engine, {"box": Box([FAILING] * 3)}, "one").run_once()
    box = Box()
    clock.now += 1
    other = Dispatcher(engine, {"box": box}, "two", lease_seconds=1)
    other.run_once()
    assert box.sent == []


def test_who_is_gone_is_called_no_more_until_it_is_started_again(engine: Engine, clock: Clock) -> None:
    write(engine, 5)
    box = Box([SENT, GONE])
    dispatcher = Dispatcher(engine, {"box": box}, "one")
    while dispatcher.run_once():
        pass
    assert len(box.sent) == 2
    assert left(engine, OUTBOX) == 0
    assert left(engine, PARKED) == 4
    write(engine, 1, start=5)
    assert dispatcher.run_once() == 1
    assert len(box.sent) == 2
    assert types(engine, "crm5") == ["write", EFFECT_PARKED]
    assert engine.delivery.start("crm") is True
    assert engine.delivery.start("crm") is False
    found = engine.delivery.dead_letters("default", "crm")
    assert found[0].why == "gone for good"
    assert engine.delivery.redrive(found, "ada") == 5
    assert engine.delivery.redrive(found, "ada") == 0, "two who drive the same do it once"
    assert dispatcher.run_once() == 5
    assert left(engine, PARKED) == left(engine, OUTBOX) == 0
    assert types(engine, "crm5") == ["write", EFFECT_PARKED, EFFECT_REDRIVEN, "mail_sent"]
    assert len(set(box.sent)) == 6, "under the ids of before"


def test_what_fails_for_too_long_is_parked_and_begins_anew_when_it_is_driven_again(
    engine: Engine, clock: Clock
) -> None:
    write(engine, 1)
    box = Box([POOR] * 1_000)
    dispatcher = Dispatcher(engine, {"box": box}, "one")
    settle_all(dispatcher, clock, NOW + 2 * DAY)
    assert types(engine, "crm0")[1:] == [EFFECT_RETRIED] * (len(box.sent) - 1) + [EFFECT_PARKED]
    [parked] = engine.delivery.dead_letters("default")
    assert DAY - RETRY_SECONDS_MAX * SECOND <= parked.at - NOW <= DAY
    assert (parked.why, parked.pending.attempts) == (f"given up on after {len(box.sent)} attempts", len(box.sent))
    assert engine.delivery.dead_letters("other") == []
    engine.delivery.redrive([parked], "ada")
    before = len(box.sent)
    settle_all(dispatcher, clock, clock.now + HOUR)
    assert len(box.sent) > before + 3, "it has a day again"
    assert len(set(box.sent)) == 1


def test_what_grows_old_while_a_place_rests_is_parked(engine: Engine, clock: Clock) -> None:
    write(engine, 5)
    dispatcher = Dispatcher(engine, {"box": Box([FAILING] * 1_000)}, "one")
    settle_all(dispatcher, clock, NOW + DAY + HOUR)
    assert left(engine, OUTBOX) == 0
    assert {types(engine, f"crm{n}")[-1] for n in range(5)} == {EFFECT_PARKED}


def test_what_was_tried_is_given_up_on_in_its_time_though_others_stand_before_it(clock: Clock) -> None:
    engine = engine_on(MemoryStore(), clock, Queue("crm", give_up_seconds=HOUR // SECOND, failures_max=1))
    write(engine, 1)
    dispatcher = Dispatcher(engine, {"box": Box([FAILING] * 1_000)}, "one", page=10)
    settle_all(dispatcher, clock, NOW + 30 * MINUTE, MINUTE)
    write(engine, 30, start=1)
    settle_all(dispatcher, clock, NOW + HOUR + 2 * MINUTE, 10 * SECOND)
    assert [each.pending.since for each in engine.delivery.dead_letters("default")] == [NOW]


def test_what_has_no_sender_here_is_left_to_a_process_that_has_and_holds_up_nothing(
    engine: Engine, clock: Clock
) -> None:
    write(engine, 12, kind="pigeon")
    clock.now += 1
    write(engine, 3, start=12)
    assert Dispatcher(engine, {}, "none").run_once() == 0
    box, pigeon = Box(), Box()
    pigeon.kind = "pigeon"
    one = Dispatcher(engine, {"box": box}, "one", page=10)
    assert (one.run_once(), one.run_once()) == (0, 3)
    clock.now += MINUTE
    other = Dispatcher(engine, {"pigeon": pigeon}, "other", page=10)
    assert (other.run_once(), other.run_once()) == (10, 2)
    assert left(engine, OUTBOX) == 0


def test_who_is_stopped_gets_nothing_more_than_what_is_on_its_way(engine: Engine) -> None:
    write(engine, 9)
    box = Box()
    box.meanwhile = lambda: len(box.sent) == 2 and engine.delivery.stop("crm", "enough")  # type: ignore[assignment, return-value]
    dispatcher = Dispatcher(engine, {"box": box}, "one")
    while dispatcher.run_once():
        pass
    assert len(box.sent) == 2
    assert left(engine, PARKED) == 7


def test_stopping_a_queue_that_is_none_is_an_error(engine: Engine) -> None:
    with pytest.raises(NotFound, match="not declared"):
        engine.delivery.stop("cmr", "typing")
    with pytest.raises(NotFound, match="not declared"):
        engine.delivery.start("cmr")


def test_a_queue_that_is_declared_no_more_is_worked_off(clock: Clock) -> None:
    store = MemoryStore()
    before = engine_on(store, clock, Queue("crm"), Queue("erp"))
    write(before, 2)
    Dispatcher(before, {}, "one").run_once()
    after = engine_on(store, clock, Queue("erp"))
    box = Box()
    assert Dispatcher(after, {"box": box}, "one").run_once() == 2


def test_what_was_parked_before_its_queue_was_declared_is_found_under_its_name_and_driven_into_it(clock: Clock) -> None:
    store = MemoryStore()
    before = engine_on(store, clock)
    write(before, 2)
    write(before, 1, queue="No!name")
    lost = Outcome(type="x", parked="no such place")
    dispatcher = Dispatcher(before, {"box": Box([lost] * 4)}, "one", lease_seconds=1)
    assert dispatcher.run_once() == 3
    assert (len(before.delivery.dead_letters("default", "crm")), len(before.delivery.dead_letters("default", "-"))) == (
        2,
        1,
    )
    assert before.delivery.redrive(before.delivery.dead_letters("default", "crm")[:1], "ada") == 1
    assert dispatcher.run_once() == 1
    clock.now += MINUTE
    after = engine_on(store, clock, Queue("crm"))
    assert after.delivery.redrive(after.delivery.dead_letters("default", "crm"), "ada") == 2
    assert [state.waiting for state in after.delivery.queues()] == [2]
    assert Dispatcher(after, {"box": Box()}, "two").run_once() == 2


def test_waits_grow_are_spread_and_are_the_same_on_every_machine() -> None:
    queue = Queue("crm")
    waits = [wait_seconds(queue, f"{id:032x}", 3, 0.0) for id in range(500)]
    whole = RETRY_SECONDS_FIRST * 2**3
    assert whole / 2 <= min(waits) < 0.55 * whole
    assert 0.95 * whole < max(waits) <= whole
    assert waits == [wait_seconds(queue, f"{id:032x}", 3, 0.0) for id in range(500)]
    assert wait_seconds(queue, "0" * 32, 10_000, 0.0) <= RETRY_SECONDS_MAX
    assert wait_seconds(queue, "0" * 32, 0, 777.0) == 777.0


class Slow:
    """A sender of which one place waits for something else."""

    kind = "box"

    def __init__(self, wait: Callable[[], object]) -> None:
        self.sent = {"slow": 0, "fast": 0}
        self.at_once = self.most = 0
        self._wait = wait
        self._lock = threading.Lock()

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        queue = effect.data["queue"]
        if queue == "slow":
            with self._lock:
                self.at_once += 1
                self.most = max(self.most, self.at_once)
            self._wait()
            with self._lock:
                self.at_once -= 1
        with self._lock:
            self.sent[queue] += 1
        return SENT


def test_a_slow_place_holds_up_no_other() -> None:
    engine = engine_on(MemoryStore(), system_clock, Queue("slow"), Queue("fast", at_once=4))
    write(engine, 6, queue="slow")
    write(engine, 40, queue="fast")
    stopping, answered = threading.Event(), threading.Event()
    sender = Slow(lambda: answered.wait(300))
    dispatcher = Dispatcher(engine, {"box": sender}, "one")
    thread = threading.Thread(target=dispatcher.run, args=(stopping,), kwargs={"idle_seconds": 0.02})
    thread.start()
    until = time.monotonic() + 240
    while sender.sent["fast"] < 40 and time.monotonic() < until:
        time.sleep(0.01)
    assert sender.sent == {"slow": 0, "fast": 40}, "the slow ones are still waiting"
    stopping.set()
    answered.set()
    thread.join()
    assert types(engine, "fast0") == ["write", "mail_sent"]
    assert left(engine, OUTBOX) == 6 - sender.sent["slow"], "what was being sent was settled"


def test_a_queue_sends_as_many_at_once_as_it_may() -> None:
    engine = engine_on(MemoryStore(), system_clock, Queue("slow", at_once=3))
    write(engine, 6, queue="slow")
    sender = Slow(partial(threading.Barrier(3).wait, 300))
    assert Dispatcher(engine, {"box": sender}, "one").run_once() == 6
    assert sender.most == 3


def test_tell_is_for_the_shards(engine: Engine) -> None:
    tell(engine, "write", person="bo")
    assert [state.waiting for state in engine.delivery.queues()] == [1]
