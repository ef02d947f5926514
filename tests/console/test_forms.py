"""Every form of the console with bodies that no page sends: refused in words, no fault of ours and no other site."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote, urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, csrf_of, elements, opened, record, signed_in
from threadline.engine.engine import Engine
from threadline.kernel.operation import Operation
from threadline.surfaces.console.actions import local_address, read_form
from threadline.surfaces.console.fields import fields_of
from threadline.surfaces.console.frame import render
from threadline.surfaces.http.addresses.console import Console
from threadline.surfaces.http.addresses.sign_in import COOKIE, SignIn
from threadline.surfaces.operation_calls import field_names, shown

JSON_ = {"accept": "application/json"}
ELSEWHERE = (
    "//evil.example",
    "///evil.example/x",
    "////evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.io",
    "/\t\\evil.example",
    "\t//evil.example",
    " //evil.example",
    "/\n/evil.example",
    "https://evil.example",
    "javascript:alert(1)",
    "///\\evil.example",
    "http:evil.example",
    "//[",
    "evil.example",
    "",
)
"""Addresses that a browser would take for another site, or that are none."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with opened() as made:
        record(made, ("ada", "identify", {"email": "ada@x.io"}))
        yield made


@pytest.fixture(scope="module")
def admin(engine: Engine) -> TestClient:
    return signed_in(engine)


def forms(engine: Engine) -> dict[str, Operation | None]:
    """Every address of the console that takes a form, and the operation that its fields are for."""
    operations = shown(engine.catalogue.operations, "http")
    nothing = cast(Any, None)
    sign_in = SignIn(engine, "default", nothing, nothing, nothing)
    console = Console(engine, sign_in, nothing, nothing)
    posted = [route.path for route in (*console.routes(), *sign_in.routes()) if route.method == "POST"]
    found: dict[str, Operation | None] = {}
    for path in posted:
        if path == "/do/{operation}":
            found |= {f"/do/{name}": operation for name, operation in operations.items()}
        else:
            found[path.replace("{", "").replace("}", "")] = None
    assert len(found) > 150
    return found


DEEP = ("[" * 100_000, '{"a":' * 5_000, "[" * 64 + "]" * 64, "[" * 65 + "]" * 65, "9" * 5_000, "null", "{}", '{"a": 1}')
YAML = (
    "[" * 200,
    "a: &a [1]\nb: [*a, *a]",
    "a: *a",
    "? [a]\n: 1",
    "- \t",
    "a: 1\na: 2",
    "2026-13-45",
    "!!python/none ''",
)
INTO = ("", "", ".a", ".0", ".1", ".a.b", ".", "..a", ".x" * 1_000, "." * 1_500)


