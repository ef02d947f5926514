"""The OpenAPI document and the pages: complete, self-contained, made of the operations themselves."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import client_of
from threadline.app import catalogue
from threadline.engine.engine import Engine
from threadline.settings import Settings
from threadline.surfaces.console.screens import screens
from threadline.surfaces.http.documents.openapi import document
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.operation_calls import field_names, path_names, shown
from threadline.surfaces.row_formats import rows_of


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    found = catalogue()
    return document(found.operations, found.public_routes)


def _bodies(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, body) for path, methods in described["paths"].items() for method, body in methods.items()]


def test_every_route_is_described_and_nothing_else(described: dict[str, Any], engine: Engine) -> None:
    pages = {("GET", "/docs"), ("GET", "/openapi.json"), ("POST", "/mcp")}
    served = Application(engine, Settings()).router.routes
    # Pages for people are no part of the API.
    console = {"/sign-in", "/sign-out", "/assets/{name}", "/do/{operation}", *(each.path for each in screens())}
    steps = ("/imports/", "/account/", "/sign-in/", "/set-password")  # of screens, and of signing in
    console |= {each.path for each in served if each.path.startswith(steps)}
    routes = {(each.method, each.path) for each in served if each.path not in console} - pages
    assert {(method.upper(), path) for path, method, _ in _bodies(described)} == routes


def test_every_parameter_of_every_operation_is_described(described: dict[str, Any], engine: Engine) -> None:
    for operation in shown(engine.catalogue.operations, "http").values():
        body = described["paths"][operation.path][operation.method.lower()]
        told = {parameter["name"]: parameter["in"] for parameter in body["parameters"]}
        inside = body.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        told |= dict.fromkeys(inside.get("properties", {}), "body")
        listing = rows_of(operation.result) is not None and operation.method != "POST"
        assert set(told) == {*field_names(operation), *(["format"] if listing else [])}, operation.name
        assert {name for name, place in told.items() if place == "path"} == set(path_names(operation))
        assert "query" not in told.values() or operation.method != "POST"
        assert str(operation.status) in body["responses"]
        assert body["security"] == [{"token": []}]


def test_every_answer_that_can_come_is_declared(described: dict[str, Any]) -> None:
    for path, method, body in _bodies(described):
        statuses = set(body["responses"])
        assert "500" in statuses
        assert "405" in statuses
        assert body["security"] == [] or {"401", "403", "503"} - {"403"} <= statuses, (path, method)
        for status, given in body["responses"].items():
            shared = described["components"]["responses"]
            answer = shared[given["$ref"].rpartition("/")[2]] if "$ref" in given else given
            if int(status) >= 400:
                assert answer["content"]["application/problem+json"]["schema"]["$ref"].endswith("/Problem")
        assert "x-without" not in body


def test_references_lead_somewhere_and_nothing_is_left_over(described: dict[str, Any]) -> None:
    text = str(described)
    wanted = set(re.findall(r"#/components/schemas/([^'\"]+)", text))
    assert wanted == set(described["components"]["schemas"])


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inside in value:
            yield from _objects(inside)


def test_every_array_says_what_is_in_it_in_a_way_that_generators_read(described: dict[str, Any]) -> None:
    arrays = [each for each in _objects([described["paths"], described["components"]]) if each.get("type") == "array"]
    assert len(arrays) > 200
    assert [each for each in arrays if not isinstance(each.get("items"), dict) or "prefixItems" in each] == []


def test_a_table_is_offered_where_a_list_is_asked_for_and_nowhere_else(described: dict[str, Any]) -> None:
    lists = {(each.path, each.method.lower()) for each in catalogue().operations if rows_of(each.result) is not None}
    offered = {
        (path, method)
        for path, method, body in _bodies(described)
        if any("text/csv" in answer.get("content", {}) for answer in body["responses"].values())
    }
    assert len(offered) > 40
    assert offered == {(path, method) for path, method in lists if method != "post"}


def test_every_operation_is_described_in_a_sentence(described: dict[str, Any]) -> None:
    undescribed = [body["operationId"] for _, _, body in _bodies(described) if not body.get("description")]
    assert undescribed == []


def test_what_is_the_same_everywhere_stands_in_the_document_once(described: dict[str, Any]) -> None:
    assert {name.removeprefix("Problem") for name in described["components"]["responses"]} >= {"400", "404", "503"}
    # Of an operation, since the document grows with them: 2,550 today.
    assert len(msgspec.json.encode(described)) < 2_650 * len(list(_bodies(described)))


def test_names_are_unique(described: dict[str, Any]) -> None:
    names = [body["operationId"] for _, _, body in _bodies(described)]
    assert len(names) == len(set(names))


def test_the_pages_need_nothing_from_elsewhere(client: TestClient) -> None:
    for path in ("/", "/docs"):
        answer = client.get(path)
        assert answer.headers["content-type"].startswith("text/html")
        assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", answer.text)
        policy = answer.headers["content-security-policy"]
        scripts = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
        assert answer.text.count("<script") == len(scripts) == (path == "/docs")
        for script in scripts:
            assert f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy


def test_the_docs_show_every_address_with_an_example(client: TestClient, described: dict[str, Any]) -> None:
    text = client.get("/docs").text
    for path, _, body in _bodies(described):
        assert f'id="{body["operationId"]}"' in text
        assert f">{path}</code>" in text
    # Addresses that are the same call have one example together: those of Segment, which come in threes and fours.
    begin, *groups = text.split('<h2 id="group')
    assert begin.count("<pre>curl ") == 3
    assert "".join(groups).count("<pre>curl ") == len({body["summary"] for _, _, body in _bodies(described)})
    assert (
        "".join(groups).count("<form ")
        == "".join(groups).count("<summary>Answers</summary>")
        == "".join(groups).count("<pre>curl ")
    )


def test_every_place_in_the_docs_has_a_name_of_its_own(client: TestClient) -> None:
    page = client.get("/docs").text
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)), sorted(id for id in ids if ids.count(id) > 1)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_addresses_are_grouped_as_the_command_line_groups_them(described: dict[str, Any], engine: Engine) -> None:
    for operation in shown(engine.catalogue.operations, "http").values():
        (tag,) = described["paths"][operation.path][operation.method.lower()]["tags"]
        if operation.group is not None:
            assert tag == operation.group.name
    assert [tag["name"] for tag in described["tags"] if not tag.get("description")] == []
    assert {body["tags"][0] for _, _, body in _bodies(described)} == {tag["name"] for tag in described["tags"]}


def test_every_address_that_asks_for_something_has_an_example(described: dict[str, Any]) -> None:
    for path, method, body in _bodies(described):
        asked = [each for each in body.get("parameters", ()) if each["name"] != "format"]
        contents = body.get("requestBody", {}).get("content", {}).values()
        if asked or contents:
            assert any("example" in each for each in (*asked, *contents)), (method, path)


def test_times_dates_durations_and_cursors_have_a_form(described: dict[str, Any]) -> None:
    forms = {
        "start": "date-time",
        "stop": "date-time",
        "as_of": "date-time",
        "cursor": "^[!-~]*$",
        "within": "^[1-9][0-9]{0,8}(us|ms|s|m|h|d|w|y)$",
        "half_life": "^[1-9][0-9]{0,8}(us|ms|s|m|h|d|w|y)$",
    }
    found: dict[str, set[str]] = {}
    for path, _, body in _bodies(described):
        for each in body.get("parameters", ()):
            if each["name"] in forms and not path.endswith("/days"):
                form = each["schema"].get("format") or each["schema"].get("pattern")
                found.setdefault(each["name"], set()).add(form)
    assert found == {name: {form} for name, form in forms.items()}
    days = {
        each["name"]: each["schema"].get("format")
        for each in described["paths"]["/v1/people/{id}/days"]["get"]["parameters"]
    }
    assert (days["start"], days["stop"]) == ("date", "date")
    schemas = described["components"]["schemas"]
    assert schemas["EventView"]["properties"]["occurred_at"]["format"] == "date-time"


def test_the_docs_tell_defaults_and_bounds(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "<td>integer, 0 to 100</td><td>How many of the newest events to show. Default: 20.</td>" in page
    assert "<td>Approved | Error |" in page


def test_the_commands_of_the_docs_go_to_the_server_that_is_asked(client: TestClient) -> None:
    text = client.get("/docs", headers={"host": "shop.example:9000"}).text
    assert "http://shop.example:9000/v1/people/user_id:42" in text
    assert "server.invalid" not in text
    hostile = client.get("/docs", headers={"host": "<script>"}).text
    assert hostile.count("<script") == text.count("<script")


def test_the_document_is_what_is_served(client: TestClient, engine: Engine) -> None:
    described = document(engine.catalogue.operations, engine.catalogue.public_routes)
    assert client.get("/openapi.json").json() == msgspec.json.decode(msgspec.json.encode(described))


def test_examples_of_operations_are_taken(engine: Engine) -> None:
    """An example may name what is not there, but it is never one that is not understood."""
    _, token = engine.credentials.create("default", "token", "admin", ["admin"])
    with client_of(engine) as client:
        described = client.get("/openapi.json").json()
        for path, method, body in _bodies(described):
            content = body.get("requestBody", {}).get("content", {}).get("application/json", {})
            needs_user = body["security"] == [{"userToken": []}]  # tests/surfaces/test_http_appaction.py has one
            # tests/surfaces/test_reloading.py has a server that can take in definitions.
            # A mail that is being written needs a declared sender; tests/console/test_template_editor.py has one.
            elsewhere = path.startswith("/v1/cloudevents") or path in ("/v1/definitions/reload", "/v1/mail/preview")
            if "example" not in content or elsewhere or needs_user:
                continue
            attempt = "8006517a5f8c4000.0123456789abcdef0123456789abcdef.00000"
            path = path.replace("{id}", attempt if "/deliveries/" in path else "0123456789abcdef0123456789abcdef")
            path = (
                path.replace("{type}", "preference")
                .replace("{key}", "colour")
                .replace("{name}", "weekly")
                .replace("{section}", "segments")
                .replace("{alert}", "sale")
                .replace("{address}", "ada@example.com")
            )
            answer = client.request(method, path, json=content["example"], headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code in (200, 201, 404, 409), (path, answer.text)
            if answer.status_code == 200 and "rejected" in answer.json():
                assert answer.json()["rejected"] in ([], 0), (path, answer.text)


def test_every_object_says_which_members_it_has_or_that_any_may_be_there(described: dict[str, Any]) -> None:
    def bare(value: Any, place: str) -> Iterator[str]:
        if isinstance(value, list):
            for number, inside in enumerate(value):
                yield from bare(inside, f"{place}/{number}")
        if isinstance(value, dict):
            # A generator of clients takes an object of which nothing is said for one that is always empty.
            is_object = value.get("type") in ("object", ["object", "null"])
            if is_object and not {"properties", "additionalProperties", "allOf"} & value.keys():
                yield place
            for name, inside in value.items():
                yield from bare(inside, f"{place}/{name}")

    assert list(bare(described, "")) == []
