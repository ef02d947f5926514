"""Law: what people do while everybody is looked at by new definitions sends what it would have sent after that.

The fill is stopped after some of the people, and whoever was looked at or was not does something; then it goes on. The
other store was filled first.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import redefined, work
from threadline.capabilities.profile.segments.events import SEGMENT_LEFT
from threadline.engine.engine import Engine
from threadline.engine.scheduled import due_effects, pending_effect
from threadline.kernel.store import Store
from threadline.kernel.time import DAY, HOUR
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore

PEOPLE = 12
BEFORE = """
segments:
  buyers: {when: {field: features.has_purchased, equals: true}}
  gone: {when: {field: features.monetary_total, greater_than: 10}}
leaderboards: {visits: {score: streaks.visits.current}}
streaks: {visits: {cadence: day, milestones: [3]}}
"""
AFTER = """
features: {spent: {aggregate: sum, events: purchase_completed, of: total}}
segments:
  buyers: {when: {field: features.has_purchased, equals: true}}
  lapsed: {when: {field: features.days_since_last_purchase, greater_than_or_equal: 2}}
  big: {when: {field: features.spent, greater_than: 50}}
  other: {when: {not: {field: segments.big.since, exists: true}}}
leaderboards: {visits: {score: streaks.visits.current}, spenders: {score: features.spent}}
streaks:
  visits: {cadence: day, milestones: [2, 3]}
  orders: {cadence: week, events: purchase_completed, milestones: [1, 2]}
mail:
  senders: {shop: {from: n@shop.example}}
  templates: {hello: {subject: a, text: x}, big: {subject: a, text: x}}
journeys:
  bought: {trigger: {segment: buyers}, reentry: always, steps: [{send: hello}]}
  kept_on: {trigger: {event: streak_milestone_reached}, reentry: always, steps: [{send: hello}]}
  became_big: {trigger: {segment: big}, reentry: always, steps: [{send: big}]}
destinations: {crm: {url: "https://crm.example.com/hooks"}}
rules: {call: {conditions: {field: event.type, exists: true}, actions: [{call_webhook: {destination: crm}}]}}
rule_sets:
  called: {events: [segment_entered, segment_left, leaderboard_scored, streak_milestone_reached], rules: [call]}
"""
OPENED: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "people.db"),
}


def on(store: Store, definitions: str) -> Asked:
    asked = Asked(definitions=definitions)
    asked.engine = Engine(store, asked.engine.catalogue, lambda: asked.now)
    return asked


def happened(asked: Asked, draw: random.Random, events: int, before: int, joins: float) -> None:
    """People look and buy, and some are found to be one."""
    for _ in range(events):
        who, at = draw.randrange(PEOPLE), asked.now - draw.randrange(before)
        names = {"user_id": f"p{who}"} if draw.random() < 0.5 else {"email": f"p{who}@x.example"}
        if draw.random() < joins:
            names = {"user_id": f"p{who}", "email": f"p{who}@x.example"}
        if draw.random() < 0.5:
            asked.tell("page", at=at, **names)
        else:
            spent = {"total": draw.choice([0, 5, 20, 60]), "currency": "EUR"}
            asked.tell("purchase_completed", at=at, properties=spent, **names)


def advanced(asked: Asked, pages: int) -> None:
    cursor = ""
    for _ in range(pages):
        if not (cursor := asked.engine.maintenance.advance(cursor, 3).next):
            return


def sent(asked: Asked) -> Counter[Any]:
    """What was asked for, by person."""
    found: Counter[Any] = Counter()
    for item in due_effects(asked.engine.store, ["mail", "crm"], "0"):
        pending = pending_effect(item)
        person = asked.engine.reader.by_thread(pending.thread)
        assert person is not None
        cause = asked.engine.log.event(pending.workspace, pending.cause).event
        assert cause.is_news
        # How often a board was told a score before is no part of what is sent, nor which news it was.
        said = {name: value for name, value in cause.properties.items() if name not in ("turn", "why")}
        found[person.id, pending.effect.kind, cause.type, str(said)] += 1
    return found


def run(store: Store, seed: int, pages: int, joins: float) -> tuple[Counter[Any], list[str], set[str]]:
    """What is sent if the fill has come so far when people do something, which steps were not done then, and who was
    joined."""
    draw = random.Random(seed)
    before = on(store, BEFORE)
    happened(before, draw, 40, 6 * DAY, 0.1)
    work(before)
    asked = redefined(before, AFTER)
    asked.now = STARTS_AT + 8 * DAY
    advanced(asked, pages)
    asked.now += 1_000
    work(asked)  # what did not fit into the commits
    left = list(asked.engine.maintenance.stale())
    asked.now = STARTS_AT + 8 * DAY + HOUR
    happened(asked, draw, 25, HOUR, joins)
    asked.now += 1_000
    work(asked)
    advanced(asked, 1_000)
    asked.now += 1_000
    work(asked)
    assert asked.engine.maintenance.stale() == ()
    people, _ = asked.engine.reader.people(None, "", 100)
    return sent(asked), left, {person.id for person in people if len(person.heads) > 1}


@pytest.mark.costly
@pytest.mark.parametrize("kind", sorted(OPENED))
@given(seed=st.integers(0, 1 << 32), pages=st.integers(0, 16), joins=st.sampled_from([0.0, 0.3]))
def test_events_amid_a_fill_send_what_they_send_after_it(
    kind: str, tmp_path_factory: pytest.TempPathFactory, seed: int, pages: int, joins: float
) -> None:
    amid, _, joined = run(OPENED[kind](tmp_path_factory.mktemp("amid")), seed, pages, joins)
    after, left, _ = run(OPENED[kind](tmp_path_factory.mktemp("after")), seed, 1_000, joins)
    assert left == []
    # Of people who are joined the later word on a segment stands, that of who was looked at later: whether a segment
    # that one of them was in and the other was not is left once more. Nobody enters one twice or never.
    differing = {key for key in amid.keys() | after.keys() if amid[key] != after[key]}
    assert {key for key in differing if key[2] != SEGMENT_LEFT or key[0] not in joined} == set()
