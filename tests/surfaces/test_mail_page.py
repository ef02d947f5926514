"""The page of templates: each as it would go to somebody, made again when its files change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.chromium import launched
from tests.surfaces.conftest import Clock, Keys, client_of
from tests.surfaces.test_inbox import opened
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.event import Event, Identifier
from threadline.stores.memory import MemoryStore

SHOP = """
mail:
  senders: {shop: {from: hello@shop.example, name: The Shop}}
  templates:
    welcome: {subject: "Welcome, {{ person.traits.first_name | default('you') }}", html: welcome.html, topic: news}
"""
WELCOME = """<style>h1 {{ color: #00734f }}</style><body style="font: 16px sans-serif; padding: 20px">
<h1>{heading}, {{{{ person.traits.first_name | default("you") }}}}</h1><script>document.title = "ran"</script>
<p>Three records wait for you.</p><p><a href="{{{{ unsubscribe_url }}}}">Unsubscribe</a></p></body>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "welcome.html").write_text(WELCOME.format(heading="Hello"))
    return tmp_path


def engine_of(folder: Path, clock: Clock, definitions: str = SHOP) -> Engine:
    found = Definitions([(str(folder / "shop.yaml"), definitions)])
    engine = Engine(MemoryStore(), Catalogue(discover(definitions=found), rules()), clock)
    engine.public_address.use_local("http://localhost:8787")
    traits = {"email": "ada@example.com", "first_name": "Ada"}
    event = Event(
        type="identify", identifiers=(Identifier("user_id", "ada"),), occurred_at=clock.now, key="1", properties=traits
    )
    engine.recorder.record([event])
    return engine


@pytest.fixture
def engine(folder: Path, clock: Clock) -> Iterator[Engine]:
    made = engine_of(folder, clock)
    yield made
    made.close()


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    with client_of(engine) as made:
        yield made


def test_the_page_holds_no_data_and_a_preview_needs_a_token(client: TestClient) -> None:
    page = client.get("/dev/mail")
    assert page.status_code == 200
    assert "welcome" not in page.text
    assert client.post("/v1/mail/templates/welcome/preview", json={}).status_code == 401


def test_there_is_no_page_where_mail_goes_elsewhere(folder: Path, clock: Clock) -> None:
    engine = engine_of(folder, clock, f"{SHOP}  provider: {{url: 'smtp://127.0.0.1:2525?tls=off'}}\n")
    with client_of(engine) as client:
        assert client.get("/dev/mail").status_code == 404
    engine.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_a_template_at_two_widths_and_follows_its_file(
    browser: Any, client: TestClient, keys: Keys, folder: Path, scheme: str, tmp_path: Path
) -> None:
    size = {"width": 1500, "height": 900}
    tab = opened(browser, client, f"/dev/mail#token={keys.read}", color_scheme=scheme, viewport=size)
    tab.click("#list button")
    tab.wait_for_selector("iframe")
    assert tab.locator("#mail h2").inner_text() == "Welcome, [first_name]"
    tab.fill("#person", "ada")
    tab.locator("#person").dispatch_event("change")
    tab.get_by_text("Welcome, Ada").wait_for()
    tab.wait_for_function("document.querySelectorAll('iframe').length === 2")
    assert sorted(frame.evaluate("innerWidth") for frame in tab.frames[1:]) == [373, 658]
    heading = tab.frames[1].locator("h1")
    assert heading.inner_text() == "Hello, Ada"
    assert heading.evaluate("element => getComputedStyle(element).color") == "rgb(0, 115, 79)"
    assert "ran" not in (tab.title(), tab.frames[1].title())
    (folder / "welcome.html").write_text(WELCOME.format(heading="Good morning"))
    tab.frame_locator("iframe >> nth=0").get_by_text("Good morning, Ada").wait_for()
    tab.screenshot(path=str(tmp_path / f"mail-{scheme}.png"))
    (folder / "welcome.html").write_text("<p>{{ persn.id }}</p>")
    tab.get_by_text("did you mean 'person'?").wait_for()
    (folder / "welcome.html").write_text(WELCOME.format(heading="Hello"))
    tab.frame_locator("iframe >> nth=0").get_by_text("Hello, Ada").wait_for()
    for part, shown in [("Text", "Three records wait"), ("Headers", "One-Click"), ("Raw", "MIME-Version: 1.0")]:
        tab.get_by_role("button", name=part, exact=True).click()
        assert shown in tab.locator("#mail").inner_text()
    tab.close()
