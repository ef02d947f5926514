"""Law: random journeys do what a second interpreter says, however events come and whatever dies on the way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.capabilities.journeys_reckoner import Reckoner, Told
from tests.capabilities.journeys_stage import Stage
from tests.laws.staging import Crash, CrashingStore
from threadline.engine.engine import Engine
from threadline.engine.maintenance.rebuild import refold_shard
from threadline.kernel.event import Event, Identifier
from threadline.kernel.limits import JOURNEY_MAILS_IN_A_ROW_MAX
from threadline.kernel.time import SECOND, from_datetime, to_datetime

ZONES = ("Europe/Rome", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe", "UTC")
BEGINNINGS = (datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 10, 23, tzinfo=UTC), datetime(2028, 2, 27, tzinfo=UTC))
"""Before clocks leap, before they go back, before a leap day."""
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)

Json = dict[str, Any]
ACTS: tuple[Json, ...] = (
    {"tag": "seen ${journey.variables.v}"},
    {"points": 5},
    {"points": "${journey.variables.v}"},
    {"trait": {"plan": "pro"}},
    {"trait": {"plan": "free"}},
)
"""Steps that act; questions ask for the trait."""


def drawn_steps(random: Random, depth: int) -> list[Json]:
    """Steps of every kind."""
    return [drawn_step(random, depth) for _ in range(random.randint(1, 3))]


def drawn_step(random: Random, depth: int) -> Json:
    template = random.choice("abcd") + "_mail"
    kinds = ["send", "send", "for", "until", "event", "act", "exit"] + (["if", "choice", "steps"] if depth else [])
    kind = random.choices(kinds, [3, 3, 2, 3, 3, 2, 0.3, 2, 2, 1][: len(kinds)])[0]
    if kind == "send":
        return {"send": template}
    if kind == "act":
        return random.choice(ACTS)
    if kind == "for":
        return {"wait": random.choice(["1h", "7h", "2d"])}
    if kind == "until":
        days = {"weekdays": random.sample(["mon", "wed", "sat", "sun"], 2)} if random.random() < 0.4 else {}
        late = {"for": "26h"} if random.random() < 0.3 else {}
        return {"wait": {"until": random.choice(["02:30", "01:45", "09:00", "23:10"]), **days, **late}}
    if kind == "event":
        step: Json = {"wait": {"event": random.choice(["e1", "e2"]), "timeout": random.choice(["5h", "3d"])}}
        if random.random() < 0.5:
            step["wait"]["where"] = {"v": random.choice([1, 2])}
        for name in ("then", "else"):
            if depth and random.random() < 0.6:
                step[name] = drawn_steps(random, depth - 1)
        return step
    if kind == "exit":
        return {"exit": "enough"}
    if kind == "if":
        orelse = {"else": drawn_steps(random, depth - 1)} if random.random() < 0.5 else {}
        return {"if": drawn_condition(random), "then": drawn_steps(random, depth - 1), **orelse}
    if kind == "choice":
        branches = [{"when": drawn_condition(random), "steps": drawn_steps(random, depth - 1)} for _ in range(2)]
        return {"choice": branches, "else": drawn_steps(random, depth - 1)}
    return {"steps": drawn_steps(random, depth - 1)}


def drawn_condition(random: Random) -> Json:
    return random.choice(
        [
            {"sent": random.choice("abcd") + "_mail"},
            {"field": "traits.plan", "equals": "pro"},
            {"field": "journey.variables.v", "equals": 1},
        ]
    )


def mails_in_a_row(steps: list[Json]) -> int:
    """At most so many mails and actions follow each other without a wait, whichever branches are taken."""
    ending = {"send", "tag", "points", "trait"}
    return sum(
        1 if ending & step.keys() else sum(mails_in_a_row(inner) for inner in inner_steps(step)) for step in steps
    )


def inner_steps(step: Json) -> list[list[Json]]:
    wait = step["wait"] if isinstance(step.get("wait"), dict) else {}
    branches = [branch["steps"] for branch in step.get("choice", ())]
    return [*branches, *(each[name] for each in (step, wait) for name in ("steps", "then", "else") if name in each)]


def drawn_journey(random: Random) -> Json:
    """A journey with every option that a person can notice."""
    steps = drawn_steps(random, 2)
    while mails_in_a_row(steps) >= JOURNEY_MAILS_IN_A_ROW_MAX:
        steps = drawn_steps(random, 2)
    journey: Json = {
        "trigger": {"event": "e0", "map": {"v": "event.properties.v"}},
        "steps": [*steps, {"send": "last_mail"}],
        "reentry": random.choice(["once", "always", "2d"]),
    }
    if random.random() < 0.4:
        journey["exit_on"] = [{"event": "e3", "where": {"v": 1}}]
    if random.random() < 0.4:
        journey["events"] = [{"event": "e2", "send": "single_mail"}]
    if random.random() < 0.3:
        journey["timeout"] = random.choice(["30h", "6d"])
    if random.random() < 0.4:
        journey["quiet_hours"] = {"from": random.choice(["21:00", "22:30"]), "to": random.choice(["07:00", "08:15"])}
    return journey


def drawn_events(random: Random, count: int) -> list[Told]:
    """Events at whole hours and a number of seconds that is each one's own, so that no timer is due at that instant."""
    at, found = random.choice(BEGINNINGS), []
    for number in range(count):
        at += timedelta(hours=random.choice([1, 3, 8, 20, 50]))
        own = at + timedelta(seconds=7 * number + 1)
        if random.random() < 0.2:
            traits = random.choice([{"timezone": random.choice(ZONES)}, {"plan": random.choice(["pro", "free"])}])
            found.append(Told(own, "identify", traits, own))
            continue
        type = random.choice(["e0", "e0", "e1", "e2", "e3"])
        late = timedelta(hours=random.choice([0, 0, 0, 2, 30]))
        found.append(Told(own, type, {"v": random.choice([1, 2])}, own - late))
    return found


