"""Deliveries whose process is killed at any commit: each outcome has its attempt, and nothing waits or is lost."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import NamedTuple

import pytest

from tests.engine.test_dispatch import Box, Clock, tell
from tests.mortal import Fate, Killed
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.attempts import ATTEMPT, ATTEMPT_TIME
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.folding.packing import unpack_event
from threadline.engine.scheduled import OUTBOX
from threadline.kernel.errors import Conflict
from threadline.kernel.policy import Effect, Policy
from threadline.kernel.sender import EFFECT_DONE, EFFECT_PARKED, EFFECT_RETRIED, Exchange, Outcome, Queue
from threadline.kernel.store import feed_pages, scan_pages
from threadline.kernel.time import HOUR
from threadline.stores.memory import MemoryStore

SHOWN = Exchange(url="https://crm.example/hooks", headers={}, body="{}", milliseconds=3)
LATER = Outcome(type=EFFECT_RETRIED, retry_after_seconds=0.0, exchange=SHOWN)
PARKED = Outcome(type=EFFECT_PARKED, parked="gone", exchange=SHOWN)
DONE = Outcome(type=EFFECT_DONE, exchange=SHOWN)
ORDERS = ("a", "b", "c")
COMMITS_MAX = 80


class Wall(NamedTuple):
    """A store whose process dies, and the sender that outlives it."""

    store: MemoryStore
    fate: Fate
    clock: Clock
    box: Box

    def engine(self) -> Engine:
        """Of another process."""
        policy = Policy(
            name="sales",
            handles=frozenset({"sell"}),
            react=lambda recorded, view: [Effect(kind="box", key="call", queue="crm", data={})],
        )
        people = discover("threadline.capabilities.profile.people.projection", definitions=None)
        return Engine(self.store, Catalogue([*people, policy, Queue("crm")], rules()), self.clock)

    def work(self, engine: Engine, owner: str) -> None:
        """Send what is due, and what is due again within some hours."""
        dispatcher = Dispatcher(engine, {"box": self.box}, owner)
        for _ in range(4):
            while dispatcher.run_once():
                pass
            self.clock.now += HOUR

    def live(self, engine: Engine, owner: str) -> None:
        """Everything is sent, and what was delivered first and what was given up on are sent again."""
        self.work(engine, owner)
        for state in (True, False):
            for attempt in reversed(engine.delivery.attempts("default", delivered=state)):
                if attempt.outcome in (EFFECT_DONE, EFFECT_PARKED):
                    with suppress(Conflict):
                        engine.delivery.send_again(attempt, "ada")
                    break
        self.work(engine, owner)


def wall() -> Wall:
    store, box = MemoryStore(), Box([LATER, PARKED])
    made = Wall(store, Fate(store), Clock(), box)
    box.outcomes += [DONE] * 100
    engine = made.engine()
    for order in ORDERS:
        tell(engine, "sell", order, f"user {order}")
    made.fate.commits = 0
    return made


def outcomes(made: Wall) -> Counter[tuple[str, str]]:
    """(effect, type) of the events that say what came of an attempt."""
    found: Counter[tuple[str, str]] = Counter()
    for _, entry in feed_pages(made.store):
        if entry.type in (EFFECT_DONE, EFFECT_PARKED, EFFECT_RETRIED):
            found[unpack_event(entry).event.properties["effect"], entry.type] += 1
    return found


@pytest.mark.parametrize("through", [0, 1, 1_000])
def test_killed_at_any_commit_each_outcome_has_its_attempt_and_each_order_arrives(through: int) -> None:
    at = 0
    while at < COMMITS_MAX:
        at += 1
        made = wall()
        made.fate.killed_at, made.fate.through = at, through
        is_over = False
        with suppress(Killed):
            made.live(made.engine(), "first")
            is_over = True
        made.fate.killed_at = -1
        made.live(made.engine(), "second")
        attempts = list(made.engine().delivery.attempts("default"))
        assert outcomes(made) == Counter((each.pending.id, each.outcome) for each in attempts), at
        assert {id for id, type in outcomes(made) if type == EFFECT_DONE} == {each.pending.id for each in attempts}
        assert len({each.pending.id for each in attempts}) == len(ORDERS)
        rows = {item.key.sort for item in scan_pages(made.store, ATTEMPT_TIME)}
        assert rows == {item.key.sort for item in scan_pages(made.store, ATTEMPT)}
        assert list(scan_pages(made.store, OUTBOX)) == []
        if is_over:
            break
    assert 8 < at < COMMITS_MAX
