"""The DynamoDB store obeys the store laws on an emulator; lost answers, refusals; what is asked of DynamoDB."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from hypothesis import given, settings

from tests.servers.dynamodb import ministack
from tests.stores.dynamodb_stage import Answer, Before, Opening, ids, opening, spy, told
from threadline.kernel.errors import StoreDamaged, Unavailable
from threadline.kernel.store import Batch, Check, Delete, Key, Put, Store, thread_page
from threadline.testing.store_cases import KEY, OTHER_THREAD, THREAD, entry, put, record, refusals
from threadline.testing.store_laws import StoreLaws
from threadline.testing.store_scripts import SCRIPTS, assert_the_same_as_in_memory


class TestDynamoStore(StoreLaws):
    durable = True

    def open(self, folder: Path) -> Store:
        return ministack().open(folder)

    @settings(max_examples=25)
    @given(SCRIPTS)
    def test_a_script_means_the_same_as_to_the_memory_store(self, script: list[tuple[Any, ...]]) -> None:
        # Fewer than elsewhere, because each makes a table of its own.
        with tempfile.TemporaryDirectory() as folder:
            assert_the_same_as_in_memory(self.open(Path(folder)), script)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ministack().made(tmp_path)


@pytest.fixture
def stores(url: str) -> Iterator[Opening]:
    with opening(url) as opened:
        yield opened


# --- answers that are lost ----------------------------------------------------------------------


def lost(after: int) -> Before:
    """Writes are carried out and their answers lost, so many times."""
    left = [after]

    def before(name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        answer = go()
        if name in ("TransactWriteItems", "UpdateItem", "DeleteItem", "PutItem") and left[0]:
            left[0] -= 1
            raise urllib3.exceptions.ProtocolError("the answer is lost")
        return answer

    return before


@pytest.mark.parametrize(
    "batch",
    [
        Batch(writes=[Put(KEY, b"new")]),
        Batch(writes=[Delete(KEY)]),
        Batch(writes=[Put(KEY, b"new", 1)]),
        Batch(writes=[Delete(KEY, 1)]),
        Batch([entry(1), entry(2)], [Put(KEY, b"new", 1), Delete(Key("t", "absent"))]),
    ],
)
def test_a_lost_answer_is_no_second_write(stores: Opening, batch: Batch) -> None:
    store, peaceful = stores(), stores()
    put(store, KEY)
    spy(store).before = lost(3)
    assert refusals(store, batch) == [None]
    [item] = store.get([KEY])
    assert (item and item.version) == (None if isinstance(batch.writes[0], Delete) else 2)
    store.close()
    assert [page.entry for page in peaceful.feed()] == list(batch.events)


def test_what_was_committed_before_the_token_was_forgotten_is_known(stores: Opening) -> None:
    store = stores()

    def forgetful(name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        if name != "TransactWriteItems":
            return go()
        answer = go()
        assert answer[0] == 200
        spy(store).before = lambda name, body, go: go()
        body["ClientRequestToken"] = "ten minutes later"
        again = go(json.dumps(body).encode())
        assert again[0] == 400
        return again

    for batch in (Batch([entry(1)], [Put(KEY, b"1", 0)]), Batch(writes=[Put(KEY, b"2", 1)])):
        spy(store).before = forgetful
        assert refusals(store, batch) == [None]


def test_when_patience_ends_nothing_is_half_done_and_the_feed_goes_on(stores: Opening) -> None:
    store, other = stores(patience_seconds=0.3), stores()

    def deaf(name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        if name == "TransactWriteItems":
            raise urllib3.exceptions.ProtocolError("no way through")
        return go()

    spy(store).before = deaf
    with pytest.raises(Unavailable, match="TransactWriteItems"):
        store.commit([Batch([entry(1)], [Put(KEY, b"", 0)])])
    assert (store.seen([entry(1).id]), store.get([KEY])) == ({}, [None])
    spy(store).before = lambda name, body, go: go()
    record(store, entry(2))
    record(other, entry(3, OTHER_THREAD))
    assert ids(told(other, 2)) == [entry(2).id, entry(3).id]
    record(store, entry(1))


def test_keys_that_were_not_answered_are_asked_for_again(stores: Opening) -> None:
    store = stores()
    keys = [Key("t", f"p{number}") for number in range(30)]
    for key in keys:
        put(store, key, key.partition.encode())

    def grudging(name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        status, content = go()
        if name != "BatchGetItem":
            return status, content
        [(table, asked)] = body["RequestItems"].items()
        answer = json.loads(content)
        kept = answer["Responses"][table][:7]
        given = {item["pk"]["S"] for item in kept}
        left = [key for key in asked["Keys"] if key["pk"]["S"] not in given]
        answer["Responses"][table] = kept
        answer["UnprocessedKeys"] = {table: {**asked, "Keys": left}} if left else {}
        return status, json.dumps(answer).encode()

    spy(store).before = grudging
    assert [item and item.value.decode() for item in store.get(keys)] == [key.partition for key in keys]


# --- what is asked of DynamoDB --------------------------------------------------------------------


def test_every_batch_is_one_transaction_with_a_token(stores: Opening) -> None:
    store = stores()
    spy(store).requests.clear()
    lone = Batch(writes=[Put(Key("t", "lone"), b"")])
    assert refusals(store, Batch([entry(1), entry(2)], [Put(KEY, b"", 0), Check(Key("t", "p"), 0)]), lone) == [None] * 2
    made = [body for name, body in spy(store).requests if name == "TransactWriteItems"]
    # Two ids, one page for both events, one item, one condition. A request for a lone write would be half as dear, but
    # DynamoDB would carry it out again when it comes late, perhaps over what somebody else has written since.
    assert sorted(len(request["TransactItems"]) for request in made) == [1, 5]
    assert len({request["ClientRequestToken"] for request in made}) == 2
    assert {name for name, _ in spy(store).requests} & {"DeleteItem", "BatchWriteItem"} == set()


def test_everything_a_decision_depends_on_is_read_consistently(stores: Opening) -> None:
    store = stores()
    record(store, entry(1))
    put(store, KEY)
    spy(store).requests.clear()
    store.get([KEY])
    store.seen([entry(1).id])
    thread_page(store, THREAD)
    store.query(KEY.table, KEY.partition)
    store.scan(KEY.table)
    store.feed()
    names = {"BatchGetItem", "GetItem", "Query", "Scan"}
    reads = [(name, body) for name, body in spy(store).requests if name in names]
    assert {name for name, _ in reads} == names
    for name, body in reads:
        asked = next(iter(body["RequestItems"].values())) if name == "BatchGetItem" else body
        assert asked.get("ConsistentRead") is True, name


def test_only_ids_that_need_not_be_certain_are_read_otherwise(stores: Opening) -> None:
    store = stores()
    record(store, entry(1))
    spy(store).requests.clear()
    for certain in (True, False):
        assert store.seen([entry(1).id, entry(2).id], certain=certain) == {entry(1).id: entry(1).digest}
    asked = [body["RequestItems"][store.address.table]["ConsistentRead"] for _, body in spy(store).requests]
    assert asked == [True, False]


def test_what_dynamodb_refuses_is_told_as_ours(stores: Opening) -> None:
    store = stores(patience_seconds=0.2)

    def answering(status: int, code: str) -> None:
        content = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "so"}).encode()
        spy(store).before = lambda name, body, go: (status, content)

    for status, code, error in (
        (400, "ValidationException", StoreDamaged),
        (400, "AccessDeniedException", Unavailable),
        (400, "ResourceNotFoundException", Unavailable),
        (400, "ThrottlingException", Unavailable),
        (503, "", Unavailable),
    ):
        answering(status, code)
        with pytest.raises(error):
            store.get([KEY])
    spy(store).before = lambda name, body, go: go()
