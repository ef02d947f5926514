"""Requests that Lambda hands over: answered as a server answers them, whatever the gateway made of them."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from starlette.responses import StreamingResponse
from starlette.testclient import TestClient

from tests.surfaces.conftest import Clock, Keys, keys_of
from tests.surfaces.lambda_stage import API, FUNCTION, content, payload, runtime_on
from tests.surfaces.operations_stage import record
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel.limits import LAMBDA_ANSWER_BYTES_MAX
from threadline.settings import Settings
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.lambda_ import http
from threadline.surfaces.lambda_.http import HttpFunction, written_answer

TRACK = {"type": "track", "userId": "ada", "event": "Order Completed", "properties": {"total": 3}, "messageId": "m-1"}


@pytest.fixture
def function(engine: Engine) -> Iterator[HttpFunction]:
    made = HttpFunction(runtime_on(engine))
    yield made
    made.close()


class _Both:
    """One engine behind a function and behind a server."""

    def __init__(self) -> None:
        self.engine = open_engine("memory:", Settings(), Clock())
        self.keys = keys_of(self.engine)
        self.function = HttpFunction(runtime_on(self.engine))
        self.servers = {
            domain: TestClient(
                Application(self.engine, Settings(access_log=False)), f"https://{domain}", raise_server_exceptions=False
            )
            for domain in (API, FUNCTION)
        }


@pytest.fixture(scope="module")
def both() -> _Both:
    return _Both()


segments = st.text(max_size=20).filter(lambda text: text not in (".", ".."))


@given(
    st.sampled_from(["GET", "HEAD", "POST", "OPTIONS", "DELETE"]),
    st.lists(segments, max_size=3),
    st.sampled_from(["", "as_of=2026-03-01", "limit=x", "limit=%20&a=%2B+"]),
    st.sampled_from([API, FUNCTION]),
    st.sampled_from(["$default", "live", "v1"]),
)
@example("GET", ["v1", "people", "user_id:100%25"], "", API, "$default")
@example("GET", ["v1", "people", "user_id:100%25"], "", FUNCTION, "$default")
@example("GET", ["v1", "people", "user_id:é ?#"], "", API, "live")
@example("GET", ["v1", "people", "user_id:a/b"], "", FUNCTION, "$default")
def test_any_path_is_answered_as_by_a_server(
    both: _Both, method: str, parts: list[str], query: str, domain: str, stage: str
) -> None:
    # An HTTP API decodes a slash within a name; there is no telling it from one between two.
    names = [name.replace("/", "") for name in parts] if domain == API else parts
    raw_path = "/" + "/".join(quote(name, safe="") for name in names)
    assume(not raw_path.startswith("//"))  # the client of the tests would make one slash of them
    headers = {"authorization": f"Bearer {both.keys.admin}"}
    by_server = both.servers[domain].request(method, f"{raw_path}?{query}", headers=headers, follow_redirects=False)
    by_function = both.function.answer(payload(method, raw_path, query, headers, domain=domain, stage=stage))
    assert by_function["statusCode"] == by_server.status_code
    assert _comparable(content(by_function)) == _comparable(by_server.content)
    assert {**by_function["headers"], "content-length": ""} == {**by_server.headers, "content-length": ""}


def _comparable(body: bytes) -> Any:
    """An answer without the path that a problem repeats: one path has several spellings."""
    return {**json.loads(body), "instance": ""} if body.startswith(b'{"type":"https') else body


def test_the_name_in_a_path_is_decoded_once(engine: Engine, keys: Keys, function: HttpFunction) -> None:
    for name in ("100%", "100%25", "a b", "é?#"):
        record(engine, name, name)
        for domain in (API, FUNCTION):
            path = f"/v1/people/{quote('user_id:' + name, safe='')}"
            answer = function.answer(payload("GET", path, "", keys.bearer("read"), domain=domain))
            assert answer["statusCode"] == 200, (name, domain)
            assert name in [each["value"] for each in json.loads(answer["body"])["identifiers"]]


@pytest.mark.parametrize("packed", [False, True])
def test_a_batch_is_recorded_and_its_repetition_counted_as_duplicate(
    function: HttpFunction, keys: Keys, packed: bool
) -> None:
    body = json.dumps({"batch": [TRACK], "writeKey": keys.write}).encode()
    headers = {"content-type": "application/json", **({"content-encoding": "gzip"} if packed else {})}
    event = payload("POST", "/v1/batch", "", headers, gzip.compress(body) if packed else body)
    answers = [json.loads(function.answer(event)["body"]) for _ in range(2)]
    assert [(each["accepted"], each["duplicates"]) for each in answers] == [(1, 0), (0, 1)]


@pytest.mark.parametrize(
    "event", [{}, {"version": "1.0", "httpMethod": "GET", "path": "/"}, {"Records": []}, {"version": "2.0"}]
)
def test_what_is_no_payload_two_is_refused_by_name(function: HttpFunction, event: dict[str, Any]) -> None:
    answer = function.answer(event)
    assert answer["statusCode"] == 400
    assert "payload format 2.0" in json.loads(answer["body"])["detail"]


@pytest.mark.parametrize("body", ["{}", "é"])
def test_a_body_that_is_no_base64_is_refused(function: HttpFunction, body: str) -> None:
    event = {**payload("POST", "/v1/track"), "body": body, "isBase64Encoded": True}
    assert function.answer(event)["statusCode"] == 400


def test_an_answer_larger_than_lambda_passes_on_is_refused_and_one_below_is_not() -> None:
    headers = [(b"content-type", b"application/json")]
    assert written_answer(200, headers, b"a" * (LAMBDA_ANSWER_BYTES_MAX - 1_000))["statusCode"] == 200
    for whole in (b"a" * LAMBDA_ANSWER_BYTES_MAX, b'"' * (LAMBDA_ANSWER_BYTES_MAX // 2)):
        with pytest.raises(http.LimitExceeded, match="Lambda passes on"):
            written_answer(200, headers, whole)


def test_a_stream_of_progress_ends_after_a_while_in_good_order(
    engine: Engine, keys: Keys, function: HttpFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "STREAM_SECONDS", 0.1)
    engine.jobs.create("default", min(engine.catalogue.job_kinds), "one", {}, by="tests")
    answer = function.answer(payload("GET", "/v1/jobs/one/events", "", keys.bearer("read")))
    assert (answer["statusCode"], answer["headers"]["content-type"][:17]) == (200, "text/event-stream")
    assert "event: progress" in answer["body"]


def test_a_file_that_is_not_whole_in_time_is_no_answer(function: HttpFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"PK"
            await asyncio.sleep(0.01)

    monkeypatch.setattr(http, "STREAM_SECONDS", 0.1)
    monkeypatch.setattr(function, "_application", StreamingResponse(endless(), media_type="application/zip"))
    answer = function.answer(payload("GET", "/"))
    assert (answer["statusCode"], json.loads(answer["body"])["code"]) == (503, "unavailable")
    monkeypatch.undo()


def test_cookies_are_joined_on_the_way_in_and_separate_on_the_way_out() -> None:
    scope, _ = http.read_request({**payload("GET", "/"), "cookies": ["a=1", "b=2"]})
    assert (b"cookie", b"a=1; b=2") in scope["headers"]
    answer = written_answer(
        200, [(b"Set-Cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"Vary", b"a"), (b"vary", b"b")], b""
    )
    assert (answer["cookies"], answer["headers"]) == (["a=1", "b=2"], {"vary": "a, b"})


def test_the_first_answer_needs_no_schema_of_graphql_no_client_and_no_command_line() -> None:
    # What a cold start imports is paid with every new process; each of these takes 50 ms or more.
    script = (
        "import sys\n"
        "from tests.surfaces.lambda_stage import payload\n"
        "from threadline.surfaces.lambda_.http import handler\n"
        "assert handler(payload('GET', '/livez'))['statusCode'] == 200\n"
        "heavy = {'strawberry', 'graphql', 'click', 'rich', 'httpx', 'uvicorn', 'boto3', 'pyarrow', 'duckdb'}\n"
        "heavy.add('threadline.wire.mime.mail')\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    environment = {"THREADLINE_STORE": "memory:", "PYTHONPATH": ":".join(filter(None, sys.path))}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
