"""Dispatch: timers fire once, effects leave once, and whoever has lost a lease commits nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.folding.packing import unpack_event
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.engine.scheduled import OUTBOX, TIMER
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.limits import ITEM_BYTES_MAX
from threadline.kernel.policy import TIMER_FIRED, Effect, Emit, Policy, Timer, Wish
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_REDRIVEN, EFFECT_RETRIED, Outcome
from threadline.kernel.store import Item, scan_pages
from threadline.kernel.time import DAY, SECOND
from threadline.stores.memory import MemoryStore

NOW = 1_800_000_000 * SECOND


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class Box:
    """A sender that remembers what it was given and answers as it is told."""

    kind = "box"

    def __init__(self, outcomes: Sequence[Outcome | Exception] = ()) -> None:
        self.sent: list[str] = []
        self.outcomes = list(outcomes)
        self.meanwhile: Callable[[], None] = lambda: None

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Keep the id."""
        self.sent.append(effect_id)
        self.meanwhile()
        outcome = self.outcomes.pop(0) if self.outcomes else Outcome(type="mail_sent")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def react(recorded: Recorded, states: dict[str, Any]) -> Sequence[Wish]:
    if recorded.event.type == "remind":
        return [Timer(key="call", due_at=recorded.event.occurred_at + DAY, data={"why": "promised"})]
    if recorded.event.type == TIMER_FIRED:
        if "broken" in recorded.event.identifiers[0].value:
            raise RuntimeError("a policy with a mistake")
        return [Emit(type="reminded", key="call", occurred_at=recorded.event.occurred_at)]
    kind = "fax" if recorded.event.type == "fax" else "box"
    return [Effect(kind=kind, key="mail", data={"to": "ada"})]


POLICY = Policy(name="care", handles=frozenset({"remind", "write", "fax", TIMER_FIRED}), react=react)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> Engine:
    values = [*discover("threadline.capabilities.profile.people.projection", definitions=None), POLICY]
    return Engine(MemoryStore(), Catalogue(values, rules()), clock)


def tell(engine: Engine, type: str, key: str = "1", person: str = "ada") -> None:
    event = Event(type=type, identifiers=(Identifier("user_id", person),), occurred_at=NOW, key=key)
    assert [receipt.status for receipt in engine.recorder.record([event])] == ["accepted"]


def types(engine: Engine, person: str = "ada") -> list[str]:
    found = engine.reader.person("default", f"user_id:{person}")
    return [recorded.event.type for recorded in sorted(engine.reader.events(found), key=lambda each: each.sequence)]


def left(engine: Engine, table: str) -> int:
    return len(list(scan_pages(engine.store, table)))


def test_a_timer_fires_when_it_is_due_and_once(engine: Engine, clock: Clock) -> None:
    tell(engine, "remind")
    dispatcher = Dispatcher(engine, {}, "one")
    assert dispatcher.run_once() == 0
    clock.now += DAY - 1
    assert dispatcher.run_once() == 0
    clock.now += 1
    assert dispatcher.run_once() == 1
    assert dispatcher.run_once() == 0
    assert types(engine) == ["remind", TIMER_FIRED, "reminded"]
    assert left(engine, TIMER) == 0
    assert engine.reader.person("default", "user_id:ada").timers == {}


def test_a_timer_fires_at_its_own_instant_however_late_it_is_worked_off(engine: Engine, clock: Clock) -> None:
    tell(engine, "remind")
    clock.now += 9 * DAY
    Dispatcher(engine, {}, "one").run_once()
    fired = engine.reader.events(engine.reader.person("default", "user_id:ada"), types=frozenset({TIMER_FIRED}))
    assert [recorded.event.occurred_at for recorded in fired] == [NOW + DAY]
    assert fired[0].event.properties == {"policy": "care", "key": "call", "data": {"why": "promised"}}


def test_a_timer_follows_its_thread_through_a_merge(engine: Engine, clock: Clock) -> None:
    tell(engine, "other", key="0", person="bo")
    clock.now += 1
    tell(engine, "remind")
    engine.identity.merge("default", "user_id:ada", "user_id:bo", request="r", force=True)
    clock.now += DAY
    assert Dispatcher(engine, {}, "one").run_once() == 1
    assert "reminded" in types(engine, "bo")


def test_two_dispatchers_do_nothing_twice(engine: Engine, clock: Clock) -> None:
    for number in range(60):
        tell(engine, "remind", key=f"r{number}", person=f"p{number}")
        tell(engine, "write", key=f"w{number}", person=f"p{number}")
    clock.now += DAY
    box = Box()
    workers = [Dispatcher(engine, {"box": box}, name) for name in ("one", "two", "three")]
    threads = [threading.Thread(target=lambda w=worker: [w.run_once() for _ in range(3)]) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(box.sent)) == sorted(box.sent)
    assert len(box.sent) == 60
    for number in range(60):
        assert sorted(types(engine, f"p{number}")) == sorted(["remind", "write", "mail_sent", TIMER_FIRED, "reminded"])


