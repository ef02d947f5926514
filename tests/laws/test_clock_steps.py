"""Law: whatever steps the clock makes, what is due at once is done at once, what is done is done once, views are true.

Steps go to both sides of the true time. Not further back than a day: what is dated further ahead than that is
clamped when it is received, as docs/time.md says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.test_instants import UNSHRUNK, WHAT, WHO, Life, shown, truth
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.leases import LEASE_SECONDS
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.jobs.jobs import JOB_DUE
from threadline.engine.scheduled import OUTBOX, TIMER
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.policy import TIMER_FIRED, Effect, Emit, Policy, Timer, Wish
from threadline.kernel.ports import Ports
from threadline.kernel.sender import EFFECT_RETRIED, REST_SECONDS_MAX, Outcome, Queue
from threadline.kernel.store import feed_pages, scan_pages
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND
from threadline.testing import scenarios

START = 1_800_000_000 * SECOND
OFFSETS = (0, 0, 3 * DAY, 400 * DAY, 2 * HOUR, 40 * SECOND, -40 * SECOND, -2 * HOUR, -20 * HOUR)
"""How far a clock is ahead of the true time after a step."""
DELAY = (2 * LEASE_SECONDS + REST_SECONDS_MAX) * SECOND + 2 * MINUTE
"""What waits no longer than for a dead process, a destination that was failing, and a look at what is put off."""
RECORD, WORK, STEP, KILL, FAIL, JOB = range(6)


def react(recorded: Recorded, known: Any) -> Sequence[Wish]:
    event = recorded.event
    if event.type == TIMER_FIRED:
        return [Emit(type="reminded", key="call", occurred_at=event.occurred_at)]
    queue = ("", "crm", "letters")[event.properties["queue"]]
    return [
        Timer(key=f"call {event.key}", due_at=event.occurred_at + HOUR),
        Effect(kind="box", key="mail", queue=queue, data={"key": event.key}),
    ]


def greet(engine: Ports, job: Job, limit: int) -> Step:
    return Step(finished=True)


VALUES = [
    *discover("threadline.capabilities.profile.people.projection", definitions=None),
    JobKind("greet", greet),
    Policy(name="care", handles=frozenset({"write", TIMER_FIRED}), react=react),
    Queue("crm", failures_max=2),
    Queue("letters", claims=True),
]


class Box:
    """A sender whose receiver may be away."""

    kind = "box"

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()
        self.is_away = False

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Take it, unless it is away."""
        if self.is_away:
            return Outcome(type=EFFECT_RETRIED, retry_after_seconds=0.0, destination="failing")
        self.received[effect.data["key"]] += 1
        return Outcome(type="mail_sent")


class World:
    """One store, the true time, and two processes whose clocks are off, each by its own."""

    def __init__(self) -> None:
        self.true, self.offsets = START, [0, 0]
        self.store, self.box = staging.MemoryStore(), Box()
        self.catalogue = Catalogue(VALUES, rules())
        self.events = self.jobs = self.starts = 0
        self.engines: list[Engine] = []
        self.dispatchers: list[Dispatcher] = []
        for number in range(2):
            self.start(number)

    def start(self, number: int) -> None:
        """Another process in the place of one; what that one had is not given back."""
        self.starts += 1
        engine = Engine(self.store, self.catalogue, lambda: self.true + self.offsets[number])
        self.engines[number:] = [engine, *self.engines[number + 1 :]]
        dispatcher = Dispatcher(engine, {"box": self.box}, f"process {self.starts}")
        self.dispatchers[number:] = [dispatcher, *self.dispatchers[number + 1 :]]

    def act(self, what: int, random: Random) -> None:
        self.true += random.choice((1, SECOND, 20 * SECOND))
        number = random.randrange(2)
        engine = self.engines[number]
        if what == RECORD:
            self.events += 1
            event = Event(
                type="write",
                identifiers=(Identifier("user_id", random.choice("abc")),),
                occurred_at=self.true,
                key=f"{self.events}",
                properties={"queue": self.events % 3},
            )
            assert staging.statuses(engine.recorder.record([event])) == ["accepted"]
        elif what == WORK:
            self.dispatchers[number].run_once()
        elif what == STEP:
            self.offsets[number] = random.choice(OFFSETS)
        elif what == KILL:
            self.start(number)
        elif what == JOB:
            self.jobs += 1
            engine.jobs.create("default", "greet", f"job {self.jobs}", {}, by="test")
        else:
            self.box.is_away = not self.box.is_away

    def work(self) -> int:
        return sum([dispatcher.run_once() for dispatcher in self.dispatchers])

    def pass_time(self, size: int) -> None:
        """Work as processes do that nothing disturbs any more."""
        end = self.true + size
        while self.true < end:
            if not self.work():
                self.true += 9 * SECOND

    def left(self, table: str) -> int:
        return len(list(scan_pages(self.store, table)))