def bodies(names: list[str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    """A few fields of which most can be read by themselves, so that what is wrong shows where they come together."""
    name = st.tuples(st.sampled_from(names), st.sampled_from(INTO)).map("".join)
    text = st.sampled_from(HOSTILE) | st.sampled_from(ELSEWHERE) | st.text(max_size=20)
    return st.lists(
        st.tuples(name, text)
        | st.tuples(name.map(lambda name: f"{name}:list"), text)
        | st.tuples(name.map(lambda name: f"{name}:json"), st.sampled_from(DEEP))
        | st.tuples(name.map(lambda name: f"{name}:yaml"), st.sampled_from(YAML)),
        max_size=5,
    )


@given(st.data())
def test_a_form_with_any_fields_is_never_a_fault_of_ours(
    engine: Engine, admin: TestClient, data: st.DataObject
) -> None:
    found = forms(engine)
    for path in data.draw(st.lists(st.sampled_from(sorted(found)), min_size=10, max_size=10)):
        operation = found[path]
        known = [] if operation is None else list(field_names(operation))
        fields = data.draw(bodies([*known[:4], "id", "_back", "_then", "name", "password"]))
        if engine.accounts.find(admin.cookies[COOKIE]) is None:  # one of the forms ends the session
            admin.cookies.set(COOKIE, engine.accounts.sign_in("admin", "password of admin")[1])
        body = urlencode([("_csrf", csrf_of(admin, engine)), *fields], errors="surrogatepass")
        answer = admin.post(path, content=body, headers=data.draw(st.sampled_from([JSON_, {}])))
        assert answer.status_code < 500 or answer.status_code in (501, 503), (path, fields, answer.text[:300])
        if answer.is_redirect:
            assert answer.headers["location"][:2] not in ("//", "/\\")


@pytest.mark.parametrize(
    "fields",
    [
        [("id", "1"), ("id.b", "2")],
        [("id.b", "2"), ("id", "1")],
        [("x" + ".x" * 3_000, "1")],
        [("." * 100_000, "1")],
        [("when:json", "[" * 100_000)],
        [("a:json", "{}"), ("a.b", "1")],
        [("a:list", "x"), ("a.b", "1")],
        [("a:json", "[1]"), ("a.0", "1")],
    ],
)
def test_a_form_whose_fields_contradict_each_other_or_are_too_deep_is_refused_in_words(
    admin: TestClient, engine: Engine, fields: list[tuple[str, str]]
) -> None:
    answer = admin.post("/do/people_tag", data={"_csrf": csrf_of(admin, engine), **dict(fields)}, headers=JSON_)
    assert answer.status_code == 400
    assert answer.json()["problem"]


@pytest.mark.parametrize("address", ELSEWHERE)
def test_an_address_of_another_site_is_followed_from_no_form_and_no_link(
    admin: TestClient, engine: Engine, address: str
) -> None:
    assert local_address(address) == "/"
    assert admin.get(f"/sign-in?next={quote(address, safe='')}").headers["location"] == "/"
    fields = {
        "_csrf": csrf_of(admin, engine),
        "id": "user_id:ada",
        "add:list": "vip",
        "_back": address,
        "_then": address,
    }
    sent_back = admin.post("/do/people_tag", data=fields)
    assert (sent_back.status_code, sent_back.headers["location"]) == (303, "/")
    assert admin.post("/do/people_tag", data=fields, headers=JSON_).json()["go"] == "/"


def test_an_address_of_the_console_is_followed_with_its_query(admin: TestClient) -> None:
    for address in ("/", "/people?q=a%2Fb&page=2", "/people/user_id:ada#mail", "/a/b//c"):
        assert local_address(address) == address
    assert local_address("/peo\tple\n") == "/people"
    assert admin.get("/sign-in?next=%2Fpeople%3Fq%3Da").headers["location"] == "/people?q=a"


def test_a_result_without_the_member_that_leads_on_leads_back() -> None:
    form = read_form(urlencode([("_back", "/people"), ("_then", "/{nothing}/evil.example")]).encode())
    assert form.destination({"id": 1}) == "/people"
    assert json.dumps(form.destination("no object")) == '"/people"'


def test_every_switch_of_every_form_says_both_values(engine: Engine) -> None:
    """A box shows what holds where nothing is sent, and what it shows is what is sent."""
    looked_at = 0
    for operation in shown(engine.catalogue.operations, "http").values():
        for field in fields_of(operation.params):
            if field.kind != "switch":
                continue
            looked_at += 1
            form = {"operation": operation.name, "title": "", "button": "", "fields": [field._asdict()]}
            page = render("listing.html", {"lists": [], "forms": [form], "may": {}})
            inputs = [a for tag, a in elements(page) if tag == "input" and a.get("name") == field.name]
            [box] = [each for each in inputs if each["type"] == "checkbox"]
            default = {each.encode_name: each.default for each in msgspec.structs.fields(operation.params)}[field.name]
            assert ("checked" in box) == (default is True), (operation.name, field.name)
            always = [(field.name, str(each["value"])) for each in inputs if each is not box]
            for is_on in (True, False):
                sent = [*always, *([(field.name, str(box["value"]))] if is_on else [])]
                values = read_form(urlencode(sent).encode()).values
                assert values.get(field.name, str(default is True).lower()) == str(is_on).lower(), operation.name
    assert looked_at > 20
