"""Destinations that somebody has written: the request that is sent, logins, answers, and no secret anywhere."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.test_dispatch import Clock
from tests.senders.receiver import OK, Answer, Call, Receiver
from threadline.app import open_dispatcher, open_engine
from threadline.capabilities.foundation.webhooks.filling import Filling, fill, problems_of
from threadline.kernel.errors import InvalidDefinition, InvalidSetting
from threadline.kernel.time import DAY, HOUR, SECOND
from threadline.settings import Settings
from threadline.surfaces.python.embedded import Threadline
from threadline.testing.store_scripts import everything as stored_of

DONE, RETRIED, PARKED = "threadline.effect_done", "threadline.effect_retried", "threadline.effect_parked"
CANARIES = {
    "WH_TOKEN": "canary-token-51b7",
    "WH_PASSWORD": "canary password 9c",
    "WH_CLIENT": "canary-client-secret-77/+",
    "WH_KEY": "canary-key-4e",
    "WH_QUERY": "canary&query=5d",
}
RULES = """
rules:
  tell:
    version: 1
    conditions: {field: event.properties.order, exists: true}
    actions:
      - call_webhook:
          destination: crm
          payload: {order: "${event.properties.order}", name: "${event.properties.name}"}
rule_sets:
  orders: {events: [ordered], rules: [tell]}
"""


class Shop:
    """A store with one written destination, which is called for every order."""

    def __init__(self, folder: Path, destination: str) -> None:
        file = folder / "threadline.yaml"
        file.write_text(f"destinations:\n  crm:\n{destination}{RULES}")
        self.settings = Settings(
            store="memory:", definitions=str(file), webhook_private_addresses="127.0.0.0/8", webhook_http=True
        )
        self.clock = Clock()
        self.engine = open_engine(None, self.settings, self.clock)
        self.asked = Threadline(self.engine, workspace="default", source="shop")
        self.dispatcher = open_dispatcher(self.engine, self.settings)

    def order(self, number: int = 1, **properties: Any) -> None:
        self.asked.track("ada", "ordered", {"order": number, "name": "Ada", **properties}, key=f"order {number}")

    def work(self, until: int = 0) -> None:
        until = until and self.clock.now + until
        while self.dispatcher.run_once() or self.clock.now < until:
            self.clock.now = min(self.clock.now + 10 * SECOND, max(until, self.clock.now))

    def outcomes(self) -> list[tuple[str, dict[str, Any]]]:
        events = sorted(self.asked.events.of("user_id:ada").events, key=lambda event: event.sequence)
        return [(event.type, event.properties) for event in events if event.type in (DONE, RETRIED, PARKED)]

    def deliveries(self) -> list[Any]:
        page = self.asked.webhooks.deliveries(limit=100).deliveries
        return [self.asked.webhooks.delivery(id=line.id) for line in page]


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CANARIES.items():
        monkeypatch.setenv(name, value)


Serve = Callable[..., Receiver]


@pytest.fixture
def serve() -> Iterator[Serve]:
    opened = []

    def serve(answer: Callable[[Call], Answer] = lambda call: OK) -> Receiver:
        receiver = Receiver(answer)
        receiver.__enter__()
        opened.append(receiver)
        return receiver

    yield serve
    for receiver in opened:
        receiver.__exit__(None, None, None)


# --- what is sent ---------------------------------------------------------------------------------


def test_a_written_request_has_its_method_address_headers_and_body(tmp_path: Path, serve: Serve) -> None:
    receiver = serve()
    shop = Shop(
        tmp_path,
        f"""
    url: {receiver.url("/people/{{ payload.name }}")}
    method: PUT
    query: {{order: "{{{{ payload.order }}}}", key: env:WH_QUERY}}
    headers: {{Idempotency-Key: "{{{{ id }}}}", X-Name: "{{{{ payload.name }}}}", X-Key: env:WH_KEY}}
    body: |
      {{"name": "Hi {{{{ payload.name }}}}", "order": {{{{ payload.order }}}}, "rule": {{{{ rule }}}}}}
