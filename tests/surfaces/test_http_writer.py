"""The writer: what waits together is committed together, nobody waits for ever, one's fault is not another's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from tests.surfaces.conftest import NOW
from threadline.engine.engine import Engine
from threadline.engine.recording.validation import Checked, ValidatedEvent
from threadline.kernel.errors import InvalidValue, StoreFull, Unavailable
from threadline.kernel.event import Event, Identifier, Receipt
from threadline.surfaces.http.events.writer import (
    LARGE_BYTES,
    SHARE_EVENTS,
    SHARE_EVENTS_MIN,
    SHARE_OF_OTHERS,
    SHARE_SECONDS,
    Writer,
)


def event(key: str, user: str = "1") -> Event:
    return Event(type="click", identifiers=(Identifier("user_id", user),), occurred_at=NOW, key=key)


class Recording:
    """An engine that notes the size of each group and can be held back or made to fail."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.recorder = self
        self.groups: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.errors: dict[str, Exception] = {}
        self.cpu_seconds = 0.0
        """What all groups have taken of the processor, as the writer is told: nothing, or else a test says so."""

    def checked(self, keys: Sequence[str], user: str = "1") -> list[Checked]:
        return self.engine.recorder.check([event(key, user) for key in keys])

    def record_checked(self, checked: Sequence[Checked]) -> list[Receipt]:
        self.gate.wait(60)
        names = [each.request.event.key for each in checked]
        self.groups.append(names)
        for name in names:
            if name in self.errors:
                raise self.errors[name]
        return self.engine.recorder.record_checked(checked)

    def likely_person(self, one: ValidatedEvent) -> str:
        return self.engine.recorder.likely_person(one)


def writer(engine: Recording, commit_events_max: int = 300, queue_events_max: int = 1_000) -> Writer:
    return Writer(
        engine,  # type: ignore[arg-type]  # it records
        commit_events_max=commit_events_max,
        queue_events_max=queue_events_max,
        cpu_seconds=lambda: engine.cpu_seconds,
    )


async def started(
    recording: Recording, made: Writer, keys: Sequence[Sequence[str]], user: str = "1"
) -> list[asyncio.Task[list[Receipt]]]:
    """One request for each list of keys; all of them are waiting when this returns."""
    tasks = [asyncio.create_task(made.record(recording.checked(each, user))) for each in keys]
    await asyncio.sleep(0.01)
    return tasks


def test_what_waits_while_one_group_commits_is_the_next_group(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording)
        recording.gate.clear()
        tasks = await started(recording, made, [["first"]])
        for i in range(50):
            tasks += await started(recording, made, [[f"k{i}"]], user=f"u{i}")
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
        tasks = await started(recording, made, [["gate"], [f"large{i}" for i in range(35)], ["small"]])
        recording.gate.set()
        large, small = await tasks[1], await tasks[2]
        assert [each.status for each in large] == ["accepted"] * 35
        assert [each.id for each in large] == [
            each.id for each in engine.recorder.record([event(f"large{i}") for i in range(35)])
        ]
        assert small[0].status == "accepted"
        assert all(len(group) <= 10 for group in recording.groups)
        place = next(i for i, group in enumerate(recording.groups) if "small" in group)
        assert place < len(recording.groups) - 1, "the small one did not wait for all of the large one"
        await made.close()

    asyncio.run(run())


def test_a_person_whose_events_are_laborious_has_a_smaller_share_of_the_next_group(engine: Engine) -> None:
    class Laborious(Recording):
        def record_checked(self, checked: Sequence[Checked]) -> list[Receipt]:
            self.cpu_seconds += len(checked) * SHARE_SECONDS
            return super().record_checked(checked)

    async def run() -> None:
        recording = Laborious(engine)
        made = writer(recording)
        receipts = await made.record(recording.checked([f"k{i}" for i in range(2 * SHARE_EVENTS)]))
        assert {each.status for each in receipts} == {"accepted"}
        assert len(recording.groups[0]) == SHARE_EVENTS
        assert {len(group) for group in recording.groups[1:]} == {SHARE_EVENTS_MIN}
        await made.close()

    asyncio.run(run())


