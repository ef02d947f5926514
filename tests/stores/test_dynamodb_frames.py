"""Frames in DynamoDB: nobody notices them but the bill."""

from __future__ import annotations

import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import staging
from tests.servers.dynamodb import ministack
from tests.stores.incompressible import noise
from threadline.engine.engine import Engine
from threadline.engine.folding.person import SNAPSHOT
from threadline.kernel.event import Event
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.store import Batch, Delete, Key, Put, scan_pages
from threadline.kernel.time import DAY, SECOND, system_clock
from threadline.stores.dynamodb.address import parse
from threadline.stores.dynamodb.client import Client
from threadline.stores.dynamodb.difference import Frame, shape
from threadline.stores.dynamodb.frames import Frames
from threadline.stores.dynamodb.store import DynamoStore, layout, migrate
from threadline.stores.memory import MemoryStore
from threadline.testing.store_cases import at_once, put, refusals
from threadline.testing.world import World

KEYS = [Key("person", "ada"), Key("person", "bea"), Key("other", "ada", "s")]


# --- when a frame pays --------------------------------------------------------------------------


def told(version: int, changed: int, *, size: int = 5_000, room: bool = True) -> str:
    """How a value is written of which so much is other than in the frame that was made with version 2."""
    made = shape(
        KEYS[0],
        noise(2, changed) + noise(1, size)[changed:],
        version,
        Frame({"B": "bQ=="}, 2, noise(1, size)),
        room=room,
    )
    assert (made.mark is not None) == (layout.DIFFERENCE in made.attributes and not made.framed)
    return "difference" if made.mark else "frame" if made.framed else "whole"


def test_a_difference_of_a_unit_is_never_dear_and_a_larger_one_until_a_frame_would_have_been_cheaper() -> None:
    assert told(1_000, 700) == "difference"
    # A KB more with each of five writes is what writing five KB once more costs, and two KB more with each of three.
    assert [told(version, 1_500) for version in (3, 6, 7)] == ["difference", "difference", "frame"]
    assert [told(version, 2_500) for version in (3, 4, 5)] == ["difference", "difference", "frame"]
    assert told(3, 4_990) == "frame"
    assert [told(version, 1_500, room=False) for version in (3, 1_000)] == ["difference"] * 2
    assert told(3, 4_990, room=False) == "whole"
    assert told(3, 0, size=900) == "whole"


# --- the store is the same with them ----------------------------------------------------------------


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ministack().made(tmp_path)


@pytest.fixture
def stores(url: str) -> Iterator[list[DynamoStore]]:
    opened = [DynamoStore(url, system_clock) for _ in range(2)]
    yield opened
    for store in opened:
        store.close()


class Losing(Client):
    """A client whose next answers to transactions are lost after the server has acted; ``after_reading`` may meddle."""

    losses = 0
    after_reading: Callable[[], object] | None = None

    def post(self, endpoint: str, headers: dict[str, str], data: bytes) -> tuple[int, bytes]:
        answer = super().post(endpoint, headers, data)
        if self.after_reading is not None and headers["x-amz-target"].endswith("BatchGetItem"):
            self.after_reading, meddle = None, self.after_reading
            meddle()
        if self.losses and headers["x-amz-target"].endswith("TransactWriteItems"):
            self.losses -= 1
            raise urllib3.exceptions.ProtocolError("the answer is lost")
        return answer


def lying(store: DynamoStore) -> list[dict[str, Any]]:
    """Everything that lies in the table."""
    return list(store.client.call("Scan", {"TableName": store.address.table, "ConsistentRead": True})["Items"])


def assert_each_frame_lies_beside_its_item(store: DynamoStore) -> int:
    """Exactly the items that have a mark have a frame, and it is that one; answers how many there are."""
    found = lying(store)
    frames = {layout.key_of(each): each["p"] for each in found if each["pk"]["S"][0] == "f"}
    marked = {layout.key_of(each): each["f"] for each in found if layout.FRAME in each}
    assert frames == marked
    return len(frames)


