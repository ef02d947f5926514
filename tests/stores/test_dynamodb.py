"""The DynamoDB store obeys the store laws on an emulator; several processes, pauses, lost answers, expiry, limits."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from hypothesis import given, settings

from bench.cases.dynamodb import Reckoning
from tests.servers.dynamodb import ministack
from threadline.kernel.errors import InvalidSetting, InvalidValue, StoreDamaged, Unavailable
from threadline.kernel.store import Batch, Check, Delete, FeedEntry, Key, Put, Store, feed_pages
from threadline.kernel.time import DAY, HOUR, SECOND, system_clock
from threadline.stores import dynamodb_layout as layout
from threadline.stores.dynamodb import DynamoStore, migrate
from threadline.stores.dynamodb_address import Address, parse
from threadline.stores.dynamodb_client import Client
from threadline.testing.store_cases import KEY, OTHER_THREAD, THREAD, entry, put, record, verdicts
from threadline.testing.store_laws import StoreLaws
from threadline.testing.store_scripts import SCRIPTS, assert_the_same_as_in_memory

EXPIRY_SECONDS = 1.0
Answer = tuple[int, bytes]
Before = Callable[[str, dict[str, Any], Callable[..., Answer]], Answer]


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


class Spy(Client):
    """A client that shows every request to ``before``, which may hold it up or answer in the server's stead."""

    def __init__(self, address: Address, **options: Any) -> None:
        super().__init__(address, **options)
        self.before: Before = lambda name, body, go: go()
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def post(self, endpoint: str, headers: dict[str, str], data: bytes) -> Answer:
        name, body = headers["x-amz-target"].rpartition(".")[2], json.loads(data)
        self.requests.append((name, body))
        return self.before(name, body, lambda content=data: super(Spy, self).post(endpoint, headers, content))


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = ministack().url(tmp_path)
    migrate(url)
    return url


@pytest.fixture
def stores(url: str) -> Iterator[Callable[..., DynamoStore]]:
    """Opens stores on the test's table; each has a client, a clock and a part in the journal of its own."""
    opened: list[DynamoStore] = []

    def open(clock: Callable[[], int] = system_clock, **options: Any) -> DynamoStore:
        client = Spy(parse(url), **options)
        opened.append(DynamoStore(url, clock, client=client, expiry_seconds=EXPIRY_SECONDS))
        return opened[-1]

    yield open
    for store in opened:
        store.close()


def spy(store: DynamoStore) -> Spy:
    assert isinstance(store.client, Spy)
    return store.client


class Gate:
    """Holds up the first request of a name until it is opened."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        if name == self.name and not self.reached.is_set():
            self.reached.set()
            assert self.opened.wait(30)
        return go()


# --- several processes ------------------------------------------------------------------------


def told(store: DynamoStore, count: int, cursor: str = "") -> list[FeedEntry]:
    """The feed after a cursor, once it has so many entries: other processes' commits show a little later."""
    deadline = time.monotonic() + 20
    while len(found := store.feed(cursor)) < count:
        assert time.monotonic() < deadline, f"the feed has only {found}"
        time.sleep(0.01)
    return found


def ids(pages: list[FeedEntry]) -> list[str]:
    return [page.entry.id for page in pages]


