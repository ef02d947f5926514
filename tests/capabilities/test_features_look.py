"""A look at some features only says of them what the whole view says, and asks for no more single events."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from threadline.app import catalogue
from threadline.engine.folding.history import occurred_order
from threadline.engine.folding.refold import fold_events
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Edge
from threadline.kernel.time import DAY
from threadline.testing import scenarios

CATALOGUE = catalogue()
INDEX = CATALOGUE.index["features"]
FEATURES = CATALOGUE.projections[INDEX]
NAMES = sorted(FEATURES.view(FEATURES.empty(), 0, []))


def held_by(edges: list[Edge], events: list[Recorded]) -> list[Recorded]:
    return [each for each in events if any(edge.holds(each) for edge in edges)]


@settings(max_examples=60)
@given(
    random=scenarios.randoms, names=st.sets(st.sampled_from(NAMES), min_size=1, max_size=4), days=st.integers(0, 120)
)
def test_a_part_of_the_view_is_that_part(random: Random, names: set[str], days: int) -> None:
    history = scenarios.history(random, people=1, count=40)
    recorded = [
        Recorded(event, f"{number:032x}", "1" * 32, number, scenarios.NOW) for number, event in enumerate(history, 1)
    ]
    now = scenarios.NOW - days * DAY
    events = sorted((each for each in recorded if each.event.occurred_at < now), key=occurred_order)
    states = CATALOGUE.empty()
    fold_events(CATALOGUE, events, states, (INDEX,))
    state = states[INDEX]
    assert FEATURES.faster.view is not None
    assert FEATURES.depends.edges is not None
    look = FEATURES.faster.view(frozenset(names))
    assert look.edges is not None
    whole, part = FEATURES.depends.edges(state, now), look.edges(state, now)
    assert {each.id for each in held_by(part, events)} <= {each.id for each in held_by(whole, events)}
    shown = look.view(state, now, held_by(part, events))
    expected = FEATURES.view(state, now, held_by(whole, events))
    assert shown == {name: expected[name] for name in names}
