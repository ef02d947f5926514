"""Segment's API: both families of paths, every way to give the key, outcomes per message, and what clients retry."""

from __future__ import annotations

import gzip
import json
import zlib
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import NOW, Clock, Keys, client_of
from tests.surfaces.segment_stage import basic, track
from threadline.engine.engine import Engine
from threadline.kernel.errors import StoreFull, Unavailable
from threadline.kernel.event import CLAIMED_HISTORY
from threadline.kernel.limits import BATCH_EVENTS_MAX, REQUEST_BYTES_MAX
from threadline.kernel.store import Batch, Refusal
from threadline.kernel.time import SECOND
from threadline.surfaces.http.answers.in_flight import MEMBERS_MAX
from threadline.surfaces.http.events.ingest import SEGMENT_BATCHES, SEGMENT_LETTERS

DATA = Path(__file__).parents[1] / "data" / "wire"

MESSAGES: dict[str, dict[str, Any]] = {
    "identify": {"userId": "1", "traits": {"plan": "pro"}},
    "track": {"userId": "1", "event": "click"},
    "page": {"anonymousId": "a", "name": "Home"},
    "screen": {"anonymousId": "a", "name": "Home"},
    "group": {"userId": "1", "groupId": "g"},
    "alias": {"userId": "1", "previousId": "a"},
}


def rejected(client: TestClient, keys: Keys) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/v1/rejected", headers=keys.bearer("admin")).json()["entries"]
    return found


@pytest.mark.parametrize("kind", SEGMENT_LETTERS)
def test_every_call_has_the_addresses_of_segments_clients_and_of_jitsus(
    kind: str, client: TestClient, keys: Keys
) -> None:
    letter = SEGMENT_LETTERS[kind]
    paths = (f"/v1/{kind}", f"/v1/{letter}", f"/{letter}", f"/v1/{kind}/", f"/api/s/{kind}", f"/api/s/s2s/{kind}")
    for index, path in enumerate(paths):
        answer = client.post(path, json={**MESSAGES[kind], "messageId": f"{kind}{index}"}, headers=basic(keys.write))
        assert (answer.status_code, answer.json()["accepted"]) == (200, 1), path


@pytest.mark.parametrize("path", SEGMENT_BATCHES)
def test_a_batch_is_taken_at_each_of_its_addresses(path: str, client: TestClient, keys: Keys) -> None:
    answer = client.post(path, json={"batch": [track("a"), track("b")]}, headers=basic(keys.write))
    assert answer.json() == {"success": True, "accepted": 2, "duplicates": 0, "conflicts": 0, "rejected": []}


def test_the_key_may_be_given_in_four_ways(client: TestClient, keys: Keys) -> None:
    ways: Sequence[tuple[Mapping[str, str], Mapping[str, str]]] = (
        (basic(keys.write), {}),
        ({}, {"writeKey": keys.write}),
        ({"Authorization": "Bearer an-oauth-token"}, {"writeKey": keys.write}),
        (keys.bearer("write"), {}),
        (keys.bearer("writer"), {}),
    )
    for index, (headers, more) in enumerate(ways):
        answer = client.post("/v1/track", json={**track(f"m{index}"), **more}, headers=headers)
        assert (answer.status_code, answer.json().get("accepted")) == (200, 1), (headers, more)
        batch = {"batch": [track(f"b{index}")], **more}
        assert client.post("/v1/batch", json=batch, headers=headers).json()["accepted"] == 1


HISTORIES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/batch", {"batch": [{}], "historical_migration": True}),
    ("/v1/batch", {"batch": [{}], "historical": True}),
    ("/v1/batch", {"batch": [{"historical": True}]}),
    ("/v1/batch", {"batch": [{"context": {"historical": True}}]}),
    ("/v1/track", {"historical": True}),
]


