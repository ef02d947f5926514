"""Funnels against a reckoner that goes through every person's events one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from threadline.app import open_engine
from threadline.capabilities.ask.analytics.operations.funnel import FunnelParams, funnel
from threadline.engine.context import Context
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, HOUR, parse_time
from threadline.settings import Settings

START = parse_time("2026-01-01T00:00:00Z")
NOW = START + 100 * DAY
STEPS = ("viewed", "carted", "bought")
Lived = Sequence[tuple[str, int, str]]


def lived(seed: int) -> list[tuple[str, int, str]]:
    """(person, instant, type): many of the same instant, in the order in which they are recorded."""
    random = Random(seed)
    return [
        (f"p{random.randrange(12)}", START + random.randrange(60) * 6 * HOUR, random.choice((*STEPS, "other")))
        for _ in range(160)
    ]


def reached(events: Lived, window: int) -> list[int]:
    """How many people came as far as each step: any chain of events in order, within the window of its first."""
    counts = [0] * len(STEPS)
    for person in {each[0] for each in events}:
        own = sorted(
            ((at, number, type_) for number, (who, at, type_) in enumerate(events) if who == person),
            key=lambda e: e[:2],
        )
        best = 0
        for begin, (at, _, type_) in enumerate(own):
            if type_ != STEPS[0]:
                continue
            depth = 1
            for later, _, kind in own[begin + 1 :]:
                if depth < len(STEPS) and kind == STEPS[depth] and later <= at + window:
                    depth += 1
            best = max(best, depth)
        for step in range(best):
            counts[step] += 1
    return counts


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("days", [1, 3, 40])
def test_a_funnel_counts_whoever_has_some_chain_of_the_steps_within_the_window(seed: int, days: int) -> None:
    events = lived(seed)
    engine = open_engine("memory:", Settings(), lambda: NOW)
    engine.recorder.record(
        [
            Event(type=t, identifiers=(Identifier("user_id", who),), occurred_at=at, key=str(n), source="shop")
            for n, (who, at, t) in enumerate(events)
        ]
    )
    answer = funnel.run(Context(engine, "default", NOW), FunnelParams(steps=list(STEPS), window=f"{days}d"))
    people = [row.people for row in answer.rows]
    assert people == reached(events, days * DAY)
    assert all(later <= earlier for earlier, later in pairwise(people))
    assert answer.bound == "exact"
    engine.close()
