"""A capability with a sender and public routes is a folder: nothing else has to be edited."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Clock
from threadline.app import open_dispatcher
from threadline.capabilities.definitions import Definitions
from threadline.capabilities.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event, Identifier
from threadline.kernel.sender import SenderFactory
from threadline.settings import Settings
from threadline.surfaces.http.application import Application

FILES = {
    "__init__": '"""Pages somebody, and has them answer."""\n',
    "policy": '''"""Pages at every alarm."""
from threadline.kernel.policy import Effect, Policy

def react(recorded, known):
    return [Effect(kind="page", key="page", data={"text": recorded.event.properties["text"]})]

PAGING = Policy("paging", frozenset({"alarm"}), react, emits=frozenset(), sends=frozenset({"page"}))
''',
    "sender": '''"""Sends pages."""
from threadline.kernel.sender import EFFECT_DONE, Outcome, SenderFactory

class Pager:
    kind = "page"

    def __init__(self, ports):
        self.sent = []
        self.prefix = f"{ports.settings.host} {ports.environment('PAGER')}"

    def send(self, effect, effect_id, person):
        return Outcome(type=EFFECT_DONE, properties={"sent": f"{self.prefix} {effect.data['text']}"})

SENDER = SenderFactory("page", Pager)
''',
    "pages": '''"""The page behind a link, and what its button posts."""
import html
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.public_route import PublicAnswer, PublicRoute

def show(engine, request):
    if request.path["token"] == "forged":
        raise NotFound("this link is not valid")
    return PublicAnswer(html.escape(f"{request.path['token']} {request.query.get('list', '')}").encode())

def confirm(engine, request):
    who = Identifier("user_id", request.path["token"])
    said = {"body": request.body.decode(), "type": request.headers["content-type"]}
    event = Event(type="confirmed", identifiers=(who,), occurred_at=request.now, key="1", properties=said)
    engine.recorder.record([event])
    return PublicAnswer(b"ok", "text/plain", 202, {"x-confirmed": "yes"})

SHOW = PublicRoute("show_page", "Show the page.", "GET", "/pages/{token}", show)
CONFIRM = PublicRoute("confirm_page", "Confirm the page.", "POST", "/pages/{token}", confirm, body_bytes_max=20)
''',
}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Engine]:
    from threadline.stores.memory import MemoryStore

    folder = tmp_path / "pager_capability"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PAGER", "loud:")
    found = [*discover(definitions=Definitions()), *discover(folder.name, definitions=Definitions())]
    yield Engine(MemoryStore(), Catalogue(found, rules()), clock)
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    with TestClient(Application(engine, Settings(access_log=False))) as client:
        yield client


def test_a_sender_in_a_folder_is_made_of_its_ports_and_sends(engine: Engine) -> None:
    ada = (Identifier("user_id", "ada"),)
    engine.recorder.record(
        [Event(type="alarm", identifiers=ada, occurred_at=engine.clock(), key="1", properties={"text": "fire"})]
    )
    assert open_dispatcher(engine, Settings(host="here")).run_once() == 1
    person = engine.reader.person("default", "user_id:ada")
    [outcome] = engine.reader.events(person, types=frozenset({"threadline.effect_done"}))
    assert outcome.event.properties["sent"] == "here loud: fire"


def test_two_senders_of_one_kind_are_refused(engine: Engine) -> None:
    second = SenderFactory("page", lambda ports: pytest.fail("made"))
    with pytest.raises(InvalidDefinition, match="'page'"):
        Catalogue([*engine.catalogue.senders, second], rules())


def test_a_public_page_needs_no_credential_and_is_not_cached(client: TestClient) -> None:
    answer = client.get("/pages/ada", params={"list": "<news>"})
    assert (answer.status_code, answer.text) == (200, "ada &lt;news&gt;")
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert client.head("/pages/ada").text == ""


def test_a_public_body_is_recorded_by_its_route(client: TestClient, engine: Engine) -> None:
    answer = client.post("/pages/ada", content="One-Click", headers={"content-type": "text/plain"})
    assert (answer.status_code, answer.text, answer.headers["x-confirmed"]) == (202, "ok", "yes")
    person = engine.reader.person("default", "user_id:ada")
    [event] = engine.reader.events(person, types=frozenset({"confirmed"}))
    assert event.event.properties == {"body": "One-Click", "type": "text/plain"}


def test_errors_of_a_public_route_are_problems(client: TestClient) -> None:
    assert client.get("/pages/forged").json()["code"] == "not_found"
    assert client.post("/pages/ada", content="x" * 21).status_code == 413
    assert client.delete("/pages/ada").status_code == 405


def test_public_routes_are_in_the_openapi_document(client: TestClient) -> None:
    methods = client.get("/openapi.json").json()["paths"]["/pages/{token}"]
    assert {method: body["security"] for method, body in methods.items()} == {"get": [], "post": []}
    assert "show_page" in client.get("/docs").text
