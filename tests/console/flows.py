"""What flows in a browser begin with: a server in a process of its own, and somebody who is signed in."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients.server import Server

TOKEN = "console-token-1"
WAIT_MILLISECONDS = 60_000
"""For anything on a page; a busy machine takes its time."""


@contextmanager
def running(folder: Path, definitions: str = "") -> Iterator[Server]:
    """A server on an empty store in a folder, with these definitions in a file; without any there is no file."""
    if definitions:
        (folder / "threadline.yaml").write_text(definitions)
    served = Server(folder / "threadline.db", tokens=f"admin={TOKEN}")
    served.start()
    try:
        yield served
    finally:
        served.stop()


def post(url: str, path: str, body: dict[str, Any]) -> None:
    """Ask a server for something that it has to do."""
    request = urllib.request.Request(
        f"{url}{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


class Visit:
    """Somebody who is signed in, and what went wrong in their browser."""

    def __init__(self, browser: Any, url: str, width: int = 1_600, scheme: str = "light", **more: Any) -> None:
        self.url = url
        self.faults: list[str] = []
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
        context.set_default_timeout(WAIT_MILLISECONDS)
        self.page = context.new_page()
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda each: (self.faults.append(f"dialog: {each.message}"), each.dismiss()))
        self.page.on("request", self._asked)
        self.page.on("console", self._said)
        self.page.goto(f"{url}/sign-in")
        self.page.fill("[name=password]", TOKEN)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{url}/")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.faults.append(f"foreign: {request.url}")

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text} {message.location}")

    def open(self, path: str) -> None:
        """Go there, and wait until every part that is seen has come."""
        self.page.goto(f"{self.url}{path}")
        self.page.wait_for_selector("[aria-busy=true]", state="detached")
        self.page.wait_for_timeout(120)