ACTED = {"tag_added": ("tag", "tag"), "points_earned": ("points", "points"), "identify": ("trait", "")}
"""Type of the event -> the step that made it, and the property of what it was given."""


class Life:
    """One person under a journey, on an engine that may die at any commit."""

    def __init__(self, journey: Json, random: Random | None, definitions: str = "") -> None:
        self.stage = Stage(definitions or yaml.safe_dump({"journeys": {"drawn": journey}}))
        self.store = self.stage.engine.store
        self.random = random
        if random is not None:
            self.fragile()

    def fragile(self) -> None:
        """Begin again, on a store that breaks soon."""
        stage, store = self.stage, self.store
        assert self.random is not None
        breaking: Any = CrashingStore(store, self.random.randint(1, 9), self.random.choice(["before", "after"]))
        stage.engine = Engine(breaking, stage.engine.catalogue, lambda: stage.now)

    def insisted(self, act: Any) -> None:
        """Do it, again after every death."""
        while True:
            try:
                act()
                return
            except Crash:
                self.fragile()

    def live(self, events: list[Told], until: datetime) -> None:
        for number, told in enumerate(events):
            at = from_datetime(told.at)
            self.insisted(lambda at=at: self.stage.until(at))  # type: ignore[misc]
            for _ in range(1 + (number % 5 == 0)):  # some are sent twice
                self.insisted(lambda told=told, number=number: self._record(told, number))  # type: ignore[misc]
        self.insisted(lambda: self.stage.until(from_datetime(until)))

    def _record(self, told: Told, number: int) -> None:
        event = Event(
            type=told.type,
            identifiers=(Identifier("user_id", "ada"),),
            occurred_at=from_datetime(told.occurred),
            key=str(number),
            properties=told.properties,
        )
        assert self.stage.engine.recorder.record([event])[0].status in ("accepted", "duplicate")

    def mails(self) -> list[tuple[datetime, str]]:
        """To the second: every commit of a test takes a microsecond. Each occurrence once: a sender that died after it
        had sent sends again, and the ledger of mails is not under test here."""
        first = {data["occurrence"]: (second(at), data["template"]) for at, _, data in reversed(self.stage.mails)}
        return sorted(first.values())

    def acts_of(self, who: str = "ada") -> list[tuple[datetime, str]]:
        """What journeys have put into one person's own thread besides, in order."""
        person = self.stage.engine.reader.person("default", f"user_id:{who}")
        made = [
            (each.recorded_at, each)
            for each in self.stage.engine.reader.all_events(person)
            if each.event.source == "policy:journeys" and each.event.type in ACTED
        ]
        acts = []
        for at, each in sorted(made, key=lambda pair: (pair[0], pair[1].sequence)):
            kind, given = ACTED[each.event.type]
            acts.append((second(at), f"{kind} {each.event.properties[given] if given else each.event.properties}"))
        return acts

    def mails_of(self, who: str) -> list[tuple[datetime, str]]:
        """The mails of one person's own thread."""
        thread = self.stage.engine.reader.person("default", f"user_id:{who}").id
        return sorted((second(at), data["template"]) for at, person, data in self.stage.mails if person == thread)

    def reasons(self) -> list[str]:
        return [each["reason"] for each in self.stage.told() if each.get("reason")]