@pytest.mark.parametrize("operation", ["PutItem", "TransactWriteItems"])
def test_a_writer_that_stood_still_is_passed_and_comes_after(
    stores: Callable[..., DynamoStore], operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It stands still before its entry in the journal is written, or between its entry and its transaction.
    still, other = stores(), stores()
    record(still, entry(1))
    gate = Gate(operation)
    spy(still).before = gate
    monkeypatch.setattr(still._journal, "beat", lambda: None)  # a process that stands still does not beat either
    task = threading.Thread(target=record, args=(still, entry(2)))
    task.start()
    assert gate.reached.wait(10)
    record(other, entry(3, OTHER_THREAD))
    found = told(other, 2)
    assert ids(found) == [entry(1).id, entry(3).id]
    gate.opened.set()
    task.join(30)
    assert still.seen([entry(2).id])
    assert ids(told(other, 1, found[-1].cursor)) == [entry(2).id]
    assert ids(list(feed_pages(other))) == [entry(1).id, entry(3).id, entry(2).id]


def test_the_feed_waits_for_a_writer_that_is_at_work(url: str, stores: Callable[..., DynamoStore]) -> None:
    slow = stores()
    patient = DynamoStore(url, system_clock)
    gate = Gate("TransactWriteItems")
    spy(slow).before = gate
    task = threading.Thread(target=record, args=(slow, entry(1)))
    task.start()
    assert gate.reached.wait(10)
    record(patient, entry(2, OTHER_THREAD))
    assert patient.feed() == []
    gate.opened.set()
    task.join(30)
    assert ids(told(patient, 2)) == [entry(1).id, entry(2).id]
    patient.close()


def test_a_thread_is_in_order_in_the_feed_whatever_the_clocks_say(stores: Callable[..., DynamoStore]) -> None:
    ahead, behind = stores(lambda: system_clock() + HOUR), stores(lambda: system_clock() - HOUR)
    for number, store in enumerate((ahead, behind, ahead, behind), 1):
        item = store.get([KEY])[0]
        version = item.version if item else 0
        assert store.commit([Batch([entry(number)], [Put(KEY, b"head", version)])]) == [None]
    for store in (ahead, behind):
        assert [page.entry.sequence for page in told(store, 4)] == [1, 2, 3, 4]


def test_a_writer_who_comes_later_with_a_slow_clock_is_not_skipped(stores: Callable[..., DynamoStore]) -> None:
    first, slow = stores(), stores(lambda: system_clock() - DAY)
    record(first, entry(1))
    cursor = first.feed()[-1].cursor
    record(slow, entry(2, OTHER_THREAD))
    assert ids(told(first, 1, cursor)) == [entry(2).id]


def test_a_writer_who_registers_while_a_reader_reads_is_not_skipped(stores: Callable[..., DynamoStore]) -> None:
    reader, fast, slow = stores(), stores(), stores(lambda: system_clock() - DAY)
    begun: list[str] = []

    def meanwhile(name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        if name == "Query" and not begun:
            begun.append(slow._journal.begin())
            record(fast, entry(1))
        return go()

    spy(reader).before = meanwhile
    assert reader.feed() == [], "the slow one may still come in before"
    slow._journal.end(begun[0], answered=True)
    assert ids(told(reader, 1)) == [entry(1).id]


def test_a_writer_that_beats_is_waited_for_however_long_its_call_takes(stores: Callable[..., DynamoStore]) -> None:
    reader, slow = stores(), stores()
    position = slow._journal.begin()
    until = time.monotonic() + 3 * EXPIRY_SECONDS
    while time.monotonic() < until:
        assert list(reader._journal.settled().words) == [position[16:]]
        time.sleep(0.05)
    slow._journal.end(position, answered=True)


def test_a_reader_only_reads(url: str) -> None:
    writer, reader = DynamoStore(url, system_clock), DynamoStore(url, system_clock, readonly=True)
    record(writer, entry(1))
    put(writer, KEY)
    assert reader.get([KEY]) == writer.get([KEY])
    assert reader.seen([entry(1).id]) == {entry(1).id: entry(1).digest}
    with pytest.raises(Unavailable, match="reading only"):
        reader.commit([Batch(writes=[Put(KEY, b"")])])
    writer.close()
    assert [page.entry for page in reader.feed()] == [entry(1)]
    reader.close()


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
def test_a_lost_answer_is_no_second_write(stores: Callable[..., DynamoStore], batch: Batch) -> None:
    store, peaceful = stores(), stores()
    put(store, KEY)
    spy(store).before = lost(3)
    assert verdicts(store, batch) == [None]
    [item] = store.get([KEY])
    assert (item and item.version) == (None if isinstance(batch.writes[0], Delete) else 2)
    store.close()
    assert [page.entry for page in peaceful.feed()] == list(batch.events)


def test_what_was_committed_before_the_token_was_forgotten_is_known(stores: Callable[..., DynamoStore]) -> None:
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
        assert verdicts(store, batch) == [None]


def test_when_patience_ends_nothing_is_half_done_and_the_feed_goes_on(stores: Callable[..., DynamoStore]) -> None:
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


def test_keys_that_were_not_answered_are_asked_for_again(stores: Callable[..., DynamoStore]) -> None:
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


def test_every_batch_is_one_transaction_with_a_token(stores: Callable[..., DynamoStore]) -> None:
    store = stores()
    spy(store).requests.clear()
    lone = Batch(writes=[Put(Key("t", "lone"), b"")])
    assert verdicts(store, Batch([entry(1), entry(2)], [Put(KEY, b"", 0), Check(Key("t", "p"), 0)]), lone) == [None] * 2
    made = [body for name, body in spy(store).requests if name == "TransactWriteItems"]
    # Two ids, one page for both events, one item, one condition. A request for a lone write would be half as dear, but
    # DynamoDB would carry it out again when it comes late, perhaps over what somebody else has written since.
    assert sorted(len(request["TransactItems"]) for request in made) == [1, 5]
    assert len({request["ClientRequestToken"] for request in made}) == 2
    assert {name for name, _ in spy(store).requests} & {"DeleteItem", "BatchWriteItem"} == set()


def test_everything_a_decision_depends_on_is_read_consistently(stores: Callable[..., DynamoStore]) -> None:
    store = stores()
    record(store, entry(1))
    put(store, KEY)
    spy(store).requests.clear()
    store.get([KEY])
    store.seen([entry(1).id])
    store.events(THREAD)
    store.query(KEY.table, KEY.partition)
    store.scan(KEY.table)
    store.feed()
    names = {"BatchGetItem", "GetItem", "Query", "Scan"}
    reads = [(name, body) for name, body in spy(store).requests if name in names]
    assert {name for name, _ in reads} == names
    for name, body in reads:
        asked = next(iter(body["RequestItems"].values())) if name == "BatchGetItem" else body
        assert asked.get("ConsistentRead") is True, name


def test_the_tail_of_the_feed_comes_by_the_stream(stores: Callable[..., DynamoStore]) -> None:
    writer, reader = stores(), stores()
    record(writer, entry(1))
    cursor = ""
    for number in range(2, 8):
        page = told(reader, 1, cursor)
        assert [each.entry for each in page] == [entry(number - 1)]
        cursor = page[-1].cursor
        spy(reader).requests.clear()
        record(writer, entry(number))
    told(reader, 1, cursor)
    names = [name for name, _ in spy(reader).requests]
    assert "GetRecords" in names
    assert "BatchGetItem" not in names


@pytest.mark.parametrize("options", [{"streams": "off"}, {"streams": "on"}])
def test_without_a_stream_the_table_has_it_all(tmp_path: Path, options: dict[str, str]) -> None:
    store = ministack().open(tmp_path, **options)
    store.client.call(
        "UpdateTable", {"TableName": store.address.table, "StreamSpecification": {"StreamEnabled": False}}
    )
    cursor = ""
    for number in range(1, 6):
        record(store, entry(number))
        [page] = store.feed(cursor)
        assert page.entry == entry(number)
        cursor = page.cursor
    store.close()


def test_units_are_reckoned_as_the_server_counts_them(url: str) -> None:
    client = Reckoning(parse(url))
    store = DynamoStore(url, system_clock, client=client)
    for number in range(1, 12):
        body = bytes(range(256)) * number
        events = [entry(2 * number, at=number * DAY * 9, body=body), entry(2 * number + 1, body=body)]
        assert store.commit([Batch(events, [Put(Key("t", f"é{number}"), body[: 400 * number], 0)])]) == [None]
    store.close()
    assert len(client.checked) == 11
    assert [told for _, told in client.checked] == [ours for ours, _ in client.checked]


# --- expiry -----------------------------------------------------------------------------------


def test_what_has_expired_is_absent_long_before_it_is_taken_away(tmp_path: Path) -> None:
    url = ministack().url(tmp_path, expire="sent:2d")
    migrate(url)
    now = [1_000_000 * SECOND]
    store = DynamoStore(url, lambda: now[0])
    sent, kept = Key("sent", "p", "s"), Key("kept", "p", "s")
    for key in (sent, kept):
        assert store.commit([Batch(writes=[Put(key, b"1", 0)]), Batch(writes=[Put(key, b"2")])]) == [None, None]
    now[0] += 2 * DAY - 1
    assert [item and item.version for item in store.get([sent, kept])] == [2, 2]
    now[0] += 1
    assert [item and item.version for item in store.get([sent, kept])] == [None, 2]
    assert store.query("sent", "p") == store.scan("sent") == []
    # Conditions see what readers see: it is absent, and its old version is nobody's to expect.
    assert verdicts(store, Batch(writes=[Put(sent, b"3", 2)]), Batch(writes=[Check(sent, 2)])) == ["version"] * 2
    assert verdicts(store, Batch(writes=[Check(sent, 0)]), Batch(writes=[Put(sent, b"3", 0)])) == [None, None]
    assert store.get([sent]) == [(sent, 1, b"3")]
    store.close()


# --- addresses and tables --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dynamodb://", "no DynamoDB table"),
        ("dynamodb://a", "no DynamoDB table"),
        ("dynamodb://people/more", "no DynamoDB table"),
        ("dynamodb://people?regoin=x", "region"),
        ("dynamodb://people?streams=maybe", "on or off"),
        ("dynamodb://people?expire=sent", "duration"),
    ],
)
def test_a_wrong_url_is_told(text: str, said: str) -> None:
    with pytest.raises(InvalidSetting) as error:
        parse(text)
    assert said in f"{error.value} {error.value.hint}"