""",
    )
    shop.order(7, name='a/b"\r\nEvil: 1')
    shop.work()
    [call] = receiver.calls
    parts = urlsplit(call.path)
    assert call.method == "PUT"
    assert parts.path.startswith("/people/")
    assert unquote(parts.path.removeprefix("/people/")) == 'a/b"\r\nEvil: 1'
    assert parse_qs(parts.query) == {"order": ["7"], "key": [CANARIES["WH_QUERY"]]}
    assert json.loads(call.body) == {"name": 'Hi a/b"\r\nEvil: 1', "order": 7, "rule": "tell"}
    assert call.headers["x-name"] == 'a/b" Evil: 1'
    assert "evil" not in call.headers
    assert call.headers["x-key"] == CANARIES["WH_KEY"]
    [(type, outcome)] = shop.outcomes()
    assert (type, outcome["effect"]) == (DONE, call.headers["idempotency-key"])
    [delivery] = shop.deliveries()
    assert (delivery.method, delivery.headers["X-Key"]) == ("PUT", "(hidden)")


def test_an_attempt_that_fails_is_made_again_with_the_same_request(tmp_path: Path, serve: Serve) -> None:
    answers: list[Answer] = [(500, {}, b""), (400, {}, b""), OK]
    receiver = serve(lambda call: answers.pop(0))
    body = '{"o": {{ payload.order }}, "id": {{ id }}}'
    shop = Shop(tmp_path, f"    {{url: '{receiver.url('/{{ payload.order }}')}', body: '{body}'}}\n")
    shop.order(7)
    shop.work(HOUR)
    assert len({(call.path, call.body, call.headers["webhook-id"]) for call in receiver.calls}) == 1
    assert [type for type, _ in shop.outcomes()] == [RETRIED, RETRIED, DONE]


def test_a_get_has_no_body(tmp_path: Path, serve: Serve) -> None:
    receiver = serve()
    shop = Shop(tmp_path, f"    {{url: '{receiver.url()}', method: GET, query: {{o: '{{{{ payload.order }}}}'}}}}\n")
    shop.order(7)
    shop.work()
    [call] = receiver.calls
    assert (call.method, call.path, call.body) == ("GET", "/hooks?o=7", b"")
    assert "content-type" not in call.headers


def test_a_request_that_cannot_be_made_is_parked_and_says_why(tmp_path: Path, serve: Serve) -> None:
    receiver = serve()
    shop = Shop(tmp_path, f"    {{url: '{receiver.url()}', body: '{{\"n\": {{{{ payload.absent }}}}}}'}}\n")
    shop.order(7)
    shop.work()
    assert receiver.calls == []
    [(type, outcome)] = shop.outcomes()
    assert type == PARKED
    assert outcome["why"] == "its request cannot be made: `body`, line 1: `payload.absent` is undefined"


def test_what_the_destination_does_not_allow_is_in_no_template(tmp_path: Path, serve: Serve) -> None:
    receiver = serve()
    written = f"{{url: '{receiver.url()}', payload: [order], body: '{{{{ payload }}}}'}}"
    shop = Shop(tmp_path, f"    {written}\n")
    shop.order(7, name="Ada")
    shop.work()
    [call] = receiver.calls
    assert json.loads(call.body) == {"order": 7}
    assert shop.outcomes()[0][1]["withheld"] == ["name"]


def test_an_address_that_is_a_secret_is_called_and_not_shown(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = serve(lambda call: (404, {}, f"no such path {call.path}".encode()))
    monkeypatch.setenv("WH_ADDRESS", receiver.url("/services/T1/B2/canary-path-88?x=1"))
    shop = Shop(tmp_path, "    {url: env:WH_ADDRESS, query: {q: '{{ payload.order }}'}, body: '{}'}\n")
    shop.order(7)
    shop.work()
    assert receiver.calls[0].path == "/services/T1/B2/canary-path-88?x=1&q=7"
    assert "canary" not in everything(shop)
    assert shop.deliveries()[0].url == "http://127.0.0.1/(hidden)"


# --- logins ---------------------------------------------------------------------------------------

LOGINS = {
    "basic": "{basic: {user: me, password: env:WH_PASSWORD}}",
    "bearer": "{bearer: env:WH_TOKEN}",
    "hmac": "{hmac: {secret: env:WH_KEY, header: X-Sig, prefix: 'sha256='}}",
}


@pytest.mark.parametrize("login", LOGINS)
def test_a_call_brings_its_login(tmp_path: Path, serve: Serve, login: str) -> None:
    receiver = serve()
    shop = Shop(tmp_path, f"    {{url: '{receiver.url()}', body: '[1]', login: {LOGINS[login]}}}\n")
    shop.order()
    shop.work()
    [call] = receiver.calls
    signed = hmac.new(CANARIES["WH_KEY"].encode(), call.body, hashlib.sha256).hexdigest()
    wanted = {
        "basic": ("authorization", "Basic " + base64.b64encode(f"me:{CANARIES['WH_PASSWORD']}".encode()).decode()),
        "bearer": ("authorization", f"Bearer {CANARIES['WH_TOKEN']}"),
        "hmac": ("x-sig", f"sha256={signed}"),
    }
    header, value = wanted[login]
    assert call.headers[header] == value
    [delivery] = shop.deliveries()
    assert {name.lower(): shown for name, shown in delivery.headers.items()}[header] == "(hidden)"


class Issuer:
    """An issuer of tokens and an API that takes them; ``revoke`` makes it refuse those it has issued."""

    def __init__(self) -> None:
        self.issued: list[str] = []
        self.asked: list[Call] = []
        self.accepted: list[Call] = []
        self.good = set[str]()
        self.status = 200

    def __call__(self, call: Call) -> Answer:
        if call.path == "/token":
            self.asked.append(call)
            token = f"canary-issued-{len(self.issued)}"
            self.issued.append(token)
            self.good.add(f"Bearer {token}")
            answer = {"access_token": token, "token_type": "Bearer", "expires_in": 3_600}
            return self.status, {}, json.dumps(answer).encode()
        if call.headers.get("authorization") not in self.good:
            return 401, {}, f"you sent {call.headers.get('authorization')}".encode()
        self.accepted.append(call)
        return 200, {}, b"{}"


def oauth(receiver: Receiver, more: str = "") -> str:
    login = f"{{token_url: '{receiver.url('/token')}', client_id: me, client_secret: env:WH_CLIENT{more}}}"
    return f"    {{url: '{receiver.url()}', body: '[1]', login: {{oauth: {login}}}}}\n"


def test_a_token_is_fetched_once_kept_until_its_end_and_fetched_anew(tmp_path: Path, serve: Serve) -> None:
    issuer = Issuer()
    shop = Shop(tmp_path, oauth(serve(issuer), ", scope: write all"))
    for number in range(3):
        shop.order(number)
        shop.work()
    assert (len(issuer.asked), len(issuer.accepted)) == (1, 3)
    form = dict(parse_qsl(issuer.asked[0].body.decode()))
    assert form == {"grant_type": "client_credentials", "scope": "write all"}
    sent = base64.b64decode(issuer.asked[0].headers["authorization"].removeprefix("Basic ")).decode()
    assert unquote(sent) == f"me:{CANARIES['WH_CLIENT']}"
    shop.clock.now += HOUR
    shop.order(9)
    shop.work()
    assert (len(issuer.asked), len(issuer.accepted)) == (2, 4)


def test_a_token_that_is_refused_is_fetched_anew_once_and_the_call_goes_through(tmp_path: Path, serve: Serve) -> None:
    issuer = Issuer()
    shop = Shop(tmp_path, oauth(serve(issuer), ", credentials: body"))
    shop.order(1)
    shop.work()
    issuer.good.clear()
    shop.order(2)
    shop.work()
    assert (len(issuer.asked), len(issuer.accepted)) == (2, 2)
    assert [type for type, _ in shop.outcomes()] == [DONE, DONE]
    assert dict(parse_qsl(issuer.asked[0].body.decode()))["client_secret"] == CANARIES["WH_CLIENT"]
    assert "authorization" not in issuer.asked[0].headers


def test_an_api_that_refuses_every_token_is_asked_twice_in_an_attempt(tmp_path: Path, serve: Serve) -> None:
    issuer = Issuer()
    receiver = serve(lambda call: issuer(call) if call.path == "/token" else (401, {}, str(call.headers).encode()))
    shop = Shop(tmp_path, oauth(receiver))
    shop.order(1)
    shop.dispatcher.run_once()
    assert [call.path for call in receiver.calls] == ["/token", "/hooks", "/token", "/hooks"]
    assert [type for type, _ in shop.outcomes()] == [RETRIED]
    assert "canary" not in everything(shop)


@pytest.mark.parametrize("answer", [(500, b"canary-body"), (200, b"canary-body"), (200, b'{"access_token": "a b"}')])
def test_a_token_that_cannot_be_fetched_is_a_failure_of_the_destination(
    tmp_path: Path, serve: Serve, answer: tuple[int, bytes]
) -> None:
    receiver = serve(lambda call: (answer[0], {}, answer[1]))
    shop = Shop(tmp_path, oauth(receiver))
    shop.order(1)
    shop.dispatcher.run_once()
    assert [call.path for call in receiver.calls] == ["/token"]
    [(type, outcome)] = shop.outcomes()
    assert type == RETRIED
    assert outcome["error"].startswith("no access token was fetched")
    assert "canary" not in everything(shop)


def test_a_token_is_not_fetched_from_a_private_address(tmp_path: Path, serve: Serve) -> None:
    receiver = serve()
    written = oauth(receiver).replace("127.0.0.1", "10.255.255.1", 1)
    token_first = written.index("token_url")
    assert "10.255.255.1" not in written[token_first:]
    shop = Shop(tmp_path, oauth(receiver).replace(receiver.url("/token"), "http://10.255.255.1/token"))
    shop.order(1)
    shop.work()
    [(type, outcome)] = shop.outcomes()
    assert type == PARKED
    assert "10.255.255.1 is not public" in outcome["why"]
    assert receiver.calls == []


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("success", "status", "body", "type"),
    [
        ("{statuses: [202]}", 202, b"", DONE),
        ("{statuses: [202]}", 200, b"", RETRIED),
        ("{statuses: [2xx, 409]}", 409, b"there already", DONE),
        ("{statuses: [200-204]}", 205, b"", RETRIED),
        ("{path: ok, value: true}", 200, b'{"ok": true}', DONE),
        ("{path: ok, value: true}", 200, b'{"ok": false, "error": "no"}', RETRIED),
        ("{path: ok, value: true}", 200, b'{"ok": 1}', RETRIED),
        ("{path: ok, value: true}", 200, b"ok", RETRIED),
        ("{path: ok, value: true}", 200, b"", RETRIED),
        ("{path: results.0.state, value: done}", 200, b'{"results": [{"state": "done"}]}', DONE),
        ("{path: results.1.state, value: done}", 200, b'{"results": [{"state": "done"}]}', RETRIED),
        ("{path: count, value: 1}", 200, b'{"count": 1.0}', DONE),
        ("{statuses: [410]}", 410, b"", DONE),
    ],
)
def test_the_declared_answers_are_a_success(
    tmp_path: Path, serve: Serve, success: str, status: int, body: bytes, type: str
) -> None:
    receiver = serve(lambda call: (status, {}, body))
    shop = Shop(tmp_path, f"    {{url: '{receiver.url()}', body: '[1]', success: {success}}}\n")
    shop.order()
    shop.dispatcher.run_once()
    assert [made for made, _ in shop.outcomes()] == [type]


def test_the_outcome_has_what_is_taken_from_the_answer_within_a_bound(tmp_path: Path, serve: Serve) -> None:
    answer = {"results": [{"id": "c-17", "new": True}], "long": "x" * 2_000}
    receiver = serve(lambda call: (200, {}, json.dumps(answer).encode()))
    result = "{contact: results.0.id, is_new: results.0.new, long: long, absent: nothing.here}"
    shop = Shop(tmp_path, f"    {{url: '{receiver.url()}', body: '[1]', result: {result}}}\n")
    shop.order()
    shop.work()
    [(type, outcome)] = shop.outcomes()
    assert type == DONE
    assert outcome["result"] == {"contact": "c-17", "is_new": True}
    assert outcome["result_left_out"] == ["absent", "long"]


@pytest.mark.parametrize("body", [b"", b"no json", b'{"results": ', b'"' + b"x" * 100_000 + b'"', b"[" * 50_000])
def test_an_answer_of_which_nothing_can_be_taken_is_a_success_without_it(
    tmp_path: Path, serve: Serve, body: bytes
) -> None:
    receiver = serve(lambda call: (200, {}, body))
    shop = Shop(tmp_path, f"    {{url: '{receiver.url()}', body: '[1]', result: {{contact: id}}}}\n")
    shop.order()
    shop.work()
    [(type, outcome)] = shop.outcomes()
    assert (type, outcome["result"], outcome["result_left_out"]) == (DONE, {}, ["contact"])


# --- secrets --------------------------------------------------------------------------------------


def everything(shop: Shop) -> str:
    """All that anybody can read of what was sent: events, deliveries, parked calls, the export, the store itself."""
    shown: list[Any] = [
        shop.asked.events.of("user_id:ada").events,
        shop.deliveries(),
        shop.asked.effects.parked().effects,
        shop.asked.webhooks.destinations(),
    ]
    stored = repr(stored_of(shop.engine.store))
    assert "ordered" in stored
    return msgspec.json.encode(msgspec.to_builtins(shown)).decode() + stored


@pytest.mark.parametrize("status", [200, 400, 500])
def test_no_secret_is_in_anything_that_is_shown_or_logged(
    tmp_path: Path, serve: Serve, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    def echo(call: Call) -> Answer:
        said = f"{call.path} {unquote(call.path)} {call.headers} {base64.b64encode(str(call.headers).encode())!r}"
        decoded = base64.b64decode(call.headers["authorization"].removeprefix("Basic ")).decode()
        answer = {"said": said, "password": decoded, "key": call.headers["x-key"]}
        return status, {}, json.dumps(answer).encode()

    receiver = serve(echo)
    shop = Shop(
        tmp_path,
        f"""
    url: {receiver.url()}
    query: {{key: env:WH_QUERY}}
    headers: {{X-Key: env:WH_KEY}}
    login: {LOGINS["basic"]}
    result: {{key: key, password: password}}
    body: "[1]"