def second(at: int) -> datetime:
    return to_datetime(at // SECOND * SECOND)


def reckoned(journey: Json, events: list[Told], until: datetime) -> Reckoner:
    reckoner = Reckoner(journey)
    for told in events:
        reckoner.take(told)
    reckoner.pass_time(until)
    return reckoner


def check(seed: int, *, deaths: bool) -> None:
    random = Random(seed)
    journey, events = drawn_journey(random), drawn_events(random, random.randint(2, 14))
    until = events[-1].at + timedelta(days=12)
    expected = reckoned(journey, events, until)
    life = Life(journey, random if deaths else None)
    life.live(events, until)
    assert life.mails() == sorted(expected.mails), journey
    assert life.reasons() == expected.reasons
    assert life.acts_of() == expected.acts, journey
    life.stage.engine = Engine(life.store, life.stage.engine.catalogue, lambda: life.stage.now)
    assert not [one.item.key for one in refold_shard(life.store, life.stage.engine.catalogue) if one.differs]
    tried = life.stage.ask("journeys_what_if", definitions=yaml.safe_dump({"journeys": {"drawn": journey}}))
    would = [mail for sample in tried["samples"] for mail in sample["new"]]
    assert sorted((datetime.fromisoformat(mail["at"][:19] + "+00:00"), mail["template"]) for mail in would) == sorted(
        expected.mails
    )
    assert (tried["people_changed"], tried["failed"]) == (0, 0)
    assert sum(each["new"] for each in tried["actions"]) == len(expected.acts)


@settings(max_examples=50, phases=UNSHRUNK)
@given(seed=st.integers(0, 2**32))
def test_a_second_interpreter_says_the_same(seed: int) -> None:
    check(seed, deaths=False)


@settings(max_examples=20, phases=UNSHRUNK)
@given(seed=st.integers(0, 2**32))
def test_a_process_that_dies_at_any_commit_leaves_nothing_out_and_does_nothing_twice(seed: int) -> None:
    check(seed, deaths=True)


CARTS: tuple[Any, ...] = ("a", 17, "b")


def keyed(value: Any) -> Any:
    """The same journey for each cart: what it waits for is of the cart, and nothing in it is shared between carts."""
    if isinstance(value, list):
        return [keyed(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "sent" in value or value.get("field") == "traits.plan":
        return {"field": "journey.variables.v", "equals": 2}
    if "trait" in value:
        return {"tag": "of ${journey.key}"}
    made = {name: keyed(item) for name, item in value.items()}
    return {**made, "where": {**value.get("where", {}), "cart": "${journey.key}"}} if "event" in value else made


def of_cart(value: Any, cart: Any) -> Any:
    """The journey of one cart alone."""
    if isinstance(value, list):
        return [of_cart(item, cart) for item in value]
    if isinstance(value, dict):
        return {name: of_cart(item, cart) for name, item in value.items()}
    if value == "${journey.key}":
        return cart
    return value.replace("${journey.key}", str(cart)) if isinstance(value, str) else value


def check_keyed(seed: int, *, deaths: bool) -> None:
    random = Random(seed)
    journey, events = keyed(drawn_journey(random)), drawn_events(random, random.randint(4, 24))
    events = [
        told if told.type == "identify" else told._replace(properties={**told.properties, "cart": random.choice(CARTS)})
        for told in events
    ]
    trigger = {name: value for name, value in journey["trigger"].items() if name != "where"}
    until = events[-1].at + timedelta(days=12)
    alone = [
        reckoned({**of_cart(journey, cart), "trigger": {**trigger, "where": {"cart": cart}}}, events, until)
        for cart in CARTS
    ]
    declared = {**journey, "trigger": trigger, "key": "event.properties.cart"}
    life = Life(declared, random if deaths else None)
    life.live(events, until)
    assert life.mails() == sorted(mail for each in alone for mail in each.mails), declared
    assert sorted(life.acts_of()) == sorted(act for each in alone for act in each.acts), declared
    assert sorted(life.reasons()) == sorted(reason for each in alone for reason in each.reasons)
    life.stage.engine = Engine(life.store, life.stage.engine.catalogue, lambda: life.stage.now)
    assert not [one.item.key for one in refold_shard(life.store, life.stage.engine.catalogue) if one.differs]
    tried = life.stage.ask("journeys_what_if", definitions=yaml.safe_dump({"journeys": {"drawn": declared}}))
    assert (tried["people_changed"], tried["failed"]) == (0, 0)
    assert sum(each["new"] for each in tried["steps"]) == len(life.mails())


@settings(max_examples=25, phases=UNSHRUNK)
@given(seed=st.integers(0, 2**32), deaths=st.booleans())
def test_a_journey_with_a_key_is_that_of_each_cart_alone(seed: int, deaths: bool) -> None:
    check_keyed(seed, deaths=deaths)
