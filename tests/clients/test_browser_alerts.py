"""A user's alerts in a real browser, on a page of another origin: shown, asked for again by ETag, dismissed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.clients.test_browser import browser, origin
from tests.surfaces.test_http_server import Process
from tests.surfaces.web_tokens import SECRET, token

pytestmark = pytest.mark.browser
__all__ = ["browser", "origin"]

ADMIN = {"Authorization": "Bearer tok-alone"}
ASK = """async ([url, token, method]) => {
    const answer = await fetch(url, {method, headers: {Authorization: `Bearer ${token}`}});
    return [answer.status, await answer.json()];
}"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    keys = {"THREADLINE_TOKENS": "tok-alone", "THREADLINE_ACCESS_LOG": "false", "THREADLINE_JWT_SECRET": SECRET}
    made = Process(tmp_path / "x.db", keys)
    yield made
    made.process.kill()
    made.process.communicate()


def answered(server: Process, route: str) -> dict[str, int]:
    """How often requests at an address got which status."""
    lines = httpx.get(f"{server.url}/metrics", headers=ADMIN).text.splitlines()
    counts = [
        line.split('status="')
        for line in lines
        if line.startswith('threadline_http_requests_total{method="GET"') and route in line
    ]
    return {rest.partition('"')[0]: int(rest.split()[-1]) for _, rest in counts}


def test_a_browser_asks_again_by_itself_and_gets_what_changed(browser: Any, origin: str, server: Process) -> None:
    def write(title: str) -> None:
        answer = httpx.post(f"{server.url}/v1/alerts/sale", json={"title": title}, headers=ADMIN)
        assert answer.status_code == 200, answer.text

    context = browser.new_context()
    tab = context.new_page()
    tab.goto(f"{origin}/page/index.html#")
    user = token({"sub": "ada", "exp": int(time.time()) + 600})
    graphql = "/graphql?query=" + quote("{ alerts { title } }")

    def ask(path: str, method: str = "GET") -> Any:
        status, answer = tab.evaluate(ASK, [server.url + path, user, method])
        assert status == 200, answer
        return answer

    write("one")
    for route, path in (("/ux/user/alerts", "/ux/user/alerts"), ("/graphql", graphql)):
        titles = [
            [each["title"] for each in (found.get("data") or found)["alerts"]] for found in (ask(path), ask(path))
        ]
        assert titles == [["one"], ["one"]]
        assert answered(server, f'"{route}"') == {"200": 1, "304": 1}
    write("two")
    assert ask("/ux/user/alerts")["alerts"][0]["title"] == "two"
    assert ask(graphql) == {"data": {"alerts": [{"title": "two"}]}}
    assert ask("/ux/user/alerts/sale/dismiss", "POST")["receipt"]["status"] == "accepted"
    assert ask("/ux/user/alerts")["alerts"] == []
    context.close()
