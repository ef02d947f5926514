"""A capability with all that it may declare is a folder: nothing else has to be edited."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.console.stage import signed_in
from tests.surfaces.conftest import Clock
from threadline.app import open_dispatcher
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.operations.catalogue import catalogue as catalogue_operation
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.folding.capabilities import Capabilities, shipped
from threadline.engine.folding.catalogue import Catalogue
from threadline.exports.curated.reading import opened
from threadline.kernel.capability import Capability
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event, Identifier
from threadline.kernel.operation import NoParams
from threadline.kernel.policy import Read, Reliance
from threadline.kernel.sender import SenderFactory
from threadline.settings import Settings
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.mcp.tools import TOOLS

FILES = {
    "__init__": '"""Pages somebody, and has them answer."""\n',
    "policy": '''"""Pages at every alarm."""
from threadline.kernel.operation import NoParams
from threadline.kernel.policy import Effect, Policy

def react(recorded, known):
    return [Effect(kind="page", key="page", data={"text": recorded.event.properties["text"]})]

PAGING = Policy("paging", frozenset({"alarm"}), react, emits=frozenset(), sends=frozenset({"page"}))
''',
    "events": '''"""What is recorded of pages."""
from typing import Annotated
from msgspec import Meta
from threadline.kernel.event_type import EventType, Properties

class Answered(Properties):
    within: Annotated[int, Meta(description="Minutes.")]
    team: Annotated[str, Meta(description="Who answered.")]

ANSWERED = EventType(
    "page_answered", "Somebody has answered a page.", Answered, speaker="process",
    sentence="Answered the page within {within} minutes", lasts="a page would be sent again",
)
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
    "asking": '''"""The pages as operators see them: an operation, a screen, a view, an address for programs."""
import msgspec
from threadline.kernel.operation import Group, NoParams, Operation
from threadline.kernel.operation import NoParams
from threadline.kernel.policy import Read, Reliance
from threadline.kernel.public_route import PublicAnswer, PublicRoute
from threadline.kernel.screen import Screen
from threadline.kernel.sql_view import SqlView

class Pages(msgspec.Struct, kw_only=True):
    """How many there were."""

    count: int

LIST = Operation(
    name="pages_list", group=Group("pages", "Pages."), summary="Count the pages.", params=NoParams, result=Pages,
    run=lambda context, params: Pages(count=7), method="GET", path="/v1/pages", tool="list_definitions pages",
)
SCREEN = Screen(
    name="pages", path="/paged", title="Pages of ours", template="pager_capability:pages.html",
    load=lambda asking: asking.ask("pages_list"), operation="pages_list",
)
VIEW = SqlView("alarms", "Alarms.", "SELECT count(*) AS alarms FROM events WHERE type = 'alarm'")
STATUS = PublicRoute(
    "page_status", "Say whose pages.", "POST", "/paging/status",
    lambda engine, request: PublicAnswer(request.workspace.encode(), "text/plain"), scope="read",
)
RELIES = Reliance("pages", (Read("profile"),))
''',
}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Engine]:
    from threadline.stores.memory import MemoryStore

    folder = tmp_path / "pager_capability"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "templates").mkdir()
    (folder / "templates" / "pages.html").write_text(
        '{% extends "base.html" %}{% block content %}<p>{{ count }} <b>pages</b> {{ "<i>" }}</p>{% endblock %}'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PAGER", "loud:")
    capabilities = Capabilities((*shipped(), Capability("pager", folder.name)))
    yield Engine(MemoryStore(), Catalogue.declared(Definitions(), rules(), capabilities=capabilities), clock)
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


def test_a_screen_with_a_template_of_its_own_is_shown_and_is_in_the_navigation(engine: Engine) -> None:
    page = signed_in(engine).get("/paged").text
    assert "7 <b>pages</b> &lt;i&gt;" in page
    assert page.count("Pages of ours") > 1


def test_an_operation_is_a_choice_of_the_tool_that_it_names(engine: Engine) -> None:
    operations = {operation.name: operation for operation in engine.catalogue.operations}
    offered = {tool.name: tool.all_calls(operations) for tool in TOOLS}
    assert offered["list_definitions"]["pages"].operation == "pages_list"
    assert [name for name, calls in offered.items() if "pages" in calls] == ["list_definitions"]


def test_a_public_route_with_a_scope_takes_a_token_and_answers_for_its_workspace(
    client: TestClient, engine: Engine
) -> None:
    assert client.post("/paging/status").status_code == 401
    tokens = {scope: engine.credentials.create("acme", "token", scope, [scope])[1] for scope in ("read", "write")}
    answers = {
        scope: client.post("/paging/status", headers={"authorization": f"Bearer {secret}"})
        for scope, secret in tokens.items()
    }
    assert (answers["read"].text, answers["write"].status_code) == ("acme", 403)
    assert client.get("/openapi.json").json()["paths"]["/paging/status"]["post"]["security"] == [{"token": []}]


def test_a_view_is_a_table_of_sql(engine: Engine) -> None:
    ada = (Identifier("user_id", "ada"),)
    engine.recorder.record(
        [
            Event(type="alarm", identifiers=ada, occurred_at=engine.clock(), key=f"{n}", properties={"text": "fire"})
            for n in range(3)
        ]
    )
    with opened(engine, None, "default") as reading:
        assert reading.run("SELECT alarms FROM alarms").read_all().to_pylist() == [{"alarms": 3}]
        assert "alarms" in {row["name"] for row in reading.run("SHOW TABLES").read_all().to_pylist()}


def test_what_operations_rely_on_is_refused_where_it_can_never_have_a_value(engine: Engine) -> None:
    reliance = Reliance("others", (Read("profil", (), "threadline.yaml:3"),))
    with pytest.raises(InvalidDefinition, match=r"threadline\.yaml:3: nothing is known under 'profil'"):
        Catalogue([*engine.catalogue.projections, reliance], rules())


def answered(source_type: str, at: int) -> Event:
    ada = (Identifier("user_id", "ada"),)
    given = {"within": 7, "team": "red"}
    return Event(
        type="page_answered",
        identifiers=ada,
        occurred_at=at,
        key=source_type,
        properties=given,
        source_type=source_type,
        source="site",
    )


def test_an_event_type_in_a_folder_reads_well_everywhere_and_only_its_speaker_says_it(
    engine: Engine, client: TestClient
) -> None:
    receipts = engine.recorder.record([answered("direct", engine.now()), answered("external", engine.now())])
    believed, forged = (receipt.id for receipt in receipts)
    console = signed_in(engine)
    person = engine.reader.person("default", "user_id:ada")
    assert console.get(f"/people/{person.id}").text.count("Answered the page within 7 minutes") >= 2
    assert ">not counted<" in console.get(f"/events/{forged}").text
    assert ">not counted<" not in console.get(f"/events/{believed}").text
    assert "Somebody has answered a page." in console.get("/schemas").text
    catalogue = catalogue_operation.run(Context(engine, "default", engine.now()), NoParams())
    [declared] = [type for type in catalogue.types if type.name == "page_answered"]
    assert [*declared.properties["properties"]] == ["within", "team"]
    docs = client.get("/docs").text
    row = docs.partition('id="event-type-page_answered"')[2].partition("</tr>")[0]
    assert "Somebody has answered a page." in row
    assert "<code>within</code>: Minutes; <code>team</code>: Who answered" in row
    assert "a page would be sent again" in row
    assert engine.reader.views(person, engine.now())["activity"]["events"] == 1
    with opened(engine, None, "default") as reading:
        rows = reading.run("SELECT id, p_within, p_team FROM typed.page_answered").read_all().to_pylist()
        assert rows == [{"id": believed, "p_within": 7, "p_team": "red"}]
        assert reading.run("SELECT id FROM uncounted_events").read_all().to_pylist() == [{"id": forged}]
