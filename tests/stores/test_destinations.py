"""Queues on every store: the port is all they need, so what holds in memory holds there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.test_destinations import (  # noqa: F401 - these are run here once more, on these stores
    clock,
    engine_on,
    test_a_place_that_fails_is_left_alone_and_then_asked_by_one_effect,
    test_another_process_goes_by_the_rest_of_the_first,
    test_who_is_gone_is_called_no_more_until_it_is_started_again,
)
from tests.engine.test_dispatch import Clock
from tests.servers.dynamodb import ministack
from tests.servers.postgres import server, store_in
from threadline.engine.engine import Engine
from threadline.kernel.sender import Queue
from threadline.kernel.store import Store
from threadline.kernel.time import DAY, SECOND
from threadline.stores.sqlite.store import SqliteStore


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Engine]:  # noqa: F811 - the fixture
    """The engine of `tests/engine/test_destinations.py`, on a file, a database and a table."""
    store: Store
    if request.param == "sqlite":
        store = SqliteStore(str(tmp_path / "threadline.db"))
    elif request.param == "postgres":
        store = store_in(server("18"), tmp_path)
    else:
        store = ministack().open(tmp_path)
    yield engine_on(store, clock, Queue("crm", give_up_seconds=DAY // SECOND, failures_max=3))
    store.close()
