"""Effects before and after they are sent: withdrawn, postponed, claimed, unknown, resolved; and at which pace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.test_claims import NOW, SENT, Clock, Faults, Killed, Post, World
from tests.preparing import one_by_one
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.pace import Pace
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.scheduled import OUTBOX, PARKED, POSTPONED
from threadline.kernel.errors import Unavailable
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.limits import CLAIM_KEYS_MAX
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Effect, Policy, Wish
from threadline.kernel.preparation import DueEffect, Postponed, Preparation, Prepared
from threadline.kernel.sender import (
    EFFECT_PARKED,
    EFFECT_RETRIED,
    EFFECT_UNKNOWN,
    EFFECT_WITHDRAWN,
    Outcome,
    Queue,
)
from threadline.kernel.store import Batch, Key, Put, scan_pages
from threadline.kernel.time import HOUR, MINUTE, SECOND
from threadline.stores.memory import MemoryStore

CLAIMING = Queue("letters", claims=True)


def engine_with(
    store: Any,
    clock: Clock,
    queue: Queue | None = CLAIMING,
    withdrawn: Callable[[PendingEffect, PersonView], str] | None = None,
    prepare: Any = None,
) -> Engine:
    def react(recorded: Recorded, view: Any) -> Sequence[Wish]:
        return [Effect(kind="letter", key="l", queue="letters", data={"to": "ada", "key": "k"})]

    policy = Policy(name="clerk", handles=frozenset({"write"}), react=react, withdrawn=withdrawn)
    values = [*discover("threadline.capabilities.profile.people.projection", definitions=None), policy]
    values += [
        each
        for each in (
            queue,
            prepare and Preparation("letter", one_by_one(prepare)),
        )
        if each is not None
    ]
    return Engine(store, Catalogue(values, rules()), clock)


def write(engine: Engine) -> None:
    event = Event(type="write", identifiers=(Identifier("user_id", "ada"),), occurred_at=NOW, key="1")
    engine.recorder.record([event])


def outcomes(engine: Engine) -> list[tuple[str, dict[str, Any]]]:
    person = engine.reader.person("default", "user_id:ada")
    events = sorted(engine.reader.events(person), key=lambda each: each.sequence)
    return [(each.event.type, each.event.properties) for each in events if "effect" in each.event.properties]


def types(engine: Engine) -> list[str]:
    return [type for type, _ in outcomes(engine)]


def rounds(engine: Engine, clock: Clock, sender: Any, count: int = 3) -> Dispatcher:
    dispatcher = Dispatcher(engine, {"letter": sender}, "one")
    for _ in range(count):
        while dispatcher.run_once():
            pass
        clock.now += 60 * SECOND
    return dispatcher


def test_a_preparation_that_raises_for_one_of_several_effects_keeps_none_of_the_others() -> None:
    clock, post, asked = Clock(), Post(), []

    def prepare(ports: Any, due: Sequence[DueEffect]) -> list[Prepared]:
        asked.append([each.pending.effect.data["to"] for each in due])
        if "bob" in asked[-1]:
            raise KeyError("no such template")
        return [Prepared(data=each.pending.effect.data) for each in due]

    policy = Policy(name="clerk", handles=frozenset({"write"}), react=addressed)
    people = discover("threadline.capabilities.profile.people.projection", definitions=None)
    values = [*people, policy, Preparation("letter", prepare), Queue("letters", at_once=8)]
    engine = Engine(MemoryStore(), Catalogue(values, rules()), clock)
    names = ["ada", "bob", "cyd"]
    post.answers = {name: [] for name in names}
    for name in names:
        who = (Identifier("user_id", name),)
        engine.recorder.record([Event(type="write", identifiers=who, occurred_at=NOW, key=name)])
    Dispatcher(engine, {"letter": post}, "one").run_once()
    assert asked == [names, ["ada"], ["bob"], ["cyd"]]
    assert sorted(call.key for call in post.calls) == ["ada", "cyd"]
    bob = engine.reader.person("default", "user_id:bob")
    [retried] = engine.reader.events(bob, types=frozenset({EFFECT_RETRIED}))
    assert retried.event.properties["error"] == "KeyError: 'no such template'"


def addressed(recorded: Recorded, view: Any) -> Sequence[Wish]:
    name = recorded.event.identifiers[0].value
    return [Effect(kind="letter", key="l", queue="letters", data={"to": name, "key": name})]


def letter_post(*answers: str) -> Post:
    post = Post()
    post.answers["ada"] = list(answers)
    return post


@pytest.mark.parametrize("queue", [CLAIMING, Queue("letters"), None], ids=["claiming", "queue", "no queue"])
def test_an_effect_that_its_policy_withdraws_is_not_sent(queue: Queue | None) -> None:
    clock, post = Clock(), letter_post()
    engine = engine_with(MemoryStore(), clock, queue, lambda one, view: f"{view.person[:0]}left the journey")
    write(engine)
    rounds(engine, clock, post)
    [(type, properties)] = outcomes(engine)
    assert (type, properties["why"], properties["policy"]) == (EFFECT_WITHDRAWN, "left the journey", "clerk")
    assert post.calls == []
    assert list(scan_pages(engine.store, OUTBOX)) == []


def test_a_preparation_or_a_policy_that_raises_sends_nothing_and_is_asked_again() -> None:
    clock, post, asked = Clock(), letter_post(), []

    def prepare(engine: Any, view: Any, one: PendingEffect) -> Prepared:
        asked.append(one.attempts)
        if len(asked) < 3:
            raise KeyError("no such template")
        return Prepared(data=one.effect.data)

    engine = engine_with(MemoryStore(), clock, prepare=prepare)
    write(engine)
    rounds(engine, clock, post)
    assert types(engine) == [EFFECT_RETRIED, EFFECT_RETRIED, SENT]
    assert (asked, len(post.calls)) == ([0, 1, 2], 1)
    assert outcomes(engine)[0][1]["error"] == "KeyError: 'no such template'"


@pytest.mark.parametrize(
    "prepared",
    [
        Prepared(data={}, claims=tuple(map(str, range(CLAIM_KEYS_MAX + 1)))),
        Prepared(data={}, claims=(7,)),  # type: ignore[arg-type]
        Prepared(
            data={}, done=Outcome(type=SENT, properties={"unwritable": object()}), claims=("k" * 9_000, "k" * 9_000)
        ),
    ],
    ids=["too many keys", "no text", "a long key and what no store holds"],
)
def test_a_preparation_with_a_mistake_stops_no_other_effect(prepared: Prepared) -> None:
    clock, post = Clock(), letter_post()

    def prepare(engine: Any, view: PersonView, one: PendingEffect) -> Prepared:
        return prepared if view.identifiers[0].value == "ada" else Prepared(data=one.effect.data)

    engine = engine_with(MemoryStore(), clock, Queue("letters", at_once=3, claims=True), prepare=prepare)
    write(engine)
    for name in ("bo", "cy"):
        event = Event(type="write", identifiers=(Identifier("user_id", name),), occurred_at=NOW, key=name)
        engine.recorder.record([event])
    rounds(engine, clock, post, 1)
    assert len({call.id for call in post.calls}) >= 2


def test_a_postponed_effect_waits_without_an_event_and_can_be_found() -> None:
    clock, post = Clock(), letter_post()

    def prepare(engine: Any, view: PersonView, one: PendingEffect) -> Prepared | Postponed:
        assert one.first_due < NOW + SECOND
        return (
            Postponed(until=min(view.at + 20 * MINUTE, NOW + HOUR))
            if view.at < NOW + HOUR
            else Prepared(data=one.effect.data)
        )

    engine = engine_with(MemoryStore(), clock, prepare=prepare)
    write(engine)
    cause = engine.reader.events(engine.reader.person("default", "user_id:ada"))[0]
    rounds(engine, clock, post)
    status = engine.delivery.effect("default", "clerk", cause.id, "l", cause.recorded_at)
    assert (status.waits, status.outcomes, post.calls) == (True, [], [])
    [caused] = engine.delivery.caused_by([cause], "")
    assert (caused.status.waits, caused.data["to"]) == (True, "ada")
    clock.now = NOW + HOUR
    rounds(engine, clock, post)
    assert types(engine) == [SENT]
    assert list(scan_pages(engine.store, POSTPONED)) == []


def test_an_effect_that_was_wished_for_before_its_queue_was_declared_is_claimed_in_it() -> None:
    clock, store = Clock(), MemoryStore()
    write(engine_with(store, clock, None))
    engine, post = engine_with(store, clock), letter_post("unknown", "sent")
    rounds(engine, clock, post)
    assert types(engine) == [EFFECT_UNKNOWN]
    assert len(post.calls) == 1


def test_a_claimed_effect_of_a_stopped_queue_is_unknown_and_no_dead_letter() -> None:
    clock, post = Clock(), letter_post("killed")
    engine = engine_with(MemoryStore(), clock)
    write(engine)
    with pytest.raises(Killed):
        Dispatcher(engine, {"letter": post}, "first").run_once()
    clock.now += HOUR
    assert engine.delivery.stop("letters", "moves on Monday")
    rounds(engine, clock, post)
    assert types(engine) == [EFFECT_UNKNOWN]
    assert [list(scan_pages(engine.store, table)) for table in (OUTBOX, PARKED)] == [[], []]
    assert engine.delivery.queues()[0].unknown == 1


def test_an_outcome_that_the_store_could_not_take_is_recorded_when_it_can() -> None:
    clock, post = Clock(), letter_post("meanwhile")
    faults = Faults(MemoryStore())
    engine = engine_with(faults, clock)
    write(engine)
    faults.error = Unavailable

    def away() -> None:
        faults.left = 0

    post.meanwhile = away
    dispatcher = Dispatcher(engine, {"letter": post}, "one")
    with pytest.raises(Unavailable):
        dispatcher.run_once()
    dispatcher.run_once()
    assert types(engine) == [SENT]
    assert len(post.calls) == 1


def test_a_lease_lost_while_sending_ends_in_what_the_sender_says() -> None:
    world = World(CLAIMING)
    world.write(0, "k", "now", ["meanwhile"])
    world.drain()
    assert world.events(0) == [EFFECT_UNKNOWN, SENT]
    assert len(world.post.calls) == 1


def resolved(outcome: Outcome | None) -> tuple[Engine, Clock, Post]:
    clock, post = Clock(), letter_post("unknown")
    done = Outcome(type=SENT, properties={"template": "welcome"})
    engine = engine_with(
        MemoryStore(), clock, prepare=lambda engine, view, one: Prepared(data=one.effect.data, claims=("k",), done=done)
    )
    write(engine)
    rounds(engine, clock, post, 1)
    [unknown] = engine.delivery.unknown("default")
    assert unknown.pending.claim is not None
    assert not engine.delivery.resolve("another workspace", unknown.pending.id, outcome, "ada")
    assert engine.delivery.resolve("default", unknown.pending.id, outcome, "ada")
    assert not engine.delivery.resolve("default", unknown.pending.id, outcome, "ada"), "once"
    rounds(engine, clock, post)
    return engine, clock, post


def test_an_unknown_effect_that_happened_is_what_its_preparation_has_noted() -> None:
    engine, _, post = resolved(None)
    (unknown, noted), (sent, properties) = outcomes(engine)
    assert (unknown, noted["template"], sent, properties["template"], properties["by"]) == (
        EFFECT_UNKNOWN,
        "welcome",
        SENT,
        "welcome",
        "ada",
    )
    assert len(post.calls) == 1


def test_an_unknown_effect_that_is_sent_again_has_its_keys_still() -> None:
    engine, _, post = resolved(Outcome(type=EFFECT_RETRIED, retry_after_seconds=0.0))
    assert types(engine) == [EFFECT_UNKNOWN, EFFECT_RETRIED, SENT]
    assert len(post.calls) == 2


def test_an_unknown_effect_that_is_given_up_can_be_redriven() -> None:
    engine, clock, post = resolved(Outcome(type="x", parked="nobody knows"))
    assert types(engine) == [EFFECT_UNKNOWN, EFFECT_PARKED]
    assert engine.delivery.redrive(engine.delivery.dead_letters("default"), "ada") == 1
    rounds(engine, clock, post)
    assert types(engine)[-1] == SENT


@given(
    st.floats(0.1, 2_000.0), st.integers(1, 64), st.lists(st.integers(-5 * SECOND, 5 * SECOND), min_size=1, max_size=30)
)
def test_no_more_leave_than_the_rate_allows_and_no_pause_is_longer_than_it_asks(
    rate: float, at_once: int, steps: list[int]
) -> None:
    clock = Clock()
    pace = Pace(Queue("letters", at_once=at_once, per_second=rate), clock)
    for step in steps:
        clock.now += step
        sent = 0
        while room := pace.room:
            pace.note(room)
            sent += room
            assert sent <= room, "once more only after a pause"
        assert pace.wait_seconds <= at_once / rate + 0.001, "whatever the clock has done"
    forward = Clock()
    pace = Pace(Queue("letters", at_once=at_once, per_second=rate), forward)
    sent = 0
    for _ in range(200):
        if room := pace.room:
            pace.note(room)
            sent += room
        forward.now += max(int(pace.wait_seconds * SECOND), 1)
    seconds = (forward.now - NOW) / SECOND
    assert sent <= seconds * rate * 1.01 + at_once
    assert sent >= seconds * rate * 0.9 - at_once


def test_a_queue_without_a_rate_never_waits() -> None:
    pace = Pace(Queue("letters", at_once=7), Clock())
    pace.note(1_000_000)
    assert (pace.room, pace.wait_seconds) == (7, 0.0)


def test_rows_of_a_projection_are_read_by_range_and_asked_for_together() -> None:
    engine = engine_with(MemoryStore(), Clock())
    values = {"a": b"\x00", "b": b"x", "c": b"y"}
    engine.store.commit([Batch(writes=[Put(Key("t", "p", sort), value) for sort, value in values.items()])])
    assert [(row.sort, row.value) for row in engine.rows.read("t", "p", "a", "c")] == [("a", b""), ("b", b"x")]
    assert [row.sort for row in engine.rows.read("t", "p", limit=2, reverse=True)] == ["c", "b"]
    assert engine.rows.has("t", "p", ["a", "z", "c"]) == {"a", "c"}
