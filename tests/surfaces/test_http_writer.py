"""The writer: what waits together is committed together, nobody waits for ever, one's fault is not another's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import msgspec
import pytest

from tests.surfaces.conftest import NOW
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidValue, StoreFull, Unavailable
from threadline.kernel.event import Event, Identifier, Receipt
from threadline.surfaces.http.writer import Writer


def event(key: str) -> Event:
    return Event(type="click", identifiers=(Identifier("user_id", "1"),), occurred_at=NOW, key=key)


class Recording:
    """An engine that notes the size of each group and can be held back or made to fail."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.groups: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.errors: dict[str, Exception] = {}

    def record(self, events: Sequence[Event]) -> list[Receipt]:
        self.gate.wait(60)
        self.groups.append([each.key for each in events])
        for each in events:
            if each.key in self.errors:
                raise self.errors[each.key]
        return self.engine.record(events)


def writer(engine: Recording, commit_events_max: int = 300, queue_events_max: int = 1_000) -> Writer:
    return Writer(engine, commit_events_max=commit_events_max, queue_events_max=queue_events_max)  # type: ignore[arg-type]  # it records


async def started(made: Writer, keys: Sequence[Sequence[str]]) -> list[asyncio.Task[list[Receipt]]]:
    """One request for each list of keys; all of them are waiting when this returns."""
    tasks = [asyncio.create_task(made.record([event(key) for key in each])) for each in keys]
    await asyncio.sleep(0.05)
    return tasks


def test_what_waits_while_one_group_commits_is_the_next_group(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording)
        recording.gate.clear()
        tasks = await started(made, [["first"]])
        tasks += await started(made, [[f"k{i}"] for i in range(50)])
        recording.gate.set()
        receipts = await asyncio.gather(*tasks)
        assert [len(group) for group in recording.groups] == [1, 50]
        assert {each[0].status for each in receipts} == {"accepted"}
        assert made.queued == 0
        await made.close()

    asyncio.run(run())


def test_a_large_request_takes_turns_with_small_ones(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording, commit_events_max=10)
        recording.gate.clear()
        tasks = await started(made, [["gate"], [f"large{i}" for i in range(35)], ["small"]])
        recording.gate.set()
        large, small = await tasks[1], await tasks[2]
        assert [each.status for each in large] == ["accepted"] * 35
        assert [each.id for each in large] == [
            each.id for each in engine.record([event(f"large{i}") for i in range(35)])
        ]
        assert small[0].status == "accepted"
        assert all(len(group) <= 10 for group in recording.groups)
        place = next(i for i, group in enumerate(recording.groups) if "small" in group)
        assert place < len(recording.groups) - 1, "the small one did not wait for all of the large one"
        await made.close()

    asyncio.run(run())


def test_too_much_waiting_is_refused_at_once(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording, queue_events_max=20)
        recording.gate.clear()
        tasks = await started(made, [[f"a{i}" for i in range(15)]])
        with pytest.raises(Unavailable, match="15 events wait"):
            await made.record([event(f"b{i}") for i in range(6)])
        recording.gate.set()
        assert len(await tasks[0]) == 15
        assert len(await made.record([event(f"c{i}") for i in range(30)])) == 30, (
            "one request always fits an empty queue"
        )
        await made.close()

    asyncio.run(run())


def test_a_store_that_cannot_write_fails_all_that_waited_and_nothing_later(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        recording.errors["k1"] = StoreFull("full")
        made = writer(recording)
        recording.gate.clear()
        tasks = await started(made, [["gate"], ["k1"], ["k2"]])
        recording.gate.set()
        results = await asyncio.gather(*tasks[1:], return_exceptions=True)
        assert [type(each) for each in results] == [StoreFull, StoreFull]
        assert made.queued == 0
        recording.errors.clear()
        assert (await made.record([event("k1")]))[0].status == "accepted"
        await made.close()

    asyncio.run(run())


def test_a_fault_in_one_request_leaves_its_neighbours_alone(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        recording.errors["bad"] = RuntimeError("a bug")
        made = writer(recording)
        recording.gate.clear()
        tasks = await started(made, [["gate"], ["good1"], ["bad"], ["good2"]])
        recording.gate.set()
        results = await asyncio.gather(*tasks[1:], return_exceptions=True)
        assert isinstance(results[1], RuntimeError)
        assert [each[0].status for each in (results[0], results[2]) if isinstance(each, list)] == [
            "accepted",
            "accepted",
        ]
        await made.close()

    asyncio.run(run())


def test_what_one_caller_may_not_do_is_told_to_that_caller_alone(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording)
        recording.gate.clear()
        tasks = await started(made, [["gate"], ["good1"]])
        elsewhere = msgspec.structs.replace(event("bad"), workspace="team/a")
        tasks.append(asyncio.create_task(made.record([elsewhere])))
        tasks += await started(made, [["good2"]])
        recording.gate.set()
        first, refused, last = await asyncio.gather(*tasks[1:], return_exceptions=True)
        assert isinstance(refused, InvalidValue)
        for receipts in (first, last):
            assert not isinstance(receipts, BaseException)
            assert [each.status for each in receipts] == ["accepted"]
        await made.close()

    asyncio.run(run())
    assert not caplog.records, "the caller's mistake is no fault of ours"


def test_a_request_whose_client_left_stops_nobody(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording, commit_events_max=2)
        recording.gate.clear()
        tasks = await started(made, [["gate"], ["a1", "a2", "a3", "a4", "a5"], ["b"]])
        tasks[1].cancel()
        recording.gate.set()
        assert (await tasks[2])[0].status == "accepted"
        await made.close()
        assert made.queued == 0

    asyncio.run(run())


def test_closing_waits_for_what_was_taken(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording, commit_events_max=1)
        recording.gate.clear()
        tasks = await started(made, [[f"k{i}"] for i in range(5)])
        threading.Timer(0.05, recording.gate.set).start()
        await made.close()
        assert all(task.done() or not task.cancelled() for task in tasks)
        assert [each[0].status for each in await asyncio.gather(*tasks)] == ["accepted"] * 5

    asyncio.run(run())
