"""Law: as long as events lie ahead of the clock, what is so now is what the log says, and costs no more to ask."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
from hypothesis import given

from tests.laws import staging
from tests.laws.staging import CountingStore, event
from tests.laws.test_refold import diary
from threadline.engine.engine import Engine
from threadline.engine.folding.person import Person
from threadline.engine.folding.refold import folded_before
from threadline.kernel.event import Event
from threadline.kernel.time import DAY, HOUR, MINUTE
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios
from threadline.testing.scenarios import NOW


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


def assert_told_as_of(on: Engine, person: Person, instants: Sequence[int]) -> None:
    for instant in instants:
        told = list(on.reader.states(person, instant))
        assert told == list(folded_before(on.catalogue, on.reader.history(person), instant))


@given(scenarios.histories(), scenarios.randoms)
def test_what_is_so_now_is_what_the_log_says_whatever_lies_ahead(history: list[Event], random: Random) -> None:
    clock = Clock()
    on = staging.engine(clock=clock, values=[diary()])
    instants: list[int] = []
    for call in scenarios.batched(random, history):
        clock.now += random.choice((0, MINUTE, HOUR, 9 * HOUR))
        told = [
            msgspec.structs.replace(each, occurred_at=clock.now + random.choice((-DAY, -HOUR, -1, 0, 1, HOUR, DAY)))
            for each in call
        ]
        instants += [each.occurred_at for each in told]
        on.recorder.record(told)
        around = [clock.now, clock.now + 1, random.choice(instants), random.choice(instants) + 1, clock.now + 2 * DAY]
        for person in on.reader.all_people("default"):
            assert_told_as_of(on, person, around)
    staging.assert_refold_changes_nothing(on)


def test_somebody_with_an_event_ahead_is_not_folded_anew_for_every_question() -> None:
    store, clock = CountingStore(MemoryStore()), Clock()
    on = staging.engine(store, clock)
    who = {"user_id": "ada"}
    on.recorder.record([event("note", who, f"{n}", NOW - 2 * DAY + n * MINUTE) for n in range(500)])
    on.recorder.record([event("note", who, "ahead", NOW + 20 * HOUR + MINUTE)])
    for hour in range(24):
        clock.now = NOW + hour * HOUR
        store.entries = 0
        on.recorder.record([event("note", who, f"at {hour} {n}", clock.now - MINUTE) for n in range(20)])
        person = on.reader.person("default", "user_id:ada")
        assert on.reader.views(person, clock.now)["activity"]["events"] == 520 + 20 * hour + (hour > 20)
        assert store.entries < 100


def test_what_is_kept_meanwhile_goes_when_everything_has_happened() -> None:
    clock = Clock()
    on = staging.engine(clock=clock)
    who = {"user_id": "ada"}
    on.recorder.record([event("note", who, "ahead", NOW + HOUR)])
    assert on.reader.person("default", "user_id:ada").provisional is not None
    clock.now = NOW + 2 * HOUR
    on.recorder.record([event("note", who, "later", clock.now - 1)])
    assert on.reader.person("default", "user_id:ada").provisional is None


def test_what_occurs_now_begins_nothing() -> None:
    clock = Clock()
    on = staging.engine(clock=clock)
    on.recorder.record([event("note", {"user_id": "ada"}, "now", NOW)])
    assert on.reader.person("default", "user_id:ada").provisional is None
