"""DynamoDB tables: their addresses, how they are made and refused, what expires, how values and events lie in them."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from pathlib import Path

import pytest

from bench.cases.dynamodb import Reckoning
from tests.servers.dynamodb import ministack
from threadline.kernel.errors import InvalidSetting, InvalidValue, StoreDamaged, Unavailable
from threadline.kernel.store import Batch, Check, Key, Put
from threadline.kernel.time import DAY, SECOND, system_clock
from threadline.stores.compression import ZSTD_START
from threadline.stores.dynamodb.address import Address, parse
from threadline.stores.dynamodb.client import Client
from threadline.stores.dynamodb.reading import get_many
from threadline.stores.dynamodb.store import DynamoStore, layout, migrate
from threadline.testing.store_cases import OTHER_THREAD, at_once, entry, put, refusals

HARM = ZSTD_START + b" is how a compressed row begins"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dynamodb://", "not the URL of a DynamoDB table"),
        ("dynamodb://a", "not the URL of a DynamoDB table"),
        ("dynamodb://people/more", "not the URL of a DynamoDB table"),
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


def test_a_table_is_made_once_whoever_tries(tmp_path: Path) -> None:
    url = ministack().url(tmp_path)
    done: list[str] = []
    at_once(*[lambda: done.extend(migrate(url))] * 4)
    assert done.count(f"created {parse(url).table}") == 1
    assert migrate(url) == []


def test_migrate_waits_until_a_new_table_has_backups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS enables them a while after a table is active, and refuses to change them before."""
    asked: list[str] = []
    post = Client.post

    def soon(client: Client, endpoint: str, headers: dict[str, str], data: bytes) -> tuple[int, bytes]:
        asked.append(headers["x-amz-target"].rpartition(".")[2])
        if asked[-1] == "UpdateContinuousBackups" and asked.count(asked[-1]) < 3:
            said = {"__type": "x#ContinuousBackupsUnavailableException", "message": "Backups are being enabled"}
            return 400, json.dumps(said).encode()
        return post(client, endpoint, headers, data)

    monkeypatch.setattr(Client, "post", soon)
    assert migrate(ministack().url(tmp_path))[-1] == "switched point-in-time recovery on"


@pytest.mark.parametrize(
    ("status", "content"), [(200, b"<html>"), (200, b""), (200, b"[]"), (404, b'{"title": "Not found"}'), (405, b"no")]
)
def test_what_is_not_dynamodb_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, content: bytes
) -> None:
    monkeypatch.setattr(Client, "post", lambda *request: (status, content))
    client = Client(parse(ministack().url(tmp_path)), patience_seconds=0.1)
    for call in ("DescribeTable", "PutItem"):
        with pytest.raises(Unavailable, match="DynamoDB"):
            client.call(call, {})


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
        "TableName": parse(url).table,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "user_id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "user_id", "AttributeType": "S"}],
    }
    client.call("CreateTable", creation)
    before = client.call("DescribeTable", {"TableName": parse(url).table})
    for attempt in (migrate, lambda url: DynamoStore(url, system_clock)):
        with pytest.raises(InvalidSetting, match="something else"):
            attempt(url)
    assert client.call("DescribeTable", {"TableName": parse(url).table}) == before


def test_a_key_that_dynamodb_cannot_hold_is_refused(tmp_path: Path) -> None:
    store = ministack().open(tmp_path)
    for table in ("with\0nul", "x" * 1_001):
        with pytest.raises(InvalidValue):
            put(store, Key(table, "p"))
    store.close()


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
    assert refusals(store, Batch(writes=[Put(sent, b"3", 2)]), Batch(writes=[Check(sent, 2)])) == ["version"] * 2
    assert refusals(store, Batch(writes=[Check(sent, 0)]), Batch(writes=[Put(sent, b"3", 0)])) == [None, None]
    assert store.get([sent]) == [(sent, 1, b"3")]
    store.close()


# --- bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"", b"x", b"x" * 1_000, bytes(range(256)) * 4])
def test_values_are_compressed_where_that_is_shorter_and_read_as_former_versions_deflated_them(value: bytes) -> None:
    row = layout.packed(value)[layout.ROW]["B"]
    assert len(row) <= len(value)
    assert (len(row) < 50) == (len(set(value)) < 2)
    engine = zlib.compressobj(6, zlib.DEFLATED, -15, 9)
    deflated = engine.compress(value) + engine.flush()
    for name, stored in ((layout.ROW, row), (layout.ROW, value), (layout.DEFLATED, deflated)):
        assert layout.content({name: {"B": b64encode(stored).decode()}}) == value


@pytest.mark.parametrize("name", [layout.ROW, layout.DEFLATED])
def test_an_item_whose_value_cannot_be_restored_is_store_damaged(tmp_path: Path, name: str) -> None:
    url = ministack().url(tmp_path)
    migrate(url)
    store, key = DynamoStore(url, system_clock), Key("t", "p")
    put(store, key, b"a value of an item " * 20)
    [item] = get_many(store.client, [layout.item_key(key)]).values()
    damaged = {field: value for field, value in item.items() if field != layout.ROW} | {name: {"B": HARM}}
    store.client.call("PutItem", {"TableName": parse(url).table, "Item": damaged})
    with pytest.raises(StoreDamaged, match=r"'t/p/-' \(version 1\) is not as it was written"):
        store.get([key])
    store.close()


def test_a_page_holds_events_of_one_thread_that_are_near_in_time() -> None:
    place = layout.Place("0" * 24, 3)
    far = [entry(1, at=0), entry(2, at=7 * DAY), entry(3, at=7 * DAY + 1), entry(4, OTHER_THREAD, at=0)]
    laid = layout.pages(far, place)
    assert [[number for number, _ in chunk] for _, chunk in laid] == [[0, 1], [2], [3]]
    large = layout.pages([entry(n, body=b"x" * 150_000) for n in range(1, 6)], place)
    assert [len(chunk) for _, chunk in large] == [2, 2, 1]
    assert len({key for key, _ in large}) == 3


def test_units_are_reckoned_as_the_server_counts_them(tmp_path: Path) -> None:
    url = ministack().url(tmp_path)
    migrate(url)
    client = Reckoning(parse(url))
    store = DynamoStore(url, system_clock, client=client)
    for number in range(1, 12):
        body = bytes(range(256)) * number
        events = [entry(2 * number, at=number * DAY * 9, body=body), entry(2 * number + 1, body=body)]
        assert store.commit([Batch(events, [Put(Key("t", f"é{number}"), body[: 400 * number], 0)])]) == [None]
    store.close()
    assert len(client.checked) == 11
    assert [told for _, told in client.checked] == [ours for ours, _ in client.checked]
