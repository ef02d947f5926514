"""Claimed effects: none is sent twice and none is lost, whatever dies, hangs or loses its lease at whichever commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.preparing import one_by_one
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.claims import CLAIMED
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.unknown import UNKNOWN
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.scheduled import OUTBOX, PARKED, POSTPONED
from threadline.kernel.errors import OutcomeUnknown, Unavailable
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Effect, Policy, Wish
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import Postponed, Preparation, Prepared
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_REDRIVEN, EFFECT_UNKNOWN, Outcome, Queue
from threadline.kernel.store import Batch, Refusal, Store, scan_pages
from threadline.kernel.time import HOUR, MINUTE, SECOND
from threadline.stores.memory import MemoryStore

NOW = 1_800_000_000 * SECOND
SENT = "letter_sent"
SKIPPED = "letter_skipped"
TAKEN = "letter_taken"
LEASE_SECONDS = 30


class Killed(BaseException):
    """No handler of errors sees the end of a process."""


class Faults:
    """A store whose commits fail where the script says so. Everything else passes through."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.left: int | None = None
        """Commits until the fault; None: there is none."""
        self.applied = False
        self.error: type[BaseException] = Killed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                if self.applied:
                    self._store.commit(batches)
                raise self.error("the fault of the script")
        return self._store.commit(batches)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class Call(NamedTuple):
    """A call of the sender."""

    id: str
    key: str
    may_have_happened: bool


class Post:
    """A sender that writes down every call, and answers, hangs or dies as the effect's own list says."""

    kind = "letter"

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answers: dict[str, list[str]] = {}
        self.meanwhile: Callable[[], None] = lambda: None

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        answers = self.answers[effect.data["to"]]
        answer = answers.pop(0) if answers else "sent"
        self.calls.append(Call(effect_id, effect.data["key"], answer not in ("retry", "park")))
        if answer == "meanwhile":
            self.meanwhile()
        if answer == "killed":
            raise Killed
        if answer == "unknown":
            raise OutcomeUnknown("the connection was lost after the last byte")
        if answer == "broken":
            raise RuntimeError("a sender with a mistake")
        if answer == "retry":
            return Outcome(type="x", retry_after_seconds=0.0)
        if answer == "park":
            return Outcome(type="x", parked="no such street")
        return Outcome(type=SENT, properties={"to": effect.data["to"]})


def react(recorded: Recorded, view: Any) -> Sequence[Wish]:
    return [Effect(kind="letter", key="letter", queue="letters", data=recorded.event.properties)]


def prepare(engine: Ports, view: PersonView, one: PendingEffect) -> Prepared | Postponed | Outcome:
    data = one.effect.data
    if data["asks"] == "later" and engine.recorder.clock() < NOW + 2 * HOUR:
        return Postponed(until=NOW + 2 * HOUR)
    if data["asks"] == "skip":
        return Outcome(type=SKIPPED, properties={"why": "does not want any"})
    return Prepared(
        data={**data, "rendered": b"\xff\x00"},
        claims=(data["key"],),
        taken=Outcome(type=TAKEN),
        done=Outcome(type=SENT, properties={"to": data["to"]}),
    )


class World:
    """Two workers with engines of their own on one store."""

    def __init__(self, queue: Queue) -> None:
        self.clock = Clock()
        self.queue = queue
        self.store = MemoryStore()
        self.post = Post()
        policy = Policy(name="clerk", handles=frozenset({"write"}), react=react, emits=frozenset())
        people = discover("threadline.capabilities.profile.people.projection", definitions=None)
        self.catalogue = Catalogue(
            [
                *people,
                policy,
                queue,
                Preparation("letter", one_by_one(prepare)),
            ],
            rules(),
        )
        self.started = 0
        self.faults: list[Faults] = []
        self.engines: list[Engine] = []
        self.workers: list[Dispatcher] = []
        for number in range(2):
            self.start(number)
        self.post.meanwhile = self.lease_lost

    def start(self, number: int) -> None:
        """A new process in the place of one that has gone."""
        self.started += 1
        faults = Faults(self.store)
        engine = Engine(faults, self.catalogue, self.clock)
        worker = Dispatcher(engine, {"letter": self.post}, f"worker {self.started}", lease_seconds=LEASE_SECONDS)
        self.faults[number:] = [faults, *self.faults[number + 1 :]]
        self.engines[number:] = [engine, *self.engines[number + 1 :]]
        self.workers[number:] = [worker, *self.workers[number + 1 :]]

    def work(self, number: int) -> int:
        try:
            return self.workers[number].run_once()
        except Unavailable:
            return 0
        except Killed:
            self.start(number)
            return 0

    def lease_lost(self) -> None:
        """While one sends, its lease runs out, and the other takes over."""
        self.clock.now += 2 * LEASE_SECONDS * SECOND
        self.post.meanwhile, meanwhile = lambda: None, self.post.meanwhile
        for number in (0, 1):
            self.work(number)
        self.post.meanwhile = meanwhile

    def write(self, number: int, key: str, asks: str, answers: Sequence[str]) -> None:
        """Ask for a letter."""
        to = f"p{number}"
        self.post.answers[to] = list(answers)
        event = Event(
            type="write",
            identifiers=(Identifier("user_id", to),),
            occurred_at=NOW,
            key=to,
            properties={"to": to, "key": key, "asks": asks},
        )
        assert self.engines[0].recorder.record([event])[0].status == "accepted"

    def drain(self) -> None:
        """Everything works again and there is time."""
        for faults in self.faults:
            faults.left = None
        self.clock.now = max(self.clock.now, NOW) + 2 * LEASE_SECONDS * SECOND
        for _ in range(60):
            if not self.work(0) + self.work(1):
                self.clock.now += 20 * MINUTE
            tables = [OUTBOX] if self.queue.unknown == "wait" else [OUTBOX, UNKNOWN]
            if not any(list(scan_pages(self.store, table)) for table in tables):
                return
        raise AssertionError("something waits for ever")

    def events(self, number: int) -> list[str]:
        """The types of the events about a letter, in order."""
        reader = self.engines[0].reader
        person = reader.person("default", f"user_id:p{number}")
        told = sorted(reader.events(person, limit=1_000), key=lambda each: each.sequence)
        return [each.event.type for each in told if "effect" in each.event.properties]


