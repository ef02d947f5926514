"""Law: an event is recorded once, for ever; another payload under its key is kept beside it and changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.staging import Engine, LaggingStore, event
from threadline.kernel.event import Event, Receipt, event_id
from threadline.kernel.time import HOUR
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing import scenarios

WHO = {"user_id": "u"}


def told_at_once(on: Engine, calls: list[list[Event]]) -> list[list[Receipt]]:
    """What each of several threads is answered when they tell these calls at the same time."""
    barrier = threading.Barrier(len(calls))
    answers: dict[int, list[Receipt]] = {}

    def work(number: int) -> None:
        barrier.wait()
        answers[number] = on.recorder.record(calls[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[number] for number in range(len(calls))]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_same_event_from_several_threads_at_once_is_recorded_once(kind: str, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "thread.db")
    on = staging.engine(store)
    for attempt in range(25):
        same = [event("page", WHO, f"{attempt}-{n}") for n in range(5)]
        answers = told_at_once(on, [same, same[::-1], same])
        for one in same:
            id = event_id(one.workspace, one.source, one.key)
            found = [receipt.status for answer in answers for receipt in answer if receipt.id == id]
            assert sorted(found) == ["accepted", "duplicate", "duplicate"]
    assert on.reader.person("default", "user_id:u").position == 125
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)
    on.close()


def test_two_engines_at_once_record_it_once() -> None:
    store = MemoryStore()
    engines = [staging.engine(store) for _ in range(3)]
    for attempt in range(30):
        same = [event("page", {"user_id": f"u{attempt}"}, f"{attempt}-{n}") for n in range(3)]
        barrier = threading.Barrier(len(engines))
        answers: list[list[str]] = []

        def work(
            on: Engine, same: list[Event] = same, into: list[list[str]] = answers, at: threading.Barrier = barrier
        ) -> None:
            at.wait()
            into.append(staging.statuses(on.recorder.record(same)))

        threads = [threading.Thread(target=work, args=(on,)) for on in engines]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [sorted(each) for each in zip(*answers, strict=True)] == [["accepted", "duplicate", "duplicate"]] * 3
    staging.assert_log_is_whole(engines[0])
    staging.assert_refold_changes_nothing(engines[0])


@pytest.mark.parametrize("others", [1, 2, 3])
def test_a_call_of_several_batches_builds_on_nothing_that_was_refused(others: int) -> None:
    store = MemoryStore()
    on, other = staging.engine(store), staging.engine(store)
    on.recorder.record([event("page", WHO, "first")])
    # The other engine takes versions that the first one's batches of this person would have taken.
    for number in range(others):
        other.recorder.record([event("page", WHO, f"other-{number}")])
    receipts = on.recorder.record(
        [event("purchase_completed", WHO, f"{n}", properties={"total": 1}) for n in range(40)]
    )
    assert staging.statuses(receipts) == ["accepted"] * 40
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)


def test_twice_in_one_call() -> None:
    on = staging.engine()
    one, other = event("page", WHO, "k"), event("page", WHO, "k", properties={"other": True})
    receipts = on.recorder.record([one, one, other, one])
    assert staging.statuses(receipts) == ["accepted", "duplicate", "conflict", "duplicate"]
    assert len({receipt.id for receipt in receipts}) == 1
    assert on.reader.person("default", "user_id:u").position == 1


@pytest.mark.parametrize(
    "other",
    [
        event("page", WHO, "k", properties={"n": 2}),
        event("page", WHO, "k", properties={"n": 1}, context={"ip": "::1"}),
        event("purchase_completed", WHO, "k", properties={"n": 1}),
        event("page", {"user_id": "v"}, "k", properties={"n": 1}),
    ],
    ids=["properties", "context", "type", "identifiers"],
)
def test_another_payload_under_the_same_key_is_a_conflict_and_both_are_kept(other: Event) -> None:
    on = staging.engine(clock=staging.ticking())
    first = event("page", WHO, "k", properties={"n": 1})
    [accepted] = on.recorder.record([first])
    before = staging.whole(on)
    for _ in range(3):
        [receipt] = on.recorder.record([other])
        assert (receipt.status, receipt.id) == ("conflict", accepted.id)
    assert staging.whole(on) == before
    [(_, entry)] = on.rejected.page("default", limit=10)
    assert (entry.code, entry.event_id) == ("conflict", accepted.id)
    assert (entry.payload["type"], entry.payload["properties"]) == (other.type, other.properties)
    assert on.log.event("default", accepted.id).event.properties == {"n": 1}
    assert staging.statuses(on.recorder.record([first])) == ["duplicate"]


def encoded_by(payload: object, spell: Callable[[float], float | int]) -> object:
    """The payload with every number spelled by another encoder."""
    if isinstance(payload, dict):
        return {name: encoded_by(value, spell) for name, value in payload.items()}
    if isinstance(payload, list):
        return [encoded_by(value, spell) for value in payload]
    return spell(payload) if type(payload) in (int, float) else payload


whole_numbers = st.integers(-(2**53), 2**53) | st.just(-0.0) | st.floats(-1e15, 1e15).map(round).map(float)
payloads = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        whole_numbers | st.booleans() | st.text(max_size=2),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    ),
)


@given(payloads, st.booleans())
def test_a_retry_by_another_encoder_of_numbers_is_a_duplicate(payload: dict[str, Any], at_once: bool) -> None:
    on = staging.engine()
    spellings = [encoded_by({"total": -0.0, **payload}, spell) for spell in (lambda n: n, int, float)]
    events = [
        event("page", WHO, "k", properties={"all": given_}, context={"all": given_}, source_type="external")
        for given_ in spellings
    ]
    calls = [events] if at_once else [[each] for each in events]
    receipts = [receipt for call in calls for receipt in on.recorder.record(call)]
    assert staging.statuses(receipts) == ["accepted", "duplicate", "duplicate"]
    assert on.recorder.fresh(on.recorder.check(events)) == []
    assert on.rejected.page("default", limit=10) == []


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("first", "other"),
    [(1, True), (0, False), (1, "1"), (2**53, 2**53 + 1), (2**53 + 1, 2.0**53), (10, 10.5), (0, None)],
)
def test_numbers_that_are_not_equal_stay_a_conflict(first: object, other: object, at_once: bool) -> None:
    on = staging.engine()
    one, two = (event("page", WHO, "k", properties={"n": value}) for value in (first, other))
    receipts = on.recorder.record([one, two]) if at_once else [*on.recorder.record([one]), *on.recorder.record([two])]
    assert staging.statuses(receipts) == ["accepted", "conflict"]


def test_transport_may_differ_in_a_retry() -> None:
    on = staging.engine(clock=staging.ticking())
    first = event("page", WHO, "k", properties={"a": 1, "b": 2}, received_at=5)
    again = event("page", {"user_id": " u "}, "k", properties={"b": 2, "a": 1}, received_at=9)
    assert staging.statuses(on.recorder.record([first, again])) == ["accepted", "duplicate"]


def test_a_retry_of_a_time_too_far_ahead_is_the_same_event() -> None:
    now = [scenarios.NOW]
    on = staging.engine(clock=lambda: now[0])
    ahead = event("page", WHO, "k", scenarios.NOW + 25 * HOUR)
    assert staging.statuses(on.recorder.record([ahead])) == ["accepted"]
    now[0] += 2 * HOUR  # by now the same time is close enough to be believed
    assert staging.statuses(on.recorder.record([ahead])) == ["duplicate"]
    recorded = on.reader.events(on.reader.person("default", "user_id:u"))[0]
    assert recorded.event.occurred_at == scenarios.NOW
    assert "clamped" in recorded.event.marks


def test_keys_are_apart_by_source_and_by_workspace() -> None:
    on = staging.engine()
    told = [event("page", WHO, "k", source=s, workspace=w) for s in ("a", "b", "ab") for w in ("x", "y", "xa")]
    assert staging.statuses(on.recorder.record(told)) == ["accepted"] * 9


@given(scenarios.histories(), scenarios.randoms)
def test_a_store_that_need_not_be_certain_is_answered_as_one_that_is(history: list[Event], random: Random) -> None:
    calls = scenarios.telling(scenarios.shuffled, random, history)
    calls.append([msgspec.structs.replace(each, properties={"other": 1}) for each in calls[0][:3]])
    plain, lagging = (staging.engine(store) for store in (MemoryStore(), LaggingStore(MemoryStore(), random)))
    for call in calls:
        told, wanted = lagging.recorder.record(call), plain.recorder.record(call)
        assert [(each.status, each.id) for each in told] == [(each.status, each.id) for each in wanted]
    assert staging.timeless(lagging) == staging.timeless(plain)
    staging.assert_log_is_whole(lagging)


@pytest.mark.parametrize("seed", range(8))
def test_what_may_be_a_duplicate_is_not_rejected(seed: int) -> None:
    on = staging.engine(LaggingStore(MemoryStore(), Random(seed)))
    first = event("page", WHO, "k")
    assert staging.statuses(on.recorder.record([first], expected=0)) == ["accepted"]
    for _ in range(3):
        assert staging.statuses(on.recorder.record([first], expected=0)) == ["duplicate"]
        assert staging.statuses(on.recorder.record([event("page", WHO, "new")], expected=0)) == ["position_conflict"]


@given(scenarios.histories(), scenarios.randoms)
def test_everything_told_again_changes_nothing(history: list[Event], random: Random) -> None:
    on = staging.tell(MemoryStore(), [history])
    before = staging.whole(on)
    for call in scenarios.telling(scenarios.shuffled, random, history):
        assert set(staging.statuses(staging.engine(on.store).recorder.record(call))) == {"duplicate"}
    assert staging.whole(on) == before