_SIZES = st.sampled_from((10, 900, 1_100, 3_000, 9_000))
_WHO = st.integers(0, 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), _WHO, st.sampled_from(KEYS), st.integers(0, 400)),
        st.tuples(st.just("edit"), _WHO, st.sampled_from(KEYS), st.integers(0, 400)),
        st.tuples(st.just("put"), _WHO, st.sampled_from(KEYS), _SIZES),
        st.tuples(st.just("put any"), _WHO, st.sampled_from(KEYS), _SIZES),
        st.tuples(st.just("delete"), _WHO, st.sampled_from(KEYS), st.just(0)),
        st.tuples(st.just("delete any"), _WHO, st.sampled_from(KEYS), st.just(0)),
        st.tuples(st.just("too late"), _WHO, st.sampled_from(KEYS), _SIZES),
        st.tuples(st.sampled_from(("forget", "dissolve", "lose")), _WHO, st.sampled_from(KEYS), st.just(0)),
    ),
    min_size=10,
    max_size=40,
)


class Script:
    """Two processes that write the same items by turns, and the memory store as the model."""

    def __init__(self, url: str) -> None:
        self.model = MemoryStore()
        self.stores = [DynamoStore(url, system_clock, client=Losing(parse(url))) for _ in range(2)]
        self.frames_max = 0

    def play(self, number: int, step: tuple[str, int, Key, int]) -> None:
        name, who, key, size = step
        store = self.stores[who]
        if name == "forget":
            store._frames.learn(key, None)
        elif name == "dissolve":
            # The first half of a deletion, whose writer is killed before the second.
            store._frames.dissolve(key)
        elif name == "lose":
            assert isinstance(store.client, Losing)
            store.client.losses += 1
        else:
            write = self._write(number, name, key, size)
            assert refusals(store, Batch(writes=[write])) == refusals(self.model, Batch(writes=[write])), step
        for each in self.stores:
            assert each.get(KEYS) == self.model.get(KEYS), step
        self.frames_max = max(self.frames_max, assert_each_frame_lies_beside_its_item(store))

    def _write(self, number: int, name: str, key: Key, size: int) -> Put | Delete:
        [item] = self.model.get([key])
        version = item.version if item is not None else 0
        if name == "edit" and item is not None:
            at = number * 37 % (len(item.value) + 1)
            return Put(key, item.value[:at] + noise(number, size) + item.value[at + size // 2 :], version)
        if name.startswith("delete"):
            return Delete(key, None if "any" in name else version)
        expected = {"put any": None, "too late": version + 1}.get(name, version)
        return Put(key, noise(number, size), expected)

    def close(self) -> None:
        for store in self.stores:
            store.close()


def assert_nobody_notices(url: str, steps: list[tuple[str, int, Key, int]]) -> None:
    """The store says what the memory store says, whatever happens to frames."""
    migrate(url)
    script = Script(url)
    try:
        # One large item that is written again has a frame from the start, so that every step may meet one.
        for number, step in enumerate([("put", 0, KEYS[0], 3_000), ("edit", 0, KEYS[0], 10), *steps]):
            script.play(number, step)
        assert script.frames_max
    finally:
        script.close()


@pytest.mark.costly
@settings(max_examples=15)
@given(STEPS)
def test_whatever_happens_to_frames_the_store_says_the_same(steps: list[tuple[str, int, Key, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_nobody_notices(ministack().url(folder), steps)


@pytest.mark.parametrize("meanwhile", ["a new frame", "the item gone", "another in its place"])
def test_a_reader_never_puts_two_times_together(url: str, meanwhile: str) -> None:
    # The writer's clock is far ahead of the reader's.
    writer = DynamoStore(url, lambda: system_clock() + DAY)
    reader = DynamoStore(url, system_clock, client=Losing(parse(url)))
    key = KEYS[0]
    for version in range(2):
        assert refusals(writer, Batch(writes=[Put(key, noise(1, 3_000) + bytes(version), version)])) == [None]

    def meddle() -> None:
        if meanwhile != "a new frame":
            assert refusals(writer, Batch(writes=[Delete(key, 2)])) == [None]
        if meanwhile != "the item gone":
            for version in range(2 if meanwhile == "a new frame" else 0, 4):
                assert refusals(writer, Batch(writes=[Put(key, noise(version, 5_000), version)])) == [None]

    # Between the reading of the item and that of its frame.
    assert isinstance(reader.client, Losing)
    reader.client.after_reading = meddle
    wanted = None if meanwhile == "the item gone" else (key, 4, noise(3, 5_000))
    assert reader.get([key]) == [wanted]
    # Whatever was read, also at the second look, lies before what the reader writes from now on.
    read = [layout.position_of(item) for item in lying(writer) if item["pk"]["S"][0] == "i"]
    assert all(position < reader._journal.tick() for position in read)
    for store in (writer, reader):
        store.close()


def test_nobody_tells_a_difference_from_a_frame_that_is_gone(stores: list[DynamoStore]) -> None:
    one, other = stores
    for version in range(2):
        assert refusals(one, Batch(writes=[Put(KEYS[0], noise(1, 3_000) + bytes(version), version)])) == [None]
    assert other.get([KEYS[0]]) == one.get([KEYS[0]])
    # The version is still the one that the other has read.
    one._frames.dissolve(KEYS[0])
    assert refusals(other, Batch(writes=[Put(KEYS[0], noise(1, 3_000) + b"other", 2)])) == [None]
    assert one.get([KEYS[0]]) == other.get([KEYS[0]]) == [(KEYS[0], 3, noise(1, 3_000) + b"other")]
    assert assert_each_frame_lies_beside_its_item(one) == 1


def test_a_frame_is_not_taken_away_under_a_value_that_was_written_meanwhile(url: str) -> None:
    writer, other = DynamoStore(url, system_clock), DynamoStore(url, system_clock, client=Losing(parse(url)))
    for version in range(2):
        assert refusals(writer, Batch(writes=[Put(KEYS[0], noise(1, 3_000) + bytes(version), version)])) == [None]
    latest = Put(KEYS[0], noise(1, 3_000) + b"latest", 2)
    assert isinstance(other.client, Losing)
    other.client.after_reading = lambda: refusals(writer, Batch(writes=[latest]))
    assert refusals(other, Batch(writes=[Delete(KEYS[0], 2)])) == ["version"]
    assert other.get([KEYS[0]]) == writer.get([KEYS[0]]) == [(KEYS[0], 3, latest.value)]
    assert assert_each_frame_lies_beside_its_item(writer) == 1
    for store in (writer, other):
        store.close()


def test_many_writers_and_readers_of_one_item_see_whole_values_only(url: str) -> None:
    stores = [DynamoStore(url, system_clock) for _ in range(4)]
    key, done = KEYS[0], threading.Event()

    def value(number: int) -> bytes:
        body = noise(1, 4_000) + noise(number, 250) + number.to_bytes(4, "big")
        return body + zlib.crc32(body).to_bytes(4, "big")

    def number_in(whole: bytes) -> int:
        assert zlib.crc32(whole[:-4]).to_bytes(4, "big") == whole[-4:]
        return int.from_bytes(whole[-8:-4], "big")

    def write(store: DynamoStore) -> None:
        won = 0
        while won < 12:
            [item] = store.get([key])
            assert item is not None
            assert number_in(item.value) == item.version
            won += refusals(store, Batch(writes=[Put(key, value(item.version + 1), item.version)])) == [None]

    def read(store: DynamoStore) -> None:
        last = 0
        while not done.is_set():
            [item] = store.get([key])
            assert item is not None
            assert number_in(item.value) == item.version >= last
            last = item.version

    put(stores[0], key, value(1))
    reader = threading.Thread(target=read, args=(stores[3],))
    reader.start()
    at_once(*[lambda store=store: write(store) for store in stores[:3]])
    done.set()
    reader.join(60)
    [item] = stores[0].get([key])
    assert item is not None
    assert item.version == 37
    assert assert_each_frame_lies_beside_its_item(stores[0]) == 1
    for store in stores:
        store.close()


def test_a_full_batch_takes_frames_away_too(stores: list[DynamoStore]) -> None:
    one, other = stores
    keys = [Key("person", f"{number}") for number in range(BATCH_WRITES_MAX)]
    for start in range(0, BATCH_WRITES_MAX, 20):
        some = keys[start : start + 20]
        assert refusals(one, Batch(writes=[Put(key, noise(1, 1_500), 0) for key in some])) == [None]
        assert refusals(one, Batch(writes=[Put(key, noise(1, 1_500) + b"!", 1) for key in some])) == [None]
    assert assert_each_frame_lies_beside_its_item(one) == BATCH_WRITES_MAX
    # There is no room for frames in a transaction of a hundred writes, neither for new ones nor for old ones.
    assert refusals(other, Batch(writes=[Put(key, noise(2, 1_500), 2) for key in keys])) == [None]
    assert refusals(other, Batch(writes=[Delete(key, 3) for key in keys])) == [None]
    assert [item for item in lying(one) if item["pk"]["S"][0] in "if"] == []


def test_a_large_value_that_changes_a_little_costs_two_units(stores: list[DynamoStore]) -> None:
    store, _ = stores
    value = noise(1, 50_000)
    assert refusals(store, Batch(writes=[Put(KEYS[0], value, 0)])) == [None]
    assert refusals(store, Batch(writes=[Put(KEYS[0], value + b"!", 1)])) == [None]
    spent = []
    for version in range(2, 12):
        value = value[:-30] + noise(version, 30) + value[:5]
        before = store.client.units["write"]
        assert refusals(store, Batch(writes=[Put(KEYS[0], value, version)])) == [None]
        spent.append(store.client.units["write"] - before)
    assert spent == [2.0] * 10


def test_what_expires_has_no_frame_and_loses_the_one_it_had(tmp_path: Path) -> None:
    forever = ministack().open(tmp_path)
    key = Key("sent", "p")
    assert refusals(forever, Batch(writes=[Put(key, noise(1, 3_000), 0)])) == [None]
    assert refusals(forever, Batch(writes=[Put(key, noise(2, 3_000), 1)])) == [None]
    assert assert_each_frame_lies_beside_its_item(forever) == 1
    now = [system_clock()]
    expiring = DynamoStore(ministack().url(tmp_path, expire="sent:2d"), lambda: now[0])
    for version in (2, 3):
        assert refusals(expiring, Batch(writes=[Put(key, noise(3, 3_000), version)])) == [None]
        assert assert_each_frame_lies_beside_its_item(expiring) == 0
    assert refusals(expiring, Batch(writes=[Put(key, noise(4, 3_000))])) == [None]
    assert expiring.get([key]) == [(key, 5, noise(4, 3_000))]
    now[0] += 2 * DAY + SECOND
    assert expiring.get([key]) == [None]
    assert refusals(expiring, Batch(writes=[Put(key, noise(5, 3_000), 0)])) == [None]
    assert expiring.get([key]) == [(key, 1, noise(5, 3_000))]
    for store in (forever, expiring):
        store.close()


def test_what_is_remembered_of_frames_has_an_end(url: str) -> None:
    store, model = DynamoStore(url, system_clock), MemoryStore()
    store._frames = Frames(store.client, bytes_max=10_000)
    for number in range(20):
        key, version = Key("person", f"{number % 5}"), number // 5
        batch = Batch(writes=[Put(key, noise(number % 5, 3_000) + bytes(version), version)])
        assert refusals(store, batch) == refusals(model, batch) == [None]
    assert 0 < sum(len(frame.value) for frame in store._frames._known.values()) == store._frames._bytes <= 10_000
    assert store.query("person", "3") == model.query("person", "3")
    assert sorted(store.scan("person")) == sorted(model.scan("person"))
    assert assert_each_frame_lies_beside_its_item(store) == 5
    store.close()


def test_engines_that_write_large_people_at_once_all_get_through(tmp_path: Path, seed: int) -> None:
    # A whole world is recorded before, so that people have snapshots of many KB.
    world = World(seed, people=4, history=400)
    stores = [ministack().open(tmp_path) for _ in range(3)]
    staging.tell(stores[0], list(world.batches(400, 100)))
    history = list(world.events(520))[400:]
    engines = [staging.engine(store) for store in stores]

    def tell(on: Engine, told: list[Event]) -> None:
        for first in range(0, len(told), 4):
            assert set(staging.statuses(on.recorder.record(told[first : first + 4]))) == {"accepted"}

    at_once(*[lambda on=on, told=history[n::3]: tell(on, told) for n, on in enumerate(engines)])
    for store in stores[1:]:
        store.close()
    on = staging.engine(stores[0])
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)
    assert max(len(item.value) for item in scan_pages(stores[0], SNAPSHOT)) > 2 * 1_024
    assert_each_frame_lies_beside_its_item(stores[0])
    stores[0].close()
