"""The same flags on every surface of a real server: the SDKs of OpenFeature, HTTP, the command line, agents."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import DEFINITIONS

NODE = Path(__file__).parent / "node"
START_SECONDS = 60


class Server(NamedTuple):
    """`threadline serve` on a file of its own."""

    url: str
    token: str
    environment: dict[str, str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "threadline.yaml").write_text(DEFINITIONS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("THREADLINE_")}
    environment |= {"THREADLINE_STORE": str(folder / "shop.db"), "THREADLINE_DRAIN_SECONDS": "0"}
    command = [sys.executable, "-m", "threadline", "serve", "--port", "0"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    said, url, token = "", "", ""
    try:
        for line in process.stdout:
            said += line
            if found := re.match(r"\s+admin token\s+(\S+)", line):
                token = found[1]
            if line.startswith("{") and json.loads(line).get("ready"):
                url = re.search(r"http://127\.0\.0\.1:\d+", said)[0]  # type: ignore[index]
                break
        assert url, said
        made = Server(url, token, environment)
        event = {"type": "purchase_completed", "key": "1", "identifiers": {"user_id": "ada"}}
        post(made, "/v1/events", {"events": [{**event, "properties": {"total": 120, "currency": "EUR"}}]})
        yield made
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def post(server: Server, path: str, body: Any) -> Any:
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def get(server: Server, path: str) -> Any:
    request = urllib.request.Request(server.url + path, headers={"authorization": f"Bearer {server.token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def test_openfeature_for_python_reads_values_reasons_and_errors(server: Server) -> None:
    from openfeature import api
    from openfeature.contrib.provider.ofrep import OFREPProvider
    from openfeature.evaluation_context import EvaluationContext

    api.set_provider(OFREPProvider(server.url, headers_factory=lambda: {"Authorization": f"Bearer {server.token}"}))
    client = api.get_client()
    ada = EvaluationContext(targeting_key="ada")
    details = client.get_boolean_details("new_checkout", False, ada)
    assert (details.value, details.variant, str(details.reason)) == (True, "on", "TARGETING_MATCH")
    assert client.get_object_value("colour", {}, ada) == {"hex": "#f00"}
    assert client.get_integer_value("limit", 0, ada) == 10
    missing = client.get_boolean_details("missing", True, ada)
    assert (missing.value, missing.error_code.value if missing.error_code else "") == (True, "FLAG_NOT_FOUND")
    nobody = client.get_boolean_details("new_checkout", False, EvaluationContext(targeting_key="", attributes={}))
    assert nobody.error_code is not None
    assert nobody.error_code.value == "TARGETING_KEY_MISSING"
    found = get(server, "/v1/people/ada/events?type=flag_exposed")["events"]
    assert sorted(event["properties"]["flag"] for event in found) == ["colour", "new_checkout"]


PROGRAM = """
const { OpenFeature } = require('@openfeature/server-sdk')
const { OFREPProvider } = require('@openfeature/ofrep-provider')
const headers = { Authorization: `Bearer ${process.env.TOKEN}` }
const run = async () => {
  await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: process.env.URL, headers }))
  const client = OpenFeature.getClient()
  const ada = { targetingKey: 'ada' }
  const answers = [
    await client.getBooleanDetails('new_checkout', false, ada),
    await client.getObjectDetails('colour', {}, ada),
    await client.getNumberDetails('limit', 0, ada),
    await client.getBooleanDetails('missing', true, ada),
  ]
  console.log(JSON.stringify(answers))
}
run()
"""


def test_openfeature_for_node_reads_values_reasons_and_errors(server: Server) -> None:
    assert (NODE / "node_modules").is_dir(), f"npm --prefix {NODE} ci --ignore-scripts"
    environment = {**os.environ, "URL": server.url, "TOKEN": server.token}
    done = subprocess.run(
        ["node", "-e", PROGRAM], cwd=NODE, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert [answer["value"] for answer in answers] == [True, {"hex": "#f00"}, 10, True]
    assert [answer["reason"] for answer in answers] == ["TARGETING_MATCH", "STATIC", "DISABLED", "ERROR"]
    assert answers[3]["errorCode"] == "FLAG_NOT_FOUND"


def test_http_command_line_python_and_agents_answer_alike(server: Server) -> None:
    over_http = get(server, "/v1/people/ada/flags")
    done = subprocess.run(
        [sys.executable, "-m", "threadline", "flags", "of", "ada", "--json"],
        env={**server.environment, "THREADLINE_URL": server.url, "THREADLINE_TOKEN": server.token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == over_http
    called = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "tell_about_person", "arguments": {"about": "flags", "id": "ada"}},
    }
    headers = {
        "authorization": f"Bearer {server.token}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(f"{server.url}/mcp", json.dumps(called).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert "TARGETING_MATCH" in answer.read().decode()
    described = get(server, "/openapi.json")["paths"]
    assert {"/v1/flags", "/v1/people/{id}/flags", "/ofrep/v1/evaluate/flags/{key}"} <= described.keys()


def test_a_flag_comes_in_force_by_the_form_that_the_console_makes_of_the_schema(server: Server) -> None:
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def ask(path: str, fields: dict[str, str] | None = None) -> str:
        body = None if fields is None else urllib.parse.urlencode(fields).encode()
        request = urllib.request.Request(server.url + path, body, {"origin": server.url, "accept": "application/json"})
        with browser.open(request, timeout=60) as answer:
            return str(answer.read().decode())

    ask("/sign-in", {"password": server.token})
    assert "/declared/flags" in ask("/declared").replace("&#x2f;", "/")
    page = ask("/declared/flags")
    for name in ("variants", "otherwise", "rules", "enabled"):
        assert re.search(rf'name="_f\.{name}\b', page), name
    csrf = re.search(r'data-csrf="(\w+)"', page)
    assert csrf is not None
    variants = {"on": "true", "off": "false"}
    for enabled in ("true", "false"):
        fields = {"_csrf": csrf[1], "_by": "form", "_section": "flags", "_text": "text", "_key": "", "text": ""}
        fields |= {"section": "flags", "name": f"banner_{enabled}", "_f.variants.count": "2", "_f.enabled": enabled}
        for number, (variant, value) in enumerate(variants.items()):
            at = f"_f.variants.{number}"
            fields |= {f"{at}.name": variant, f"{at}.of": value, f"{at}.of.as": "flag"}
        fields |= {"_f.otherwise": "off", "_f.otherwise.as": "text"}
        assert "It is valid." in ask("/declared/flags?part=checked", fields)
        ask("/do/definitions_declare", fields)
        flag = next(each for each in get(server, "/v1/flags")["flags"] if each["name"] == fields["name"])
        assert flag["variants"] == {"on": True, "off": False}
        assert flag["enabled"] is (enabled == "true")
