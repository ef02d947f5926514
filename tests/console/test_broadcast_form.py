"""The form of a broadcast: it says what is stored, stays a form whatever is typed, and a list of broadcasts reads."""

from __future__ import annotations

import html.parser
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, csrf_of, opened, record, signed_in, unsafe
from threadline.app import open_dispatcher
from threadline.capabilities.reach.broadcasts.definition import Arm, Audience, Broadcast, Winner
from threadline.engine.engine import Engine
from threadline.engine.stand_ins import Offline
from threadline.kernel.event import Event, Identifier
from threadline.settings import Settings
from threadline.surfaces.console import broadcast_form, condition_form
from threadline.surfaces.http.server.application import Application

DEFINITIONS = """
segments:
  pros: {when: {field: traits.plan, equals: pro}}
consent: {topics: {news: {title: News}}}
mail:
  senders: {shop: {from: shop@shop.example}, other: {from: other@shop.example}}
  templates:
    sale: {sender: shop, subject: "{{ percent }} % off", text: Hello, variables: {percent: {default: 10}}}
    note: {sender: shop, subject: "Hello {{ person.traits.first_name }}", text: "{{ until }}", variables: {until: {}}}
"""
BROADCASTS: dict[str, dict[str, Any]] = {
    "plain": {"template": "sale"},
    "all": {
        "template": "note",
        "subject": "Until {{ until }}",
        "sender": "other",
        "topic": "news",
        "variables": {"until": "Sunday"},
        "audience": {"segment": "pros", "tags": ["a", "b c"], "when": {"field": "traits.plan", "equals": "pro"}},
        "arms": [
            {"name": "x", "weight": 3},
            {"name": "y", "subject": "Only today", "template": "sale"},
        ],
        "holdout": 0.075,
        "winner": {"share": 0.2, "after": "4h", "metric": "conversions", "event": "purchase_completed"},
        "at": "2026-12-01T09:30",
        "zone": "Europe/Rome",
        "per_hour": 500,
    },
    "own": {"template": "sale", "at": "2026-12-01T09:30", "zone": "Europe/Rome", "in_zone_of_recipient": True},
    "number": {"template": "sale", "variables": {"percent": 25}},
    "groups": {
        "template": "sale",
        "audience": {
            "when": {
                "all": [
                    {"field": "traits.plan", "in": ["pro", "free"]},
                    {"any": [{"field": "traits.n", "greater_than": 1}, {"field": "traits.m", "exists": False}]},
                ]
            }
        },
    },
    "deep": {
        "template": "sale",
        "audience": {
            "attributes": {"plan": "pro", "n": 1, "paid": True},
            "when": {
                "all": [{"any": [{"all": [{"field": "traits.n", "equals": 1}]}, {"field": "traits.m", "equals": 2}]}]
            },
        },
    },
    "clicks": {"template": "sale", "arms": [{"name": "a"}, {"name": "b"}], "winner": {"share": 0.1, "after": "2d"}},
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file: Path = tmp_path_factory.mktemp("shop") / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with opened(file) as made:
        record(made, *((f"p{n}", "identify", {"plan": "pro", "email": f"p{n}@example.com"}) for n in range(5)))
        yield made


@pytest.fixture(scope="module")
def client(engine: Engine) -> TestClient:
    return signed_in(engine)


class _Form(html.parser.HTMLParser):
    """The fields of the form of a page, as a browser would send them."""

    def __init__(self, class_: str) -> None:
        super().__init__()
        self._class = class_
        self.fields: list[tuple[str, str]] = []
        self._inside = False
        self._select = self._text = ""
        self._options: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = self._class in given.get("class", "").split()
        if not self._inside:
            return
        is_off = given.get("type") in ("checkbox", "file") and "checked" not in given
        if tag == "input" and given.get("name") and not is_off:
            self.fields.append((given["name"], given.get("value", "")))
        elif tag == "select":
            self._select, self._options = given["name"], []
        elif tag == "option" and self._select:
            self._options.append((given.get("value", ""), "selected" in given))
        elif tag == "textarea":
            self._text = given["name"]
            self.fields.append((self._text, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "select" and self._select:
            chosen = [value for value, is_chosen in self._options if is_chosen] or [self._options[0][0]]
            self.fields.append((self._select, chosen[0]))
            self._select = ""
        elif tag == "textarea":
            self._text = ""
        elif tag == "form":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._text:
            name, before = self.fields[-1]
            self.fields[-1] = (name, before + (data.removeprefix("\n") if not before else data))


def fields_of(page: str, class_: str = "editor") -> list[tuple[str, str]]:
    """The fields of the first form of a class, as a browser sends them."""
    form = _Form(class_)
    form.feed(page)
    return form.fields


def _create(engine: Engine, id: str, **body: Any) -> None:
    token = engine.credentials.create("default", "token", f"create-{id}", ["admin"])[1]
    answer = TestClient(Application(engine, Settings(access_log=False))).post(
        f"/v1/broadcasts/{id}", json=body, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 200, answer.text


def _show(client: TestClient, engine: Engine, id: str) -> dict[str, Any]:
    token = engine.credentials.create("default", "token", "show", ["read"])[1]
    answer = client.get(f"/v1/broadcasts/{id}", headers={"Authorization": f"Bearer {token}"})
    return dict(answer.json()["broadcast"])


@pytest.mark.parametrize("name", BROADCASTS)
def test_a_draft_that_is_edited_and_saved_as_it_is_stays_the_same_and_a_duplicate_is_like_it(
    engine: Engine, client: TestClient, name: str
) -> None:
    _create(engine, name, **BROADCASTS[name])
    before = _show(client, engine, name)
    for page, operation, id in (
        (f"/broadcasts/{name}/edit", "broadcasts_edit", name),
        (f"/broadcasts/new?like={name}", "broadcasts_create", f"{name}-2"),
    ):
        answer = client.get(page)
        assert answer.status_code == 200
        fields = [(field, id if field == "id" else value) for field, value in fields_of(answer.text)]
        sent = client.post(f"/do/{operation}", data=dict(fields), headers={"accept": "application/json"})
        assert sent.status_code == 200, sent.text
        assert _show(client, engine, id) == before


def test_a_broadcast_that_was_started_is_no_form_any_more(engine: Engine, client: TestClient) -> None:
    _create(engine, "gone", template="sale", at="2027-01-01T00:00")
    client.post("/do/broadcasts_start", data={"_csrf": csrf_of(client, engine), "id": "gone"})
    answer = client.get("/broadcasts/gone/edit")
    assert answer.status_code == 409
    assert "only a draft can be changed" in answer.text


NAMES = (
    *broadcast_form.PLAIN,
    broadcast_form.TAGS,
    broadcast_form.SEND,
    broadcast_form.HOLDOUT,
    broadcast_form.SHARE,
    condition_form.BEYOND,
    "winner.metric",
    "winner.after",
    "arms.0.name",
    "arms.0.weight",
    "arms.0.subject",
    "variables.percent:json",
    "_when.0.field",
    "_when.0.value",
    "_when.0.is",
    "_when.how",
    "_do",
    "arms",
    "audience",
)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_texts_in_a_field_leave_the_form_a_form(engine: Engine, client: TestClient, name: str) -> None:
    page = client.get("/broadcasts/new").text
    usual = {**dict(fields_of(page)), "template": "sale", "_arm.0": "1", "winner.metric": "clicks", "_send": "at"}
    # Every string is tried at one of the parts, all of them over all fields.
    for number, text in enumerate(HOSTILE[NAMES.index(name) % 6 :: 6] + HOSTILE[-3:]):
        sent = {**usual, name: text}
        part = ("panel", "checked", "count", "")[number % 4]
        answer = client.post(f"/broadcasts/new?part={part}" if part else "/broadcasts/new", data=sent)
        assert answer.status_code == 200, (text, answer.text)
        assert unsafe(answer.text) == [], text
    answer = client.post(
        "/do/broadcasts_create", data={**usual, name: HOSTILE[-3]}, headers={"accept": "application/json"}
    )
    assert answer.status_code in (200, 400, 404, 409, 422), answer.text


def test_without_a_script_the_whole_page_answers_with_the_count_and_the_look(
    engine: Engine, client: TestClient
) -> None:
    usual = {**dict(fields_of(client.get("/broadcasts/new").text)), "template": "sale", "subject": "{{ percent }} days"}
    page = client.post("/broadcasts/new", data={**usual, "_do": "arm.add"}).text
    text = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert "people 5 can be reached now 5" in text
    assert "10 days" in text
    assert page.count('class="variant"') == 2


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("_holdout", "100", "no share"),
        ("_holdout", "many", "no share"),
        ("_send", "at", "choose the date"),
        ("_when.0.field", "traits.plan", "not finished"),
    ],
)
def test_a_mistake_in_the_form_is_named_and_no_draft_is_made(
    engine: Engine, client: TestClient, field: str, text: str, said: str
) -> None:
    usual = {**dict(fields_of(client.get("/broadcasts/new").text)), "template": "sale", "id": "mistake"}
    answer = client.post("/do/broadcasts_create", data={**usual, field: text}, headers={"accept": "application/json"})
    assert answer.status_code == 400
    assert said in answer.json()["problem"]
    assert client.get("/broadcasts/mistake").status_code == 404


def test_a_list_of_broadcasts_shows_no_placeholder_and_fills_in_what_is_the_same_for_everybody(
    engine: Engine, client: TestClient
) -> None:
    _create(engine, "named", template="note", variables={"until": "Sunday"})
    _create(engine, "filled", template="sale", subject="{% if x %}{{percent|upper}}{% endif %} off")
    text = client.get("/broadcasts").text
    assert not re.search("[{][{%]", text)
    assert "Hello …" in text
    assert "10 off" in text


def test_a_draft_shows_its_sending_domain_and_says_plainly_where_dns_cannot_be_asked(
    engine: Engine, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    _create(engine, "from", template="sale")
    monkeypatch.setattr(engine, "web", Offline())
    text = " ".join(re.sub("<[^>]+>", " ", client.get("/broadcasts/from?part=domain").text).split())
    assert "SPF unknown DNS cannot be asked from here" in text


@pytest.mark.parametrize(("who", "is_known"), [("", False), ("", True), ("user_id:someone", False)])
def test_a_test_of_a_broadcast_goes_to_its_address_marked_and_is_in_no_count_and_makes_no_person(
    engine: Engine, client: TestClient, who: str, is_known: bool
) -> None:
    names = [Identifier("email", "me@example.com")] if is_known else [Identifier("user_id", "someone")]
    engine.recorder.record([Event(type="page", identifiers=tuple(names), occurred_at=engine.clock(), key="known")])
    token = engine.credentials.create("default", "token", "read", ["read"])[1]
    auth = {"Authorization": f"Bearer {token}"}

    def people() -> list[str]:
        return sorted(person["id"] for person in client.get("/v1/people", headers=auth).json()["people"])

    before = people()
    _create(engine, "tried", template="sale", arms=[{"name": "a"}, {"name": "b", "subject": "Only today"}])
    engine.public_address.use_local("http://shop.example")
    sent = client.post(
        "/do/broadcasts_test",
        data={"_csrf": csrf_of(client, engine), "id": "tried", "address": "Me@Example.com", "person": who},
        headers={"accept": "application/json"},
    )
    if not who and not is_known:
        assert (sent.status_code, sent.json()["param"]) == (404, "person")
    assert people() == before, "a test makes nobody a person"
    if sent.status_code == 404:
        return
    assert sent.status_code == 200, sent.text
    dispatcher = open_dispatcher(engine, Settings())
    while dispatcher.run_once():
        pass
    mails = client.get("/v1/dev/inbox", params={"to": "me@example.com"}, headers=auth).json()["messages"]
    assert sorted(mail["subject"] for mail in mails) == ["[Test] 10 % off", "[Test] Only today"]
    for query in ({"broadcast": "tried"}, {"template": "sale"}):
        counts = client.get("/v1/feedback/counters", params=query, headers=auth).json()["counts"]
        assert counts["sent"].get("unique", 0) == 0
    history = client.get(f"/v1/people/{who or 'email:me@example.com'}/mail", headers=auth).json()
    assert history["mails"] == []
    wrong = client.post(
        "/do/broadcasts_test",
        data={"_csrf": csrf_of(client, engine), "id": "tried", "address": "nobody"},
        headers={"accept": "application/json"},
    )
    assert wrong.status_code == 400
    assert wrong.json()["param"] == "address"


ELSEWHERE = {
    "holdout": broadcast_form.HOLDOUT,
    "in_zone_of_recipient": broadcast_form.SEND,
    "winner.share": broadcast_form.SHARE,
    "audience.when": "_when.how",
    "audience.attributes": condition_form.BEYOND,
    "audience.tags": broadcast_form.TAGS,
}
"""Parts of a broadcast whose fields are called otherwise."""


def test_every_part_of_a_broadcast_has_a_field_in_its_form(engine: Engine, client: TestClient) -> None:
    body = {**BROADCASTS["all"], "template": "note"}
    body["winner"] = {**body["winner"], "event": "purchase_completed"}
    _create(engine, "every", **body)
    fields = {name for name, _ in fields_of(client.get("/broadcasts/every/edit").text)}
    inside = {"audience": Audience, "winner": Winner, "arms": Arm}
    parts = [name for name in Broadcast.__struct_fields__ if name not in (*inside, "variables")]
    for name, type in inside.items():
        parts += [f"{name}.0.{part}" if name == "arms" else f"{name}.{part}" for part in type.__struct_fields__]
    assert [part for part in parts if ELSEWHERE.get(part, part) not in fields] == []
    assert "variables.until" in fields