@pytest.mark.parametrize("credential", ["write_key", "body", "token"])
@pytest.mark.parametrize(("path", "body"), HISTORIES)
def test_whoever_holds_a_write_key_earns_nothing_for_history(
    path: str, body: dict[str, Any], credential: str, client: TestClient, keys: Keys, engine: Engine
) -> None:
    old = {"type": "track", "userId": "1", "event": "tool_used", "messageId": "m", "timestamp": "2020-03-01T12:00:00Z"}
    body = {**body, "batch": [{**old, **each} for each in body["batch"]]} if "batch" in body else {**old, **body}
    if credential == "body":
        body["writeKey"] = keys.write
    headers = {"write_key": basic(keys.write), "body": {}, "token": keys.bearer("writer")}[credential]
    assert client.post(path, json=body, headers=headers).json()["accepted"] == 1
    points = client.get("/v1/people/user_id:1/points", headers=keys.bearer("read")).json()
    assert points["earned"] == (5 if credential == "token" else 0)
    (told, *_) = engine.reader.events(engine.reader.person("default", "user_id:1"))
    assert told.event.historical
    assert told.event.marks == (() if credential == "token" else (CLAIMED_HISTORY,))


@pytest.mark.parametrize(("credential", "points"), [("write", 0), ("writer", 5)])
def test_nor_for_history_in_cloudevents(credential: str, points: int, client: TestClient, keys: Keys) -> None:
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "/shop",
        "type": "tool_used",
        "subject": "1",
        "historical": True,
        "time": "2020-03-01T12:00:00Z",
    }
    headers = {**keys.bearer(credential), "content-type": "application/cloudevents+json"}
    assert client.post("/v1/cloudevents", json=event, headers=headers).json()["accepted"] == 1
    told = client.get("/v1/people/user_id:1/points", headers=keys.bearer("read")).json()
    assert told["earned"] == points


def test_the_source_is_the_name_of_the_key(client: TestClient, keys: Keys, engine: Engine) -> None:
    client.post("/v1/track", json={**track("m"), "writeKey": keys.write})
    found = engine.log.of_key("default", "shop", "m")
    assert found is not None
    assert found.event.source == "shop"
    assert "writeKey" not in json.dumps(found.event.wire) + json.dumps(found.event.properties)


@pytest.mark.parametrize("body", [b"{}", b"not json", json.dumps(track("m")).encode()])
def test_without_a_usable_key_nothing_is_recorded(body: bytes, client: TestClient, keys: Keys, engine: Engine) -> None:
    for headers in ({}, basic("wk_wrong"), {"Authorization": "Basic ???"}, {"Authorization": "x"}):
        answer = client.post("/v1/track", content=body, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"]
    assert client.post("/v1/track", content=body, headers=keys.bearer("read")).status_code == 403
    assert engine.log.feed() == []
    assert rejected(client, keys) == []


def test_a_batch_without_a_valid_key_is_refused_before_its_messages_are_read(client: TestClient, keys: Keys) -> None:
    too_many = [track(str(number)) for number in range(BATCH_EVENTS_MAX + 1)]
    for key, status in ((keys.write, 413), ("wk_of_nobody", 401), (keys.admin, 401)):
        assert client.post("/v1/batch", json={"writeKey": key, "batch": too_many}).status_code == status


def test_a_key_in_the_body_is_found_beside_a_message_that_is_no_json(client: TestClient, keys: Keys) -> None:
    body = b'{"batch":[{"a":NaN},%b],"writeKey":"%b"}' % (json.dumps(track("good")).encode(), keys.write.encode())
    answer = client.post("/v1/batch", content=body)
    assert (answer.status_code, answer.json()["accepted"], len(answer.json()["rejected"])) == (200, 1, 1)


def test_a_body_with_a_valid_key_and_no_batch_is_kept_without_the_key(client: TestClient, keys: Keys) -> None:
    assert client.post("/v1/batch", json={"writeKey": keys.write, "batch": 5}).status_code == 400
    (entry,) = rejected(client, keys)
    assert keys.write not in json.dumps(entry)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "text/plain;charset=UTF-8", "nonsense", ""])
