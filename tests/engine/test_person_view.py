"""What a policy is shown in the middle of a group is what a reader sees once it is committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.simulation.sandbox import SimulatedPerson
from threadline.engine.simulation.variant import Variant
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.policy import Policy, PolicyView, Wish
from threadline.kernel.projection import Edge, Projection
from threadline.kernel.time import DAY, HOUR, MINUTE
from threadline.stores.memory import MemoryStore

NOW = 1_767_225_600_000_000
DEFINITIONS = """
features:
  bought_2h: {aggregate: sum, events: bought, of: price, window: 2h}
  bought: {aggregate: count, events: bought}
"""
Seen = list[tuple[int, Any, int | None]]


def watched() -> tuple[Engine, Seen]:
    """An engine with a policy that notes what it is shown at each event."""
    seen: Seen = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        seen.append((known.at, known.view("features"), known.due("features")))
        return ()

    found = discover(definitions=Definitions([("test.yaml", DEFINITIONS)]))
    catalogue = Catalogue([*found, Policy(name="watch", handles=None, react=react)], rules())
    return Engine(MemoryStore(), catalogue, lambda: NOW), seen


def bought(number: int, ago: int, price: int) -> Event:
    return Event(
        type="bought",
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=NOW - ago,
        key=str(number),
        properties={"price": price},
    )


told = st.lists(
    # Some lie ahead, by less than what is clamped; some share an instant; the edge of the window cuts through them.
    st.tuples(st.integers(-HOUR, 3 * HOUR).map(lambda ago: ago // MINUTE * MINUTE), st.integers(1, 9)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(told)
def test_a_policy_sees_what_a_reader_would_see_and_no_batching_changes_it(told: list[tuple[int, int]]) -> None:
    events = [bought(number, ago, price) for number, (ago, price) in enumerate(told)]
    single, seen_alone = watched()
    for event in events:
        single.recorder.record([event])
        at, view, due = seen_alone[-1]
        person = single.reader.person("default", "user_id:ada")
        assert view == single.reader.views(person, at)["features"]
        states = single.reader.states(person, at)
        features = single.catalogue.index["features"]
        projection = single.catalogue.projections[features]
        assert projection.depends.due is not None
        assert due == projection.depends.due(states[features], at)
    together, seen_together = watched()
    together.recorder.record(events)
    assert seen_together == seen_alone


def test_who_the_person_is_and_what_is_not_there() -> None:
    engine, _ = watched()
    shown: list[Any] = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        shown.append((known.person, known.workspace, known.identifiers, known.at))
        shown.append((known.get("nothing", 7), known.view("nothing"), known.due("nothing"), known.due("profile")))
        return ()

    catalogue = Catalogue([*engine.catalogue.projections, Policy(name="w", handles=None, react=react)], rules())
    engine = Engine(MemoryStore(), catalogue, lambda: NOW)
    [receipt] = engine.recorder.record([bought(1, DAY, 5)])
    assert shown == [
        (receipt.person, "default", (Identifier("user_id", "ada"),), NOW + 1),
        (7, None, None, None),
    ]


@settings(max_examples=60)
@given(told)
def test_the_events_of_a_range_are_those_of_the_log_and_no_batching_changes_it(told: list[tuple[int, int]]) -> None:
    edge = Edge(NOW - 2 * HOUR, NOW, frozenset({"bought"}))
    seen: list[list[str]] = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        seen.append([each.id for each in known.events("features", edge)])
        return ()

    def engine() -> Engine:
        catalogue = Catalogue([*watched()[0].catalogue.projections, Policy("w", frozenset({"bought"}), react)], rules())
        return Engine(MemoryStore(), catalogue, lambda: NOW)

    events = [bought(number, ago, price) for number, (ago, price) in enumerate(told)]
    single = engine()
    for event in events:
        single.recorder.record([event])
        person = single.reader.person("default", "user_id:ada")
        assert seen[-1] == [each.id for each in single.reader.events(person, start=edge.start, stop=edge.stop)]
    alone, seen[:] = list(seen), []
    engine().recorder.record(events)
    assert seen == alone


class Undecided:
    """An evaluator that decides nothing."""

    name = "nobody"
    reads = ()

    def handles(self, event_type: str) -> bool:
        return False

    def decisions(self, recorded: Recorded, known: Any) -> dict[str, Any]:
        return {}

    def wishes(self, recorded: Recorded, verdicts: Any, folded: Any) -> Sequence[Wish]:
        return ()

    def decides_as(self, other: Any, event_type: str) -> bool:
        return True

    def alike(self, wish: Any) -> Any:
        return wish


@settings(max_examples=60)
@given(told, st.integers(-4 * HOUR, 2 * HOUR))
def test_what_lies_ahead_is_the_same_to_a_policy_to_a_reader_and_in_a_sandbox(
    told: list[tuple[int, int]], from_now: int
) -> None:
    seen: list[Any] = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        known.get("features")
        views = (known.view("features"), known.due("features"), known.view("features", NOW + from_now))
        nobody = (known.of_nobody("features"), known.of_nobody("none"))
        seen.append((known.ahead(NOW + from_now), known.ahead(), *nobody, *views))
        return ()

    found = discover(definitions=Definitions([("test.yaml", DEFINITIONS)]))
    catalogue = Catalogue([*found, Policy(name="watch", handles=None, react=react)], rules())
    engine = Engine(MemoryStore(), catalogue, lambda: NOW)
    events = [bought(number, ago, price) for number, (ago, price) in enumerate(told)]
    recorded: list[Recorded] = []
    for event in events:
        engine.recorder.record([event])
        person = engine.reader.person("default", "user_id:ada")
        here = NOW + from_now
        later = [each.occurred_at + 1 for each in events[: len(seen)] if each.occurred_at >= here]
        assert seen[-1][0] == engine.reader.as_of(person, here).ahead() == min(later, default=None)
        recorded = engine.reader.events(person, limit=100)
    alone = seen.copy()
    assert alone[0][2:4] == (engine.catalogue.of_nobody("features", NOW), None)
    seen.clear()
    Engine(MemoryStore(), catalogue, lambda: NOW).recorder.record(events)
    assert seen == alone
    seen.clear()
    variant = Variant(catalogue, [Undecided()], {"watch"}, {})
    variant.fold_also(catalogue.index["features"], whole=True)
    simulated = SimulatedPerson(variant, "default", person.id, person.identifiers)
    for each in sorted(recorded, key=lambda each: each.sequence):
        simulated.replay(each)
    assert seen == alone


def test_a_life_with_an_event_ahead_is_not_folded_anew_for_every_decision() -> None:
    folded = [0]

    def fold(state: int, recorded: Recorded) -> int:
        folded[0] += 1
        return state + 1

    seen: list[int] = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        seen.append(known.view("counted"))
        return ()

    counted = Projection("counted", 1, None, lambda: 0, fold, lambda state, now, events: state)
    catalogue = Catalogue([counted, Policy(name="watch", handles=None, react=react)], rules())
    variant = Variant(catalogue, [Undecided()], {"watch"}, {})
    variant.fold_also(catalogue.index["counted"], whole=True)
    ada = Identifier("user_id", "ada")
    simulated = SimulatedPerson(variant, "default", "ada", {"thread": ada})
    agos = [-HOUR, *(HOUR - number for number in range(200))]
    for number, ago in enumerate(agos):
        simulated.replay(Recorded(bought(number, ago, 1), f"{number:032x}", "thread", number + 1, NOW))
    assert seen == [1, *range(1, 201)]
    assert folded[0] < 3 * len(agos)
