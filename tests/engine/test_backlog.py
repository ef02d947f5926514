"""What waits, by queue: counted, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.engine.test_claiming import engine_with, letter_post, write
from tests.engine.test_dispatch import NOW, Box, Clock
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.policy import Effect, Policy, Timer, Wish
from threadline.kernel.preparation import Postponed
from threadline.kernel.sender import Outcome, Queue
from threadline.kernel.time import HOUR, MINUTE, SECOND
from threadline.stores.memory import MemoryStore

LATER, NEVER = Outcome(type="x", retry_after_seconds=0.0), Outcome(type="x", parked="no such street")


def test_an_effect_that_is_postponed_waits_from_the_instant_on_to_which_it_is() -> None:
    clock = Clock()
    engine = engine_with(MemoryStore(), clock, prepare=lambda ports, view, pending: Postponed(until=NOW + HOUR))
    write(engine)
    clock.now += MINUTE
    [letters, _] = engine.delivery.backlog().queues
    assert (letters.waiting, letters.waits_since(clock.now)) == (1, MINUTE)
    Dispatcher(engine, {"letter": letter_post()}, "one").run_once()
    [letters, _] = engine.delivery.backlog().queues
    assert (letters.waiting, letters.waits_since(clock.now)) == (1, 0)
    assert letters.waits_since(NOW + 2 * HOUR) == HOUR


def react(recorded: Recorded, known: Any) -> Sequence[Wish]:
    queue = recorded.event.properties["queue"]
    timer = Timer(key=recorded.event.key, due_at=recorded.event.occurred_at + HOUR)
    return [Effect(kind="box", key="call", queue=queue, data={}), timer]


def test_what_waits_is_counted_by_queue_tried_or_not_given_up_or_not_and_since_when() -> None:
    clock = Clock()
    people = discover("threadline.capabilities.profile.people.projection", definitions=None)
    policy = Policy(name="care", handles=frozenset({"write"}), react=react)
    engine = Engine(MemoryStore(), Catalogue([*people, policy, Queue("crm"), Queue("erp")], rules()), clock)
    box = Box()
    dispatcher = Dispatcher(engine, {"box": box}, "one")

    def write(*queues: str) -> None:
        for queue in queues:
            event = Event(
                type="write",
                identifiers=(Identifier("user_id", "ada"),),
                occurred_at=NOW,
                key=f"{clock.now}{queue}",
                properties={"queue": queue},
            )
            assert engine.recorder.record([event])[0].status == "accepted"
            clock.now += SECOND

    def told() -> list[tuple[Any, ...]]:
        states = engine.delivery.backlog().queues
        return [(s.queue.name, s.waiting, s.retried, s.parked, s.waits_since(clock.now) // SECOND) for s in states]

    assert told() == [("crm", 0, 0, 0, 0), ("erp", 0, 0, 0, 0), ("", 0, 0, 0, 0)]
    write("crm", "crm", "")
    assert told() == [("crm", 2, 0, 0, 3), ("erp", 0, 0, 0, 0), ("", 1, 0, 0, 1)]
    box.outcomes += [NEVER, LATER, NEVER]  # what is in no queue is sent first
    dispatcher.run_once()
    clock.now += MINUTE
    assert told() == [("crm", 1, 1, 1, 63), ("erp", 0, 0, 0, 0), ("", 0, 0, 1, 0)]
    redriven = engine.delivery.dead_letters("default")
    assert engine.delivery.redrive(redriven, "test") == 2
    assert told() == [("crm", 2, 2, 0, 63), ("erp", 0, 0, 0, 0), ("", 1, 1, 0, 0)]
    assert engine.delivery.backlog().oldest_timer is None
    clock.now += 2 * HOUR
    assert engine.delivery.backlog().oldest_timer == NOW + HOUR
    while dispatcher.run_once():
        clock.now += HOUR
    assert [each[1:] for each in told()] == [(0, 0, 0, 0)] * 3
    assert engine.delivery.backlog().oldest_timer is None