""",
    )
    caplog.set_level(logging.DEBUG)
    shop.order()
    shop.dispatcher.run_once()
    assert CANARIES["WH_QUERY"] in unquote(receiver.calls[0].path)
    text = everything(shop) + caplog.text
    assert "(hidden)" in text
    assert "canary" not in text
    assert base64.b64encode(f"me:{CANARIES['WH_PASSWORD']}".encode()).decode() not in text


def test_a_secret_that_an_answer_cuts_off_is_hidden(tmp_path: Path, serve: Serve) -> None:
    secret = CANARIES["WH_TOKEN"]
    receiver = serve(lambda call: (400, {}, b"x" * (2_000 - 8) + secret.encode()))
    shop = Shop(tmp_path, f"    {{url: '{receiver.url()}', body: '[1]', login: {LOGINS['bearer']}}}\n")
    shop.order()
    shop.dispatcher.run_once()
    assert secret[:5] not in shop.deliveries()[0].answer


@pytest.mark.parametrize("name", ["WH_TOKEN", "WH_KEY"])
def test_a_secret_that_is_not_there_is_named_when_the_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name)
    written = "{url: https://a.example, body: '[1]', login: {bearer: env:WH_TOKEN}, headers: {X-Key: env:WH_KEY}}"
    with pytest.raises(InvalidSetting, match=f":2: destination 'crm' needs env:{name}, which is not set"):
        Shop(tmp_path, f"    {written}\n")


def test_a_secret_with_a_line_break_is_refused_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WH_TOKEN", "canary\nX: 1")
    with pytest.raises(InvalidSetting, match="env:WH_TOKEN has characters that no header can have") as error:
        Shop(tmp_path, "    {url: https://a.example, body: '[1]', login: {bearer: env:WH_TOKEN}}\n")
    assert "canary" not in str(error.value)


# --- what is declared wrongly ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("destination", "problem"),
    [
        ("{url: 'https://{{ payload.host }}/x'}", "`url` must be an address"),
        ("{url: 'https://a.example{{ payload.host }}/x'}", "`url` may have variables in path and query only"),
        ("{url: 'https://a.example:{{ payload.host }}/x'}", "`url` may have variables in path and query only"),
        ("{url: https://a.example, body: '{\"a\": {{ paylod.a }}}'}", "line 1 of `body`: 'paylod' is no variable"),
        ("{url: https://a.example, body: '{\"a\": {{ payload.a }},}'}", "line 1 of `body`: with made-up values"),
        ("{url: https://a.example, body: '{\"a\": 1,}'}", "it is no JSON"),
        ("{url: https://a.example, body: 'plain'}", "line 1 of `body`: this is no JSON"),
        ("{url: https://a.example, payload: [a], body: '{{ payload.b }}'}", "'payload.b' may not go there"),
        ("{url: https://a.example, body: '{% set x = 1 %}[1]'}", "`set` cannot stand here"),
        ("{url: https://a.example, body: '{% raw %}[1]{% endraw %}'}", "`raw` cannot stand here"),
        ("{url: https://a.example, body: '{{ payload.a '}", "line 1 of `body`: "),
        ("{url: https://a.example, method: GET, body: '[1]'}", "a GET has no `body`"),
        ("{url: https://a.example, method: DELETE, secrets: [env:A]}", "`secrets` sign a body"),
        ("{url: https://a.example, method: post}", "`method` cannot be 'post'"),
        ("{url: https://a.example, headers: {Host: b.example}}", "'Host' is set by Threadline itself"),
        ("{url: https://a.example, headers: {webhook-id: '1'}}", "'webhook-id' is set by Threadline itself"),
        ("{url: https://a.example, headers: {X-A: '1', x-a: '2'}}", "'X-A' and 'x-a' are the same"),
        ("{url: https://a.example, headers: {'X A': '1'}}", "must be the name of a header"),
        ("{url: https://a.example, login: {bearer: abc}}", "secrets stay out of files"),
        ("{url: https://a.example, login: {bearer: env:A, basic: {user: a, password: env:B}}}", "has both"),
        ("{url: https://a.example, login: {bearer: env:A}, headers: {authorization: x}}", "is what `login` sets"),
        ("{url: https://a.example, success: {statuses: [700]}}", "a status such as 202, 200-204 or 2xx"),
        ("{url: https://a.example, success: {statuses: [204-200]}}", "it ends before it begins"),
        ("{url: https://a.example, success: {path: ok}}", "`path` and `value` belong together"),
        ("{url: https://a.example, result: {a: 'x..y'}}", "a path into JSON"),
        (
            "{url: https://a.example, login: {oauth: {token_url: a.example, client_id: a, client_secret: env:B}}}",
            "`token_url` must be an address",
        ),
    ],
)
def test_a_mistake_is_named_with_file_and_line(tmp_path: Path, destination: str, problem: str) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(f"# Where things go.\ndestinations:\n  crm: {destination}\n")
    with pytest.raises(InvalidDefinition) as error:
        open_engine("memory:", definitions=file)
    assert f"{file}:3: " in str(error.value)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    "body",
    [
        "[{% for x in payload.rows %}{{ x.id }}{% if not loop.last %},{% endif %}{% endfor %}]",
        "[0{% for x in payload.rows %},{{ x.id }}{% endfor %}]",
        '{% if payload.a %}{"a": 1}{% elif payload.b %}{"b": 2}{% else %}{}{% endif %}',
        '{"a": "{% if payload.a %}{{ payload.a }}{% endif %} and {{ payload.b | default("none") }}"}',
        '{# a "comment" #}{"a": {{ "quoted \\" brace }}" }}}',
        '{"a": {{ payload.a if payload.b else none }}}',
    ],
)
def test_a_body_that_becomes_json_is_no_mistake(body: str) -> None:
    assert list(problems_of(body, "json", None)) == []


# --- laws -----------------------------------------------------------------------------------------

_HOSTILE = st.sampled_from(
    ['"', "\\", '\\"', "\r\nX-Evil: 1", "\x00", "\x01", "\x02", "}", '","admin":true,"x":"', "\u2028", "{{ id }}", ".."]
)
_TEXTS = st.lists(st.one_of(_HOSTILE, st.text(st.characters(exclude_categories=["Cs"]), max_size=8)), max_size=6).map(
    "".join
)
_VALUES = st.one_of(_TEXTS, st.none(), st.booleans(), st.integers(-(2**53), 2**53))
_JSON = st.recursive(
    _VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3), max_leaves=6
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, dict[str, Any], Any]:
    """A template, the payload, and the value that it must become, made side by side."""
    payload: dict[str, Any] = {}

    def node(depth: int) -> tuple[str, Any]:
        kind = draw(
            st.sampled_from(["value", "inside", "constant", *(["object", "list", "loop", "if"] if depth else [])])
        )
        name = f"v{len(payload)}"
        if kind == "value":
            payload[name] = draw(_JSON)
            return f"{{{{ payload.{name} }}}}", payload[name]
        if kind == "inside":
            payload[name] = draw(_TEXTS)
            before = draw(st.sampled_from(["", "a ", "\\n", '\\"', "\\\\"]))
            return f'"{before}{{{{ payload.{name} }}}}!"', json.loads(f'"{before}"') + payload[name] + "!"
        if kind == "constant":
            value = draw(st.sampled_from([1, "x", None, True, []]))
            return json.dumps(value), value
        if kind == "object":
            members = {f"k{number}": node(depth - 1) for number in range(draw(st.integers(0, 3)))}
            text = ", ".join(f'"{key}": {template}' for key, (template, _) in members.items())
            return f"{{ {text} }}", {key: value for key, (_, value) in members.items()}
        if kind == "list":
            items = [node(depth - 1) for _ in range(draw(st.integers(0, 3)))]
            return f"[{', '.join(text for text, _ in items)}]", [value for _, value in items]
        if kind == "loop":
            payload[name] = draw(st.lists(_VALUES, max_size=3))
            comma = "{% if not loop.last %},{% endif %}"
            return f"[{{% for x in payload.{name} %}}{{{{ x }}}}{comma}{{% endfor %}}]", payload[name]
        payload[name] = draw(st.booleans())
        (yes, on), (no, off) = node(depth - 1), node(depth - 1)
        return f"{{% if payload.{name} %}}{yes}{{% else %}}{no}{{% endif %}}", on if payload[name] else off

    text, value = node(3)
    return text, payload, value


@given(bodies())
def test_a_body_becomes_the_value_that_it_is_written_for_whatever_the_values_are(
    made: tuple[str, dict[str, Any], Any],
) -> None:
    template, payload, wanted = made
    assert list(problems_of(template, "json", None)) == []
    filled = fill(Filling("https://a.example/x", {}, {}, template, "json", {"payload": payload}))
    assert filled.failure == ""
    assert filled.body is not None
    assert json.loads(filled.body) == wanted


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), _TEXTS, min_size=3))
def test_no_value_leaves_its_place_in_an_address_or_a_header(payload: dict[str, str]) -> None:
    filled = fill(
        Filling(
            "https://a.example/x/{{ payload.a }}/y",
            {"q": "{{ payload.b }}", "r": "1"},
            {"X-A": "v {{ payload.c }}"},
            None,
            "json",
            {"payload": payload},
        )
    )
    if filled.failure:
        assert filled.failure == "`url`: a value of dots would lead to another path"
        assert {".", ".."} & set(payload["a"].split("/"))
        return
    parts = urlsplit(filled.url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "a.example", "")
    assert parts.path.count("/") == 3
    assert unquote(parts.path) == f"/x/{payload['a']}/y"
    assert parse_qsl(parts.query, keep_blank_values=True) == [("q", payload["b"]), ("r", "1")]
    header = filled.headers["X-A"]
    assert not any(ord(character) < 32 or ord(character) == 127 for character in header)
    assert header.isprintable() or not payload["c"].isprintable()


@given(st.text(max_size=60))
def test_any_text_is_judged_as_a_template_without_failing(text: str) -> None:
    for kind in ("json", "form", "xml", "text", "address", "header"):
        problems = list(problems_of(text, kind, None))  # type: ignore[arg-type]
        if not problems and kind == "json":
            fill(Filling("https://a.example", {}, {}, text, kind, {"payload": {}}))


_PIECES = [
    "{{ payload.a }}",
    "{% if payload.a %}",
    "{% endif %}",
    "{% else %}",
    '"',
    "{",
    "}",
    ":",
    ",",
    "a",
    "{#",
    "#}",
]


@given(st.lists(st.sampled_from([*_PIECES, "{% for x in payload.a %}", "{% endfor %}"]), max_size=14), _TEXTS)
def test_a_template_without_mistakes_and_conditions_always_becomes_json(pieces: list[str], value: str) -> None:
    text = "".join(pieces)
    if list(problems_of(text, "json", None)) or "{%" in text:
        return
    filled = fill(Filling("https://a.example", {}, {}, text, "json", {"payload": {"a": value}}))
    assert filled.failure == ""


def test_a_call_waits_for_the_one_before_it_as_the_standard_form_does(tmp_path: Path, serve: Serve) -> None:
    answers: list[Answer] = [(500, {}, b"")]
    receiver = serve(lambda call: answers.pop(0) if answers else OK)
    shop = Shop(tmp_path, f"    {{url: '{receiver.url()}', at_once: 1, body: '{{{{ payload.order }}}}'}}\n")
    shop.order(1)
    shop.order(2)
    shop.work(DAY)
    assert sorted(call.body for call in receiver.calls) == [b"1", b"1", b"2"]
    assert {type for type, _ in shop.outcomes()} == {RETRIED, DONE}