def test_a_lease_is_taken_over_when_it_has_run_out_and_not_before(engine: Engine, clock: Clock) -> None:
    tell(engine, "write")
    stuck = Box([RuntimeError("power cut")])
    first = Dispatcher(engine, {"box": stuck}, "first", lease_seconds=30)
    stuck.meanwhile = lambda: (_ for _ in ()).throw(KeyboardInterrupt)  # dies in the middle of sending
    with pytest.raises(KeyboardInterrupt):
        first.run_once()
    box = Box()
    second = Dispatcher(engine, {"box": box}, "second", lease_seconds=30)
    clock.now += 29 * SECOND
    assert second.run_once() == 0
    clock.now += 2 * SECOND
    assert second.run_once() == 1
    assert box.sent == stuck.sent, "the same effect id, so that a provider can tell a retry"
    assert types(engine) == ["write", "mail_sent"]


def test_who_was_paused_past_the_lease_commits_nothing(engine: Engine, clock: Clock) -> None:
    tell(engine, "write")
    slow, fast = Box([Outcome(type="mail_sent_slowly")]), Box()
    first = Dispatcher(engine, {"box": slow}, "first", lease_seconds=30)
    second = Dispatcher(engine, {"box": fast}, "second", lease_seconds=30)

    def sleep_past_the_lease() -> None:
        clock.now += 60 * SECOND
        assert second.run_once() == 1

    slow.meanwhile = sleep_past_the_lease
    assert first.run_once() == 0, "its lease was taken over: what it did must not be recorded again"
    assert types(engine) == ["write", "mail_sent"]
    assert left(engine, OUTBOX) == 0


