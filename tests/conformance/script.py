"""A generated script of everything that may happen to an engine, and what came of it, to be compared bit for bit.

The script is the world: whatever capability folds, reacts or keeps rows of these events is covered, and whatever it
knows shows in the canonical dump. Nothing here names a capability, but for the rules that users would declare.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec

from threadline.app import catalogue
from threadline.capabilities.foundation.definitions import Definitions
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.folding.person import PERSON
from threadline.engine.maintenance.dump import dump
from threadline.engine.maintenance.rebuild import refold_shard
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.operation import Operation
from threadline.kernel.policy import TIMER_FIRED, Effect, Emit, Policy, Timer, Wish
from threadline.kernel.sender import Outcome
from threadline.kernel.store import FeedEntry, Store, event_pages, feed_pages, scan_pages
from threadline.kernel.time import DAY, HOUR
from threadline.testing import scenarios
from threadline.testing.world import World

EVENTS = 200
PEOPLE = 15
OWN_TABLES = frozenset({"cache"})
"""What a store keeps for itself beside what it was given."""

Step = Callable[[Engine, Dispatcher], Any]


def _react(recorded: Recorded, known: object) -> Sequence[Wish]:
    event = recorded.event
    if event.type == TIMER_FIRED:
        return [Emit(type="reminded", key="r", occurred_at=event.occurred_at)]
    due_at = event.occurred_at + (90 if event.type == "identify" else 1) * DAY
    return [Timer(key="remind", due_at=due_at, data={"of": event.type}), Effect(kind="box", key="thanks")]


CARE = Policy(name="care", handles=frozenset({"purchase_completed", "identify", TIMER_FIRED}), react=_react)


RULES = """
rules:
  bought:
    conditions: {field: event.properties.total, greater_than: 50}
    actions:
      - store_decision: {result: approve, total: "${event.properties.total}"}
      - tag: {tag: "buys in ${event.properties.currency}"}
      - send_notification: {message: "thanks, ${traits.firstName}"}
  gone: {conditions: {field: event.properties.plan, equals: pro}, actions: [{untag: {tag: "${traits.no}"}}]}
rule_sets: {all: {events: [purchase_completed, identify], rules: [bought, gone], record: all}}
"""
"""Without them nothing would be decided: rules are what users declare."""


def script_catalogue() -> Catalogue:
    """All that ships, some rules, and a policy that sets timers, adds events and sends."""
    ships = catalogue()
    found = discover(definitions=Definitions([("rules.yaml", RULES)]))
    return Catalogue([*(each for each in found if not isinstance(each, Operation)), CARE], ships.rules)


class Box:
    """A sender that succeeds, fails and raises, as the id of the effect decides."""

    kind = "box"

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Answer."""
        choice = int(effect_id[:2], 16) % 8
        if choice == 0:
            raise OSError("the line is down")
        return Outcome(type="mail_sent", retry_after_seconds=60.0 if choice == 1 else None)


class Clock:
    """A clock that the script sets, so that no store's pace shows in what is recorded."""

    now = 0

    def __call__(self) -> int:
        return self.now


class Played(NamedTuple):
    """All that came of a script."""

    answers: list[Any]
    """Of each step."""
    dump: list[str]
    items: list[tuple[str, ...]]
    """Table, partition, sort, version and hash of every item."""
    feed: list[str]
    """The ids of all events in the order of the feed."""
    scan: list[str]
    """The people in the order in which the store lists them."""
    threads: dict[str, list[str]]
    """The same for each thread, in the order in which the feed tells of it and in which the thread itself does."""
    views: str
    """A hash of what every projection says of everybody at several instants."""


# --- the script -------------------------------------------------------------------------------


def steps(seed: int, events: int = EVENTS, people: int = PEOPLE) -> Iterator[tuple[int, Step]]:
    """(instant, step) after step, the same for the same seed."""
    random = Random(seed)
    world = World(seed, people=people, days=60, history=events, late=0.1, duplicates=0.05)
    calls = [call for size in (37,) for call in world.batches(events, size)]
    calls += [
        _shifted(call) for call in scenarios.telling(scenarios.shuffled, random, scenarios.history(random, 4, 40))
    ]
    random.shuffle(calls)
    names: list[str] = []
    at = world.ends_at(events)
    for number, call in enumerate(calls):
        at += random.choice((1, HOUR, DAY))
        yield at, _record(call)
        names += [str(identifier) for event in call for identifier in event.identifiers[:1]]
        yield at, _record(_malice(random, call, number))
        yield at, _operator(random, names, number)
        yield at + HOUR, lambda on, dispatcher: dispatcher.run_once()
    yield at, lambda on, dispatcher: on.reader.person("default", "user_id:nobody-has-this")
    for _ in range(5):
        at += 3 * DAY
        yield at, lambda on, dispatcher: dispatcher.run_once()


