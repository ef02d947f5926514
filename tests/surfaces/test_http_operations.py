"""Operations over HTTP: parameters, scopes, workspaces, problems, and what is logged and counted of them."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import NOW, Clock, Keys, client_of, keys_of
from tests.surfaces.operations_stage import FIELDS, PROBLEM, record
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.settings import Settings
from threadline.surfaces.http.answers.metrics import Metrics
from threadline.surfaces.operation_calls import shown


def test_everything_about_a_person_in_one_read(client: TestClient, keys: Keys, engine: Engine) -> None:
    record(engine)
    answer = client.get("/v1/people/user_id:1", headers=keys.bearer("read"))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert (body["position"], body["identifiers"][0]["value"]) == (1, "1")


@pytest.mark.parametrize("user", ["a/b", "a b", "ü", "😀", "%2F", "a?b#c", "a+b", "../a", "a:b", "\x00", "a\n"])
def test_an_id_may_hold_any_character(user: str, client: TestClient, keys: Keys, engine: Engine) -> None:
    record(engine, user)
    path = f"/v1/people/user_id:{quote(user, safe='').replace('.', '%2E')}"
    answer = client.get(path, headers=keys.bearer("read"))
    assert answer.status_code == 200, answer.text
    assert answer.json()["identifiers"][0]["value"] == user.strip()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "detail"),
    [
        ("GET", "/v1/nothing", None, 404, "not_found", "nothing at this address"),
        ("GET", "/v1/people/user_id:9", None, 404, "not_found", "user_id:9"),
        ("DELETE", "/v1/people", None, 405, "method_not_allowed", "GET"),
        ("PUT", "/v1/track", None, 405, "method_not_allowed", "POST"),
        ("TRACE", "/", None, 405, "method_not_allowed", "GET"),
        ("GET", "/v1/people?limit=x", None, 400, "invalid_value", "limit: expected `int`"),
        ("GET", "/v1/people?limit=0", None, 400, "invalid_value", "limit"),
        ("GET", "/v1/people?limit=99999999999999999999999", None, 400, "invalid_value", "limit"),
        ("GET", "/v1/people/user_id:1/memory?type=null", None, 400, "invalid_value", "type: expected a value"),
        ("GET", "/v1/people?limti=1", None, 400, "invalid_value", "did you mean 'limit'"),
        ("GET", "/v1/people?limit=1&limit=2", None, 400, "invalid_value", "given twice"),
        ("GET", "/v1/people?tag=%ff", None, 400, "invalid_value", "UTF-8"),
        ("GET", "/v1/people/%ff", None, 400, "invalid_value", "UTF-8"),
        ("GET", "/v1/people/user_id:1?id=2", None, 400, "invalid_value", "already given in the path"),
        ("POST", "/v1/people/user_id:1/tags", b"[", 400, "malformed_body", "not JSON"),
        ("POST", "/v1/people/user_id:1/tags", b"[]", 400, "malformed_body", "must be a JSON object"),
        ("POST", "/v1/people/user_id:1/tags", b'{"add": "vip"}', 400, "invalid_value", "add: expected `array`"),
        (
            "POST",
            "/v1/people/user_id:1/tags",
            b'{"id": "user_id:2"}',
            400,
            "invalid_value",
            "already given in the path",
        ),
        ("POST", "/v1/people/user_id:1/tags?add=vip", b"{}", 400, "invalid_value", "belong in the body"),
        ("POST", "/v1/people/user_id:1/tags", b'{"add":' + b"[" * 999, 400, "too_deep", "64 levels deep"),
        ("POST", "/v1/people/user_id:1/tags", b'{"add": ["\xff"]}', 400, "malformed_body", "not JSON"),
        ("POST", "/v1/people/user_id:1/tags", b'{"add": ["\\ud800"]}', 400, "malformed_body", "not JSON"),
        ("POST", "/v1/people/user_id:1/tags", b'{"add": [NaN]}', 400, "malformed_body", "not JSON"),
    ],
)
def test_what_is_wrong_is_told_as_a_problem(
    method: str, path: str, body: bytes | None, status: int, code: str, detail: str, client: TestClient, keys: Keys
) -> None:
    answer = client.request(method, path, content=body, headers=keys.bearer("admin"))
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    told = answer.json()
    assert set(told) - {"hint", "param"} == FIELDS
    assert (told["status"], told["code"]) == (status, code)
    assert detail in told["detail"]
    assert told["instance"] == path.split("?", maxsplit=1)[0]
    page, _, place = told["type"].partition("#")
    assert page == "http://testserver/docs"
    assert f'id="{place}"' in client.get(page).text
    if status == 405:
        assert answer.headers["allow"]


@pytest.mark.parametrize(
    ("method", "path", "body", "param"),
    [
        ("GET", "/v1/people?limit=x", None, "limit"),
        ("GET", "/v1/people?limti=1", None, "limti"),
        ("GET", "/v1/people?cursor=%C2%84", None, "cursor"),
        ("GET", "/v1/people?tag=a&group=b", None, "group"),
        ("GET", "/v1/people/user_id:1/events?start=yesterday", None, "start"),
        ("GET", "/v1/people/user_id:1/events?stop=", None, "stop"),
        ("GET", "/v1/people/user_id:1/days?since=2026-02-30", None, "since"),
        ("GET", "/v1/people/user_id:1/interests?half_life=long", None, "half_life"),
        ("GET", "/v1/people/user_id:1?as_of=9000-01-01T00:00:00Z", None, "as_of"),
        ("POST", "/v1/people/user_id:1/tags", {"add": "vip"}, "add"),
        ("POST", "/v1/people/user_id:1/points/spend", {"points": 1}, "request"),
        ("POST", "/v1/decisions/evaluate", {}, "event_id"),
        ("POST", "/v1/decisions/evaluate", {"person": "user_id:1", "version": 1}, "version"),
    ],
)
def test_a_problem_names_the_parameter_that_is_at_fault(
    method: str, path: str, body: dict[str, Any] | None, param: str, client: TestClient, keys: Keys, engine: Engine
) -> None:
    record(engine)
    answer = client.request(method, path, json=body, headers=keys.bearer("admin"))
    assert (answer.status_code, answer.json().get("param")) == (400, param), answer.text


def test_a_number_without_a_fraction_is_an_integer(client: TestClient, keys: Keys, engine: Engine) -> None:
    record(engine)
    spent = b'{"points": 268.0, "request": "r"}'
    answer = client.post("/v1/people/user_id:1/points/spend", content=spent, headers=keys.bearer("admin"))
    assert "expected" not in answer.text
    event = b'{"events": [{"type": "t", "identifiers": {"user_id": "2"}, "key": "k", "expected": 0.0}]}'
    assert client.post("/v1/events", content=event, headers=keys.bearer("admin")).json()["accepted"] == 1
    for wrong in (b"1.5", b"1e400", b'"1"'):
        body = b'{"points": %b, "request": "r"}' % wrong
        answer = client.post("/v1/people/user_id:1/points/spend", content=body, headers=keys.bearer("admin"))
        assert answer.status_code == 400


SEGMENT = {
    "type": "identify",
    "messageId": "s-1",
    "userId": "U-1",
    "traits": {"email": "Ada@Example.com"},
    "timestamp": "2026-03-01T11:59:00+01:00",
    "custom": [1],
}
CLOUD = {
    "specversion": "1.0",
    "id": "1",
    "source": "/shop",
    "type": "order.done",
    "subject": "user_id:1",
    "n": 7,
    "time": "2026-03-01T11:59:00+01:00",
    "data": {"total": 1},
}


@pytest.mark.parametrize(
    ("path", "kind", "message", "key"),
    [
        ("/v1/batch", "application/json", SEGMENT, "s-1"),
        ("/v1/cloudevents", "application/cloudevents+json", CLOUD, "/shop 1"),
    ],
)
def test_the_message_that_an_event_came_in_can_be_read_as_it_came(
    path: str, kind: str, message: dict[str, Any], key: str, client: TestClient, keys: Keys, engine: Engine
) -> None:
    body = {"batch": [message]} if path == "/v1/batch" else message
    client.post(path, content=json.dumps(body), headers={**keys.bearer("writer"), "content-type": kind})
    recorded = engine.log.of_key("default", "writer", key)
    assert recorded is not None
    shown = client.get(f"/v1/events/{recorded.id}", headers=keys.bearer("read")).json()
    assert shown["payload"] == message


def test_an_event_bears_both_names_of_its_object(client: TestClient, keys: Keys) -> None:
    event = {"type": "t", "identifiers": {"user_id": "1"}, "key": "k", "object_id": "order-7", "object_ref": "#1007"}
    outcomes = []
    for sent in (event, event, {**event, "object_id": "order-8"}):
        answer = client.post("/v1/events", json={"events": [sent]}, headers=keys.bearer("writer"))
        (receipt,) = answer.json()["receipts"]
        outcomes.append(receipt["status"])
    assert outcomes == ["accepted", "duplicate", "conflict"]
    shown = client.get(f"/v1/events/{receipt['id']}", headers=keys.bearer("read")).json()
    assert (shown["object_id"], shown["object_ref"], "payload" in shown) == ("order-7", "#1007", False)


def test_head_is_get_without_a_body(client: TestClient, keys: Keys, engine: Engine) -> None:
    record(engine)
    for path in ("/v1/people/user_id:1", "/v1/people/user_id:2", "/docs", "/livez", "/nothing"):
        full, head = (client.request(m, path, headers=keys.bearer("read")) for m in ("GET", "HEAD"))
        assert (head.status_code, head.content) == (full.status_code, b"")
        assert head.headers["content-length"] == full.headers["content-length"]


def test_scopes_are_checked_for_every_operation(client: TestClient, keys: Keys, engine: Engine) -> None:
    for operation in shown(engine.catalogue.operations, "http").values():
        path = operation.path.replace("{", "x").replace("}", "")
        for name, scopes in {
            "read": {"read"},
            "writer": {"write"},
            "write": set(),
            "admin": {"read", "write", "admin"},
        }.items():
            answer = client.request(operation.method, path, headers=keys.bearer(name))
            assert (answer.status_code != 403) == (operation.scope in scopes), (operation.name, name, answer.text)
        for headers in ({}, {"Authorization": "Bearer tl_wrong"}, {"Authorization": "Basic Og=="}):
            answer = client.request(operation.method, path, headers=headers)
            assert answer.status_code == 401, operation.name


def test_the_metrics_need_an_admin(client: TestClient, keys: Keys) -> None:
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=keys.bearer("read")).status_code == 403
    assert client.get("/metrics", headers=keys.bearer("admin")).status_code == 200


def test_workspaces_are_apart(client: TestClient, keys: Keys, engine: Engine) -> None:
    record(engine)
    mine = client.get("/v1/people/user_id:1", headers=keys.bearer("read")).json()
    for path in (
        "/v1/people/user_id:1",
        f"/v1/people/{mine['id']}",
        f"/v1/events/{mine['timeline']['events'][0]['id']}",
    ):
        assert client.get(path, headers=keys.bearer("read")).status_code == 200
        assert client.get(path, headers=keys.bearer("stranger")).status_code == 404
    assert client.get("/v1/people", headers=keys.bearer("stranger")).json()["people"] == []
    assert client.get("/v1/feed", headers=keys.bearer("stranger")).json()["events"] == []
    listed = client.get("/v1/keys", headers=keys.bearer("stranger")).json()["keys"]
    assert [each["name"] for each in listed] == ["stranger"]


def test_a_token_in_the_query_is_good_and_is_no_parameter(client: TestClient, keys: Keys) -> None:
    assert client.get(f"/v1/people?access_token={keys.read}").status_code == 200


@pytest.mark.parametrize("others", ["Bearer nothing", "Basic Og==", "", "Bearer {}"])
@pytest.mark.parametrize("good_first", [True, False])
def test_a_credential_that_is_told_twice_is_refused(
    others: str, good_first: bool, client: TestClient, keys: Keys
) -> None:
    both = [("authorization", f"Bearer {keys.admin}"), ("authorization", others.format(keys.admin))]
    headers = both if good_first else both[::-1]
    for method, path in (("GET", "/v1/people"), ("POST", "/v1/events"), ("POST", "/v1/track"), ("GET", "/metrics")):
        answer = client.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (401, "send the header `Authorization` once"), path


def test_a_good_token_without_the_scope_is_answered_403_at_every_address(client: TestClient, keys: Keys) -> None:
    document = client.get("/openapi.json").json()
    answers = {}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            needed = re.search(r"scope `(\w+)`", described.get("description", ""))
            records = {"writeKey": []} in described.get("security", ())
            if records or (needed is not None and needed[1] != "read"):
                content = described.get("requestBody", {}).get("content", {})
                kind = next(iter(content), "application/json")
                answer = client.request(
                    method,
                    path,
                    headers={**keys.bearer("read"), "content-type": kind},
                    json=content.get(kind, {}).get("example"),
                )
                answers[f"{method} {path}"] = (answer.status_code, answer.json()["code"])
    assert len(answers) > 40
    assert {name: answer for name, answer in answers.items() if answer != (403, "forbidden")} == {}


def test_keys_are_made_and_revoked_over_http(client: TestClient, keys: Keys) -> None:
    made = client.post("/v1/keys", json={"name": "web"}, headers=keys.bearer("admin"))
    assert made.status_code == 201
    secret = made.json()["secret"]
    message = {"userId": "1", "event": "click", "messageId": "m", "writeKey": secret}
    assert client.post("/v1/t", json=message).status_code == 200
    listed = client.get("/v1/keys", headers=keys.bearer("admin"))
    assert secret not in listed.text
    assert client.delete(f"/v1/keys/{made.json()['id']}", headers=keys.bearer("admin")).status_code == 200
    assert client.post("/v1/t", json=message).status_code == 401
    assert client.delete(f"/v1/keys/{made.json()['id']}", headers=keys.bearer("admin")).status_code == 404


def test_metrics_tell_a_token_of_its_own_workspace_only(clock: Clock) -> None:
    settings = Settings(tokens="operator=tk-operator")
    with closing(open_engine("memory:", settings, clock)) as engine, client_of(engine) as client:
        keys = keys_of(engine)
        _, elsewhere = engine.credentials.create("other", "write_key", "shop")
        for secret, count in ((keys.write, 2), (elsewhere, 3)):
            batch = [{"type": "track", "event": "x", "userId": "1", "messageId": f"m{n}"} for n in range(count)]
            bad = client.post("/v1/batch", content=b"[", headers={"Authorization": f"Bearer {secret}"})
            assert bad.status_code == 400
            sent = client.post("/v1/batch", json={"batch": batch}, headers={"Authorization": f"Bearer {secret}"})
            assert sent.json()["accepted"] == count

        def told(secret: str) -> tuple[set[str], str]:
            page = client.get("/metrics", headers={"Authorization": f"Bearer {secret}"}).text
            return {line for line in page.splitlines() if line.startswith("threadline_events_ingested_total{")}, page

        one = {
            'threadline_events_ingested_total{workspace="default",source="shop",outcome="accepted"} 2',
            'threadline_events_ingested_total{workspace="default",source="shop",outcome="rejected"} 1',
        }
        other = {
            'threadline_events_ingested_total{workspace="other",source="shop",outcome="accepted"} 3',
            'threadline_events_ingested_total{workspace="other",source="shop",outcome="rejected"} 1',
        }
        assert told(keys.admin)[0] == one
        assert told(keys.stranger)[0] == other
        assert told("tk-operator")[0] == one | other
        for secret in (keys.admin, keys.stranger, "tk-operator"):
            assert "\nthreadline_events_waiting 0\n" in told(secret)[1]

        engine.recorder.policy_failures["other", "streaks"] = 4
        failed = '\nthreadline_policy_failures_total{workspace="other",policy="streaks"} 4\n'
        tokens = (keys.admin, keys.stranger, "tk-operator")
        assert [failed in told(secret)[1] for secret in tokens] == [False, True, True]


def test_events_recorded_by_a_token_have_its_name_as_source(client: TestClient, keys: Keys, engine: Engine) -> None:
    event = {"type": "click", "identifiers": {"user_id": "1"}, "key": "k"}
    answer = client.post("/v1/events", json={"events": [event]}, headers=keys.bearer("writer"))
    assert answer.json()["accepted"] == 1
    assert engine.log.of_key("default", "writer", "k") is not None


@pytest.mark.parametrize("path", ["/v1/events", "/v1/decisions/evaluate"])
def test_no_name_makes_a_token_one_of_this_process(path: str, client: TestClient, keys: Keys, engine: Engine) -> None:
    secret = engine.credentials.create("default", "token", "direct", ["write"])[1]
    event = {"type": "points_adjusted", "identifiers": {"user_id": "1"}, "key": "k", "properties": {"points": 100}}
    body = {"events": [event]} if path == "/v1/events" else {"event": event, "record": True}
    assert client.post(path, json=body, headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert client.get("/v1/people/user_id:1/points", headers=keys.bearer("read")).json()["balance"] == 0
    (told,) = client.get("/v1/people/user_id:1/events", headers=keys.bearer("read")).json()["events"]
    assert told["source_type"] == "external"


def test_a_fault_of_ours_tells_nothing_of_what_is_inside(
    client: TestClient, keys: Keys, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def person(workspace: str, ref: str) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(engine.reader, "person", person)
    answer = client.get("/v1/people/user_id:1", headers=keys.bearer("read"))
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret detail" not in answer.text


def test_requests_are_counted_by_route_and_never_by_person(client: TestClient, keys: Keys, engine: Engine) -> None:
    record(engine, "someone-special")
    client.get("/v1/people/user_id:someone-special", headers=keys.bearer("read"))
    client.get("/v1/someone-special", headers=keys.bearer("read"))
    client.request("SOMEONE-SPECIAL", "/livez")
    text = client.get("/metrics", headers=keys.bearer("admin")).text
    assert 'threadline_http_requests_total{method="GET",route="/v1/people/{id}",status="200"} 1' in text
    assert 'route="unmatched"' in text
    assert "someone-special" not in text.lower()
    assert text.endswith("\n")


NATIVE = {"type": "click", "identifiers": {"user_id": "7"}, "key": "k"}
CLOUD = {"specversion": "1.0", "id": "k", "source": "/shop", "type": "click", "subject": "user_id:7"}


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/events", {"events": [NATIVE, NATIVE, {**NATIVE, "type": "tap"}, {**NATIVE, "key": "k2"}]}, {}),
        ("/v1/batch", {"batch": [{"type": "track", "event": "click", "userId": "7", "messageId": "k"}] * 2}, {}),
        (
            "/v1/cloudevents",
            [CLOUD, CLOUD, {**CLOUD, "id": "k2", "specversion": "9"}],
            {"Content-Type": "application/cloudevents-batch+json"},
        ),
        ("/v1/cloudevents", CLOUD, {"Content-Type": "application/cloudevents+json"}),
    ],
)
def test_every_way_in_counts_its_events(
    path: str, body: Any, headers: dict[str, str], client: TestClient, keys: Keys
) -> None:
    bearer = keys.bearer("admin")
    answer = client.post(
        path, content=json.dumps(body), headers={"Content-Type": "application/json", **bearer, **headers}
    )
    told = answer.json()
    counted = {
        found["outcome"]: int(found["count"])
        for found in re.finditer(
            r'^threadline_events_ingested_total\{workspace="default",source="admin",outcome="(?P<outcome>\w+)"\} '
            r"(?P<count>\d+)$",
            client.get("/metrics", headers=bearer).text,
            re.MULTILINE,
        )
    }
    rejected = told["rejected"] if isinstance(told["rejected"], int) else len(told["rejected"])
    said = {"accepted": told["accepted"], "duplicate": told["duplicates"], "conflict": told["conflicts"]}
    assert told["accepted"] >= 1
    assert counted == {name: count for name, count in {**said, "rejected": rejected}.items() if count}


@pytest.mark.parametrize("value", [0.0, 123_456_789.0, 1_767_225_600.125, 2.0**60, 0.1])
def test_a_gauge_has_all_its_digits(value: float) -> None:
    line = Metrics().text({"some": ("Something.", value)}, None).splitlines()[-1]
    name, _, told = line.partition(" ")
    assert (name, float(told)) == ("threadline_some", value)
    assert told.isdigit() == value.is_integer()


def test_the_log_names_routes_and_no_secrets(engine: Engine, keys: Keys, clock: Clock) -> None:
    from threadline.surfaces.http.server.application import Application

    lines: list[bytes] = []
    with TestClient(Application(engine, Settings(), log_line=lines.append)) as client:
        client.get(f"/v1/people/user_id:private?access_token={keys.read}")
        client.post("/v1/t", json={"userId": "private", "event": "x", "writeKey": keys.write})
    told = [json.loads(line) for line in lines]
    assert [(each["method"], each["route"], each["status"]) for each in told] == [
        ("GET", "/v1/people/{id}", 404),
        ("POST", "/v1/t", 200),
    ]
    assert all(line.endswith(b"\n") for line in lines)
    everything = b"".join(lines).decode()
    assert not [secret for secret in (*keys, "private") if secret in everything]


def test_types_of_events_are_repeated_in_a_query(client: TestClient, keys: Keys, engine: Engine) -> None:
    for key, type_ in enumerate(("Signed, sealed", "page ", "click")):
        engine.recorder.record(
            [
                Event(
                    type=type_,
                    identifiers=(Identifier("user_id", "1"),),
                    occurred_at=NOW - 1,
                    key=f"{key}",
                    source="shop",
                )
            ]
        )
    for query, count in (("types=Signed%2C+sealed", 1), ("types=page+&types=click", 2), ("type=click", 1)):
        answer = client.get(f"/v1/people/user_id:1/events?{query}", headers=keys.bearer("read"))
        assert len(answer.json()["events"]) == count, query