def test_too_much_waiting_is_refused_at_once(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording, queue_events_max=20)
        recording.gate.clear()
        tasks = await started(recording, made, [[f"a{i}" for i in range(15)]])
        with pytest.raises(Unavailable, match="15 events wait"):
            await made.record(recording.checked([f"b{i}" for i in range(6)]))
        recording.gate.set()
        assert len(await tasks[0]) == 15
        assert len(await made.record(recording.checked([f"c{i}" for i in range(30)]))) == 30, (
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
        tasks = await started(recording, made, [["gate"], ["k1"], ["k2"]])
        recording.gate.set()
        results = await asyncio.gather(*tasks[1:], return_exceptions=True)
        assert [type(each) for each in results] == [StoreFull, StoreFull]
        assert made.queued == 0
        recording.errors.clear()
        assert (await made.record(recording.checked(["k1"])))[0].status == "accepted"
        await made.close()

    asyncio.run(run())


def test_a_fault_in_one_request_leaves_its_neighbours_alone(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        recording.errors["bad"] = RuntimeError("a bug")
        made = writer(recording)
        recording.gate.clear()
        tasks = await started(recording, made, [["gate"], ["good1"], ["bad"], ["good2"]])
        recording.gate.set()
        results = await asyncio.gather(*tasks[1:], return_exceptions=True)
        assert isinstance(results[1], RuntimeError)
        assert [each[0].status for each in (results[0], results[2]) if isinstance(each, list)] == [
            "accepted",
            "accepted",
        ]
        await made.close()

    asyncio.run(run())


def test_an_error_of_one_caller_reaches_that_caller_alone(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        recording = Recording(engine)
        recording.errors["bad"] = InvalidValue("not allowed")
        made = writer(recording)
        recording.gate.clear()
        tasks = await started(recording, made, [["gate"], ["good1"], ["bad"], ["good2"]])
        recording.gate.set()
        first, refused, last = await asyncio.gather(*tasks[1:], return_exceptions=True)
        assert isinstance(refused, InvalidValue)
        for receipts in (first, last):
            assert not isinstance(receipts, BaseException)
            assert [each.status for each in receipts] == ["accepted"]
        await made.close()

    asyncio.run(run())
    assert not caplog.records, "a caller's mistake is no fault of the server"


def test_one_person_has_a_share_of_a_group_and_the_rest_goes_to_later_groups_in_order(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording)
        recording.gate.clear()
        tasks = await started(recording, made, [["gate"]])
        backlog = [[f"a{request}-{i}" for i in range(100)] for request in range(3)]
        tasks += await started(recording, made, backlog, user="loud")
        tasks += await started(recording, made, [[f"b{i}"] for i in range(5)], user="quiet")
        recording.gate.set()
        await asyncio.gather(*tasks)
        assert [key for key in recording.groups[1] if key[0] == "b"] == [f"b{i}" for i in range(5)]
        for group in recording.groups:
            assert sum(key[0] == "a" for key in group) <= SHARE_EVENTS
        order = [key for group in recording.groups for key in group]
        for request in backlog:
            assert [key for key in order if key in set(request)] == request
        await made.close()

    asyncio.run(run())


def test_where_others_wait_for_more_one_person_has_an_eighth_of_it(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording)
        recording.gate.clear()
        tasks = await started(recording, made, [["gate"]])
        tasks += await started(recording, made, [[f"a{i}" for i in range(60)]], user="loud")
        for user in range(12):
            tasks += await started(recording, made, [[f"b{user}-{i}" for i in range(20)]], user=f"quiet {user}")
        recording.gate.set()
        await asyncio.gather(*tasks)
        loud = [sum(key[0] == "a" for key in group) for group in recording.groups[1:]]
        assert loud == [240 // SHARE_OF_OTHERS, SHARE_EVENTS, 10], "what is left waits for nobody else"
        assert len(recording.groups[1]) == 240 + 30
        await made.close()

    asyncio.run(run())


def test_large_events_use_up_a_share_sooner(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording)
        large = [
            Event(
                type="click",
                identifiers=(Identifier("user_id", "1"),),
                occurred_at=NOW,
                key=f"k{i}",
                properties={"text": "x" * 4 * LARGE_BYTES},
            )
            for i in range(10)
        ]
        await made.record(engine.recorder.check(large))
        assert [len(group) for group in recording.groups] == [4, 4, 2]
        await made.close()

    asyncio.run(run())


def test_devices_of_one_person_share_one_share(engine: Engine) -> None:
    def devices(number: int) -> Event:
        both = (Identifier("user_id", "ada"), Identifier("anonymous_id", f"d{number}"))
        return Event(type="click", identifiers=both, occurred_at=NOW, key=f"joined {number}")

    async def run() -> None:
        engine.recorder.record([devices(number) for number in range(3)])
        recording = Recording(engine)
        made = writer(recording)
        alone = [
            Event(type="click", identifiers=(Identifier("anonymous_id", f"d{i % 3}"),), occurred_at=NOW, key=f"{i}")
            for i in range(2 * SHARE_EVENTS)
        ]
        await made.record(engine.recorder.check(alone))
        assert [len(group) for group in recording.groups] == [SHARE_EVENTS, SHARE_EVENTS]
        await made.close()

    asyncio.run(run())


def test_a_request_whose_client_left_stops_nobody(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording, commit_events_max=2)
        recording.gate.clear()
        tasks = await started(recording, made, [["gate"], ["a1", "a2", "a3", "a4", "a5"], ["b"]])
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
        tasks = await started(recording, made, [[f"k{i}"] for i in range(5)])
        threading.Timer(0.05, recording.gate.set).start()
        await made.close()
        assert all(task.done() or not task.cancelled() for task in tasks)
        assert [each[0].status for each in await asyncio.gather(*tasks)] == ["accepted"] * 5

    asyncio.run(run())


def test_whoever_waits_is_answered_if_no_group_can_be_made(engine: Engine) -> None:
    async def run() -> None:
        recording = Recording(engine)
        made = writer(recording)
        recording.likely_person = None  # type: ignore[assignment,method-assign]  # whoever asks fails
        tasks = await started(recording, made, [["first"], ["second"]])
        answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
        assert [type(answer) for answer in answers] == [TypeError, TypeError]
        del recording.likely_person
        assert (await made.record(recording.checked(["third"])))[0].status == "accepted"
        await made.close()

    asyncio.run(run())