def test_any_content_type_is_read(content_type: str, client: TestClient, keys: Keys) -> None:
    headers = {**basic(keys.write), "Content-Type": content_type}
    assert client.post("/v1/t", content=json.dumps(track("m")), headers=headers).json()["accepted"] == 1


@pytest.mark.parametrize(
    ("name", "pack"), [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_packed_bodies_are_unpacked(name: str, pack: Any, client: TestClient, keys: Keys) -> None:
    headers = {**basic(keys.write), "Content-Encoding": name}
    body = pack(json.dumps({"batch": [track("a")]}).encode())
    assert client.post("/v1/batch", content=body, headers=headers).json()["accepted"] == 1


def test_gzip_of_several_members_is_one_body(client: TestClient, keys: Keys) -> None:
    text = json.dumps({"batch": [track("a")]}).encode()
    body = gzip.compress(text[:20]) + gzip.compress(text[20:])
    answer = client.post("/v1/batch", content=body, headers={**basic(keys.write), "Content-Encoding": "gzip"})
    assert answer.json()["accepted"] == 1


def test_gzip_of_very_many_members_is_refused(client: TestClient, keys: Keys) -> None:
    headers = {**basic(keys.write), "Content-Encoding": "gzip"}
    text, nothing = gzip.compress(json.dumps(track("m")).encode()), gzip.compress(b"")
    assert client.post("/v1/track", content=nothing * (MEMBERS_MAX - 1) + text, headers=headers).status_code == 200
    answer = client.post("/v1/track", content=nothing * MEMBERS_MAX + text, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "limit_exceeded")


def test_a_packed_body_that_cannot_be_unpacked_is_malformed(client: TestClient, keys: Keys) -> None:
    packed = gzip.compress(json.dumps(track("m")).encode())
    for body in (b"plain", packed[:-9], packed[:12]):
        answer = client.post("/v1/track", content=body, headers={**basic(keys.write), "Content-Encoding": "gzip"})
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed_body")
    answer = client.post("/v1/track", content=packed, headers={**basic(keys.write), "Content-Encoding": "br"})
    assert answer.status_code == 415


def test_a_byte_order_mark_is_passed_over(client: TestClient, keys: Keys) -> None:
    body = BOM_UTF8 + json.dumps({"batch": [track("marked")]}).encode()
    for sent, headers in ((body, {}), (gzip.compress(body), {"Content-Encoding": "gzip"})):
        told = client.post("/v1/batch", content=sent, headers={**basic(keys.write), **headers}).json()
        assert told["accepted"] + told["duplicates"] == 1
    native = {"events": [{"type": "x", "identifiers": {"user_id": "1"}, "key": "native"}]}
    marked = BOM_UTF8 + json.dumps(native).encode()
    assert client.post("/v1/events", content=marked, headers=keys.bearer("writer")).json()["accepted"] == 1


def test_a_bomb_is_refused_before_it_bursts(client: TestClient, keys: Keys) -> None:
    bomb = gzip.compress(b"0" * (50 * REQUEST_BYTES_MAX))
    assert len(bomb) < REQUEST_BYTES_MAX
    answer = client.post("/v1/track", content=bomb, headers={**basic(keys.write), "Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (413, "limit_exceeded")


def test_a_body_over_four_megabytes_is_refused(client: TestClient, keys: Keys) -> None:
    body = b" " * (REQUEST_BYTES_MAX + 1)
    assert client.post("/v1/track", content=body, headers=basic(keys.write)).status_code == 413

    def parts() -> Any:
        for _ in range(9):
            yield b" " * (REQUEST_BYTES_MAX // 8)

    assert client.post("/v1/track", content=parts(), headers=basic(keys.write)).status_code == 413


def test_each_message_has_its_own_outcome(client: TestClient, keys: Keys) -> None:
    large = track("large", properties={"text": "x" * 33_000})
    batch = [
        track("a"),
        large,
        {"type": "track", "messageId": "n"},
        track("b"),
        track("a"),
        7,
        track("a", event="other"),
    ]
    answer = client.post("/v1/batch", json={"batch": batch}, headers=basic(keys.write))
    assert answer.status_code == 200
    outcome = answer.json()
    assert (outcome["accepted"], outcome["duplicates"], outcome["conflicts"]) == (2, 1, 1)
    codes = [(each["index"], each["messageId"], each["code"]) for each in outcome["rejected"]]
    assert codes == [(1, "large", "too_large"), (2, "n", "no_event_name"), (5, "", "not_an_object")]


def test_junk_identifiers_are_an_outcome_too(client: TestClient, keys: Keys) -> None:
    batch = [track("a", userId="null"), track("b")]
    outcome = client.post("/v1/batch", json={"batch": batch}, headers=basic(keys.write)).json()
    assert outcome["accepted"] == 1
    assert outcome["rejected"][0]["code"] == "no_identifier"
    assert (outcome["rejected"][0]["index"], outcome["rejected"][0]["messageId"]) == (0, "a")


def test_what_was_rejected_can_be_corrected_and_sent_again(client: TestClient, keys: Keys, engine: Engine) -> None:
    client.post("/v1/track", json={"userId": "1", "messageId": "m", "properties": {"a": 1}}, headers=basic(keys.write))
    entry = rejected(client, keys)[0]
    assert (entry["code"], entry["form"], entry["envelope"]["kind"]) == ("no_event_name", "segment", "track")
    path = f"/v1/rejected/{entry['id']}/resubmit"
    corrected = {"payload": {**entry["payload"], "event": "click"}}
    answer = client.post(path, json=corrected, headers=keys.bearer("admin"))
    assert answer.json()["receipt"]["status"] == "accepted", answer.text
    found = engine.log.of_key("default", "shop", "m")
    assert found is not None
    assert (found.event.type, found.event.properties) == ("click", {"a": 1})
    assert rejected(client, keys)[0]["status"] == "resubmitted"


def test_the_same_rejection_twice_is_one_entry(client: TestClient, keys: Keys) -> None:
    for _ in range(2):
        client.post("/v1/track", json={"userId": "1", "messageId": "m"}, headers=basic(keys.write))
    assert len(rejected(client, keys)) == 1


@pytest.mark.parametrize("body", [b"", b"nope", b"[1]", b'"text"', b'{"userId": "1"', b"\xff\xfe{", b"\0"])
def test_a_body_that_is_no_message_is_kept_and_refused(body: bytes, client: TestClient, keys: Keys) -> None:
    answer = client.post("/v1/track", content=body, headers=basic(keys.write))
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_body")
    entry = rejected(client, keys)[0]
    assert (entry["code"], entry["form"]) == ("malformed_body", "text")
    assert entry["payload"].startswith(body.decode("utf-8", "backslashreplace").replace("\0", "\\x00")[:5])


def test_a_batch_over_the_limit_is_refused_before_anything_is_taken(client: TestClient, keys: Keys) -> None:
    for last in (json.dumps(track("last")), "NaN"):
        text = '{"batch":[' + ",".join([json.dumps(track("m"))] * BATCH_EVENTS_MAX + [last]) + "]}"
        answer = client.post("/v1/batch", content=text, headers=basic(keys.write))
        assert (answer.status_code, answer.json()["code"]) == (413, "limit_exceeded")
    assert rejected(client, keys) == []
    assert client.get("/v1/people", headers=keys.bearer("read")).json()["people"] == []


def test_a_browser_may_send_from_any_page(client: TestClient, keys: Keys) -> None:
    asked = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    for path in ("/v1/t", "/t", "/v1/batch", "/v1/cloudevents"):
        preflight = client.options(path, headers={**asked, "Access-Control-Request-Headers": "authorization"})
        assert preflight.status_code in (200, 204)
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        assert "POST" in preflight.headers["access-control-allow-methods"]
        assert "access-control-allow-credentials" not in preflight.headers
    sent = client.post("/v1/t", json=track("m"), headers={**basic(keys.write), "Origin": "https://shop.example"})
    refused = client.post("/v1/t", json=track("m"), headers={"Origin": "https://shop.example"})
    assert sent.headers["access-control-allow-origin"] == refused.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in client.get("/v1/people", headers=keys.bearer("admin")).headers


@pytest.mark.parametrize(
    "error", [StoreFull("the disk is full"), Unavailable("threadline at db.internal:5432", hint="x")]
)
def test_a_store_that_cannot_write_is_503_and_recovers(
    error: Exception,
    client: TestClient,
    keys: Keys,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert client.post("/v1/t", json=track("a"), headers=basic(keys.write)).status_code == 200

    def commit(batches: Sequence[Batch]) -> list[Refusal | None]:
        raise error

    monkeypatch.setattr(engine.store, "commit", commit)
    answer = client.post("/v1/batch", json={"batch": [track("b"), track("c")]}, headers=basic(keys.write))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "the server's log tells more" in answer.json()["detail"]
    ready = client.get("/readyz")
    assert ready.status_code == 503
    # Where the database lies is for whoever runs the server, and not for a browser with a public write key.
    assert str(error) not in answer.text + ready.text
    assert f"POST /v1/batch: {error}" in caplog.messages
    assert client.get("/livez").status_code == 200
    monkeypatch.undo()
    outcome = client.post("/v1/batch", json={"batch": [track("b"), track("c")]}, headers=basic(keys.write)).json()
    assert outcome["accepted"] == 2


def test_the_clock_of_the_client_is_corrected(client: TestClient, keys: Keys, engine: Engine, clock: Clock) -> None:
    sent = "2026-02-01T00:00:10.000Z"
    body = {"batch": [track("m", timestamp="2026-02-01T00:00:00.000Z")], "sentAt": sent}
    client.post("/v1/batch", json=body, headers=basic(keys.write))
    found = engine.log.of_key("default", "shop", "m")
    assert found is not None
    assert found.event.occurred_at == NOW - 10 * SECOND
    assert "clock_corrected" in found.event.marks


RECORDED = [
    pytest.param(json.loads(line), id=f"{file.stem}-{index}")
    for file in sorted(DATA.glob("*.jsonl"))
    if not file.name.startswith("mcp-")  # agents do not come here
    for index, line in enumerate(file.read_text().splitlines())
    # Jitsu's client sends Segment's messages to addresses of its own, which are not among those served.
    if not file.stem.startswith("jitsu")
]


@pytest.mark.parametrize("sent", RECORDED)
def test_what_real_clients_sent_is_taken_as_it_came(sent: dict[str, Any], engine: Engine) -> None:
    engine.credentials.create("default", "write_key", "client", secret="WRITE_KEY_1")
    headers = {name: value for name, value in sent["headers"] if name.lower() not in ("host", "content-length")}
    path = sent["path"]
    if path == "/ce":  # a sender of CloudEvents is told the address and a header for its credential
        path, headers["authorization"] = "/v1/cloudevents", "Bearer WRITE_KEY_1"
    with client_of(engine) as client:
        answer = client.post(path, content=sent["body_text"].encode(), headers=headers)
    assert answer.status_code == 200, answer.text
    outcome = answer.json()
    assert outcome["rejected"] == []
    assert outcome["accepted"] >= 1


@pytest.mark.parametrize("body", [b"4" * 30, b"[" * 100 + b"]" * 100, b"9e999"])
def test_a_body_that_is_no_object_is_malformed_whatever_else_it_is(body: bytes, client: TestClient, keys: Keys) -> None:
    headers = {**basic(keys.write), "Content-Type": "application/cloudevents+json"}
    for path in ("/v1/track", "/v1/batch", "/v1/cloudevents"):
        assert client.post(path, content=body, headers=headers).json()["code"] == "malformed_body", path
