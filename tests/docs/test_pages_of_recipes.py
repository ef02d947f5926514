"""The HTML of recipes in a real browser, beside the server that the recipe starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import threadline
from tests.chromium import launched
from tests.clients.server import wait_until
from tests.docs.markdown import ROOT, snippets
from tests.docs.session import Session

pytestmark = pytest.mark.browser

SENT = {"page", "purchase_completed", "identify"}
"""What the visitor of the shop does."""

Visit = Callable[[str, str], tuple[Any, threadline.Client]]


class Quiet(SimpleHTTPRequestHandler):
    """Serves the folder in which the recipe was carried out."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def visit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visit]:
    """Carry out a recipe, and open its page in a browser."""
    monkeypatch.chdir(tmp_path)
    sessions: list[Session] = []
    # Another origin than the server's, as a shop's site is.
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=site.serve_forever, daemon=True).start()
    with launched("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1") as browser:

        def opened(recipe: str, page: str) -> tuple[Any, threadline.Client]:
            session = Session(f"docs/recipes/{recipe}.md", tmp_path)
            sessions.append(session)
            for snippet in snippets((ROOT / session.page).read_text()):
                session.run(snippet)
            tab = browser.new_page()
            tab.goto(f"http://localhost:{site.server_port}/{page}")
            return tab, threadline.Client(f"http://127.0.0.1:{session.port}", token="tk-example")

        yield opened
    site.shutdown()
    site.server_close()
    for session in sessions:
        session.close()


def test_leaderboard_page_shows_nicknames_as_text(visit: Visit) -> None:
    tab, client = visit("leaderboard-widget", "board.html")
    client.close()
    tab.wait_for_selector("li")
    assert tab.locator("li").all_inner_texts() == ["Ada <3: 20 points", "Bob: 10 points"]


def test_browser_snippet_joins_the_visit_with_the_person_who_signs_in(visit: Visit) -> None:
    tab, client = visit("browser", "shop.html")
    with client:
        tab.click("#buy")
        tab.click("#sign-in")

        def arrived() -> bool:
            people = client.people.list(identifier="ada").people
            return bool(people) and len(client.events.of("ada").events) == len(SENT)

        wait_until(arrived, "the three events of the visit")
        assert {event.type for event in client.events.of("ada").events} == SENT
        assert client.features.of("ada").features["monetary_total"].value == 60