def test_an_address_says_everything() -> None:
    found = parse("dynamodb://people?region=eu-central-1&endpoint=http://localhost:8000/&streams=off&expire=sent:90d")
    assert found == Address("people", "eu-central-1", "http://localhost:8000", False, {"sent": 90 * 86_400})


def test_a_table_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="no table") as error:
        DynamoStore(ministack().url(tmp_path), system_clock)
    assert "migrate" in error.value.hint


def test_migrate_makes_the_table_and_then_does_nothing(tmp_path: Path) -> None:
    url = ministack().url(tmp_path)
    assert len(migrate(url)) == 3
    assert migrate(url) == []
    client = Client(parse(url))
    name = {"TableName": parse(url).table}
    table = client.call("DescribeTable", name)["Table"]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    assert table["DeletionProtectionEnabled"] is True
    assert not table.get("GlobalSecondaryIndexes")
    expiry = client.call("DescribeTimeToLive", name)["TimeToLiveDescription"]
    assert (expiry["TimeToLiveStatus"], expiry["AttributeName"]) == ("ENABLED", "ttl")
    backups = client.call("DescribeContinuousBackups", name)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


def test_migrate_brings_a_bare_table_to_what_is_needed(tmp_path: Path) -> None:
    url = ministack().url(tmp_path)
    client = Client(parse(url))
    keys = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    kinds = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
    provisioned = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    creation = {"TableName": parse(url).table, "KeySchema": keys, "AttributeDefinitions": kinds}
    client.call("CreateTable", {**creation, "ProvisionedThroughput": provisioned})
    assert len(migrate(url)) == 5
    assert migrate(url) == []