letters = st.tuples(
    st.sampled_from(["own", "own", "shared"]),
    st.sampled_from(["now", "now", "now", "later", "skip"]),
    st.lists(st.sampled_from(["sent", "retry", "park", "unknown", "broken", "killed", "meanwhile"]), max_size=3),
)
steps = st.one_of(
    st.tuples(st.just("work"), st.integers(0, 1)),
    st.tuples(st.just("clock"), st.integers(-2 * HOUR // SECOND, 2 * HOUR // SECOND)),
    st.tuples(st.just("fault"), st.integers(0, 1), st.integers(0, 9), st.booleans(), st.booleans()),
    st.tuples(st.just("resolve"), st.integers(0, 1)),
)


def play(world: World, step: tuple[Any, ...]) -> None:
    """One step of a script."""
    match step:
        case "work", number:
            world.work(number)
        case "clock", seconds:
            world.clock.now += seconds * SECOND
        case "fault", number, left, applied, killed:
            faults = world.faults[number]
            faults.left, faults.applied = left, applied
            faults.error = Killed if killed else Unavailable
        case "resolve", number:
            for each in world.engines[number].delivery.unknown("default"):
                try:
                    world.engines[number].delivery.resolve("default", each.pending.id, None, "the test")
                except Unavailable:
                    pass
                except Killed:
                    world.start(number)


@given(st.lists(letters, min_size=1, max_size=6), st.lists(steps, max_size=14), st.sampled_from([1, 3]))
def test_no_letter_is_sent_twice_and_each_has_one_end(
    asked: list[tuple[str, str, list[str]]], script: list[tuple[Any, ...]], at_once: int
) -> None:
    world = World(Queue("letters", at_once=at_once, claims=True))
    for number, (key, asks, answers) in enumerate(asked):
        # Threads that send side by side would take over from one another in any order.
        answers = [each for each in answers if at_once == 1 or each != "meanwhile"]
        world.write(number, key if key == "shared" else f"own {number}", asks, answers)
    for step in script:
        play(world, step)
    world.drain()
    calls = world.post.calls
    for number, call in enumerate(calls):
        earlier = [each for each in calls[:number] if call.id == each.id or call.key == each.key]
        assert not any(each.may_have_happened for each in earlier), "two may have arrived"
    unresolved = world.engines[0].delivery.unknown("default")
    for each in unresolved:
        assert world.engines[0].delivery.resolve("default", each.pending.id, None, "the test")
    may_have_arrived = {call.id for call in calls if call.may_have_happened}
    for number, (_, asks, _) in enumerate(asked):
        *before, last = world.events(number)
        assert last in {SENT, SKIPPED, TAKEN, EFFECT_PARKED}, "it has an end"
        assert not {SENT, SKIPPED, TAKEN, EFFECT_PARKED}.intersection(before), "it has one end"
        assert before.count(EFFECT_UNKNOWN) <= 1 + before.count(EFFECT_REDRIVEN)
        assert (last == SKIPPED) == (asks == "skip")
    ends = [world.events(number)[-1] for number in range(len(asked))]
    assert ends.count(SENT) >= len(may_have_arrived)
    parked = list(scan_pages(world.store, PARKED))
    assert len(parked) == ends.count(EFFECT_PARKED)
    assert [list(scan_pages(world.store, table)) for table in (OUTBOX, UNKNOWN, POSTPONED)] == [[], [], []]


@settings(max_examples=20)
@given(
    st.lists(letters, min_size=1, max_size=5),
    st.lists(steps, max_size=10),
    st.sampled_from(["assume_done", "send_again"]),
)
def test_an_unknown_letter_ends_by_itself_where_that_is_declared(
    asked: list[tuple[str, str, list[str]]], script: list[tuple[Any, ...]], unknown: Any
) -> None:
    world = World(Queue("letters", claims=True, unknown=unknown, unknown_seconds=600.0))
    for number, (key, asks, answers) in enumerate(asked):
        world.write(number, key if key == "shared" else f"own {number}", asks, answers)
    for step in script:
        if step[0] != "resolve":
            play(world, step)
    world.drain()
    assert all(world.events(number)[-1] in {SENT, SKIPPED, TAKEN, EFFECT_PARKED} for number in range(len(asked)))
    if unknown == "assume_done":
        ids = [call.id for call in world.post.calls if call.may_have_happened]
        assert len(ids) == len(set(ids))


def test_two_effects_with_one_key_are_sent_once() -> None:
    world = World(Queue("letters", at_once=3, claims=True))
    for number in range(3):
        world.write(number, "shared", "now", [])
    world.drain()
    assert len(world.post.calls) == 1
    assert sorted(world.events(number)[-1] for number in range(3)) == [SENT, TAKEN, TAKEN]
    assert len(list(scan_pages(world.store, CLAIMED))) == 1
