"""What leaves the log leaves its sum behind on every store as in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.laws.test_openings import WHO, Shop, history
from tests.servers.dynamodb import ministack
from tests.servers.postgres import server, store_in
from threadline.kernel.store import Store
from threadline.kernel.time import DAY
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore

OPENERS: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda folder: SqliteStore(folder / "shop.db", tail_entries_max=20),
    "postgres": lambda folder: store_in(server("18"), folder),
    "dynamodb": lambda folder: ministack().open(folder),
}


@pytest.mark.parametrize("kind", OPENERS)
def test_states_are_the_same_with_and_without_expiry(kind: str, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    plain, expiring = Shop(MemoryStore()), Shop(OPENERS[kind](tmp_path))
    for number in range(2):
        events = history(random, number, plain.now)
        types = random.sample(sorted({event.type for event in events}), 8)
        for shop in (plain, expiring):
            shop.engine.recorder.record(events)
            if number:
                shop.engine.identity.merge("default", *WHO, request="join", force=True)
        assert sum(expiring.expire(who, types, expiring.now - 30 * DAY) for who in WHO) > 0
        for who in WHO:
            assert expiring.states(who) == expiring.states_at(who, expiring.now + 1) == plain.states(who)
    expiring.undamaged()
    assert expiring.store.integrity() == []
    expiring.store.close()
