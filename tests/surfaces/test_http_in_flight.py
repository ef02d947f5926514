"""What clients may take of a server in memory: counted as requests come and answers are taken, and never twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.surfaces.conftest import Keys, client_of
from tests.surfaces.operations_stage import record
from threadline.engine.engine import Engine
from threadline.settings import Settings
from threadline.surfaces.http.addresses.following import _lines
from threadline.surfaces.http.answers import descriptors, in_flight
from threadline.surfaces.http.answers.descriptors import Room, room
from threadline.surfaces.http.answers.in_flight import SMALL_ANSWER_BYTES, InFlight, Share
from threadline.surfaces.http.answers.problem import NotNow


class Holder:
    """A connection that counts what becomes of it."""

    def __init__(self) -> None:
        self.arriving = True
        self.refused: list[NotNow] = []
        self.aborted = 0

    def is_arriving(self) -> bool:
        return self.arriving

    def give_way(self, error: NotNow) -> None:
        self.refused.append(error)

    def abort(self) -> None:
        self.aborted += 1


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_000.0]
    monkeypatch.setattr(in_flight.time, "monotonic", lambda: now[0])
    return now


def shares(whole: InFlight, count: int) -> list[tuple[Holder, Share]]:
    holders = [Holder() for _ in range(count)]
    return [(holder, whole.share(holder)) for holder in holders]


def test_the_largest_request_that_is_still_coming_gives_way_to_a_small_one() -> None:
    whole = InFlight(request_bytes_max=5_000)
    (small, one), (large, two), (done, three), (new, four) = shares(whole, 4)
    for share, size in ((one, 100), (two, 500), (three, 600)):
        assert share.add(size)
    done.arriving = False
    assert four.add(60)
    assert (len(small.refused), len(large.refused), len(done.refused), len(new.refused)) == (0, 1, 0, 0)
    assert (whole.unknown_bytes, whole.request_bytes) == (760, 760)
    assert not four.add(1_000), "it is the largest itself now"
    assert [len(each.refused) for each in (small, done, new)] == [0, 0, 1]


def test_a_request_with_a_credential_is_not_of_the_small_share() -> None:
    whole = InFlight(request_bytes_max=4_000)
    (known, one), (_, two) = shares(whole, 2)
    one.add(900)
    one.know()
    assert one.add(2_000)
    assert two.add(900)
    assert not two.add(200), "1,100 of 1,000 bytes"
    assert known.refused == []
    assert two.add(1_000)
    one.add(200)
    assert (whole.request_bytes, len(known.refused)) == (1_000, 1), "all together had 4,100 of 4,000 bytes"


sizes = st.integers(0, 3_000)
steps = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["add", "know", "answered", "answer", "taken", "end", "rest"]), sizes),
    min_size=12,
)


@given(steps)
def test_the_counts_are_the_sums_over_connections_and_end_at_nothing(script: list[tuple[int, str, int]]) -> None:
    whole = InFlight(request_bytes_max=8_000, answer_bytes_max=200_000)
    made = shares(whole, 3)
    ended = set()
    for which, step, size in script:
        share = made[which][1]
        if step == "add":
            share.add(size)
        elif step == "answer":
            share.hold_answer(SMALL_ANSWER_BYTES + size)
        elif step == "answered":
            share.answered(min(size, share.request_bytes))
        else:
            getattr(share, step)()
            ended |= {which} if step == "end" else set()
        open_ones = [share for which, (_, share) in enumerate(made) if which not in ended]
        assert whole.request_bytes == sum(each.request_bytes for each in open_ones) <= 8_000
        assert whole.unknown_bytes == sum(each.request_bytes for each in open_ones if not each.is_known)
        assert whole.answer_bytes == sum(each.answer_bytes for each in open_ones) <= 200_000
        assert whole.connections == len(open_ones)
        assert set(whole.waiting) == {each for each in open_ones if each.answer_bytes}
    for _, share in made:
        share.end()
    assert (whole.request_bytes, whole.unknown_bytes, whole.answer_bytes, whole.connections) == (0, 0, 0, 0)
    assert not whole.idle
    assert not whole.over
    assert not whole.waiting


def test_an_answer_that_waits_for_its_reader_for_long_gives_way(seconds: list[float]) -> None:
    whole = InFlight(answer_bytes_max=300_000)
    (slow, one), (late, two), (_, three) = shares(whole, 3)
    assert one.hold_answer(150_000)
    seconds[0] += 3
    assert two.hold_answer(150_000)
    assert not three.hold_answer(150_000), "both have had less than five seconds"
    seconds[0] += 3
    assert three.hold_answer(150_000)
    assert (slow.aborted, late.aborted) == (1, 0)
    assert three.hold_answer(SMALL_ANSWER_BYTES), "small ones always pass"
    two.taken()


def test_one_answer_larger_than_all_the_memory_is_answered() -> None:
    whole = InFlight(answer_bytes_max=100_000)
    (_, one), (_, two) = shares(whole, 2)
    assert one.hold_answer(1_000_000)
    assert not two.hold_answer(100_000)


def test_what_has_idled_for_a_second_gives_way_to_a_newcomer_and_what_is_over_at_once(seconds: list[float]) -> None:
    whole = InFlight(room=Room(2, 1))
    (first, one), (second, two) = shares(whole, 2)
    assert not whole.is_crowded()
    whole.share(Holder())
    assert whole.is_crowded(), "both idle for no time"
    seconds[0] += 1
    one.begin()
    assert not whole.is_crowded()
    assert (first.aborted, second.aborted) == (0, 1)
    one.finish()
    whole.share(Holder())
    assert not whole.is_crowded()
    assert first.aborted == 1
    two.end()


@pytest.mark.parametrize(
    ("limit", "clients", "connections"), [(200, 10_000, 100), (1_024, 10_000, 700), (65_536, 500, 500)]
)
def test_descriptors_are_left_for_everything_else(
    limit: int, clients: int, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "_open", lambda: 30)
    found = room(limit, clients)
    assert found.connections >= connections
    assert found.connections <= clients
    assert 30 + found.connections + found.extra + 32 <= limit


def test_streams_are_counted_while_they_last(engine: Engine, keys: Keys) -> None:
    record(engine)
    for most, status in ((0, 503), (1, 200)):
        with client_of(engine, Settings(access_log=False, streams_max=most)) as client:
            for _ in range(2):
                answer = client.get("/v1/people/user_id:1/export", headers=keys.bearer("admin"))
                assert (answer.status_code, answer.headers.get("retry-after")) == (status, "1" if most == 0 else None)
            text = client.get("/metrics", headers=keys.bearer("admin")).text
    assert "\nthreadline_http_streams 0\n" in text


def test_a_stream_ends_in_order_when_the_server_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadline.surfaces.http.addresses.following.LOOK_SECONDS", 0)
    whole = InFlight()

    async def follow() -> list[bytes]:
        count = 0

        async def result() -> int:
            nonlocal count
            count += 1
            whole.is_ending = count == 3
            return count

        return [line async for line in _lines(0, result, lambda found: False, whole)]

    found: Any = asyncio.run(follow())
    assert found == [b"event: progress\ndata: %d\n\n" % number for number in range(4)]