def lived(random: Random) -> World:
    world = World()
    for _ in range(random.randrange(3, 40)):
        world.act(random.choice((RECORD, RECORD, WORK, WORK, WORK, STEP, KILL, FAIL, JOB)), random)
    return world


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_after_any_steps_of_the_clock_nothing_waits_longer_than_without_them_and_all_is_done_once(seed: int) -> None:
    random = Random(seed)
    world = lived(random)
    world.box.is_away, world.offsets = False, random.choice(([0, 0], [-20 * HOUR, -20 * HOUR], [0, 3 * DAY]))
    world.pass_time(DELAY)
    if world.left(OUTBOX):
        world.pass_time(HOUR)  # what was tried waits for its next attempt no longer than the longest wait
    assert (world.left(OUTBOX), world.left(JOB_DUE)) == (0, 0)
    assert set(world.box.received) == {f"{number}" for number in range(1, world.events + 1)}
    world.offsets = [0, 0]
    world.true += 3 * HOUR
    world.pass_time(DELAY)  # a dead process of three days ahead may have had the lease of the timers, seen here first
    assert world.left(TIMER) == 0
    types = Counter(entry.type for _, entry in feed_pages(world.store))
    assert (types["mail_sent"], types[TIMER_FIRED], types["reminded"]) == (world.events,) * 3
    staging.assert_log_is_whole(world.engines[0])


@pytest.mark.slow
@given(scenarios.randoms)
@settings(max_examples=8, phases=UNSHRUNK)
def test_after_any_steps_of_the_clock_views_count_the_same_events_and_rows_follow(random: Random) -> None:
    """Features, points and streaks at once after each step; boards and segments once the clock is past its steps."""
    life = Life()
    true = furthest = life.clock
    for number in range(random.randrange(2, 8)):
        life.clock = true + random.choice(OFFSETS)
        what, properties = WHAT[random.randrange(len(WHAT))]
        at = true - random.choice((0, 0, HOUR, DAY))
        event = staging.event(what, {"user_id": random.choice(WHO)}, f"{number}", at, properties=properties)
        assert staging.statuses(life.on.recorder.record([event])) == ["accepted"]
        life.settle()
        furthest = max(furthest, life.clock)
        true += random.choice((1, HOUR, 9 * HOUR))
        life.clock = true
        life.dispatcher.run_once()
        now = life.on.now()
        assert abs(now - true) <= MINUTE
        for person in life.people().values():
            assert shown(life.on.reader.views(person, now)) == truth(life.log(person), now)
    life.clock = furthest + 2 * DAY
    life.settle()
    life.check()
    staging.assert_log_is_whole(life.on)
    staging.assert_refold_changes_nothing(life.on)


NAMES = tuple(f"user_id:{name}" for name in "abcde")
CAREFUL = staging.engine().catalogue


def composition(engine: Engine, known_at: int | None = None) -> frozenset[frozenset[str]]:
    """Which names are one person, now or as of an instant."""
    people = [engine.reader.person("default", name, known_at=known_at) for name in NAMES]
    return frozenset(
        frozenset(name for name, each in zip(NAMES, people, strict=True) if each.id == one.id) for one in people
    )


@given(st.integers(0, 2**32))
@settings(max_examples=20, phases=UNSHRUNK)
def test_after_any_steps_of_the_clock_no_change_of_identity_is_known_before_one_that_it_builds_on(seed: int) -> None:
    random = Random(seed)
    clock = START - DAY
    engine = Engine(staging.MemoryStore(), CAREFUL, lambda: clock)
    engine.recorder.record([staging.event("seen", {"user_id": name[-1]}, name, clock) for name in NAMES])
    true, recorded = START, []
    before = first = composition(engine)
    # What can have been known: what follows when changes are made in their order, some left out on which none builds.
    possible = {first}
    for number in range(random.randrange(2, 9)):
        true += random.choice((1, SECOND, HOUR))
        clock = true + random.choice(OFFSETS)
        groups = sorted(map(sorted, before))
        large = [group for group in groups if len(group) > 1]
        if large and (len(groups) == 1 or random.random() < 0.5):
            group = random.choice(large)
            engine.identity.split("default", group[0], [random.choice(group)], request=f"{number}")
        else:
            one, other = random.sample(groups, 2)
            engine.identity.merge("default", random.choice(one), random.choice(other), request=f"{number}", force=True)
        after = composition(engine)
        possible |= {(each - (before - after)) | (after - before) for each in possible if before - after <= each}
        before = after
        recorded.append(clock)
    for instant in sorted({at + near for at in recorded for near in (-1, 0, 1) if at + near >= START - DAY}):
        assert composition(engine, instant) in possible, (instant, recorded)
    assert composition(engine, max(recorded)) == before
    assert composition(engine, min(*recorded, START) - 1) == first


def test_a_join_of_a_clock_that_was_ahead_is_known_when_one_that_builds_on_it_is() -> None:
    clock = START
    engine = Engine(staging.MemoryStore(), CAREFUL, lambda: clock)
    engine.recorder.record([staging.event("seen", {"user_id": name[-1]}, name, clock - DAY) for name in NAMES])
    clock += 3 * DAY
    engine.identity.merge("default", NAMES[0], NAMES[1], request="1", force=True)
    clock = START + HOUR
    person = engine.reader.person("default", NAMES[0])
    engine.identity.merge("default", str(person.identifiers[person.id]), NAMES[2], request="2", force=True)
    assert composition(engine, clock) == composition(engine)