def _shifted(call: Sequence[Event]) -> list[Event]:
    """A scenario moved to the time of the world."""
    return [msgspec.structs.replace(event, occurred_at=event.occurred_at - 300 * DAY) for event in call]


def _malice(random: Random, call: Sequence[Event], number: int) -> list[Event]:
    """Events that must be rejected, or are in conflict with those of a call."""
    event = random.choice(call)
    replace = msgspec.structs.replace
    return [
        replace(event, properties={"other": number}),
        replace(event, key=f"bad-{number}", type=random.choice(("", "x" * 300, "threadline.forged"))),
        replace(event, key=f"junk-{number}", identifiers=(Identifier("user_id", "null"),)),
        replace(event, key=f"wide-{number}", properties={"text": "\ud800"}),
        replace(event, key=f"deep-{number}", properties={"text": "größer \U0001f600", "zero": -0.0, "big": 2**63 - 1}),
    ]


def _record(call: Sequence[Event]) -> Step:
    return lambda on, dispatcher: [msgspec.to_builtins(receipt) for receipt in on.recorder.record(call)]


def _operator(random: Random, names: Sequence[str], number: int) -> Step:
    """What people do who look after people: joins, splits, undoing, reviews, corrections, keys."""
    one, other = random.choice(names), random.choice(names)
    choice = random.randrange(7)
    if choice == 0:
        return lambda on, dispatcher: on.identity.merge(
            "default", one, other, request=f"m{number}", force=bool(number % 2)
        )
    if choice == 1:
        return lambda on, dispatcher: on.identity.split("default", one, [one], request=f"s{number}")
    if choice == 2:
        return lambda on, dispatcher: on.identity.unmerge("default", _last_merge(on, one), request=f"u{number}")
    if choice == 3:
        return lambda on, dispatcher: [
            on.identity.review("default", each["id"], join=bool(number % 2))
            for each in on.identity.quarantined("default")[:1]
        ]
    if choice == 4:
        return lambda on, dispatcher: (
            on.recorder.record(
                [
                    Event(
                        type="page",
                        identifiers=(_named(one), _named(other)),
                        occurred_at=on.clock() - 1,
                        key=f"j{number}",
                    )
                ]
            )[0].status
        )
    if choice == 5:
        return lambda on, dispatcher: (
            on.credentials.create("default", "write_key", f"key {number}", secret=f"secret {number}")[0].id
        )
    return lambda on, dispatcher: [[cursor, entry.code] for cursor, entry in on.rejected.page("default", limit=5)]


def _named(text: str) -> Identifier:
    kind, _, value = text.partition(":")
    return Identifier(kind, value)


def _last_merge(on: Engine, name: str) -> str:
    found = on.reader.events(
        on.reader.person("default", name), types=frozenset({"threadline.person_merged"}), reverse=True, limit=1
    )
    return found[0].id if found else "0" * 32


# --- what came of it --------------------------------------------------------------------------


def play(store: Store, seed: int, events: int = EVENTS, people: int = PEOPLE) -> Played:
    """Play a script to a store and tell everything that can be seen of it."""
    clock = Clock()
    on = Engine(store, script_catalogue(), clock)
    dispatcher = Dispatcher(on, {"box": Box()}, "conformance")
    answers = []
    for at, step in steps(seed, events, people):
        clock.now = at
        try:
            answers.append(step(on, dispatcher))
        except ThreadlineError as error:
            answers.append([type(error).__name__, str(error)])
    return _seen(on, answers)


def _seen(on: Engine, answers: list[Any]) -> Played:
    store = on.store
    for one in refold_shard(store, on.catalogue):
        assert not one.differs, f"{one.item.key} is not what a refold makes of it"
    tables = set(store.tables()) - OWN_TABLES
    feed = list(feed_pages(store))
    return Played(
        answers,
        dump(store, on.catalogue),
        sorted(
            (*item.key, str(item.version), hashlib.sha256(item.value).hexdigest())
            for table in tables
            for item in scan_pages(store, table)
        ),
        [each.entry.id for each in feed],
        [item.key.partition for item in scan_pages(store, PERSON)],
        _threads(store, feed),
        _views(on),
    )


def _threads(store: Store, feed: Sequence[FeedEntry]) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for each in feed:
        told.setdefault(each.entry.thread, []).append(each.entry.id)
    for thread, ids in told.items():
        ids += [entry.id for entry in event_pages(store, thread)]
    return told


def _views(on: Engine) -> str:
    digest = hashlib.sha256()
    for person in sorted(on.reader.all_people("default"), key=lambda each: each.id):
        for now in (on.clock() - 40 * DAY, on.clock(), on.clock() + 40 * DAY):
            told = msgspec.to_builtins(on.reader.views(person, now))
            digest.update(canonical_json(_plain(told)) + b"\n")
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """With text for keys that are none, and for what canonical JSON has no form for."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