def test_what_failed_is_tried_again_later_and_later(engine: Engine, clock: Clock) -> None:
    tell(engine, "write")
    box = Box([Outcome(type="x", retry_after_seconds=1), RuntimeError("no route"), Outcome(type="mail_sent")])
    dispatcher = Dispatcher(engine, {"box": box}, "one")
    waits = []
    for _ in range(3):
        began = clock.now
        while not dispatcher.run_once():
            clock.now += SECOND
        waits.append((clock.now - began) // SECOND)
    assert waits == [0, 5, 10]
    assert types(engine) == ["write", EFFECT_RETRIED, EFFECT_RETRIED, "mail_sent"]
    assert len(set(box.sent)) == 1
    assert left(engine, OUTBOX) == 0


def test_an_effect_without_a_sender_waits_for_one(engine: Engine, clock: Clock) -> None:
    tell(engine, "write")
    assert Dispatcher(engine, {}, "one").run_once() == 0
    assert left(engine, OUTBOX) == 1
    clock.now += 31 * SECOND
    assert Dispatcher(engine, {"box": Box()}, "two").run_once() == 1
    assert left(engine, OUTBOX) == 0


def test_effects_without_a_sender_hold_up_no_others(engine: Engine, clock: Clock) -> None:
    for number in range(60):
        tell(engine, "fax", key=f"{number}")
    clock.now += 1
    for number in range(5):
        tell(engine, "write", key=f"later {number}")
    dispatcher = Dispatcher(engine, {"box": Box()}, "one", page=2)
    assert sum(dispatcher.run_once() for _ in range(60)) == 5
    assert left(engine, OUTBOX) == 60
    clock.now += 31 * SECOND
    assert sum(Dispatcher(engine, {"fax": Box()}, "two").run_once() for _ in range(2)) == 60


def test_a_refold_fires_no_timer_and_sends_nothing(engine: Engine, clock: Clock) -> None:
    tell(engine, "write")
    tell(engine, "remind", key="2")
    before = (left(engine, OUTBOX), left(engine, TIMER), types(engine))
    refold_everybody(engine.store, engine.catalogue)
    assert (left(engine, OUTBOX), left(engine, TIMER), types(engine)) == before


def test_an_effect_whose_outcome_cannot_be_recorded_is_sent_once_and_parked(engine: Engine, clock: Clock) -> None:
    tell(engine, "write")
    box = Box([Outcome(type="x" * 1_000)])
    dispatcher = Dispatcher(engine, {"box": box}, "one")
    assert dispatcher.run_once() == 1
    clock.now += DAY
    assert dispatcher.run_once() == 0
    assert len(box.sent) == 1
    assert types(engine) == ["write"]
    [waits] = engine.delivery.dead_letters("default")
    assert waits.pending.id == box.sent[0]
    assert waits.why.startswith("what came of it could not be recorded: invalid_type")
    assert engine.delivery.redrive([waits], "ada") == 1
    assert dispatcher.run_once() == 1
    assert types(engine) == ["write", EFFECT_REDRIVEN, "mail_sent"]


@pytest.mark.parametrize(
    ("outcome", "type"),
    [
        (Outcome(type="mail_sent", properties={"x": object()}), "mail_sent"),
        (Outcome(type="mail_sent", properties={"x": 2**70}), "mail_sent"),
        (Outcome(type="mail_sent", properties={"x": "\ud800"}), "mail_sent"),
        (Outcome(type="mail_sent", properties={"x": "y" * ITEM_BYTES_MAX}), "mail_sent"),
        (Outcome(type="mail\ud800"), "mail\\ud800"),
        (Outcome(type="x", parked="gone \ud800", properties={"x": object()}), EFFECT_PARKED),
    ],
    ids=[
        "no plain value",
        "too large a number",
        "half a character",
        "too long",
        "half a character in its type",
        "parked",
    ],
)
def test_an_outcome_that_no_store_can_hold_is_told_as_text_and_its_effect_is_sent_once(
    outcome: Outcome, type: str, engine: Engine, clock: Clock
) -> None:
    tell(engine, "write")
    tell(engine, "write", key="2")
    box = Box([outcome])
    dispatcher = Dispatcher(engine, {"box": box}, "one")
    assert dispatcher.run_once() == 2
    clock.now += DAY
    assert dispatcher.run_once() == 0
    assert len(box.sent) == 2
    assert sorted(types(engine)) == sorted(["write", "write", "mail_sent", type])
    told = [each.entry for each in engine.log.feed()]
    assert sum("Outcome(type=" in str(unpack_event(entry).event.properties.get("told")) for entry in told) == 1


def test_timers_that_cannot_fire_hold_up_no_others_and_fire_when_they_can(engine: Engine, clock: Clock) -> None:
    for number in range(60):
        tell(engine, "remind", key=f"{number}", person=f"broken {number}")
    clock.now += 1
    for number in range(5):
        tell(engine, "remind", key=f"good {number}", person=f"good {number}")
    clock.now += DAY
    dispatcher = Dispatcher(engine, {}, "one", page=2)
    for _ in range(60):
        dispatcher.run_once()
    assert [types(engine, f"good {number}")[-1] for number in range(5)] == ["reminded"] * 5
    assert left(engine, TIMER) == 60
    kept = engine.store.query("rejected_time", "default")
    clock.now += 1
    dispatcher.run_once()
    assert engine.store.query("rejected_time", "default") == kept, "what rests is not tried, and told once"
    whole = Policy("care", frozenset({TIMER_FIRED}), lambda recorded, known: (), emits=frozenset(), sends=frozenset())
    mended = Engine(engine.store, Catalogue([*engine.catalogue.projections, whole], rules()), clock)
    clock.now += 3_600 * SECOND
    assert sum(Dispatcher(mended, {}, "two").run_once() for _ in range(60)) == 60


def test_timer_waits_for_its_policy_while_it_is_not_in_force(
    engine: Engine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for person in ("ada", "bob"):
        tell(engine, "remind", key=person, person=person)
    clock.now += DAY
    without = Engine(engine.store, Catalogue([*engine.catalogue.projections], rules()), clock)
    dispatcher = Dispatcher(without, {}, "one")
    assert [dispatcher.run_once() for _ in range(3)] == [0, 0, 0]
    assert [record.getMessage() for record in caplog.records] == [
        "timers of the policy care wait: it is not in force here"
    ]
    dispatcher.let_go()
    again = Dispatcher(engine, {}, "two")
    assert sum(again.run_once() for _ in range(3)) == 2
    assert types(engine) == ["remind", TIMER_FIRED, "reminded"]


def test_timer_of_a_person_who_is_erased_after_it_was_read_is_no_error(
    engine: Engine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    tell(engine, "remind")
    clock.now += DAY
    query, read = engine.store.query, []

    def erased_since(table: str, *arguments: Any, **named: Any) -> list[Item]:
        found = query(table, *arguments, **named)
        if table == TIMER and found and not read:
            read.extend(found)
            erasure = engine.erasures.begin("default", "user_id:ada")
            while engine.erasures.advance("default", erasure.id).state != "done":
                pass
        return found

    engine.store.query = erased_since  # type: ignore[method-assign]
    assert Dispatcher(engine, {}, "one").run_once() == 0
    assert read
    assert left(engine, TIMER) == 0
    assert caplog.records == []
