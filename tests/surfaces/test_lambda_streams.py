"""Wake-ups by a table's stream: whatever comes by it, each consumer of the feed gets every event, in order."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.test_dispatch import Clock
from tests.engine.test_feed_consumer import Got
from tests.servers.dynamodb import ministack
from tests.stores.dynamodb_stage import Gate, opening, spy
from tests.surfaces.operations_stage import record
from threadline.app import open_engine
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.feed_consumer import FeedConsumer, FeedWorker
from threadline.engine.delivery.leases import Leases
from threadline.engine.engine import Engine
from threadline.kernel.store import Store, feed_pages
from threadline.kernel.time import MINUTE
from threadline.settings import Settings
from threadline.surfaces.lambda_.schedules import WakeUps
from threadline.surfaces.lambda_.streams import follow
from threadline.testing.store_cases import entry
from threadline.testing.store_cases import record as commit

DONE: dict[str, Any] = {"batchItemFailures": []}
EVENT = {"Records": [{"dynamodb": {"SequenceNumber": "7"}}, {"dynamodb": {"SequenceNumber": "8"}}]}
FAILED = {"batchItemFailures": [{"itemIdentifier": "7"}]}


class _Wakes(WakeUps):
    """Notes when it is to be woken."""

    def __init__(self) -> None:
        super().__init__(Settings(), lambda: None)
        self.instants: list[int] = []

    def wake_at(self, at: int, now: int) -> None:
        self.instants.append(at)


def function(engine: Engine, got: Got, owner: str, store: Store | None = None) -> Any:
    """The runtime of a new process with one consumer."""
    store = store or engine.store
    leases = Leases(store, engine.clock, owner)
    worker = FeedWorker(FeedConsumer(store, engine.clock, got, leases))
    here = SimpleNamespace(store=store, clock=engine.clock, catalogue=engine.catalogue)
    return SimpleNamespace(is_new=True, engine=here, dispatcher=Dispatcher(engine, {}, owner, background=[worker]))


def until(seconds: float = 20) -> float:
    return time.monotonic() + seconds


def got_all(got: Got, store: Store) -> bool:
    return got.ids == {number: each.entry.id for number, each in enumerate(feed_pages(store), 1)}


@given(st.lists(st.sampled_from(["record", "wake", "both", "new process"]), max_size=12), st.integers(0, 2))
def test_every_event_comes_once_and_in_order_whichever_wake_ups_come_twice_late_or_never(
    script: list[str], last: int
) -> None:
    engine, got = open_engine("memory:", Settings(), Clock()), Got()
    runtimes = [function(engine, got, name) for name in ("one", "two")]
    for number, step in enumerate(script):
        if step == "record":
            record(engine, key=str(number))
        elif step == "wake":
            assert follow(runtimes[0], _Wakes(), EVENT, until()) == DONE
            assert got_all(got, engine.store)
        elif step == "both":
            at_once = [threading.Thread(target=follow, args=(each, _Wakes(), EVENT, until())) for each in runtimes]
            for each in at_once:
                each.start()
            for each in at_once:
                each.join()
            assert got_all(got, engine.store), "when both have answered, nothing is left to be woken for"
        else:
            runtimes[number % 2] = function(engine, got, f"new {number}")
    record(engine, key="last")
    follow(runtimes[last % 2], _Wakes(), {"Records": []}, until())
    assert got_all(got, engine.store)
    assert sum(len(page.entries) for page in got.pages) == len(got.ids), "none came twice: nobody died"
    engine.close()


def test_a_page_that_fails_does_not_block_the_shard_and_is_tried_again_at_its_time() -> None:
    clock = Clock()
    engine, got, wakes = open_engine("memory:", Settings(), clock), Got(), _Wakes()
    got.failing = True
    record(engine)
    runtime = function(engine, got, "one")
    assert follow(runtime, wakes, EVENT, until()) == DONE
    [retry_at] = set(wakes.instants)
    assert clock.now < retry_at <= clock.now + MINUTE
    got.failing, clock.now = False, retry_at
    assert follow(runtime, wakes, EVENT, until()) == DONE
    assert got_all(got, engine.store)


def test_while_another_process_has_the_consumer_the_batch_is_not_done() -> None:
    engine, got = open_engine("memory:", Settings(), Clock()), Got()
    record(engine)
    other = Leases(engine.store, engine.clock, "other")
    assert other.acquire("feed_cursor/test") is not None
    assert follow(function(engine, got, "one"), _Wakes(), EVENT, until(0.5)) == FAILED
    other.let_go()
    assert follow(function(engine, got, "one"), _Wakes(), EVENT, until()) == DONE
    assert got_all(got, engine.store)


def test_an_event_that_is_behind_a_writer_at_work_is_waited_for_or_asked_for_again(tmp_path: Path) -> None:
    # The stream brings the second event at once; the feed has it only when the first one is settled.
    url, got = ministack().made(tmp_path), Got()
    engine = open_engine("memory:", Settings(), Clock())
    with opening(url) as stores:
        slow, other, reader = stores(), stores(), stores()
        gate = Gate("TransactWriteItems")
        spy(slow).before = gate
        task = threading.Thread(target=commit, args=(slow, entry(1)))
        task.start()
        assert gate.reached.wait(60)
        commit(other, entry(2, "b" * 32))
        runtime = function(engine, got, "one", reader)
        assert follow(runtime, _Wakes(), EVENT, until(0.6)) == FAILED
        threading.Timer(0.3, gate.opened.set).start()
        assert follow(runtime, _Wakes(), EVENT, until()) == DONE
        task.join(60)
        assert list(got.ids.values()) == [entry(1).id, entry(2, "b" * 32).id]