def test_a_foreign_table_is_refused_and_left_alone(tmp_path: Path) -> None:
    url = ministack().url(tmp_path)
    client = Client(parse(url))
    creation = {
        "TableName": parse(url).table, "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "user_id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "user_id", "AttributeType": "S"}],
    }  # fmt: skip
    client.call("CreateTable", creation)
    before = client.call("DescribeTable", {"TableName": parse(url).table})
    for attempt in (migrate, lambda url: DynamoStore(url, system_clock)):
        with pytest.raises(InvalidSetting, match="something else"):
            attempt(url)
    assert client.call("DescribeTable", {"TableName": parse(url).table}) == before


def test_a_key_that_dynamodb_cannot_hold_is_refused(stores: Callable[..., DynamoStore]) -> None:
    store = stores()
    for table in ("with\0nul", "x" * 1_001):
        with pytest.raises(InvalidValue):
            put(store, Key(table, "p"))


def test_what_dynamodb_refuses_is_told_as_ours(stores: Callable[..., DynamoStore]) -> None:
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


# --- bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"", b"x", b"x" * 1_000, bytes(range(256)) * 4])
def test_values_are_deflated_where_that_is_shorter(value: bytes) -> None:
    from base64 import b64encode

    [(name, held)] = layout.packed(value).items()
    assert len(held["B"]) <= len(value)
    assert (name == layout.DEFLATED) == (len(held["B"]) < len(value))
    assert layout.content({name: {"B": b64encode(held["B"]).decode()}}) == value


def test_a_page_holds_events_of_one_thread_that_are_near_in_time() -> None:
    place = layout.Place("0" * 24, 3)
    far = [entry(1, at=0), entry(2, at=7 * DAY), entry(3, at=7 * DAY + 1), entry(4, OTHER_THREAD, at=0)]
    laid = layout.pages(far, place)
    assert [[number for number, _ in chunk] for _, chunk in laid] == [[0, 1], [2], [3]]
    large = layout.pages([entry(n, body=b"x" * 150_000) for n in range(1, 6)], place)
    assert [len(chunk) for _, chunk in large] == [2, 2, 1]
    assert len({key for key, _ in large}) == 3
