"""No definition and no payload stops a server: bombs of each kind over HTTP, beside which it answers and is stopped."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

WRITE_KEY, TOKEN = "write-key-of-bombs", "token-of-bombs"
HEAD = {
    "settings": {"public_url": "http://shop.example"},
}
NUMBERS = [1] * 9_000
"""An event of a write key may carry so many."""

TRIPLED = (
    "{% set n = namespace(a=[1]) %}{% for i in range(24) %}{% set n.a = [n.a, n.a, n.a] %}{% endfor %}"
    "{{ n.a | string | length }}"
)
ITEMS = "event.properties.numbers"
LOOP, END = f"{{% for n in {ITEMS} %}}", "{% endfor %}"
MAILS: dict[str, tuple[dict[str, str], str]] = {
    "fine": ({"text": f"{LOOP}x{END}"}, ""),
    "tripled": ({"subject": TRIPLED, "text": "x"}, "template_failed: it did not come back, twice: it took more "),
    "nested": (
        {"mjml": f"<mjml><mj-body>{LOOP}<mj-wrapper>{END}x{LOOP}</mj-wrapper>{END}</mj-body></mjml>"},
        "template_failed: what was filled in has more than 500 elements inside one another",
    ),
    "wrong": (
        {"html": '<style>p { margin: 13px }</style><p style="{{ event.type }}">x</p>'},
        "template_failed: its styles cannot be put into the elements: style='wants_wrong' is no CSS: End of input",
    ),
    "long": ({"text": f"{LOOP}{{{{ 'x' * 120 }}}}{END}"}, "template_failed: the part text has more than "),
}
"""Template -> its parts, and how the reason begins for which it is parked; "" for one that is sent."""

PREVIEWS = {
    "doubled": "{% set n = namespace(a='xxxxxxxxxx') %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}{% endfor %}"
    "{{ n.a | length }}",
    "repeated": "{{ ('x' * 2000000000) | length }}",
    "listed": "{{ ([1, 2, 3] * 700000000) | length }}",
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    "widened": "{{ 'a' | center(2000000000) | length }}",
    "indented": "{{ 'a\nb' | indent(2000000000) | length }}",
    "formatted": "{{ '%2000000000d' | format(1) | length }}",
    "replaced": "{% set a = 'a' * 30000 %}{{ a | replace('a', a) | replace('a', a) | length }}",
    "joined": "{{ range(99999) | join('y' * 100000) | length }}",
    "called": "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
    "grouped": "{{ range(3) | batch(2000000000, 'x') | list | length }}",
    "quoted": "{{ ('%' * 50000000) | urlencode | length }}",
    "reaching": "{{ ''.__class__.__mro__ }}",
}
"""Templates that ask for more than there is, each in another way."""

LAUGHS = "".join(f"x{n}: &b{n} {{all: [*b{n - 1}, *b{n - 1}]}}\n" for n in range(1, 40))
TEMPLATE = "mail: {{senders: {{s: {{from: a@s.example}}}}, templates: {{t: {{subject: Hi, text: '{}'}}}}}}"
RULE = "rules: {{r: {{version: 1, conditions: {}, actions: []}}}}\nrule_sets: {{o: {{events: [x], rules: [r]}}}}"
CHECKS = {
    "open brackets": "[" * 99_000,
    "open braces": "{a: " * 20_000,
    "dashes": "- " * 40_000,
    "question marks": "? " * 40_000,
    "aliases": f"x0: &b0 {{field: traits.x, exists: true}}\n{LAUGHS}segments: {{"
    + ", ".join(f"s{n}: {{when: *b39}}" for n in range(1_000))
    + "}",
    "an alias of itself": "segments: {s: &s {when: {all: [*s]}}}",
    "a number of base 60": "segments: {s: {when: {field: traits.x, greater_than: 1" + ":59" * 30_000 + "}}}",
    "digits": "segments: {s: {when: {field: traits.x, greater_than: " + "9" * 90_000 + "}}}",
    "not not not": "segments: {s: {when: " + "{not: " * 200 + "{field: traits.x, exists: true}" + "}" * 200 + "}}",
    "repetitions": "segments: {s: {when: {field: traits.x, regex: '" + "(a{100}){100}" * 50 + "'}}}",
    "parentheses in a pattern": "segments: {s: {when: {field: traits.x, regex: '" + "(" * 450 + ")" * 450 + "'}}}",
    "schema within itself": "event_schemas: {x: {type: object, properties: {a: {$ref: '#'}}}}",
    "schemas that double": "event_schemas: {x: {$defs: {d0: {type: string}, "
    + ", ".join(f"d{n}: {{anyOf: [{{$ref: '#/$defs/d{n - 1}'}}, {{$ref: '#/$defs/d{n - 1}'}}]}}" for n in range(1, 40))
    + "}, properties: {a: {$ref: '#/$defs/d39'}}}}",
    "a sum in a template": TEMPLATE.format("{{ 1" + " + 1" * 20_000 + " }}"),
    "signs in a template": TEMPLATE.format("{{ " + "-" * 90_000 + "1 }}"),
    "members in a template": TEMPLATE.format("{{ person" + ".b" * 40_000 + " }}"),
    "calls in a template": TEMPLATE.format("{{ person" + "(1)" * 30_000 + " }}"),
    "no in a template": TEMPLATE.format("{{ " + "not " * 20_000 + "person }}"),
    "a sum without end": TEMPLATE.format("{{ ''}}'' ~ 1" + " + 1" * 20_000),
    "branches in a template": TEMPLATE.format("{% if person %}" + "{% elif person %}" * 5_000 + "{% endif %}"),
    "blocks in a template": TEMPLATE.format("{% if person %}" * 6_000),
    "holes in an action": RULE.format("{field: event.properties.x, exists: true}").replace(
        "[]", "[{set_value: {trait: a, value: '" + "${" * 30_000 + "'}}]"
    ),
}
"""Texts that a reader of definitions may ask to be checked."""

MODELS = (
    "map(items, items)",
    "filter(items, len(filter(items, # > 1)) > 1)",
    "map(split(text, ''), fuzzyMatch(text, text))",
)
"""Expressions of decision models that go through what they are given many times over."""

FINE = {"parentheses in a pattern"}
"""Those that are no mistake."""

PAYLOADS = {
    "lists in lists": b'{"event":"x","userId":"a","properties":{"a":' + b"[" * 9_000 + b"]" * 9_000 + b"}}",
    "mappings in mappings": b'{"event":"x","userId":"a","properties":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001,
    "lists without end": b"[" * 30_000,
    "digits": b'{"event":"x","userId":"a","properties":{"a":' + b"9" * 30_000 + b"}}",
    "an exponent": b'{"event":"x","userId":"a","properties":{"a":1e' + b"9" * 1_000 + b"}}",
}


class Server:
    """A server in a process of its own, on a file."""

    def __init__(self, folder: Path) -> None:
        environment = {
            **os.environ,
            "THREADLINE_WRITE_KEYS": f"web={WRITE_KEY}",
            "THREADLINE_TOKENS": TOKEN,
            "THREADLINE_PORT": "0",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "threadline", "serve", "--file", "bombs.db"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        ready = json.loads(self.process.stdout.readline())
        self._address = ready["url"].removeprefix("http://")

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        """Status and answer."""
        credential = f"Basic {base64.b64encode(f'{key}:'.encode()).decode()}" if key else f"Bearer {TOKEN}"
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self._address, timeout=120)
        connection.request(method, path, sent, {"Authorization": credential, "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text

    def is_alive(self) -> bool:
        """Whether it answers now."""
        return self.process.poll() is None and self.ask("GET", "/livez")[0] == 200

    def send(self, template: str, key: str) -> None:
        """An event of a producer, for which a rule sends a mail of this template."""
        event = {"event": f"wants_{template}", "userId": "ada", "messageId": key, "properties": {"numbers": NUMBERS}}
        assert self.ask("POST", "/v1/track", event, WRITE_KEY)[0] == 200

    def parked(self) -> dict[str, str]:
        """The reason by template of what is parked."""
        effects = self.ask("GET", "/v1/effects/parked?limit=100")[1]["effects"]
        return {effect["data"]["template"]: effect["why"] for effect in effects}

    def stop(self) -> int:
        """Ask it to stop, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def _model(text: str) -> dict[str, Any]:
    nodes = [{"id": id, "type": f"{id}Node", "name": id} for id in ("input", "expression", "output")]
    nodes[1]["content"] = {"expressions": [{"id": "x", "key": "x", "value": text}]}
    pairs = (("input", "expression"), ("expression", "output"))
    return {"nodes": nodes, "edges": [{"id": f"{a} {b}", "sourceId": a, "targetId": b} for a, b in pairs]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shared = {"topic": "", "transactional": True}
    templates = {name: {"subject": "Hi", **parts, **shared} for name, (parts, _) in MAILS.items()} | {
        name: {"subject": "Hi", "text": text, **shared} for name, text in PREVIEWS.items()
    }
    for template in templates.values():
        del template["topic"]
    send = {
        name: {
            "version": 1,
            "conditions": {"field": "event.properties.numbers", "exists": True},
            "actions": [{"send_notification": {"template": name}}],
        }
        for name in MAILS
    }
    sets = {name: {"events": [f"wants_{name}"], "rules": [name]} for name in MAILS}
    for number, text in enumerate(MODELS):
        name = f"model_{number}"
        send[name] = {"version": 1, "model": _model(text), "actions": [{"set_value": {"trait": "seen", "value": True}}]}
        sets[name] = {"events": [name], "rules": [name]}
    mail = {"senders": {"shop": {"from": "a@shop.example"}}, "templates": templates}
    definitions = {**HEAD, "mail": mail, "rules": send, "rule_sets": sets}
    (tmp_path / "threadline.yaml").write_text(json.dumps(definitions))  # which is YAML as well
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    made = Server(folder)
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()
    assert made.process.stdout is not None
    made.process.stdout.close()


def _ada(server: Server) -> None:
    whom = {"userId": "ada", "messageId": "ada", "traits": {"email": "ada@shop.example"}}
    assert server.ask("POST", "/v1/identify", whom, WRITE_KEY)[0] == 200


def _wait(server: Server, parked: set[str]) -> None:
    while server.parked().keys() < parked:
        assert server.is_alive()
        time.sleep(0.1)


def test_mails_that_are_bombs_are_parked_each_with_its_reason_and_others_are_sent(server: Server) -> None:
    _ada(server)
    for template in MAILS:
        server.send(template, template)
    bombs = {template: reason for template, (_, reason) in MAILS.items() if reason}
    _wait(server, set(bombs))
    reasons = server.parked()
    assert {template: reasons[template][: len(reason)] for template, reason in bombs.items()} == bombs
    status, history = server.ask("GET", "/v1/people/user_id:ada/mail")
    statuses = {mail["template"]: mail["status"] for mail in history["mails"]}
    assert (status, statuses) == (200, {template: "failed" if template in bombs else "sent" for template in MAILS})
    assert server.stop() == 0


def test_a_server_that_fills_in_a_bomb_is_stopped_and_starts_again(server: Server, folder: Path) -> None:
    _ada(server)
    server.send("tripled", "first")
    while not _computes(server.process.pid):
        assert server.is_alive()
    assert server.stop() == 0
    again = Server(folder)
    _wait(again, {"tripled"})
    assert again.stop() == 0


def _computes(process: int) -> bool:
    """Whether the process that fills in mails is there."""
    return bool(psutil.Process(process).children())


def test_previews_of_bombs_are_refused_and_all_that_follows_is_answered(server: Server) -> None:
    for template in PREVIEWS:
        status, answer = server.ask("POST", f"/v1/mail/templates/{template}/preview", {})
        assert (status, answer["code"]) == (400, "template_failed"), (template, answer)
        assert server.is_alive(), template
    assert server.ask("POST", "/v1/mail/templates/wrong/preview", {})[0] == 400


def test_models_that_are_bombs_are_decisions_of_error_and_all_that_follows_is_answered(server: Server) -> None:
    for number in range(len(MODELS)):
        properties = {"items": NUMBERS, "text": "a" * 5_000}
        event = {"event": f"model_{number}", "userId": "ada", "messageId": f"model_{number}", "properties": properties}
        assert server.ask("POST", "/v1/track", event, WRITE_KEY)[0] == 200
        assert server.is_alive(), MODELS[number]
    decisions = server.ask("GET", "/v1/decisions?person=user_id:ada")[1]["decisions"]
    assert {decision["rule"]: decision["status"] for decision in decisions} == {
        f"model_{number}": "Error" for number in range(len(MODELS))
    }
    assert server.stop() == 0


def test_texts_that_are_bombs_are_checked_and_all_that_follows_is_answered(server: Server) -> None:
    for name, text in CHECKS.items():
        assert len(text) <= 100_000, name
        status, answer = server.ask("POST", "/v1/definitions/check", {"text": text})
        assert (status, answer["valid"]) == (200, name in FINE), (name, answer)
        assert server.is_alive(), name


def test_payloads_that_are_bombs_are_refused_and_all_that_follows_is_answered(server: Server) -> None:
    for name, body in PAYLOADS.items():
        status, answer = server.ask("POST", "/v1/track", body, WRITE_KEY)
        assert status < 500, (name, answer)
        assert not answer.get("accepted"), (name, answer)
        assert server.is_alive(), name
